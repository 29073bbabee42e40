"""Write rows: route them to buckets, buffer, merge and write files, compact inline, and commit with visible rows."""
