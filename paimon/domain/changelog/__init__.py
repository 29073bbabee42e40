"""Changelogs: what a compaction, an incremental read, a stream scan or the binlog table returns as changes."""
