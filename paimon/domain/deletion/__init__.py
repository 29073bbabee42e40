"""Deletion vectors and the index files that store them."""
