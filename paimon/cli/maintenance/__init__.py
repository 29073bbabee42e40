"""Commands that maintain a table: compact, expire, tag, branch, consumer, orphans, rollback, fsck."""
