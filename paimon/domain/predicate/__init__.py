"""Predicates on rows: build and parse them, bind them to a schema, evaluate them, and prune files by statistics."""
