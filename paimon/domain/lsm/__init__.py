"""LSM trees: sorted runs, their keys, key indexes, the expiry of records, and what compaction picks."""
