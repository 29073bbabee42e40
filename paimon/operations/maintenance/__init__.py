"""Maintenance that runs after a commit."""
