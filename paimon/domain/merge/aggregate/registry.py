"""The aggregate functions by name: each a reference and a columnar function, and the types that it takes.

Law: a function is registered with both or not at all. `by_reference` says which groups the reference merges in
production too: those of functions over nested values, bitmaps and sketches, and rare states of others.
Source: `FieldAggregatorFactory` and the factories that it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.merge.aggregate.columnar import extremes, numbers, picks, texts
from paimon.domain.merge.aggregate.columnar.steps import Steps
from paimon.domain.merge.aggregate.deeds import ADD, ADD_OLDER
from paimon.domain.merge.aggregate.reference import bitmaps, lists, maps, nested
from paimon.domain.merge.aggregate.reference import numbers as reference_numbers
from paimon.domain.merge.aggregate.reference import picks as reference_picks
from paimon.domain.merge.aggregate.reference import texts as reference_texts
from paimon.domain.merge.aggregate.reference.fold import Folding
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.merge.columnar.ordering.order import Mask
from paimon.domain.types import data_types as dt
from paimon.domain.types.text import format_type

Columnar = Callable[[pa.Array, Aggregate, Steps], pa.Array]
ByReference = Callable[[Aggregate, Steps], Mask]
INTEGERS = (dt.TinyIntType, dt.SmallIntType, dt.IntType, dt.BigIntType)
NUMBERS = (*INTEGERS, dt.FloatType, dt.DoubleType, dt.DecimalType)
COMPARABLE = (*NUMBERS, dt.CharType, dt.VarCharType, dt.DateType, dt.TimeType, *dt.TIMESTAMP_TYPES)
BYTES = (dt.VarBinaryType,)


@frozen
class Function:
    """One aggregate function.

    Parameters
    ----------
    reference : Folding
        What it does value by value.
    columnar : callable
        What it does to a column; not asked for the groups that `by_reference` names.
    types : tuple of types
        What it can aggregate; anything where empty.
    by_reference : callable, optional
        The groups that only the reference can merge.
    remembers : bool
        Whether the columnar function takes also the steps before the last SET or CLEAR.
    refuses : bool
        Whether values of the right type can be refused (overflow, damaged bytes): then steps before the last SET or
        CLEAR are calculated too.
    associative : bool
        Whether merging parts, and then their results, gives what merging all at once gives.
    """

    reference: Folding
    columnar: Columnar
    types: tuple[type[dt.DataType], ...] = ()
    by_reference: ByReference | None = None
    remembers: bool = False
    refuses: bool = False
    associative: bool = False


def _all_groups(aggregate: Aggregate, steps: Steps) -> Mask:
    return np.ones(steps.group_count, dtype=np.bool_)


def _distinct(aggregate: Aggregate, steps: Steps) -> Mask:
    return np.full(steps.group_count, aggregate.distinct)


def _distinct_or_retracted(aggregate: Aggregate, steps: Steps) -> Mask:
    return _distinct(aggregate, steps) | steps.any_of(steps.retracts)


def _decimal_or_retracted(aggregate: Aggregate, steps: Steps) -> Mask:
    return np.full(steps.group_count, isinstance(aggregate.column.type, dt.DecimalType)) | steps.any_of(steps.retracts)


def _unlike_adds(aggregate: Aggregate, steps: Steps) -> Mask:
    return steps.any_of(steps.deeds != ADD)


def _late_counts(aggregate: Aggregate, steps: Steps) -> Mask:
    return steps.any_of(steps.deeds == ADD_OLDER)


FUNCTIONS: Mapping[str, Function] = {
    "sum": Function(reference_numbers.SUM, numbers.total, NUMBERS, refuses=True),
    "product": Function(reference_numbers.PRODUCT, numbers.product, NUMBERS, _decimal_or_retracted, refuses=True),
    "count": Function(reference_numbers.COUNT, numbers.count, (dt.IntType, dt.BigIntType), _late_counts, refuses=True),
    "max": Function(reference_numbers.MAX, extremes.maximum, COMPARABLE, associative=True),
    "min": Function(reference_numbers.MIN, extremes.minimum, COMPARABLE, associative=True),
    "bool_and": Function(reference_numbers.BOOL_AND, extremes.bool_and, (dt.BooleanType,), associative=True),
    "bool_or": Function(reference_numbers.BOOL_OR, extremes.bool_or, (dt.BooleanType,), associative=True),
    "last_value": Function(reference_picks.LAST_VALUE, picks.last_value, remembers=True, associative=True),
    "last_non_null_value": Function(reference_picks.LAST_NON_NULL_VALUE, picks.last_non_null_value, associative=True),
    "first_value": Function(reference_picks.FIRST_VALUE, picks.first_value, remembers=True, associative=True),
    "first_non_null_value": Function(
        reference_picks.FIRST_NON_NULL_VALUE,
        picks.first_non_null_value,
        by_reference=_unlike_adds,
        remembers=True,
        associative=True,
    ),
    "primary-key": Function(reference_picks.PRIMARY_KEY, picks.primary_key, associative=True),
    "listagg": Function(reference_texts.LISTAGG, texts.listagg, (dt.VarCharType,), _distinct),
    "collect": Function(lists.COLLECT, texts.collect, (dt.ArrayType,), _distinct_or_retracted),
    "merge_map": Function(maps.MERGE_MAP, picks.last_value, (dt.MapType,), _all_groups),
    "merge_map_with_keytime": Function(maps.MERGE_MAP_WITH_KEYTIME, picks.last_value, (dt.MapType,), _all_groups),
    "nested_update": Function(nested.NESTED_UPDATE, picks.last_value, (dt.ArrayType,), _all_groups, refuses=True),
    "nested_partial_update": Function(
        nested.NESTED_PARTIAL_UPDATE, picks.last_value, (dt.ArrayType,), _all_groups, refuses=True
    ),
    "rbm32": Function(bitmaps.RBM32, picks.last_value, BYTES, _all_groups, refuses=True, associative=True),
    "rbm64": Function(
        bitmaps.RBM64, picks.last_value, BYTES, _all_groups, refuses=True
    ),  # places of containers tell the grouping
    "hll_sketch": Function(bitmaps.HLL_SKETCH, picks.last_value, BYTES, _all_groups, refuses=True),
    "theta_sketch": Function(bitmaps.THETA_SKETCH, picks.last_value, BYTES, _all_groups, refuses=True),
}


def function_named(aggregate: Aggregate) -> Function:
    """The function of an aggregate; Unsupported where there is none of its name."""
    found = FUNCTIONS.get(aggregate.function)
    if found is None:
        raise Unsupported(
            f"aggregate function {aggregate.function!r}", hint=did_you_mean(aggregate.function, FUNCTIONS)
        )
    return found


def check_type(aggregate: Aggregate) -> None:
    """Refuse a column whose type the function does not take."""
    types = function_named(aggregate).types
    name, kind = aggregate.column.name, aggregate.column.type
    if types and not isinstance(kind, types):
        taken = ", ".join(t.__name__.removesuffix("Type").upper() for t in types)
        raise InvalidRequest(
            f"aggregate function {aggregate.function!r} does not take column {name!r} of type {format_type(kind)}",
            subject=f"fields.{name}.aggregate-function", hint=f"it takes {taken}; set the option of this column",
        )  # fmt: skip
