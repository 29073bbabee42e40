"""SQL statements on Spark: Spark evaluates the queries, and its tasks write the rows."""
