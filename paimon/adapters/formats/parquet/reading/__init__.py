"""Reading Parquet data files."""
