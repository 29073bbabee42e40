"""Proving that a table is whole, or naming each fault."""
