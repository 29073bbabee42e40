"""Rows outside Arrow: internal values, binary rows and their hashes."""
