"""Datasets of other frameworks over the splits of a read: PyTorch, Ray."""
