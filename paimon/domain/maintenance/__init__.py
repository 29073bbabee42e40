"""Plans of maintenance: small-file compaction, expiry of snapshots, tags and partitions, and table checks."""
