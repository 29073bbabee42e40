"""Commits: messages, changes, conflicts, the next snapshot, and the decisions of publishing it."""
