"""Aggregation and partial-update on columns equal their references for drawn options and histories."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_reference import merge as reference_merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import Record
from paimon.domain.options.table_options import TableOptions
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import BigIntType, DataField, DataType, DoubleType, IntType, VarCharType

KEY = DataField(0, "k", IntType(nullable=False))
SEQUENCES = ("g", "h", "i")
FLOATS = st.sampled_from([float("nan"), float("nan"), 0.0, -0.0, -1.5, 2.0, float("inf")])
VALUES = ("a", "b", "c", "d", "e")
NUMERIC = ["sum", "product", "max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value"]


@st.composite
def options(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    engine = draw(st.sampled_from(["aggregation", "partial-update"]))
    chosen: dict[str, str] = {}
    functions = draw(st.fixed_dictionaries({n: st.none() | st.sampled_from(NUMERIC) for n in VALUES}))
    forgiving = {f"fields.{n}.ignore-retract": "true" for n in VALUES if draw(st.booleans())}
    default = draw(st.sampled_from([None, None, "last_value", "max"]))
    if engine == "aggregation":
        chosen["aggregation.remove-record-on-delete"] = str(draw(st.booleans())).lower()
    elif draw(st.booleans()):
        chosen["fields.g.sequence-group"] = "a,b"
        chosen["fields.h,i.sequence-group"] = "c,d"
        removing = draw(st.sampled_from(["", "g", "i", "g,h"]))
        if removing:
            chosen["partial-update.remove-record-on-sequence-group"] = removing
        functions["e"] = draw(st.sampled_from([None, "last_non_null_value"]))
        default = None
    else:
        chosen["partial-update.remove-record-on-delete"] = str(draw(st.booleans())).lower()
        functions, default = dict.fromkeys(VALUES), None
    chosen |= {f"fields.{n}.aggregate-function": f for n, f in functions.items() if f is not None}
    chosen |= {} if default is None else {"fields.default-aggregate-function": default}
    return engine, chosen | forgiving


@st.composite
def merges(draw: st.DrawFn) -> tuple[MergeSpec, list[Record]]:
    engine, chosen = draw(options())
    required = draw(st.sets(st.sampled_from([*VALUES, "g"]), max_size=2))
    floating = draw(st.sets(st.sampled_from(["g", "h"])))
    fields = tuple(
        DataField(i + 1, n, (DoubleType if n in floating else IntType)(nullable=n not in required))
        for i, n in enumerate((*SEQUENCES, *VALUES))
    )
    spec = MergeSpec(
        (KEY,),
        fields,
        sequence_fields=("i",) if engine == "aggregation" and draw(st.booleans()) else (),
        engine=engine,
        lookup=draw(st.booleans()),
        options=TableOptions.of(chosen),
    )
    value = st.none() | st.integers(-2, 3)
    kind = draw(st.sampled_from([st.just(0), st.sampled_from([0, 0, 0, 2, 3]), st.integers(0, 3)]))
    rows = draw(st.lists(st.tuples(st.integers(0, 3), kind, st.integers(0, 3), *[value] * len(fields)), max_size=20))
    records = []
    for number, (key, row_kind, level, *values) in enumerate(rows):
        row: dict[str, Any] = {"k": key} | dict(zip([f.name for f in fields], values, strict=True))
        row |= {n: 0 for n in required if row[n] is None}
        row |= {n: draw(FLOATS) for n in floating if row[n] is not None}
        records.append(Record(row, number, row_kind, level))
    return spec, records


def as_table(records: list[Record], spec: MergeSpec) -> pa.Table:
    columns = {f.name: pa.array([r.values[f.name] for r in records], arrow_type(f.type)) for f in spec.fields}
    columns["_SEQUENCE_NUMBER"] = pa.array([r.sequence for r in records], pa.int64())
    columns["_VALUE_KIND"] = pa.array([r.kind for r in records], pa.int8())
    columns["_LEVEL"] = pa.array([r.level for r in records], pa.int32())
    return pa.table(columns)


@settings(max_examples=150)
@given(merges())
def test_engines_equal_their_references(case: tuple[MergeSpec, list[Record]]) -> None:
    spec, records = case
    table = as_table(records, spec)
    try:
        expected = reference_merge(records, spec)
    except InvalidRequest:
        with pytest.raises(InvalidRequest):
            merge(table, spec)
        return
    merged = merge(table, spec)
    names = [f.name for f in spec.fields]
    assert repr(merged.select(names).to_pylist()) == repr([{n: r.values[n] for n in names} for r in expected])
    assert merged["_VALUE_KIND"].to_pylist() == [r.kind for r in expected]
    assert merged["_SEQUENCE_NUMBER"].to_pylist() == [r.sequence for r in expected]


@settings(max_examples=60)
@given(merges(), st.sets(st.sampled_from([*SEQUENCES, *VALUES])))
def test_a_merge_of_fewer_columns_returns_the_same(case: tuple[MergeSpec, list[Record]], wanted: set[str]) -> None:
    spec, records = case
    table = as_table(records, spec)
    try:
        whole = merge(table, spec)
    except InvalidRequest:
        return
    system = ["_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL"]
    narrow = merge(table.select([*spec.columns_needed(wanted), *system]), spec)
    names = [*sorted(wanted), "_VALUE_KIND"]
    assert repr(narrow.select(names).to_pylist()) == repr(whole.select(names).to_pylist())


@pytest.mark.parametrize("sequence", [IntType(), BigIntType(), DoubleType()], ids=["int", "bigint", "double"])
@pytest.mark.parametrize("function", [*NUMERIC, "count"])
def test_late_records_of_a_sequence_group_equal_the_reference(function: str, sequence: DataType) -> None:
    """Each key has the same records in another order; an aggregated value takes a late one as older."""
    chosen = {"fields.g.sequence-group": "a,b", "fields.a.aggregate-function": function}
    fields = tuple(DataField(i + 1, n, sequence if n == "g" else IntType()) for i, n in enumerate("gab"))
    spec = MergeSpec((KEY,), fields, engine="partial-update", options=TableOptions.of(chosen))
    rows = [(key, *row) for key, rows in enumerate(permutations([(1, 5), (2, None), (3, 7), (3, 9)])) for row in rows]
    records = [Record({"k": k, "g": g, "a": a, "b": a}, number, 0, 0) for number, (k, g, a) in enumerate(rows)]
    merged = merge(as_table(records, spec), spec)
    expected = [r.values for r in reference_merge(records, spec)]
    assert merged.select(["k", "g", "a", "b"]).to_pylist() == expected
    assert (len({row["a"] for row in expected}) > 1) == function.startswith(("first", "last"))


def test_many_versions_of_one_key() -> None:
    count = 10_000
    fields = (DataField(1, "s", IntType()), DataField(2, "t", VarCharType()))
    chosen = TableOptions.of({"fields.s.aggregate-function": "sum", "fields.t.aggregate-function": "listagg"})
    spec = MergeSpec((KEY,), fields, engine="aggregation", options=chosen)
    table = pa.table(
        {
            "k": pa.array([1] * count, pa.int32()),
            "s": pa.array(range(count), pa.int32()),
            "t": ["x"] * count,
            "_SEQUENCE_NUMBER": range(count),
            "_VALUE_KIND": pa.array([0] * count, pa.int8()),
        }
    )
    (row,) = merge(table, spec).to_pylist()
    assert row["s"] == count * (count - 1) // 2
    assert row["t"] == ",".join("x" * count)


def test_a_key_stays_though_its_sequence_group_has_no_sequence() -> None:
    fields = (DataField(1, "g", IntType()), DataField(2, "a", IntType()))
    spec = MergeSpec(
        (KEY,), fields, engine="partial-update", options=TableOptions.of({"fields.g.sequence-group": "k,a"})
    )
    records = [Record({"k": 1, "g": None, "a": a}, a, 0, 0) for a in range(2)]
    assert merge(as_table(records, spec), spec).select("kga").to_pylist() == [{"k": 1, "g": None, "a": None}]
    assert [r.values for r in reference_merge(records, spec)] == [{"k": 1, "g": None, "a": None}]
