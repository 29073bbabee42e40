"""SQL statements over catalogs: parse a script, run each statement, and return its rows.

The package lies below `paimon.catalog`, which it knows only by the protocol of `paimon.sql.session`.
"""
