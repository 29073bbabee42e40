"""Dynamic buckets: which bucket holds which keys."""
