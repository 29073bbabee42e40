"""Casts of schema evolution equal what Java 1.4.2 reads after a change of the column type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.columns.cast import cast_column
from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported
from paimon.domain.row.literals import parse_literal
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType
from paimon.domain.types.type_text import parse_type
from paimon.testing.strategies import atomic_types, values_of

DATA = Path(__file__).parents[2] / "data" / "casts"


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def _value(rendered: Any, data_type: DataType) -> Any:
    if isinstance(data_type, dt.BYTES_TYPES) and rendered is not None:
        return bytes.fromhex(rendered)
    return rendered if isinstance(data_type, dt.ArrayType) else parse_literal(rendered, data_type)


@pytest.mark.parametrize("case", _lines("java_casts.jsonl"), ids=lambda c: f"{c['source']}-{c['target']}")
def test_equals_java(case: dict[str, Any]) -> None:
    source, target = parse_type(case["source"]), parse_type(case["target"])
    given_values = [_value(pair[0], source) for pair in case["values"]]
    java = [_value(pair[1], target) for pair in case["values"]]
    made = cast_column(to_array([*given_values, None], source), source, target)
    made.validate(full=True)
    assert repr(to_values(made, target)) == repr([*java, None])


@pytest.mark.parametrize("case", _lines("java_refuses.jsonl"), ids=lambda c: f"{c['value']}-{c['target']}")
def test_casts_that_java_refuses_are_refused(case: dict[str, Any]) -> None:
    source, target = parse_type(case["source"]), parse_type(case["target"])
    with pytest.raises(InvalidRequest, match=r"^Text "):
        cast_column(pa.array(["1", None, case["value"]]), source, target)


@given(st.data())
def test_a_cast_has_the_canonical_type_or_a_named_refusal(data: st.DataObject) -> None:
    source, target = data.draw(atomic_types(nullable=True)), data.draw(atomic_types(nullable=True))
    values = data.draw(st.lists(values_of(source), max_size=6))
    try:
        made = cast_column(to_array([None, *values], source).slice(1), source, target)
    except PaimonError:
        return
    made.validate(full=True)
    assert len(made) == len(values)
    assert made.type == to_array([], target).type
    again = [cast_column(to_array([v], source), source, target) for v in values]
    assert repr(to_values(made, target)) == repr([to_values(a, target)[0] for a in again])


def test_rows_go_by_field_id() -> None:
    stored = parse_type("ROW<`a` INT, `b` STRING, `l` ARRAY<ROW<`x` INT>>>")
    assert isinstance(stored, dt.RowType)
    a, b, lst = stored.fields
    inner = lst.type.element.fields[0]  # type: ignore[attr-defined]
    renamed = dt.DataField(inner.id, "xx", dt.BigIntType())
    wanted = dt.RowType(
        (
            dt.DataField(b.id, "bb", dt.VarCharType(length=1)),
            dt.DataField(90, "new", dt.DateType()),
            dt.DataField(lst.id, "l", dt.ArrayType(dt.RowType((renamed, dt.DataField(91, "y", dt.IntType()))))),
            dt.DataField(a.id, "a", dt.BigIntType()),
        )
    )
    rows = [(1, "xyz", [(5,), None]), None, (None, None, None), (2, "", [])]
    made = cast_column(to_array([(0, "cut", [(9,)]), *rows], stored).slice(1), stored, wanted)
    made.validate(full=True)
    assert to_values(made, wanted) == [("x", None, [(5, None), None], 1), None, (None,) * 4, ("", None, [], 2)]


def test_maps_and_chunks() -> None:
    stored, wanted = parse_type("MAP<INT, DOUBLE>"), parse_type("MAP<STRING, INT>")
    array = to_array([[(0, 1.0)], [(1, 2.9), (2, None)], None, []], stored)
    made = cast_column(pa.chunked_array([array.slice(1, 1), array.slice(2)]), stored, wanted)
    assert to_values(made, wanted) == [[("1", 2), ("2", None)], None, []]


def test_rows_and_maps_become_texts_that_are_not_cut() -> None:
    stored = parse_type("ROW<`a` INT, `m` MAP<STRING, ARRAY<ROW<`x` DOUBLE>>>>")
    rows = [(1, [("k", [(1e10,), None]), ("l", None)]), None, (None, None), (2, [])]
    array = to_array([(0, [("cut", [])]), *rows], stored).slice(1)
    wanted = ["{1, {k -> [{1.0E10}, null], l -> null}}", None, "{null, null}", "{2, {}}"]
    for target in ("STRING", "VARCHAR(4)", "CHAR(4)"):
        assert cast_column(array, stored, parse_type(target)).to_pylist() == wanted
    empty = pa.array([{}, None], pa.struct([]))
    assert cast_column(empty, dt.RowType(()), dt.VarCharType()).to_pylist() == ["{}", None]


def test_arrays_become_texts_that_are_not_cut() -> None:
    array = to_array([[1, 2, 3], None, []], dt.ArrayType(dt.IntType()))
    assert cast_column(array, dt.ArrayType(dt.IntType()), dt.CharType(4)).to_pylist() == ["[1, 2, 3]", None, "[]"]


def test_unknown_casts_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="DATE as INT"):
        cast_column(pa.array([1], pa.date32()), dt.DateType(), dt.IntType())
    with pytest.raises(Unsupported, match="MULTISET<INT> as STRING"):
        cast_column(
            to_array([[(1, 2)]], dt.MultisetType(dt.IntType())), dt.MultisetType(dt.IntType()), dt.VarCharType()
        )
