"""Catalogs in directories and in JDBC databases."""
