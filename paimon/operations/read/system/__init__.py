"""Build the system tables, such as `snapshots` and `files`, from metadata."""
