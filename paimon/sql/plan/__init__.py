"""Plan queries: what the scans of the tables evaluate, and what the query engine evaluates."""
