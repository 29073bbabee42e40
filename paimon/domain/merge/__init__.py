"""Merging: what the records of one key become, by merge engine and aggregate function."""
