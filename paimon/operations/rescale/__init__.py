"""Rewrite partitions to another number of buckets."""
