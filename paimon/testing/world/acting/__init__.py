"""Who acts in a history, and what they do and tell."""
