"""Reads and writes of data files, deletion vectors and their index files."""
