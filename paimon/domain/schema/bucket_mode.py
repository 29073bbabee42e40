"""Bucket modes: how a table decides which bucket a row belongs to.

Source: `BucketMode`, `FileStoreTable.bucketMode`.
"""

from __future__ import annotations

from enum import Enum

from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.layout import POSTPONED, UNAWARE
from paimon.domain.schema.table_schema import TableSchema


class BucketMode(Enum):
    """How the bucket of a row is found; the values are Java's names."""

    FIXED = "HASH_FIXED"
    """The hash of the bucket key, modulo the number of buckets."""
    DYNAMIC = "HASH_DYNAMIC"
    """Hash index files record the bucket of each key of a partition."""
    CROSS_PARTITION = "KEY_DYNAMIC"
    """A key index records the partition and the bucket of each key of the table."""
    UNAWARE = "BUCKET_UNAWARE"
    """All files of an append table are in bucket 0."""
    POSTPONED = "POSTPONE_MODE"
    """Writers add files to bucket -2; a compaction moves their rows to real buckets."""


def get_bucket_mode(schema: TableSchema, options: TableOptions) -> BucketMode:
    """Return the bucket mode that follows from the option `bucket` and the keys of a table."""
    if options.bucket == POSTPONED:
        return BucketMode.POSTPONED
    if options.bucket != UNAWARE:
        return BucketMode.FIXED
    if not schema.primary_keys:
        return BucketMode.UNAWARE
    crosses = any(name not in schema.primary_keys for name in schema.partition_keys)
    return BucketMode.CROSS_PARTITION if crosses else BucketMode.DYNAMIC
