"""A warehouse as a catalog of a Spark session, by Python objects that implement Spark's interfaces."""
