"""Whether a table's aggregates can be: the type of each column, and the options of each function.

Law: a refusal names the option at fault and says what it could be; what passes never fails for its type while rows
are merged. Java refuses the same when a table is first written. Source: the factories of `FieldAggregatorFactory`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.merge.aggregate.registry import check_type
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.spec import AGGREGATING, MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.layout import refuse
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.types.text import format_type

NULL_STRATEGIES = ("merge", "ignore", "error")
_NESTED = ("nested_update", "nested_partial_update")


def check_aggregates(schema: TableSchema, options: TableOptions) -> None:
    """Refuse what cannot be, of a primary-key table whose engine aggregates; InvalidRequest or Unsupported."""
    if not schema.primary_keys or options.merge_engine not in AGGREGATING:
        return
    spec = MergeSpec.of(schema, options)
    for aggregate in spec.aggregates:
        check_type(aggregate)
        _check_retracts(aggregate, spec)
        if aggregate.function in _NESTED:
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
    return refuse(_key(aggregate, "aggregate-function"), reason, f"it takes {wanted}")


def _check_retracts(aggregate: Aggregate, spec: MergeSpec) -> None:
    if spec.engine == "aggregation" and spec.removes_on_delete and aggregate.ignore_retract:
        raise refuse(_key(aggregate, "ignore-retract"), "does not go with 'aggregation.remove-record-on-delete'")


def _check_listagg(aggregate: Aggregate) -> None:
    kind = aggregate.column.type
    if isinstance(kind, dt.VarCharType) and kind.length != dt.VarCharType().length:
        raise _wrong_type(aggregate, "STRING")


def _check_nested(aggregate: Aggregate) -> None:
    kind = aggregate.column.type
    if not isinstance(kind, dt.ArrayType) or not isinstance(kind.element, dt.RowType):
        raise _wrong_type(aggregate, "ARRAY<ROW<...>>")
    if aggregate.function == "nested_partial_update" and not aggregate.nested_key:
        raise refuse(_key(aggregate, "nested-key"), "is missing, but 'nested_partial_update' needs it")
    _check_fields(_key(aggregate, "nested-key"), aggregate.nested_key, kind.element.fields)
    _check_fields(_key(aggregate, "nested-sequence-field"), aggregate.nested_sequence, kind.element.fields)
    if aggregate.null_keys not in NULL_STRATEGIES:
        hint = f"it is one of {', '.join(NULL_STRATEGIES)}"
        raise refuse(_key(aggregate, "nested-key-null-strategy"), f"is {aggregate.null_keys!r}", hint)
    if aggregate.count_limit is not None and aggregate.count_limit < 0:
        raise refuse(_key(aggregate, "count-limit"), f"is {aggregate.count_limit}", "give a number of rows")


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
        raise refuse(_key(aggregate, "ts-field"), reason, "times are compared as text: name a STRING field")


def _check_fields(option: str, names: Sequence[str], fields: Sequence[DataField]) -> None:
    known = [f.name for f in fields]
    for name in names:
        if name not in known:
            raise refuse(option, f"names {name!r}, which is no field of its rows", did_you_mean(name, known))
