"""Snapshots and tags, their JSON files, and the periods of automatic tags."""
