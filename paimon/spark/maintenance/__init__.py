"""Maintenance of tables as Spark tasks: one task per unit, and one commit by the driver."""
