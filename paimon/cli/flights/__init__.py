"""The flights pipeline: a change stream of 336,776 real flights, upserted through Spark, read back, checked and shown."""
