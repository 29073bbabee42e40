"""Rows as text: JSON lines, aligned lines, and small tables."""
