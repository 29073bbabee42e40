"""Publication of prepared files as snapshots: attempts, conflict checks, retries, callbacks and aborts."""
