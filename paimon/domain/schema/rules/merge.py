"""Whether the options of merging fit the columns and each other.

Law: one function a subject, one sentence a refusal; see `validate`. Source: `SchemaValidation`,
`PartialUpdateMergeFunction.Factory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.parse import parse_list
from paimon.domain.options.table_options import ROW_KIND_FLAG, TableOptions
from paimon.domain.schema.rules.layout import flag, refuse
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt

AGGREGATE_FUNCTIONS = (
    "sum", "product", "count", "max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value",
    "listagg", "bool_and", "bool_or", "collect", "merge_map", "merge_map_with_keytime", "nested_update",
    "nested_partial_update", "hll_sketch", "theta_sketch", "rbm32", "rbm64", "primary-key", "ignored",
    "first_not_null_value",
)  # fmt: skip
"""The names under which aggregate functions are stored."""
PADDINGS = (ROW_KIND_FLAG, "second-to-micro", "millis-to-micro")
_TIME_TYPES = (dt.IntType, dt.BigIntType, *dt.TIMESTAMP_TYPES)


def check_merge(schema: TableSchema, options: TableOptions) -> None:
    """Refuse what does not fit."""
    _check_field_options(schema, options)
    _check_sequence_fields(schema, options)
    _check_changelog(schema, options)
    _check_deletion_vectors(options)
    _check_special_columns(schema, options)
    if options.merge_engine in ("aggregation", "partial-update") and schema.primary_keys:
        _check_functions(options)
    if options.merge_engine == "partial-update" and schema.primary_keys:
        _check_groups(schema, options)


def _columns_of(schema: TableSchema, option: str, names: Sequence[str]) -> None:
    for name in names:
        if name not in schema.fields_by_name:
            raise refuse(option, f"names {name!r}, which is no column", did_you_mean(name, schema.names))


def check_dynamic_columns(schema: TableSchema, given: Mapping[str, str]) -> None:
    """Refuse dynamic options that name a column which the table does not have.

    Parameters
    ----------
    schema : TableSchema
        The schema of the table.
    given : mapping
        The texts of the dynamic options by key.

    Raises
    ------
    InvalidRequest
        Naming the option and the column.
    """
    for key in ("sequence.field", "record-level.time-field", "bucket-key"):
        _columns_of(schema, key, parse_list(given.get(key, "")))
    if "rowkind.field" in given:
        _columns_of(schema, "rowkind.field", (given["rowkind.field"].strip(),))


def field_options(options: TableOptions, *endings: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The options ``fields.<columns>.<ending>`` as (key, columns, value); without endings all of them."""
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
            hint = f"known are {', '.join(PADDINGS)}"
            raise refuse("sequence.auto-padding", f"is {padding!r}, which is no padding", hint)
    if not names:
        return
    _columns_of(schema, "sequence.field", names)
    if len(set(names)) < len(names):
        raise refuse("sequence.field", "names a column twice")
    for name in names:
        if f"fields.{name}.aggregate-function" in options.values:
            raise refuse("sequence.field", f"names {name!r}, which has an aggregate function", "take one of them away")
    if options.merge_engine == "first-row":
        raise refuse("sequence.field", "does not go with merge engine 'first-row'")
    if schema.primary_keys and not set(schema.partition_keys) <= set(schema.primary_keys):
        raise refuse("sequence.field", "needs a primary key that holds all partition columns")


def _check_changelog(schema: TableSchema, options: TableOptions) -> None:
    producer = options.changelog_producer
    if producer != "none" and not schema.primary_keys:
        raise refuse("changelog-producer", f"is {producer!r}, which needs a primary key")
    if options.merge_engine == "first-row" and producer not in ("none", "lookup"):
        raise refuse("changelog-producer", f"is {producer!r}; merge engine 'first-row' allows only 'none' and 'lookup'")
    if flag(options, "streaming-read-overwrite") and not schema.primary_keys:
        hint = "set 'streaming-read-append-overwrite' instead"
        raise refuse("streaming-read-overwrite", "needs a primary key", hint)
    if flag(options, "table-read.sequence-number.enabled") and not schema.primary_keys:
        raise refuse("table-read.sequence-number.enabled", "needs a primary key")
    if producer in ("lookup", "full-compaction") and flag(options, "streaming-read-overwrite"):
        raise refuse("streaming-read-overwrite", f"would bring changes twice with changelog producer {producer!r}")


