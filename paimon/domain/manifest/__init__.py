"""Manifests, manifest lists and index manifests: their values, codecs, statistics and merging."""
