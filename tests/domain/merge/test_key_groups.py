"""Rows that are already in arrival order merge like sorted rows. Group positions equal those of a loop."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.key_groups import (
    find_first_positions,
    find_largest_positions,
    find_last_positions,
    group_rows_by_age,
)
from paimon.domain.merge.ordering.merge_order import group_rows_by_key
from paimon.domain.options.table_options import TableOptions
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField

KEYS: dict[str, list[tuple[DataField, Any]]] = {
    "dense": [(DataField(0, "k", dt.IntType(nullable=False)), lambda n: n)],
    "sparse": [(DataField(0, "k", dt.BigIntType(nullable=False)), lambda n: n * 10**12 - 5)],
    "text": [(DataField(0, "k", dt.VarCharType(nullable=False)), lambda n: f"{'é' * (n % 3)}key {n}")],
    "two": [
        (DataField(0, "k", dt.BigIntType(nullable=False)), lambda n: (n // 3) * 2**61 - 2**62),
        (DataField(1, "l", dt.VarCharType(nullable=False)), lambda n: "abc"[n % 3]),
    ],
}
VALUES: list[tuple[DataField, st.SearchStrategy[Any]]] = [
    (DataField(10, "i", dt.IntType()), st.integers(-9, 9)),
    (DataField(11, "d", dt.DoubleType()), st.sampled_from([0.0, -0.0, 1.5, 0.1, float("nan"), -1e30])),
    (DataField(12, "f", dt.FloatType()), st.sampled_from([-0.0, 0.5, 16777216.0, 1.0])),
    (DataField(13, "t", dt.VarCharType()), st.sampled_from(["", "b", "a long text, longer than 32 bytes is", "ä"])),
    (DataField(14, "m", dt.DecimalType(precision=20, scale=1)), st.integers(-5, 5).map(decimal.Decimal)),
    (DataField(15, "b", dt.BooleanType()), st.booleans()),
    (DataField(16, "s", dt.TimestampType(precision=3)), st.integers(0, 3).map(lambda n: n)),
    (DataField(17, "u", dt.BigIntType()), st.sampled_from([-(2**62), 0, 3])),
]
ENGINES: dict[str, tuple[str, dict[str, str]]] = {
    "deduplicate": ("deduplicate", {}),
    "first-row": ("first-row", {}),
    "partial-update": ("partial-update", {}),
    "sequence groups": (
        "partial-update",
        {"fields.s.sequence-group": "i,t", "fields.u,b.sequence-group": "m", "fields.d.aggregate-function": "sum"},
    ),
    "sums": ("aggregation", {f"fields.{n}.aggregate-function": "sum" for n in "idfm"}),
    "products": ("aggregation", {f"fields.{n}.aggregate-function": "product" for n in "idf"}),
    "largest": ("aggregation", {f"fields.{n}.aggregate-function": "max" for n in "idftmsu"}),
    "smallest": ("aggregation", {f"fields.{n}.aggregate-function": "min" for n in "idftmsu"}),
    "first ones": ("aggregation", {"fields.default-aggregate-function": "first_value"}),
    "first ones that are": ("aggregation", {"fields.default-aggregate-function": "first_non_null_value"}),
    "others": (
        "aggregation",
        {
            "fields.i.aggregate-function": "count",
            "fields.t.aggregate-function": "listagg",
            "fields.b.aggregate-function": "bool_and",
            "fields.default-aggregate-function": "last_value",
        },
    ),
}


@st.composite
def files(draw: st.DrawFn, keys: list[tuple[DataField, Any]]) -> pa.Table:
    """Files from old to new, each sorted by a unique key. Sequence numbers grow from file to file only."""
    rows: list[dict[str, Any]] = []
    for own in draw(st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=1, max_size=4)):
        first = len(rows)
        numbers = draw(st.permutations(range(first, first + len(own))))
        made = [{f.name: make(n) for f, make in keys} | {"_VALUE_KIND": 0} for n in own]
        made.sort(key=lambda row: [v.encode() if isinstance(v, str) else v for v in (row[f.name] for f, _ in keys)])
        for row, number in zip(made, numbers, strict=True):
            rows.append(row | {"_SEQUENCE_NUMBER": number} | {f.name: draw(st.none() | v) for f, v in VALUES})
    schema = arrow_schema([*(f for f, _ in keys), *(f for f, _ in VALUES)])
    for field in (pa.field("_SEQUENCE_NUMBER", pa.int64()), pa.field("_VALUE_KIND", pa.int8())):
        schema = schema.append(field)
    return pa.Table.from_pylist(rows, schema)


def spec_of(keys: list[tuple[DataField, Any]], engine: str) -> MergeSpec:
    name, options = ENGINES[engine]
    values = tuple(f for f, _ in VALUES)
    return MergeSpec(tuple(f for f, _ in keys), values, engine=name, options=TableOptions.of(options))


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@settings(max_examples=20)
@given(data=st.data())
def test_numbers_of_keys_are_those_of_their_groups(keys: list[tuple[DataField, Any]], data: st.DataObject) -> None:
    table = data.draw(files(keys))
    spec = spec_of(keys, "deduplicate")
    numbered = group_rows_by_age(table, spec)
    assert numbered is not None
    expected = group_rows_by_key(table, spec)
    for found in (numbered, numbered.to_key_order()):
        assert found.singletons.tolist() == expected.singletons.tolist()
        assert found.first.tolist() == expected.first.tolist()
        assert found.last.tolist() == expected.last.tolist()
    assert numbered.to_key_order().order.tolist() == expected.order.tolist()
    assert numbered.to_key_order().starts.tolist() == expected.starts.tolist()


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=15)
@given(data=st.data(), kind=st.sampled_from(sorted(KEYS)))
def test_rows_in_any_order_merge_as_rows_in_order_of_age(engine: str, data: st.DataObject, kind: str) -> None:
    table = data.draw(files(KEYS[kind]))
    spec = spec_of(KEYS[kind], engine)
    shuffled = table.take(pa.array(data.draw(st.permutations(range(table.num_rows))), pa.int64()))
    assert repr(merge(shuffled, spec).to_pylist()) == repr(merge(table, spec).to_pylist())


def test_rows_that_are_not_in_order_of_age_are_detected() -> None:
    spec = MergeSpec((DataField(0, "k", dt.IntType(nullable=False)),))
    table = pa.table({"k": pa.array([1, 2, 1, 3], pa.int32()), "_SEQUENCE_NUMBER": [7, 1, 2, 9]})
    assert group_rows_by_age(table, spec) is None  # sequence numbers of the two files overlap
    newer = table.set_column(1, "_SEQUENCE_NUMBER", pa.array([7, 1, 8, 9]))
    assert group_rows_by_age(newer, spec) is not None


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2**64 - 1), st.booleans()), max_size=20))
def test_places_are_those_that_a_loop_finds(rows: list[tuple[int, int, int, bool]]) -> None:
    groups = np.array([g for g, *_ in rows], np.int64)
    words = [np.array([r[i] for r in rows], np.uint64) for i in (1, 2)]
    for mask in (None, np.array([r[3] for r in rows], np.bool_)):
        of_group = [[i for i, r in enumerate(rows) if r[0] == g and (mask is None or r[3])] for g in range(5)]
        assert find_first_positions(groups, 5, mask).tolist() == [min(own, default=-1) for own in of_group]
        assert find_last_positions(groups, 5, mask).tolist() == [max(own, default=-1) for own in of_group]
        largest = [max(own, key=lambda i: (rows[i][1:3], i), default=-1) for own in of_group]
        assert find_largest_positions(words, groups, 5, mask).tolist() == largest