def _check_deletion_vectors(options: TableOptions) -> None:
    if not options.deletion_vectors_enabled:
        return
    if options.changelog_producer == "full-compaction":
        raise refuse("deletion-vectors.enabled", "does not go with changelog producer 'full-compaction'")
    if options.merge_engine == "first-row" and not options.pk_clustering_override:
        raise refuse("deletion-vectors.enabled", "means nothing with merge engine 'first-row'")


def _check_special_columns(schema: TableSchema, options: TableOptions) -> None:
    kind = options.rowkind_field
    if kind is not None:
        _columns_of(schema, "rowkind.field", (kind,))
        if not isinstance(schema.field_of(kind).type, dt.CHARACTER_TYPES):
            raise refuse("rowkind.field", f"names {kind!r}, which is not a text column")
    time = options.record_time_field
    if not time and options.record_expire_millis is not None and schema.primary_keys:
        hint = "name the column in 'record-level.time-field'"
        raise refuse("record-level.expire-time", "needs a column that tells a row's time", hint)
    if time:
        _columns_of(schema, "record-level.time-field", (time,))
        if not isinstance(schema.field_of(time).type, _TIME_TYPES):
            raise refuse("record-level.time-field", f"names {time!r}, which is not an INT, BIGINT or TIMESTAMP column")


def _check_functions(options: TableOptions) -> None:
    named = [(key, value) for key, _, value in field_options(options, "aggregate-function")]
    if options.default_aggregate_function is not None:
        named.append(("fields.default-aggregate-function", options.default_aggregate_function))
    for key, name in named:
        if name not in AGGREGATE_FUNCTIONS:
            raise refuse(key, f"is {name!r}, which is no aggregate function", did_you_mean(name, AGGREGATE_FUNCTIONS))


def _check_groups(schema: TableSchema, options: TableOptions) -> None:
    """The rules of partial-update: who belongs to which sequence group, and what may happen on a delete."""
    grouped: dict[str, str] = {}
    members: set[str] = set()
    for key, sequence, value in field_options(options, "sequence-group"):
        members.update(sequence)
        for name in parse_list(value):
            if name in grouped:
                raise refuse(key, f"names {name!r}, which is already in the group of {grouped[name]!r}")
            grouped[name] = key
    chosen = {c: value for _, columns, value in field_options(options, "aggregate-function") for c in columns}
    default = options.default_aggregate_function
    if default is not None:
        chosen = {n: chosen.get(n, default) for n in schema.names if n not in options.sequence_fields}
    aggregated = [n for n, function in chosen.items() if function != "last_non_null_value"]
    for name in aggregated:
        if name not in grouped and name not in members and name not in schema.primary_keys:
            raise InvalidRequest(
                f"column {name!r} has an aggregate function but no sequence group, as 'partial-update' needs",
                subject=name, hint=f"set 'fields.<sequence column>.sequence-group' to a list with {name!r}",
            )
    _check_removal(members, options)


def _check_removal(members: set[str], options: TableOptions) -> None:
    on_delete = "partial-update.remove-record-on-delete"
    on_group = "partial-update.remove-record-on-sequence-group"
    groups = options.partial_update_remove_record_on_sequence_group
    if options.partial_update_remove_record_on_delete and members:
        raise refuse(on_delete, "does not go with sequence groups")
    for key, given in ((on_delete, options.partial_update_remove_record_on_delete), (on_group, bool(groups))):
        if given and options.ignore_delete:
            raise refuse(key, "does not go with 'ignore-delete'")
    for name in groups:
        if name not in members:
            raise refuse(on_group, f"names {name!r}, which orders no sequence group", did_you_mean(name, members))
