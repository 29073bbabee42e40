"""LSM trees: sorted runs, their keys, lookup hashes, the expiry of records, and what compaction picks."""
