"""Follow a table: find where a stream scan starts, return the changes of each snapshot, and record the progress."""
