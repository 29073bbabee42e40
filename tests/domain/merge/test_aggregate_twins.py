"""Every aggregate function of the registry on columns equals its reference, deed by deed."""

from __future__ import annotations

import decimal
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.columnar.reduce import aggregated
from paimon.domain.merge.aggregate.columnar.steps import Steps
from paimon.domain.merge.aggregate.deeds import ADD, CLEAR, RETRACT, SET
from paimon.domain.merge.aggregate.reference import roaring64, sketches
from paimon.domain.merge.aggregate.registry import FUNCTIONS
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.row.values import to_array
from paimon.domain.types import data_types as dt

SMALL = st.integers(-3, 3)
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, 0.1, 1e30, float("nan"), float("inf"), float("-inf")])
TEXTS = st.sampled_from(["", "a", "b", "a,b", ",", "é"])
SORTED: list[tuple[dt.DataType, st.SearchStrategy[Any]]] = [
    (dt.TinyIntType(), st.sampled_from([-128, -100, -1, 0, 2, 100, 127])),
    (dt.SmallIntType(), SMALL),
    (dt.IntType(), st.sampled_from([-(2**31), -2, 0, 3, 2**31 - 1])),
    (dt.BigIntType(), st.sampled_from([-(2**63), -(2**62), -1, 0, 5, 2**62, 2**63 - 1])),
    (dt.FloatType(), FLOATS.filter(lambda v: v != 0.1)),
    (dt.DoubleType(), FLOATS),
    (dt.DecimalType(precision=9, scale=2), SMALL.map(lambda n: decimal.Decimal(n * 111).scaleb(-2))),
    (dt.DecimalType(precision=4, scale=1), st.sampled_from(["999.9", "-999.9", "0.5", "0.0"]).map(decimal.Decimal)),
    (
        dt.DecimalType(precision=38, scale=2),
        st.sampled_from(["9" * 36 + ".99", "-" + "9" * 36 + ".99", "1.00", "-12345678901234567890.50"]).map(
            decimal.Decimal
        ),
    ),
    (dt.VarCharType(), TEXTS),
    (dt.DateType(), SMALL),
    (dt.TimestampType(precision=3), SMALL.map(lambda n: n * 1_000_000)),
]
BOOLEANS = [(dt.BooleanType(), st.booleans())]
ROW = dt.RowType(fields=[dt.DataField(0, "id", dt.IntType()), dt.DataField(1, "v", dt.VarCharType())])
ROWS = st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from(["x", "y"]))
ARRAYS = [
    (dt.ArrayType(element=dt.IntType()), st.lists(st.none() | SMALL, max_size=4)),
    (dt.ArrayType(element=dt.VarCharType()), st.lists(TEXTS, max_size=4)),
]
TABLES = [(dt.ArrayType(element=ROW), st.lists(ROWS, max_size=3))]
MAPS = [
    (
        dt.MapType(key=dt.IntType(nullable=False), value=ROW),
        st.lists(st.tuples(SMALL, st.none() | ROWS), max_size=3, unique_by=lambda e: e[0]),
    )
]
NUMBERS = st.lists(st.sampled_from([0, 1, 2, 65_535, 65_536, 2**31, 2**32 - 1]), max_size=6)


def stored_64(numbers: list[int]) -> bytes:
    containers: dict[bytes, tuple[int, ...]] = {}
    for number in numbers:
        key = (number * 65_537 >> 16).to_bytes(6, "big")
        containers[key] = tuple(sorted({*containers.get(key, ()), number & 0xFFFF}))
    return roaring64.written(containers)


def stored_hll(numbers: list[int]) -> bytes:
    sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_4)
    for number in numbers:
        sketch.update(number)
    return bytes(sketch.serialize_compact())


def stored_theta(numbers: list[int]) -> bytes:
    sketch = datasketches.update_theta_sketch()
    for number in numbers:
        sketch.update(number)
    return bytes(sketch.compact().serialize())


STORED = {
    "rbm32": NUMBERS.map(lambda numbers: bytes(BitMap(numbers).serialize())),
    "rbm64": NUMBERS.map(stored_64),
    "hll_sketch": NUMBERS.map(stored_hll),
    "theta_sketch": NUMBERS.map(stored_theta),
}


def kinds_of(name: str) -> list[tuple[dt.DataType, st.SearchStrategy[Any]]]:
    """Types and values that a function takes."""
    if name.startswith("nested"):
        return TABLES
    if name in STORED:
        return [(dt.VarBinaryType(), STORED[name])]
    types = FUNCTIONS[name].types
    everything = [*SORTED, *BOOLEANS, *ARRAYS, *MAPS]
    return [kind for kind in everything if not types or isinstance(kind[0], types)]


