"""What is wrong with a table, as values: faults, and the rules that find them in metadata alone."""
