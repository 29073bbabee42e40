"""Expressions that an update assigns to columns, and the clauses of a merge."""
