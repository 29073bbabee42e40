"""Delete and update single rows of append tables and of primary-key tables."""
