"""The flights pipeline: a change stream of 336,776 flights, written through Spark, read back, checked and drawn."""
