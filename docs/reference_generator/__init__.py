"""Generators of the pages under docs/reference, one module a page."""
