"""Following a table: its changes as they are committed."""
