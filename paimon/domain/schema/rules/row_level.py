"""Which tables accept deletes, updates and merges, and which columns an update may set.

Invariant: what a table's merge engine would drop or refuse is refused before anything is read, with what to change.
Source: `PrimaryKeyTableUtils.validatePKUpsertDeletable`, `RowLevelOp`, `RowLevelHelper`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.defaults import read_defaults
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.rules.merge import field_options
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataField

_UPDATABLE = ("deduplicate", "partial-update")


def check_deletable(table: TableDefinition) -> None:
    """Refuse a table without deletes: Unsupported by its layout, InvalidRequest by its merge engine."""
    _check_rows_stay_whole(table, keeps_files=table.options.deletion_vectors_enabled)
    options = table.options
    if not table.schema.primary_keys:
        return
    if options.ignore_delete:
        raise InvalidRequest(
            f"Table {table.table_name!r} ignores deletes",
            subject="ignore-delete",
            hint="use a table without 'ignore-delete'",
        )
    hint = _delete_hint(options)
    if hint is not None:
        raise InvalidRequest(
            f"Table {table.table_name!r} does not accept deletes with merge engine {options.merge_engine!r}",
            subject="merge-engine",
            hint=hint,
        )


def check_mergeable(table: TableDefinition) -> None:
    """Refuse tables that MERGE cannot change: kept row ids, postponed buckets, defaults in place of nulls."""
    options = table.options
    if options.row_tracking_enabled and not options.data_evolution_enabled:
        raise Unsupported(
            f"merging into table {table.table_name!r} with option 'row-tracking.enabled'",
            hint="merge with Java's Paimon, or create the table with 'data-evolution.enabled' too",
        )
    if options.bucket == POSTPONED:
        raise Unsupported(
            f"merging into table {table.table_name!r} with postponed buckets, whose rows cannot be read before a "
            "compaction",
            hint="write the rows instead; the merge engine combines them with the old ones",
        )
    shown = read_defaults(table.schema, options)
    if shown:
        name = next(iter(shown))
        raise Unsupported(
            f"merging into table {table.table_name!r} with option 'fields.{name}.default-value'",
            hint="use Table.alter_column_default instead",
        )


def check_updatable(table: TableDefinition, columns: Iterable[str], moves_rows: bool = False) -> tuple[DataField, ...]:
    """Return the columns to set; refuse others, and partition columns unless `moves_rows` between them."""
    schema, options = table.schema, table.options
    if not options.data_evolution_enabled:
        _check_rows_stay_whole(table, keeps_files=False)
    if schema.primary_keys and options.merge_engine not in _UPDATABLE:
        raise InvalidRequest(
            f"Table {table.table_name!r} does not accept updates with merge engine {options.merge_engine!r}",
            subject="merge-engine",
            hint="write the new rows instead; the merge engine combines them with the old ones",
        )
    if schema.primary_keys:
        _check_no_aggregates(table)
    known = {f.name: f for f in schema.fields}
    found = []
    for name in columns:
        if name not in known:
            raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=did_you_mean(name, known))
        partition_keys = () if moves_rows else schema.partition_keys
        for what, keys in (("the primary key", schema.primary_keys), ("the partition keys", partition_keys)):
            if name in keys:
                raise InvalidRequest(
                    f"Column {name!r} is part of {what} and cannot be updated",
                    subject=name,
                    hint="delete the rows and write them again",
                )
        found.append(known[name])
    return tuple(found)


def check_evolvable(table: TableDefinition) -> None:
    """Refuse a table without data evolution: its columns cannot be updated by row id."""
    if not table.options.data_evolution_enabled:
        raise InvalidRequest(
            f"Table {table.table_name!r} has no updates by row id",
            subject="data-evolution.enabled",
            hint="create the table with 'row-tracking.enabled' and 'data-evolution.enabled', or use Table.update",
        )


def restrict_columns(table: TableDefinition, columns: Iterable[str]) -> TableDefinition:
    """Return a table with some columns, the partition columns among them, for data evolution files."""
    if not table.options.data_evolution_enabled:
        raise InvalidRequest(
            f"Table {table.table_name!r} has no files with some columns of rows",
            subject="data-evolution.enabled",
            hint="leave the columns out of the rows: they are null or have their default",
        )
    names = list(columns)
    for name in names:
        if name not in table.schema.fields_by_name:
            hint = did_you_mean(name, table.schema.names)
            raise InvalidRequest(f"Column {name!r} does not exist", subject=name, hint=hint)
    missing = [name for name in table.schema.partition_keys if name not in names]
    if missing:
        raise InvalidRequest(f"Rows need the partition column {missing[0]!r}", subject=missing[0], hint="add it")
    fields = [column for column in table.schema.fields if column.name in names]
    return evolve(table, schema=evolve(table.schema, fields=fields))


def check_changeable_by_query(table: TableDefinition) -> None:
    """Refuse a table with data evolution: its rows cannot be changed by the result of a query."""
    if table.options.data_evolution_enabled:
        raise Unsupported(
            f"changing rows of table {table.table_name!r} with option 'data-evolution.enabled' by a subquery over "
            "columns of the changed row, or within an expression",
            hint="use a condition on the columns of the table, or new_batch_write_builder().new_update()",
        )


def _check_no_aggregates(table: TableDefinition) -> None:
    """Refuse aggregated columns: an update writes whole rows, so sums would be added once more."""
    for key, columns, _ in field_options(table.options, "aggregate-function"):
        raise InvalidRequest(
            f"Table {table.table_name!r} aggregates {', '.join(columns)}, so its rows cannot be updated",
            subject=key,
            hint="write the columns that change, and leave the others null",
        )


def _check_rows_stay_whole(table: TableDefinition, keeps_files: bool) -> None:
    """Refuse to rewrite rows that must keep their row ids, or that lie in several files."""
    options = table.options
    if keeps_files:
        return
    for key, used, hint in (
        (
            "data-evolution.enabled",
            options.data_evolution_enabled,
            "delete whole partitions, or create the table with 'deletion-vectors.enabled' too",
        ),
        ("row-tracking.enabled", options.row_tracking_enabled, "change the rows with Java's Paimon"),
    ):
        if used:
            raise Unsupported(f"deleting or updating rows of table {table.table_name!r} with option {key!r}", hint=hint)


def _delete_hint(options: TableOptions) -> str | None:
    """Return what to set so that the merge engine accepts deletes; None where it does."""
    match options.merge_engine:
        case "deduplicate":
            return None
        case "partial-update":
            keys = ("partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group")
            taken = options.partial_update_remove_record_on_delete or any(
                options.partial_update_remove_record_on_sequence_group
            )
            return None if taken else f"set {keys[0]!r} to true, or {keys[1]!r} if there are sequence groups"
        case "aggregation":
            key = "aggregation.remove-record-on-delete"
            return None if options.aggregation_remove_record_on_delete else f"set {key!r} to true"
    return "create the table with another merge engine"
