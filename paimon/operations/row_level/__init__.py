"""Delete and update rows that a condition selects, and merge a source into a table."""
