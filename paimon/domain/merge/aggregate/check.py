"""Check the aggregates of a table when it is created or altered: names, column types, and options of each function.

Java refuses the same, some of it when a table is first written.

Invariant: a refusal names the option at fault and a correct value. What passes never fails for its type while rows are
merged.

Source: the factories of `FieldAggregatorFactory`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.merge.aggregate.aggregate_functions import AGGREGATE_FUNCTIONS, NESTED_FUNCTIONS, check_type
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.merge_engines import MERGE_ENGINES
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.layout import option_error
from paimon.domain.schema.rules.merge import field_options
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import format_type

NULL_STRATEGIES = ("merge", "ignore", "error")
_STORED_NAMES = (*AGGREGATE_FUNCTIONS, "ignored", "first_not_null_value")
"""The names under which aggregate functions are stored. Tables with the last two may exist."""
_MISSING_IN_JAVA = {"count": "store a 1 for each row, and sum it"}
"""The functions that Java 1.4.2 does not have, with what to do instead. Tables with them may exist."""


def check_function_names(schema: TableSchema, options: TableOptions, before: TableOptions | None = None) -> None:
    """Refuse aggregate functions that do not exist, or that Java lacks unless the options `before` name them."""
    if not _has_aggregates(schema, options):
        return
    named = [(key, value) for key, _, value in field_options(options, "aggregate-function")]
    if options.default_aggregate_function is not None:
        named.append(("fields.default-aggregate-function", options.default_aggregate_function))
    for key, name in named:
        if name not in _STORED_NAMES:
            hint = did_you_mean(name, _STORED_NAMES)
            raise option_error(key, f"is {name!r}, which is not an aggregate function", hint)
        if name in _MISSING_IN_JAVA and (before is None or before.values.get(key) != name):
            raise option_error(key, f"is {name!r}, but Java cannot open such a table", _MISSING_IN_JAVA[name])


def _has_aggregates(schema: TableSchema, options: TableOptions) -> bool:
    engine = MERGE_ENGINES.get(options.merge_engine)
    return bool(schema.primary_keys) and engine is not None and engine.aggregates


def check_aggregates(schema: TableSchema, options: TableOptions) -> None:
    """Refuse aggregates that cannot be computed; tables without aggregates pass."""
    if not _has_aggregates(schema, options):
        return
    spec = MergeSpec.of(schema, options)
    for aggregate in spec.aggregates:
        check_type(aggregate)
        _check_retracts(aggregate, spec)
        if aggregate.function in NESTED_FUNCTIONS:
            _check_nested(aggregate)
        elif aggregate.function == "merge_map_with_keytime":
            _check_key_time(aggregate)
        elif aggregate.function == "listagg":
            _check_listagg(aggregate)


def _key(aggregate: Aggregate, ending: str) -> str:
    return f"fields.{aggregate.column.name}.{ending}"


def _wrong_type(aggregate: Aggregate, wanted: str) -> InvalidRequest:
    name, kind = aggregate.column.name, format_type(aggregate.column.type)
    reason = f"is {aggregate.function!r}, but column {name!r} is {kind}"
    return option_error(_key(aggregate, "aggregate-function"), reason, f"it takes {wanted}")


def _check_retracts(aggregate: Aggregate, spec: MergeSpec) -> None:
    if spec.engine == "aggregation" and spec.removes_on_delete and aggregate.ignore_retract:
        raise option_error(
            _key(aggregate, "ignore-retract"), "cannot be combined with 'aggregation.remove-record-on-delete'"
        )


def _check_listagg(aggregate: Aggregate) -> None:
    kind = aggregate.column.type
    if isinstance(kind, dt.VarCharType) and kind.length != dt.VarCharType().length:
        raise _wrong_type(aggregate, "STRING")


def _check_nested(aggregate: Aggregate) -> None:
    kind = aggregate.column.type
    if not isinstance(kind, dt.ArrayType) or not isinstance(kind.element, dt.RowType):
        raise _wrong_type(aggregate, "ARRAY<ROW<...>>")
    if aggregate.function == "nested_partial_update" and not aggregate.nested_key:
        raise option_error(_key(aggregate, "nested-key"), "is missing, but 'nested_partial_update' needs it")
    _check_fields(_key(aggregate, "nested-key"), aggregate.nested_key, kind.element.fields)
    _check_fields(_key(aggregate, "nested-sequence-field"), aggregate.nested_sequence, kind.element.fields)
    if aggregate.null_keys not in NULL_STRATEGIES:
        hint = f"use one of {', '.join(NULL_STRATEGIES)}"
        raise option_error(
            _key(aggregate, "nested-key-null-strategy"), f"is {aggregate.null_keys!r}, which is no strategy", hint
        )
    if aggregate.count_limit is not None and aggregate.count_limit < 0:
        raise option_error(
            _key(aggregate, "count-limit"), f"is {aggregate.count_limit}, which is negative", "set a number of rows"
        )


def _check_key_time(aggregate: Aggregate) -> None:
    kind = aggregate.column.type
    if not isinstance(kind, dt.MapType) or not isinstance(kind.value, dt.RowType) or len(kind.value.fields) < 2:
        raise _wrong_type(aggregate, "MAP<..., ROW<...>> with two fields or more")
    fields = kind.value.fields
    named = (aggregate.time_field,) if aggregate.time_field else ()
    _check_fields(_key(aggregate, "ts-field"), named, fields)
    time = next((f for f in fields if f.name == aggregate.time_field), fields[-1])
    if not isinstance(time.type, dt.CHARACTER_TYPES):
        reason = f"means {time.name!r}, which is {format_type(time.type)}"
        raise option_error(_key(aggregate, "ts-field"), reason, "times are compared as text, so name a STRING field")


def _check_fields(option: str, names: Sequence[str], fields: Sequence[DataField]) -> None:
    known = [f.name for f in fields]
    for name in names:
        if name not in known:
            raise option_error(option, f"names {name!r}, which is no field of its rows", did_you_mean(name, known))
