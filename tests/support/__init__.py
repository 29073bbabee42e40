"""Code that several tests use: prepared tables, golden tables, damage, servers, and Java Paimon as a process."""
