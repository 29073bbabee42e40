"""What is held against a history when everybody is done."""
