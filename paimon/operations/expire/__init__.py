"""Expiry of snapshots, changelogs and partitions, and the deletion of files that no reference needs."""
