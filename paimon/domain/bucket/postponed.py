"""Rules of postponed buckets (`bucket` = -2): the form of postponed files, and the first number of buckets.

Writers append rows to `bucket-postpone` without merging them. A compaction moves the rows to real buckets later.
Invariant: a partition that has real buckets keeps their number. The functions are pure; the number that makes the names
of one writer's files unique comes in as a value. Source: `PostponeBucketFileStoreWrite`, `PostponeUtils`.
"""

from __future__ import annotations

from attrs import evolve

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.files import can_store_columns
from paimon.domain.schema.table_definition import TableDefinition

POSTPONED_SEQUENCE_NUMBER = -1
"""The sequence number of postponed rows: their order is that of the files and of the rows in a file."""
MAX_BUCKETS = 2**31 - 1
_FORMAT = "avro"


def to_postponed_files_table(table: TableDefinition, commit_user: str, writer_id: int) -> TableDefinition:
    """Return the table with the options that the postponed files of one writer have.

    Files are Avro without statistics, unless Avro cannot store a column. File names contain `commit_user` and
    `writer_id`, a random number of 31 bits, so that they are unique. A user that no file name can contain is refused.
    """
    if "/" in commit_user or "\\" in commit_user or "\0" in commit_user:
        raise InvalidRequest(
            f"Commit user {commit_user!r} contains a character that file names cannot contain, "
            "and postponed files have it in their names",
            subject="commit_user",
            hint="use letters, digits, '-' and '_'",
        )
    values = {"data-file.prefix": f"{table.options.data_file_prefix}-u-{commit_user}-s-{writer_id}-w-"}
    if can_store_columns(table.schema, _FORMAT):
        values |= {"file.format": _FORMAT, "metadata.stats-mode": "none"}
    return evolve(table, options=table.options.with_values(values))


def to_bucketed_table(table: TableDefinition, buckets: int, *, write_only: bool) -> TableDefinition:
    """Return the table with a fixed number of buckets; with `write_only`, its writer does not compact."""
    values = {"bucket": str(buckets), "write-only": str(write_only).lower()}
    return evolve(table, options=table.options.with_values(values))


def compute_first_buckets(options: TableOptions, rows: int, size_bytes: int) -> int:
    """Compute the number of buckets (at least 1) of a partition that has no real bucket yet.

    `rows` and `size_bytes` are those of its postponed files.

    >>> compute_first_buckets(TableOptions.of({"postpone.target-row-num-per-bucket": "10"}), 21, 0)
    3
    """
    if options.postpone_default_bucket_num is not None:
        return options.postpone_default_bucket_num
    if options.postpone_target_rows_per_bucket is not None:
        return _divide(rows, options.postpone_target_rows_per_bucket, "postpone.target-row-num-per-bucket")
    if options.postpone_target_bytes_per_bucket is not None:
        return _divide(size_bytes, options.postpone_target_bytes_per_bucket, "postpone.target-size-per-bucket")
    return 1


def depends_on_rows(options: TableOptions) -> bool:
    """Return whether the first number of buckets of a partition depends on its rows."""
    targets = (options.postpone_target_rows_per_bucket, options.postpone_target_bytes_per_bucket)
    return options.postpone_default_bucket_num is None and targets != (None, None)


def compute_written_buckets(options: TableOptions, rows: int, size_bytes: int) -> int:
    """Compute the number of buckets of a new partition that one writer writes without postponing rows.

    It is that of `compute_first_buckets`, but a number that follows from a target is limited by
    `postpone.batch-write-fixed-bucket.max-parallelism`. `size_bytes` is the size of the rows in memory.

    >>> limited = {"postpone.target-row-num-per-bucket": "1", "postpone.batch-write-fixed-bucket.max-parallelism": "8"}
    >>> compute_written_buckets(TableOptions.of(limited), 21, 0)
    8
    """
    found = compute_first_buckets(options, rows, size_bytes)
    return found if options.postpone_default_bucket_num is not None else min(found, options.postpone_max_parallelism)


def compute_parallel_buckets(options: TableOptions, tasks: int) -> int:
    """Compute the number of buckets of new partitions that parallel tasks write without postponing rows.

    It is `postpone.default-bucket-num` if set, else one bucket a task, up to
    `postpone.batch-write-fixed-bucket.max-parallelism`.
    """
    return options.postpone_default_bucket_num or min(tasks, options.postpone_max_parallelism)


def _divide(amount: int, target: int, option: str) -> int:
    found = max(1, -(-amount // max(1, target)))
    if found > MAX_BUCKETS:
        raise InvalidRequest(
            f"Option {option!r} leads to {found} buckets, more than {MAX_BUCKETS}",
            subject=option,
            hint="use a larger target",
        )
    return found
