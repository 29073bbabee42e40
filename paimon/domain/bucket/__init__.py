"""Bucket functions: which bucket of its partition a row belongs to."""
