"""File indexes: which rows of a data file can match a condition."""
