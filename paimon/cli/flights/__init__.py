"""The flights pipeline: a change stream of 336,776 flights, upserted through Spark, read back, checked, shown."""
