"""Use cases: the only code that calls ports, and that calls the domain with what it read."""
