"""Read rows: choose a snapshot, plan splits, and read or merge the files of a split."""
