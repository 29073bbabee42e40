"""Whether buckets, row tracking, blobs, clustering and retention fit the table.

Law: one function a subject, one sentence a refusal; see `validate`. Source: `SchemaValidation`.
"""

from __future__ import annotations

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.parse import parse_bool
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt

POSTPONED = -2
UNAWARE = -1
NO_KEY_TYPES = (*dt.NESTED_TYPES, dt.VariantType, dt.BlobType)
"""Types that neither keys nor buckets can be made of."""


def check_layout(schema: TableSchema, options: TableOptions) -> None:
    """Refuse what does not fit."""
    _check_bucket(schema, options)
    _check_bucket_key(schema, options)
    _check_row_tracking(schema, options)
    _check_blobs(schema, options)
    _check_clustering(schema, options)
    _check_retention(schema, options)


def refuse(option: str, reason: str, hint: str | None = None) -> InvalidRequest:
    """The error about one option."""
    return InvalidRequest(f"option {option!r} {reason}", subject=option, hint=hint)


def flag(options: TableOptions, key: str) -> bool:
    """An option that is true or false."""
    return parse_bool(options.get(key) or "false", key)


def explain_key_scope(schema: TableSchema) -> str | None:
    """Explain that the primary key is unique within a partition only; None where it is unique in the whole table.

    Source: `TableSchema.crossPartitionUpdate`; with fixed buckets Java takes such a table and says nothing.
    """
    missing = [name for name in schema.partition_keys if name not in schema.primary_keys]
    if not schema.primary_keys or not missing or TableOptions.of(schema.options).bucket < 1:
        return None
    return (
        f"The primary key ({', '.join(schema.primary_keys)}) lacks the partition column {missing[0]!r}, so a key is "
        "unique within a partition only: the same key may be in several partitions. Add "
        f"{', '.join(map(repr, missing))} to the primary key, or leave the table without partitions."
    )


def _check_bucket(schema: TableSchema, options: TableOptions) -> None:
    bucket = options.bucket
    if bucket < POSTPONED or bucket == 0:
        raise refuse("bucket", f"is {bucket}", "give a number of buckets, or -1 for none or dynamic ones")
    if bucket == POSTPONED and not schema.primary_keys:
        raise refuse("bucket", "is -2 (postponed), which needs a primary key", "use -1 for an append table")
    if bucket > 0 and not options.bucket_key and not schema.primary_keys:
        raise refuse("bucket", "of an append table needs a bucket key", "set 'bucket-key', or leave out 'bucket'")
    if bucket == UNAWARE and options.full_compaction_delta_commits is not None and not schema.primary_keys:
        raise refuse("full-compaction.delta-commits", "means nothing in an append table without buckets")


def _check_bucket_key(schema: TableSchema, options: TableOptions) -> None:
    keys = options.bucket_key
    if keys and options.bucket == UNAWARE:
        raise refuse("bucket-key", "needs a number of buckets", "set 'bucket', or leave out 'bucket-key'")
    for name in keys:
        if name not in schema.fields_by_name:
            raise refuse("bucket-key", f"names {name!r}, which is no column", did_you_mean(name, schema.names))
        if schema.primary_keys and name not in schema.primary_keys:
            raise refuse("bucket-key", f"names {name!r}, which is not in the primary key")
        if name in schema.partition_keys:
            raise refuse("bucket-key", f"names the partition column {name!r}", "use other columns")
        if isinstance(schema.field_of(name).type, NO_KEY_TYPES):
            raise refuse("bucket-key", f"names {name!r}, which is of a nested type", "use columns of atomic types")
    if len(set(keys)) < len(keys):
        raise refuse("bucket-key", "names a column twice")
    _check_bucket_function(schema, options)


