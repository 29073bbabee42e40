"""Query engines."""
