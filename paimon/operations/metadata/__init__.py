"""Reads of snapshots, schemas, manifests, tags and consumers; the other operations use this package."""