def _check_bucket_function(schema: TableSchema, options: TableOptions) -> None:
    types = [schema.field_of(k).type for k in schema.bucket_keys]
    if options.bucket < 1:
        return
    if options.bucket_function == "mod" and not (len(types) == 1 and isinstance(types[0], dt.IntType | dt.BigIntType)):
        raise refuse("bucket-function.type", "is 'mod', which needs one bucket key of INT or BIGINT", "use 'default'")
    if options.bucket_function == "hive" and any(isinstance(t, dt.TIMESTAMP_TYPES) for t in types):
        raise refuse("bucket-function.type", "is 'hive', which cannot hash timestamps", "use 'default'")


def _check_row_tracking(schema: TableSchema, options: TableOptions) -> None:
    if options.row_tracking_enabled and (schema.primary_keys or options.bucket != UNAWARE):
        raise refuse("row-tracking.enabled", "needs an append table without buckets")
    if options.data_evolution_enabled and not options.row_tracking_enabled:
        raise refuse("data-evolution.enabled", "needs row tracking", "set 'row-tracking.enabled' too")
    if options.data_evolution_enabled and options.deletion_vectors_enabled:
        raise refuse("data-evolution.enabled", "does not go with 'deletion-vectors.enabled'")


def _check_blobs(schema: TableSchema, options: TableOptions) -> None:
    blobs = [f.name for f in schema.fields if isinstance(f.type, dt.BlobType)]
    if blobs and not options.data_evolution_enabled:
        raise InvalidRequest(
            f"column {blobs[0]!r} is a BLOB, which needs data evolution", subject=blobs[0],
            hint="set 'row-tracking.enabled' and 'data-evolution.enabled', or use BYTES",
        )
    if blobs and len(blobs) == len(schema.fields):
        raise InvalidRequest("a table with BLOB columns needs another column too", subject=blobs[0])


def _check_clustering(schema: TableSchema, options: TableOptions) -> None:
    for name in options.clustering_columns:
        if name not in schema.fields_by_name:
            raise refuse("clustering.columns", f"names {name!r}, which is no column", did_you_mean(name, schema.names))
    if flag(options, "clustering.incremental"):
        if schema.primary_keys:
            raise refuse("clustering.incremental", "needs an append table")
        if options.bucket > 0 and options.bucket_append_ordered:
            raise refuse("clustering.incremental", "needs 'bucket-append-ordered' to be false where there are buckets")
        if options.bucket > 0 and options.deletion_vectors_enabled:
            raise refuse("clustering.incremental", "does not go with deletion vectors where there are buckets")
        if options.data_evolution_enabled:
            raise refuse("clustering.incremental", "does not go with 'data-evolution.enabled'")
    if options.pk_clustering_override:
        if not options.clustering_columns:
            raise refuse("pk-clustering-override", "needs 'clustering.columns'")
        if not options.deletion_vectors_enabled:
            raise refuse("pk-clustering-override", "needs deletion vectors", "set 'deletion-vectors.enabled'")
        _check_override(options)


def _check_override(options: TableOptions) -> None:
    refusals = (
        ("record-level.expire-time", options.record_expire_millis is not None),
        ("merge-engine", options.merge_engine not in ("deduplicate", "first-row")),
        ("sequence.field", bool(options.sequence_fields)),
        ("changelog-producer", options.changelog_producer not in ("none", "input")),
    )
    for option, given in refusals:
        if given:
            raise refuse(option, f"is {options.get(option)!r}, which does not go with 'pk-clustering-override'")


def _check_retention(schema: TableSchema, options: TableOptions) -> None:
    bounds = (
        ("snapshot.num-retained", options.snapshot_num_retained_min, options.snapshot_num_retained_max),
        ("changelog.num-retained", options.changelog_num_retained_min, options.changelog_num_retained_max),
    )
    for key, low, high in bounds:
        if low < 1:
            raise refuse(f"{key}.min", f"is {low}", "keep at least one")
        if low > high:
            raise refuse(f"{key}.min", f"is {low}, more than the {high} of '{key}.max'", "set both")
    if options.partition_expiration_millis is not None and not schema.partition_keys:
        raise refuse("partition.expiration-time", "needs a partitioned table")
