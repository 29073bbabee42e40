"""UPDATE, DELETE and MERGE as Spark tasks."""
