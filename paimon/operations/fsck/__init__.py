"""Checks that a table is complete and consistent; each fault is reported with the states that it affects."""
