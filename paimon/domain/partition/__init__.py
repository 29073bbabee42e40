"""Partitions: their values as text, their directories, and specs that users write."""
