"""The columnar merge equals the row-wise reference for drawn key types, sequence fields, row kinds and levels."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.columns.java_float_order import RUN, find_totally_ordered_floats
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_reference import merge as reference_merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import Record
from paimon.domain.options.table_options import TableOptions
from paimon.domain.types.data_types import (
    BigIntType,
    BooleanType,
    DataField,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    TimestampType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)

FEW = st.integers(-3, 3)
TEXTS = st.one_of(
    st.sampled_from(["", "a", "a\0", "ab", "é", "key-1", "key-10", "key-2", "𝄞", "\uffff", "x" * 40, "x" * 40 + "y"]),
    st.text("ab\0", max_size=10),
)
DOUBLES = st.sampled_from([0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf")])
KINDS: dict[str, tuple[DataType, pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (IntType(), pa.int32(), FEW),
    "tinyint": (TinyIntType(), pa.int8(), st.sampled_from([-128, 0, 127])),
    "bigint": (BigIntType(), pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])),
    "bool": (BooleanType(), pa.bool_(), st.booleans()),
    "string": (VarCharType(), pa.string(), TEXTS),
    "bytes": (VarBinaryType(), pa.binary(), TEXTS.map(str.encode)),
    "date": (DateType(), pa.date32(), FEW),
    "timestamp": (TimestampType(precision=6), pa.timestamp("us"), FEW),
    "double": (DoubleType(), pa.float64(), DOUBLES),
    "float": (FloatType(), pa.float32(), DOUBLES),
    "decimal": (
        DecimalType(precision=9, scale=2),
        pa.decimal128(9, 2),
        FEW.map(lambda n: decimal.Decimal(n).scaleb(-2)),
    ),
    "wide decimal": (
        DecimalType(precision=38, scale=0),
        pa.decimal128(38, 0),
        st.sampled_from([-(10**37), -(2**64), -1, 0, 1, 2**63, 2**64, 10**37]).map(decimal.Decimal),
    ),
}


@st.composite
def merges(draw: st.DrawFn, keys: Sequence[str]) -> tuple[MergeSpec, list[Record], dict[str, pa.DataType]]:
    sequence = draw(st.lists(st.sampled_from(["int", "double", "float", "string"]), max_size=2, unique=True))
    columns = {f"k{i}": KINDS[k] for i, k in enumerate(keys)} | {f"s_{k}": KINDS[k] for k in sequence}
    fields = [DataField(i, name, kind[0]) for i, (name, kind) in enumerate(columns.items())]
    spec = MergeSpec(
        key_fields=tuple(fields[: len(keys)]),
        value_fields=tuple(fields[len(keys) :]),
        sequence_fields=tuple(f"s_{k}" for k in sequence),
        sequence_descending=draw(st.booleans()),
        retracts_first=draw(st.booleans()),
        ignore_delete=draw(st.booleans()),
        lookup=draw(st.booleans()),
        ordered_floats=draw(st.sampled_from([frozenset(), frozenset({"s_double"})])),
    )
    pools = {n: draw(st.lists(st.none() | kind[2], min_size=1, max_size=4)) for n, kind in columns.items()}
    values_of = st.tuples(*(st.sampled_from(pools[n]) for n in columns))
    rows = draw(st.lists(st.tuples(values_of, st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), max_size=25))
    numbers = draw(st.permutations(range(len(rows), 2 * len(rows)))) if draw(st.booleans()) else [0] * len(rows)
    records = [
        Record({**dict(zip(columns, values, strict=True)), "row": i}, seq, kind, level, run)
        for i, ((values, seq, kind, level), run) in enumerate(zip(rows, numbers, strict=True))
    ]
    return spec, records, {n: kind[1] for n, kind in columns.items()} | {"row": pa.int64()}


def as_table(records: Sequence[Record], types: dict[str, pa.DataType]) -> pa.Table:
    columns = {n: pa.array([r.values[n] for r in records], t) for n, t in types.items()}
    columns["_SEQUENCE_NUMBER"] = pa.array([r.sequence for r in records], pa.int64())
    columns["_VALUE_KIND"] = pa.array([r.kind for r in records], pa.int8())
    columns["_LEVEL"] = pa.array([r.level for r in records], pa.int32())
    if any(r.run for r in records):
        columns[RUN] = pa.array([r.run for r in records], pa.int32())
    return pa.table(columns)


def check(spec: MergeSpec, records: list[Record], types: dict[str, pa.DataType]) -> None:
    table = as_table(records, types)
    cut = pa.concat_tables([table.slice(0, len(records) // 2), table.slice(len(records) // 2)])
    expected = [r.values["row"] for r in reference_merge(records, spec)]
    assert merge(table, spec)["row"].to_pylist() == expected
    assert merge(cut, spec)["row"].to_pylist() == expected


@pytest.mark.parametrize(
    ("keys", "sequences", "expected"),
    [
        (["int"], ["double"], {"double0"}),
        (["int"], ["float", "double"], {"float0", "double1"}),
        (["int", "int"], ["float", "double"], {"float0"}),
        (["bigint", "int"], ["double"], {"double0"}),
        (["bigint", "bigint"], ["double"], set()),
        (["bool", "int"], ["int", "float"], {"float1"}),
        (["int"], ["string", "float"], set()),
        (["string"], ["float"], set()),
        (["timestamp"], ["float"], set()),
        (["decimal"], ["float"], {"float0"}),
        (["wide decimal"], ["float"], set()),
        ([], ["double", "int"], {"double0"}),
    ],
)
def test_sort_keys_reach_so_far(keys: list[str], sequences: list[str], expected: set[str]) -> None:
    named = [DataField(i, f"{kind}{i}", KINDS[kind][0]) for i, kind in enumerate(sequences)]
    assert find_totally_ordered_floats([DataField(9, "k", KINDS[kind][0]) for kind in keys], named) == expected


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=20)
@given(data=st.data())
def test_columnar_equals_reference_for_single_keys(kind: str, data: st.DataObject) -> None:
    check(*data.draw(merges([kind])))


@settings(max_examples=40)
@given(data=st.data())
def test_columnar_equals_reference_for_composite_keys(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=3))
    check(*data.draw(merges(kinds)))


@settings(max_examples=40)
@given(data=st.data(), engine=st.sampled_from(["first-row", "partial-update"]), removes=st.booleans())
def test_engines_equal_their_reference(data: st.DataObject, engine: str, removes: bool) -> None:
    spec, records, types = data.draw(merges(["string"]))
    columns = {"a": IntType(), "b": VarCharType(), "c": IntType(nullable=False)}
    fields = tuple(DataField(10 + i, name, kind) for i, (name, kind) in enumerate(columns.items()))
    filled = [
        evolve(
            r,
            values={
                **r.values,
                "a": data.draw(st.none() | FEW),
                "b": data.draw(st.none() | TEXTS),
                "c": data.draw(FEW),
            },
        )
        for r in records
    ]
    option = "partial-update.remove-record-on-delete"
    options = TableOptions.of({option: "true"} if removes and not spec.ignore_delete else {})
    spec = evolve(spec, engine=engine, options=options, sequence_fields=(), value_fields=fields)
    column_types = {**types, "a": pa.int32(), "b": pa.string(), "c": pa.int32()}
    try:
        expected = [(r.kind, r.values) for r in reference_merge(filled, spec)]
    except InvalidRequest:
        with pytest.raises(InvalidRequest):
            merge(as_table(filled, column_types), spec)
        return
    merged = merge(as_table(filled, column_types), spec)
    names = ["k0", "a", "b", "c", "row"]
    assert merged.select(names).to_pylist() == [{n: values[n] for n in names} for _, values in expected]
    assert merged["_VALUE_KIND"].to_pylist() == [kind for kind, _ in expected]
