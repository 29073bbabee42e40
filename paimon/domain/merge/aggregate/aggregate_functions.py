"""The registry of aggregate functions: each has a folding, a columnar function, and the types that it takes.

To add a function, add its line to `AGGREGATE_FUNCTIONS`. The contract `paimon.testing.contracts.AggregateContract` then
runs on it. The folding takes value by value. It aggregates groups that no columnar function can: those of functions
over nested values, bitmaps and sketches, and rare states of other functions (`needs_folding`).

Source: `FieldAggregatorFactory` and the factories that it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.merge.aggregate import collection_foldings as collections
from paimon.domain.merge.aggregate import foldings, set_foldings
from paimon.domain.merge.aggregate import functions_columnar as columnar
from paimon.domain.merge.aggregate.foldings import Folding
from paimon.domain.merge.aggregate.rule import ADD, ADD_OLDER, Aggregate
from paimon.domain.merge.aggregate.steps_columnar import Steps
from paimon.domain.merge.ordering.merge_order import Mask
from paimon.domain.types import data_types as dt
from paimon.domain.types.type_text import format_type

Columnar = Callable[[pa.Array, Aggregate, Steps], pa.Array]
NeedsFolding = Callable[[pa.Array, Aggregate, Steps], Mask | None]
INTEGERS = (dt.TinyIntType, dt.SmallIntType, dt.IntType, dt.BigIntType)
NUMBERS = (*INTEGERS, dt.FloatType, dt.DoubleType, dt.DecimalType)
COMPARABLE = (*NUMBERS, dt.CharType, dt.VarCharType, dt.DateType, dt.TimeType, *dt.TIMESTAMP_TYPES)
BYTES = (dt.VarBinaryType,)
NESTED_FUNCTIONS = ("nested_update", "nested_partial_update")


@frozen
class AggregateFunction:
    """An aggregate function: its folding, its columnar function and the column types that it accepts."""

    folding: Folding
    # reduces the groups that `needs_folding` does not mark
    columnar: Columnar
    # empty for any type
    types: tuple[type[dt.DataType], ...] = ()
    # marks the groups that only the folding can aggregate; None if there are none
    needs_folding: NeedsFolding | None = None
    # whether the columnar function also gets the steps before the last SET or CLEAR
    sees_all_steps: bool = False
    # one value alone can be refused (damaged bytes, retract of a 0), so steps before a SET are checked too
    can_refuse: bool = False
    # whether merging parts, and then their results, equals merging everything at once
    associative: bool = False


def _mask_all_groups(column: pa.Array, aggregate: Aggregate, steps: Steps) -> Mask:
    return np.ones(steps.group_count, dtype=np.bool_)


def _mask_distinct(column: pa.Array, aggregate: Aggregate, steps: Steps) -> Mask:
    return np.full(steps.group_count, aggregate.distinct)


def _mask_distinct_or_retracted(column: pa.Array, aggregate: Aggregate, steps: Steps) -> Mask:
    return _mask_distinct(column, aggregate, steps) | steps.any_of(steps.retracts)


def _mask_decimal_or_retracted(column: pa.Array, aggregate: Aggregate, steps: Steps) -> Mask:
    return np.full(steps.group_count, isinstance(aggregate.column.type, dt.DecimalType)) | steps.any_of(steps.retracts)


def _mask_other_than_adds(column: pa.Array, aggregate: Aggregate, steps: Steps) -> Mask:
    return steps.any_of(steps.actions != ADD)


def _mask_late(column: pa.Array, aggregate: Aggregate, steps: Steps) -> Mask:
    return steps.any_of(steps.actions == ADD_OLDER)


AGGREGATE_FUNCTIONS: Mapping[str, AggregateFunction] = {
    "sum": AggregateFunction(foldings.SUM, columnar.total, NUMBERS, columnar.mask_overflowing_sums),
    "product": AggregateFunction(
        foldings.PRODUCT, columnar.product, NUMBERS, _mask_decimal_or_retracted, can_refuse=True
    ),
    "count": AggregateFunction(foldings.COUNT, columnar.count, (dt.IntType, dt.BigIntType), _mask_late),
    "max": AggregateFunction(foldings.MAX, columnar.maximum, COMPARABLE, associative=True),
    "min": AggregateFunction(foldings.MIN, columnar.minimum, COMPARABLE, associative=True),
    "bool_and": AggregateFunction(foldings.BOOL_AND, columnar.bool_and, (dt.BooleanType,), associative=True),
    "bool_or": AggregateFunction(foldings.BOOL_OR, columnar.bool_or, (dt.BooleanType,), associative=True),
    "last_value": AggregateFunction(foldings.LAST_VALUE, columnar.last_value, sees_all_steps=True, associative=True),
    "last_non_null_value": AggregateFunction(
        foldings.LAST_NON_NULL_VALUE, columnar.last_non_null_value, associative=True
    ),
    "first_value": AggregateFunction(foldings.FIRST_VALUE, columnar.first_value, sees_all_steps=True, associative=True),
    "first_non_null_value": AggregateFunction(
        foldings.FIRST_NON_NULL_VALUE,
        columnar.first_non_null_value,
        needs_folding=_mask_other_than_adds,
        sees_all_steps=True,
        associative=True,
    ),
    "primary-key": AggregateFunction(foldings.PRIMARY_KEY, columnar.primary_key, associative=True),
    "listagg": AggregateFunction(collections.LISTAGG, columnar.listagg, (dt.VarCharType,), _mask_distinct),
    "collect": AggregateFunction(collections.COLLECT, columnar.collect, (dt.ArrayType,), _mask_distinct_or_retracted),
    "merge_map": AggregateFunction(collections.MERGE_MAP, columnar.last_value, (dt.MapType,), _mask_all_groups),
    "merge_map_with_keytime": AggregateFunction(
        collections.MERGE_MAP_WITH_KEYTIME, columnar.last_value, (dt.MapType,), _mask_all_groups
    ),
    "nested_update": AggregateFunction(
        collections.NESTED_UPDATE, columnar.last_value, (dt.ArrayType,), _mask_all_groups, can_refuse=True
    ),
    "nested_partial_update": AggregateFunction(
        collections.NESTED_PARTIAL_UPDATE, columnar.last_value, (dt.ArrayType,), _mask_all_groups, can_refuse=True
    ),
    "rbm32": AggregateFunction(
        set_foldings.RBM32, columnar.last_value, BYTES, _mask_all_groups, can_refuse=True, associative=True
    ),
    "rbm64": AggregateFunction(
        set_foldings.RBM64, columnar.last_value, BYTES, _mask_all_groups, can_refuse=True
    ),  # not associative: its bytes depend on the order in which containers were added
    "hll_sketch": AggregateFunction(
        set_foldings.HLL_SKETCH, columnar.last_value, BYTES, _mask_all_groups, can_refuse=True
    ),
    "theta_sketch": AggregateFunction(
        set_foldings.THETA_SKETCH, columnar.last_value, BYTES, _mask_all_groups, can_refuse=True
    ),
}
"""The aggregate functions by the value of `fields.<column>.aggregate-function`: the one place to register one."""


def get_function(aggregate: Aggregate) -> AggregateFunction:
    """Return the function of an aggregate; raise `Unsupported` if no function has its name."""
    found = AGGREGATE_FUNCTIONS.get(aggregate.function)
    if found is None:
        raise Unsupported(
            f"aggregate function {aggregate.function!r}", hint=did_you_mean(aggregate.function, AGGREGATE_FUNCTIONS)
        )
    return found


def sees_actions(aggregate: Aggregate) -> bool:
    """Return whether the function distinguishes between a SET and an ADD that is the only step of its group."""
    is_plain_sum = aggregate.function == "sum" and not isinstance(aggregate.column.type, dt.DecimalType)
    return get_function(aggregate).needs_folding is not None and not is_plain_sum


def can_refuse_values(aggregate: Aggregate) -> bool:
    """Return whether the function can refuse a value of the right type."""
    can_refuse = get_function(aggregate).can_refuse
    return can_refuse and (aggregate.null_keys == "error" or aggregate.function not in NESTED_FUNCTIONS)


def check_type(aggregate: Aggregate) -> None:
    """Refuse a column whose type the function does not take."""
    types = get_function(aggregate).types
    name, kind = aggregate.column.name, aggregate.column.type
    if types and not isinstance(kind, types):
        taken = ", ".join(t.__name__.removesuffix("Type").upper() for t in types)
        raise InvalidRequest(
            f"Aggregate function {aggregate.function!r} does not take column {name!r} of type {format_type(kind)}",
            subject=f"fields.{name}.aggregate-function",
            hint=f"it takes {taken}; set another function for this column",
        )
