"""Avro: container files, records and data files."""
