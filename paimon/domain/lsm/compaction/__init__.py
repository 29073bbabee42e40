"""Compaction of one bucket: which runs are picked, and what happens to each of their files."""
