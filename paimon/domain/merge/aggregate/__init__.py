"""Aggregate functions: a folding and a columnar function for each, their options and their registry."""
