"""Expressions that an update assigns to columns."""
