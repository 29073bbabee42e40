"""Ways to publish a snapshot."""