@st.composite
def cases(draw: st.DrawFn, name: str) -> tuple[Aggregate, list[int], list[Any], list[int]]:
    kind, values = draw(st.sampled_from(kinds_of(name)))
    nested = name.startswith("nested")
    keyed = name == "nested_partial_update" or (nested and draw(st.booleans()))
    aggregate = Aggregate(
        column=dt.DataField(0, "c", kind),
        function=name,
        ignore_retract=draw(st.booleans()),
        distinct=draw(st.booleans()),
        nested_key=("id",) if keyed else (),
        nested_sequence=("v",) if keyed and draw(st.booleans()) else (),
        null_keys=draw(st.sampled_from(["merge", "ignore", "error"])) if keyed else "merge",
        count_limit=draw(st.none() | st.integers(0, 3)) if nested else None,
    )
    deed = st.integers(0, 5) if draw(st.booleans()) else st.sampled_from([ADD, ADD, ADD, RETRACT])
    rows = draw(st.lists(st.tuples(st.integers(0, 4), deed, st.none() | values), max_size=25))
    rows.sort(key=lambda row: row[0])
    return aggregate, [d for _, d, _ in rows], [v for _, _, v in rows], [g for g, _, _ in rows]


def same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)  # tells NaN from nothing, and the zeros apart


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=60)
@given(data=st.data())
def test_columns_equal_the_reference(name: str, data: st.DataObject) -> None:
    aggregate, deeds, values, groups = data.draw(cases(name))
    column = to_array(values, aggregate.column.type)
    shuffled = np.array(data.draw(st.permutations(range(len(values)))), dtype=np.int64)
    places = np.argsort(shuffled)
    steps = Steps(places, np.array(deeds, np.int8), np.array(groups, np.int64), 5)
    moved = column.take(shuffled) if len(values) else column
    reference = FUNCTIONS[name].reference
    try:
        rows = list(zip(deeds, values, groups, strict=True))
        by_group = [[(d, v) for d, v, g in rows if g == number] for number in range(5)]
        expected = [reference.fold(own, aggregate) for own in by_group]
    except InvalidRequest:
        with pytest.raises(InvalidRequest):
            aggregated(moved, aggregate, steps)
        return
    found = aggregated(moved, aggregate, steps)
    assert found.type == column.type
    assert same(found.to_pylist(), to_array(expected, aggregate.column.type).to_pylist())


@pytest.mark.parametrize("name", sorted(n for n, f in FUNCTIONS.items() if f.associative))
@settings(max_examples=25)
@given(data=st.data())
def test_parts_merge_to_the_whole(name: str, data: st.DataObject) -> None:
    kind, values = data.draw(st.sampled_from(kinds_of(name)))
    aggregate = Aggregate(dt.DataField(0, "c", kind), name)
    rows = data.draw(st.lists(st.none() | values, min_size=2, max_size=12))
    cut = data.draw(st.integers(1, len(rows) - 1))
    fold = FUNCTIONS[name].reference.fold
    parts = [fold([(ADD, v) for v in part], aggregate) for part in (rows[:cut], rows[cut:])]
    assert same(fold([(ADD, v) for v in parts], aggregate), fold([(ADD, v) for v in rows], aggregate))


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=60), min_size=2, max_size=3))
def test_64_bit_bitmaps_hold_what_was_put_in(parts: list[list[int]]) -> None:
    def numbers_of(data: bytes) -> set[int]:
        bitmap = roaring64.parsed(data)
        return {int.from_bytes(key, "big") << 16 | low for key, values in bitmap.items() for low in values}

    def stored(numbers: list[int]) -> bytes:
        keys = sorted({n >> 16 for n in numbers})
        return roaring64.written({
            key.to_bytes(6, "big"): tuple(sorted({n & 0xFFFF for n in numbers if n >> 16 == key})) for key in keys
        })

    united = stored(parts[0])
    for part in parts[1:]:
        united = roaring64.union(united, stored(part))
    assert numbers_of(united) == {n for part in parts for n in part}


@given(st.sets(st.integers(0, 500), min_size=1, max_size=80), st.sets(st.integers(0, 500), max_size=80))
def test_unions_of_hll_sketches_count_as_the_library_does(a: set[int], b: set[int]) -> None:
    union = datasketches.hll_union(12)
    for numbers in (a, b):
        union.update(datasketches.hll_sketch.deserialize(stored_hll(sorted(numbers))))
    found = datasketches.hll_sketch.deserialize(sketches.hll_union(stored_hll(sorted(a)), stored_hll(sorted(b))))
    assert found.get_estimate() == pytest.approx(union.get_result().get_estimate(), rel=1e-6)


@pytest.mark.parametrize("name", ["sum", "product"])
@pytest.mark.parametrize("later", [SET, CLEAR])
def test_an_overflow_is_refused_even_if_its_result_is_set_aside_later(name: str, later: int) -> None:
    aggregate = Aggregate(dt.DataField(0, "c", dt.TinyIntType()), name)
    column = pa.array([-128, -128, None], pa.int8())
    steps = Steps(np.arange(3), np.array([ADD, ADD, later], np.int8), np.zeros(3, np.int64), 1)
    with pytest.raises(InvalidRequest, match="does not fit its type"):
        aggregated(column, aggregate, steps)
