"""Buckets: bucket functions, dynamic buckets and their hash index, cross-partition keys, and postponed buckets."""
