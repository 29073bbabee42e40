"""Plan scans: prune manifests and files, and pack the remaining files into splits."""
