"""Compaction: select the files of each bucket, rewrite them, look keys up in higher levels, and commit the result."""
