"""Which tables can delete and update single rows, and which columns an update may set.

Law: what a table's merge engine would drop or refuse is refused before anything is read, with what to change.
Source: `PrimaryKeyTableUtils.validatePKUpsertDeletable`, `RowLevelOp`, `RowLevelHelper`.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.merge import field_options
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataField

_UPDATABLE = ("deduplicate", "partial-update")


def check_deletable(table: TableDefinition) -> None:
    """Refuse a table whose rows cannot be deleted.

    Raises
    ------
    Unsupported, InvalidRequest
        Naming the option at fault.
    """
    _check_rows_stay_whole(table, keeps_files=table.options.deletion_vectors_enabled)
    options = table.options
    if not table.schema.primary_keys:
        return
    if options.ignore_delete:
        raise InvalidRequest(
            f"{table.identifier} ignores deletes", subject="ignore-delete", hint="the option ignore-delete says so"
        )
    hint = _delete_hint(options)
    if hint is not None:
        raise InvalidRequest(
            f"{table.identifier} takes no deletes with merge-engine {options.merge_engine!r}",
            subject="merge-engine",
            hint=hint,
        )


def check_updatable(table: TableDefinition, columns: Iterable[str]) -> tuple[DataField, ...]:
    """The columns to be set; refuses a table whose rows cannot be updated, and columns that cannot be set.

    Raises
    ------
    Unsupported, InvalidRequest
        Naming the option or column at fault.
    """
    _check_rows_stay_whole(table, keeps_files=False)
    schema, options = table.schema, table.options
    if schema.primary_keys and options.merge_engine not in _UPDATABLE:
        raise InvalidRequest(
            f"{table.identifier} takes no updates with merge-engine {options.merge_engine!r}",
            subject="merge-engine",
            hint="write the rows: the merge engine says what becomes of them",
        )
    if schema.primary_keys:
        _check_no_aggregates(table)
    known = {f.name: f for f in schema.fields}
    found = []
    for name in columns:
        if name not in known:
            raise InvalidRequest(f"there is no column {name!r}", subject=name, hint=did_you_mean(name, known))
        for what, keys in (("the primary key", schema.primary_keys), ("the partition keys", schema.partition_keys)):
            if name in keys:
                raise InvalidRequest(
                    f"column {name!r} is part of {what}, so it cannot be updated",
                    subject=name,
                    hint="delete the rows and write them again",
                )
        found.append(known[name])
    return tuple(found)


def _check_no_aggregates(table: TableDefinition) -> None:
    """An update writes whole rows: values that are added up would be added once more."""
    for key, columns, _ in field_options(table.options, "aggregate-function"):
        raise InvalidRequest(
            f"{table.identifier} aggregates {', '.join(columns)}, so its rows take no updates",
            subject=key,
            hint="write the columns that change, and leave the others null",
        )


def _check_rows_stay_whole(table: TableDefinition, keeps_files: bool) -> None:
    """Refuse to write rows anew that must keep their row ids, or that lie in several files."""
    options = table.options
    for key, used in (
        ("data-evolution.enabled", options.data_evolution_enabled),
        ("row-tracking.enabled", options.row_tracking_enabled and not keeps_files),
    ):
        if used:
            raise Unsupported(f"deleting or updating rows of a table with {key}", hint="do it with Java's Paimon")


def _delete_hint(options: TableOptions) -> str | None:
    """What to set so that the merge engine takes deletes; None where it does."""
    match options.merge_engine:
        case "deduplicate":
            return None
        case "partial-update":
            keys = ("partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group")
            taken = options.partial_update_remove_record_on_delete or any(
                options.partial_update_remove_record_on_sequence_group
            )
            return None if taken else f"set {keys[0]} to true, or {keys[1]} where there are sequence groups"
        case "aggregation":
            key = "aggregation.remove-record-on-delete"
            return None if options.aggregation_remove_record_on_delete else f"set {key} to true"
    return "the first row of a key stays"

