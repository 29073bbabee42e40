"""Plans of maintenance: small files, rescale, expiry of snapshots, tags and partitions, and table checks."""
