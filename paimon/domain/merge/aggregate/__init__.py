"""Aggregate functions: a reference and a columnar function for each, their options and their registry."""
