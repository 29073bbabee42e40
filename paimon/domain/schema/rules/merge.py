"""Checks that the options of merging fit the columns and each other.

Source: `SchemaValidation`, `PartialUpdateMergeFunction.Factory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.parse import parse_list
from paimon.domain.options.table_options import ROW_KIND_FLAG, TableOptions
from paimon.domain.schema.rules.layout import option_error, read_flag
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt

PADDINGS = (ROW_KIND_FLAG, "second-to-micro", "millis-to-micro")
_TIME_TYPES = (dt.IntType, dt.BigIntType, *dt.TIMESTAMP_TYPES)


def check_merge(schema: TableSchema, options: TableOptions) -> None:
    """Refuse options of the merge engine, changelogs and deletion vectors that do not fit the table."""
    _check_field_options(schema, options)
    _check_sequence_fields(schema, options)
    _check_changelog(schema, options)
    _check_deletion_vectors(options)
    _check_special_columns(schema, options)
    if options.merge_engine == "partial-update" and schema.primary_keys:
        _check_groups(schema, options)


def _columns_of(schema: TableSchema, option: str, names: Sequence[str]) -> None:
    for name in names:
        if name not in schema.fields_by_name:
            raise option_error(option, f"names {name!r}, which does not exist", did_you_mean(name, schema.names))


def check_dynamic_columns(schema: TableSchema, given: Mapping[str, str]) -> None:
    """Refuse dynamic options that name a column which the table does not have."""
    for key in ("sequence.field", "record-level.time-field", "bucket-key"):
        _columns_of(schema, key, parse_list(given.get(key, "")))
    if "rowkind.field" in given:
        _columns_of(schema, "rowkind.field", (given["rowkind.field"].strip(),))


def field_options(options: TableOptions, *endings: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield the options ``fields.<columns>.<ending>`` as (key, columns, value); all of them without endings."""
    for key, value in options.values.items():
        columns, dot, ending = key.removeprefix("fields.").rpartition(".")
        if key.startswith("fields.") and dot and (not endings or ending in endings):
            yield key, parse_list(columns), value


def _check_field_options(schema: TableSchema, options: TableOptions) -> None:
    for key, columns, value in field_options(options):
        _columns_of(schema, key, columns)
        if key.endswith(".sequence-group"):
            _columns_of(schema, key, parse_list(value))


def _check_sequence_fields(schema: TableSchema, options: TableOptions) -> None:
    names = options.sequence_fields
    for padding in options.sequence_auto_padding:
        if padding not in PADDINGS:
            hint = f"use one of {', '.join(PADDINGS)}"
            raise option_error("sequence.auto-padding", f"is {padding!r}, which is not a padding", hint)
    if not names:
        return
    _columns_of(schema, "sequence.field", names)
    if len(set(names)) < len(names):
        raise option_error("sequence.field", "names a column twice")
    for name in names:
        if f"fields.{name}.aggregate-function" in options.values:
            raise option_error(
                "sequence.field", f"names {name!r}, which has an aggregate function", "remove one of the two"
            )
    if options.merge_engine == "first-row":
        raise option_error("sequence.field", "cannot be combined with merge engine 'first-row'")
    if schema.primary_keys and not set(schema.partition_keys) <= set(schema.primary_keys):
        raise option_error("sequence.field", "needs a primary key that contains all partition columns")


def _check_changelog(schema: TableSchema, options: TableOptions) -> None:
    producer = options.changelog_producer
    if producer != "none" and not schema.primary_keys:
        raise option_error("changelog-producer", f"is {producer!r}, which needs a primary key")
    if options.merge_engine == "first-row" and producer not in ("none", "lookup"):
        raise option_error(
            "changelog-producer", f"is {producer!r}; merge engine 'first-row' allows only 'none' and 'lookup'"
        )
    if read_flag(options, "streaming-read-overwrite") and not schema.primary_keys:
        hint = "set 'streaming-read-append-overwrite' instead"
        raise option_error("streaming-read-overwrite", "needs a primary key", hint)
    if read_flag(options, "table-read.sequence-number.enabled") and not schema.primary_keys:
        raise option_error("table-read.sequence-number.enabled", "needs a primary key")
    if producer in ("lookup", "full-compaction") and read_flag(options, "streaming-read-overwrite"):
        raise option_error(
            "streaming-read-overwrite", f"would return changes twice with changelog producer {producer!r}"
        )


def _check_deletion_vectors(options: TableOptions) -> None:
    if not options.deletion_vectors_enabled:
        return
    if options.changelog_producer == "full-compaction":
        raise option_error("deletion-vectors.enabled", "cannot be combined with changelog producer 'full-compaction'")
    if options.merge_engine == "first-row" and not options.pk_clustering_override:
        raise option_error("deletion-vectors.enabled", "has no effect with merge engine 'first-row'")


def _check_special_columns(schema: TableSchema, options: TableOptions) -> None:
    kind = options.rowkind_field
    if kind is not None:
        _columns_of(schema, "rowkind.field", (kind,))
        if not isinstance(schema.field_of(kind).type, dt.CHARACTER_TYPES):
            raise option_error("rowkind.field", f"names {kind!r}, which is not a text column")
    time = options.record_time_field
    if not time and options.record_expire_millis is not None and schema.primary_keys:
        hint = "name the column in 'record-level.time-field'"
        raise option_error("record-level.expire-time", "needs a column with the time of each row", hint)
    if time:
        _columns_of(schema, "record-level.time-field", (time,))
        if not isinstance(schema.field_of(time).type, _TIME_TYPES):
            raise option_error(
                "record-level.time-field", f"names {time!r}, which is not an INT, BIGINT or TIMESTAMP column"
            )


def _check_groups(schema: TableSchema, options: TableOptions) -> None:
    """Check the rules of partial-update: which columns belong to which sequence group, and what a delete does."""
    grouped: dict[str, str] = {}
    members: set[str] = set()
    for key, sequence, value in field_options(options, "sequence-group"):
        members.update(sequence)
        for name in parse_list(value):
            if name in grouped:
                raise option_error(key, f"names {name!r}, which is already in the group of {grouped[name]!r}")
            grouped[name] = key
    chosen = {c: value for _, columns, value in field_options(options, "aggregate-function") for c in columns}
    default = options.default_aggregate_function
    if default is not None:
        chosen = {n: chosen.get(n, default) for n in schema.names if n not in options.sequence_fields}
    aggregated = [n for n, function in chosen.items() if function != "last_non_null_value"]
    for name in aggregated:
        if name not in grouped and name not in members and name not in schema.primary_keys:
            raise InvalidRequest(
                f"Column {name!r} has an aggregate function, for which 'partial-update' needs a sequence group",
                subject=name,
                hint=f"set 'fields.<sequence column>.sequence-group' to a list with {name!r}",
            )
    _check_removal(members, options)


def _check_removal(members: set[str], options: TableOptions) -> None:
    on_delete = "partial-update.remove-record-on-delete"
    on_group = "partial-update.remove-record-on-sequence-group"
    groups = options.partial_update_remove_record_on_sequence_group
    if options.partial_update_remove_record_on_delete and members:
        raise option_error(on_delete, "cannot be combined with sequence groups")
    for key, given in ((on_delete, options.partial_update_remove_record_on_delete), (on_group, bool(groups))):
        if given and options.ignore_delete:
            raise option_error(key, "cannot be combined with 'ignore-delete'")
    for name in groups:
        if name not in members:
            raise option_error(
                on_group, f"names {name!r}, which is not the sequence field of a group", did_you_mean(name, members)
            )
