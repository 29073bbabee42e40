"""Temporary data on the local disk."""
