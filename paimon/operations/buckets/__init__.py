"""Dynamic buckets: the hash index of each bucket, and the key index of cross-partition tables."""
