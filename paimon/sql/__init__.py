"""SQL statements over catalogs: parse a script, run each statement, and return its rows.

The package does not import `paimon.catalog`. It uses catalogs through the protocol in `paimon.sql.session`.
"""
