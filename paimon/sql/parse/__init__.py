"""Parse SQL scripts into statements, which are values."""
