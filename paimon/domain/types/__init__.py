"""Data types of the format and their text, JSON and Arrow forms."""
