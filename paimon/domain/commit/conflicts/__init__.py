"""Checks whether a change still fits the snapshot that it is committed on."""
