"""Storages: the local disk, object stores through obstore, and any file system of fsspec."""
