"""Executors that run tasks one after the other, in threads, or on Spark."""
