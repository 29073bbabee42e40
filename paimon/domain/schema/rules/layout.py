"""Checks that buckets, row tracking, blobs, clustering, sort columns and retention fit the table.

Source: `SchemaValidation`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.parse import parse_bool
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.external_paths import read_external_paths
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.type_text import format_type

POSTPONED = -2
UNAWARE = -1
NO_KEY_TYPES = (*dt.NESTED_TYPES, dt.VariantType, dt.BlobType)
"""Types that are allowed neither in keys nor in bucket keys."""
UNSORTED_TYPES = (*dt.NESTED_TYPES, dt.VariantType, dt.BlobType)
"""Types without an order."""


def check_layout(schema: TableSchema, options: TableOptions) -> None:
    """Refuse options of the layout that do not fit the columns and keys."""
    _check_bucket(schema, options)
    _check_bucket_key(schema, options)
    check_numbers(options)
    _check_row_tracking(schema, options)
    _check_blobs(schema, options)
    _check_clustering(schema, options)
    _check_retention(schema, options)
    read_external_paths(options)


def option_error(option: str, reason: str, hint: str | None = None) -> InvalidRequest:
    """Build the error "Option '…' `reason`" for the caller to raise."""
    return InvalidRequest(f"Option {option!r} {reason}", subject=option, hint=hint)


def read_flag(options: TableOptions, key: str) -> bool:
    """Return the value of an option that is true or false; false where it has no text."""
    return parse_bool(options.get(key) or "false", key)


def explain_key_scope(schema: TableSchema) -> str | None:
    """Explain that the primary key is unique within a partition only; None where it is unique in the whole table.

    Source: `TableSchema.crossPartitionUpdate`; with fixed or postponed buckets Java accepts such a table
    without a message.
    """
    missing = [name for name in schema.partition_keys if name not in schema.primary_keys]
    if not schema.primary_keys or not missing or TableOptions.of(schema.options).bucket == UNAWARE:
        return None
    return (
        f"The primary key ({', '.join(schema.primary_keys)}) lacks the partition column {missing[0]!r}, so a key is "
        "unique within a partition only: the same key may be in several partitions. Add "
        f"{', '.join(map(repr, missing))} to the primary key, or leave the table without partitions."
    )


def _check_bucket(schema: TableSchema, options: TableOptions) -> None:
    bucket = options.bucket
    if bucket < POSTPONED or bucket == 0:
        raise option_error("bucket", f"is {bucket}", "use a positive number, or -1 for dynamic buckets or none")
    if bucket == POSTPONED and not schema.primary_keys:
        raise option_error("bucket", "is -2 (postponed), which needs a primary key", "use -1 for an append table")
    if bucket > 0 and not options.bucket_key and not schema.primary_keys:
        raise option_error("bucket", "of an append table needs a bucket key", "set 'bucket-key', or leave out 'bucket'")
    if bucket == UNAWARE and options.full_compaction_delta_commits is not None and not schema.primary_keys:
        raise option_error("full-compaction.delta-commits", "has no effect in an append table without buckets")


def _check_bucket_key(schema: TableSchema, options: TableOptions) -> None:
    keys = options.bucket_key
    if keys and options.bucket == UNAWARE:
        raise option_error("bucket-key", "needs a fixed number of buckets", "set 'bucket', or leave out 'bucket-key'")
    for name in keys:
        if name not in schema.fields_by_name:
            raise option_error("bucket-key", f"names {name!r}, which does not exist", did_you_mean(name, schema.names))
        if schema.primary_keys and name not in schema.primary_keys:
            raise option_error("bucket-key", f"names {name!r}, which is not in the primary key")
        if name in schema.partition_keys:
            raise option_error("bucket-key", f"names the partition column {name!r}", "use other columns")
        if isinstance(schema.field_of(name).type, NO_KEY_TYPES):
            raise option_error(
                "bucket-key", f"names {name!r}, which is of a nested type", "use columns of atomic types"
            )
    if len(set(keys)) < len(keys):
        raise option_error("bucket-key", "names a column twice")
    _check_bucket_function(schema, options)


def _check_bucket_function(schema: TableSchema, options: TableOptions) -> None:
    types = [schema.field_of(k).type for k in schema.bucket_keys]
    if options.bucket == UNAWARE:
        return
    if options.bucket_function == "mod" and not (len(types) == 1 and isinstance(types[0], dt.IntType | dt.BigIntType)):
        raise option_error(
            "bucket-function.type", "is 'mod', which needs one bucket key of INT or BIGINT", "use 'default'"
        )
    if options.bucket_function == "hive" and any(isinstance(t, dt.TIMESTAMP_TYPES) for t in types):
        raise option_error("bucket-function.type", "is 'hive', which cannot hash timestamps", "use 'default'")


def check_numbers(options: TableOptions) -> None:
    """Refuse numbers of rows, bytes or buckets that are below 1."""
    targets = (
        ("btree-index.records-per-range", options.btree_records_per_range),
        ("postpone.batch-write-fixed-bucket.max-parallelism", options.postpone_max_parallelism),
        ("postpone.default-bucket-num", options.postpone_default_bucket_num),
        ("postpone.target-row-num-per-bucket", options.postpone_target_rows_per_bucket),
        ("postpone.target-size-per-bucket", options.postpone_target_bytes_per_bucket),
        ("target-file-row-num", options.target_file_row_num),
    )
    for key, value in targets:
        if value is not None and value < 1:
            raise option_error(key, f"is {value}", "use at least 1")


def _check_row_tracking(schema: TableSchema, options: TableOptions) -> None:
    if options.row_tracking_enabled and (schema.primary_keys or options.bucket != UNAWARE):
        raise option_error("row-tracking.enabled", "needs an append table without buckets")
    if options.vector_file_format is not None and not options.data_evolution_enabled:
        raise option_error("vector.file.format", "needs data evolution", "set 'data-evolution.enabled' too")
    if options.data_evolution_enabled and not options.row_tracking_enabled:
        raise option_error("data-evolution.enabled", "needs row tracking", "set 'row-tracking.enabled' too")


def _check_blobs(schema: TableSchema, options: TableOptions) -> None:
    blobs = [f.name for f in schema.fields if isinstance(f.type, dt.BlobType)]
    if blobs and not options.data_evolution_enabled:
        raise InvalidRequest(
            f"Column {blobs[0]!r} is a BLOB, which needs data evolution",
            subject=blobs[0],
            hint="set 'row-tracking.enabled' and 'data-evolution.enabled', or use BYTES",
        )
    if blobs and len(blobs) == len(schema.fields):
        raise InvalidRequest("A table with BLOB columns needs another column too", subject=blobs[0])


def _check_clustering(schema: TableSchema, options: TableOptions) -> None:
    for name in options.clustering_columns:
        if name not in schema.fields_by_name:
            raise option_error(
                "clustering.columns", f"names {name!r}, which does not exist", did_you_mean(name, schema.names)
            )
    if read_flag(options, "clustering.incremental"):
        _check_incremental_clustering(schema, options)
    if options.pk_clustering_override:
        if not options.clustering_columns:
            raise option_error("pk-clustering-override", "needs 'clustering.columns'")
        if not options.deletion_vectors_enabled:
            raise option_error("pk-clustering-override", "needs deletion vectors", "set 'deletion-vectors.enabled'")
        _check_override(options)
        # Java allows partition columns, which change no order.
        names = [name for name in options.clustering_columns if name not in schema.partition_keys]
        check_sort_columns(schema, "order", names, "clustering.columns")


def _check_incremental_clustering(schema: TableSchema, options: TableOptions) -> None:
    if schema.primary_keys:
        raise option_error("clustering.incremental", "needs an append table")
    if not options.clustering_columns:
        raise option_error("clustering.incremental", "needs 'clustering.columns'")
    if options.bucket > 0 and options.bucket_append_ordered:
        raise option_error(
            "clustering.incremental", "needs 'bucket-append-ordered' to be false where there are buckets"
        )
    if options.bucket > 0 and options.deletion_vectors_enabled:
        raise option_error("clustering.incremental", "cannot be combined with deletion vectors where there are buckets")
    if options.data_evolution_enabled:
        raise option_error("clustering.incremental", "cannot be combined with 'data-evolution.enabled'")
    check_sort_columns(schema, options.clustering_strategy, options.clustering_columns, "clustering.columns")


def _check_override(options: TableOptions) -> None:
    refusals = (
        ("record-level.expire-time", options.record_expire_millis is not None),
        ("merge-engine", options.merge_engine not in ("deduplicate", "first-row")),
        ("sequence.field", bool(options.sequence_fields)),
        ("changelog-producer", options.changelog_producer not in ("none", "input")),
        ("bucket", options.bucket == POSTPONED),
    )
    for option, given in refusals:
        if given:
            raise option_error(
                option, f"is {options.get(option)!r}, which cannot be combined with 'pk-clustering-override'"
            )


def _check_retention(schema: TableSchema, options: TableOptions) -> None:
    bounds = (
        ("snapshot.num-retained", options.snapshot_num_retained_min, options.snapshot_num_retained_max),
        ("changelog.num-retained", options.changelog_num_retained_min, options.changelog_num_retained_max),
    )
    for key, low, high in bounds:
        if low < 1:
            raise option_error(f"{key}.min", f"is {low}", "use at least 1")
        if low > high:
            raise option_error(f"{key}.min", f"is {low}, more than '{key}.max' ({high})", "set both options")
    if options.partition_expiration_millis is not None and not schema.partition_keys:
        raise option_error("partition.expiration-time", "needs a partitioned table")


def check_sort_columns(schema: TableSchema, strategy: str, names: Sequence[str], given_in: str) -> None:
    """Refuse columns without an order, or too few for the strategy; `given_in` is the parameter or option of both."""
    if strategy == "hilbert" and len(names) < 2:
        hint = "name more, or use 'order'"
        raise InvalidRequest(f"A Hilbert curve needs two columns in {given_in}.", subject=given_in, hint=hint)
    for name in names:
        _check_column(schema, name, given_in)


def _check_column(schema: TableSchema, name: str, given_in: str) -> None:
    field = schema.fields_by_name.get(name)
    if field is None:
        raise InvalidRequest(
            f"Column {name!r} of {given_in} does not exist.", subject=name, hint=did_you_mean(name, schema.names)
        )
    if name in schema.partition_keys:
        raise InvalidRequest(
            f"Column {name!r} of {given_in} is a partition column, and all rows of a partition have the same value.",
            subject=name,
            hint="leave it out",
        )
    if isinstance(field.type, UNSORTED_TYPES):
        raise InvalidRequest(
            f"Column {name!r} of {given_in} has type {format_type(field.type)}, which has no order.",
            subject=name,
            hint="name a column of numbers, text, bytes, dates or times",
        )
