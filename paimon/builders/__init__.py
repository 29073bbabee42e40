"""Programs in steps: builders of reads, writes, streams, row updates and merges, and how rows are written at once."""
