"""Data file formats (Parquet, ORC, Avro) and metadata records."""
