"""What all Spark jobs share: rows sent between tasks, buckets of tasks, and the messages that tasks return."""
