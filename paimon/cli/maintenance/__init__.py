"""Commands that maintain a table: compact, rescale, expire, tag, branch, consumer, orphans, rollback, fsck."""
