"""Pairs of rows with equal keys, and the clause of each row: arrays equal the row-wise rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.assignment.expression import Assignment, ColumnValue, Constant
from paimon.domain.assignment.merge_clauses import BoundMerge, MergeAction, MergeClause, MergeOn
from paimon.domain.assignment.merge_columnar import (
    NO_CLAUSE,
    SourceIndex,
    build_slots,
    choose_clauses,
    find_integers,
    find_repeated,
)
from paimon.domain.assignment.merge_reference import merge_rows
from paimon.domain.assignment.merge_sql import MergeNames, parse_on
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import Compare, Operator
from paimon.domain.row.values import to_array
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField

COLUMNS: list[tuple[dt.DataType, st.SearchStrategy[Any]]] = [
    (dt.BigIntType(), st.none() | st.integers(-3, 3)),
    (dt.VarCharType(9), st.none() | st.sampled_from(["", "a", "b", "ä\0"])),
    (dt.DoubleType(), st.none() | st.sampled_from([0.0, -0.0, math.nan, 1.5, math.inf])),
    (dt.BooleanType(), st.none() | st.booleans()),
    (dt.DecimalType(9, 2), st.none() | st.decimals(-1, 1, places=1)),
    (dt.DateType(), st.none() | st.integers(-2, 2)),
]


def equals(old: Any, new: Any) -> bool:
    return new is not None and matches(Compare("c", Operator.EQ, new), {"c": old}) is True


@given(st.lists(st.sampled_from(COLUMNS), max_size=4), st.integers(1, 9), st.data())
def test_pairs_equal_those_of_a_nested_loop(columns: list[Any], most_pairs: int, data: st.DataObject) -> None:
    rows = st.lists(st.tuples(*(values for _, values in columns)), max_size=8)
    target, source = data.draw(rows), data.draw(rows)
    arrays = [
        [to_array([r[i] for r in side], kind) for i, (kind, _) in enumerate(columns)] for side in (target, source)
    ]
    blocks = list(SourceIndex.of(arrays[1], len(source)).find_pairs(arrays[0], len(target), most_pairs))
    found = [(int(t), int(s)) for targets, sources in blocks for t, s in zip(targets, sources, strict=True)]
    assert found == [
        (t, s)
        for t, old in enumerate(target)
        for s, new in enumerate(source)
        if all(equals(a, b) for a, b in zip(old, new, strict=True))
    ]
    firsts = [int(t[0]) for t, _ in blocks]
    lasts = [int(t[-1]) for t, _ in blocks]
    assert all(last < first for last, first in zip(lasts, firsts[1:], strict=False)), "a row is in one block"
    assert all(len(t) < most_pairs + len(source) for t, _ in blocks)


def test_codes_of_many_columns_do_not_overflow() -> None:
    count = 3_000
    keys = [pa.array(np.random.default_rng(n).permutation(count)) for n in range(7)]
    targets, sources = next(SourceIndex.of(keys, count).find_pairs(keys, count, 1 << 30))
    assert targets.tolist() == sources.tolist() == list(range(count))


@given(st.lists(st.none() | st.lists(st.booleans(), min_size=4, max_size=4), max_size=3))
def test_the_first_clause_that_holds_is_chosen(truths: list[list[bool] | None]) -> None:
    chosen = choose_clauses([None if t is None else np.array(t) for t in truths], 4)
    holds = [[n for n, t in enumerate(truths) if t is None or t[row]] for row in range(4)]
    assert chosen.tolist() == [h[0] if h else NO_CLAUSE for h in holds]


@given(st.lists(st.integers(0, 4), max_size=6).map(sorted))
def test_a_repeated_row_is_found(rows: list[int]) -> None:
    position = find_repeated(np.array(rows, np.int64))
    assert (position is None) == (len(set(rows)) == len(rows))
    assert position is None or rows[position] == rows[position + 1]


def test_the_reference_by_example() -> None:
    """Every clause once, so that the reference itself is held to values."""
    v = DataField(1, "v", dt.IntType())
    k = DataField(0, "k", dt.IntType())
    merge = BoundMerge(
        MergeOn((("k", "k"),)),
        (
            MergeClause(MergeAction.DELETE, Compare("source.v", Operator.EQ, 0)),
            MergeClause(MergeAction.UPDATE, None, [_set(v, "source.v")]),
        ),
        (MergeClause(MergeAction.INSERT, None, [_set(k, "source.k"), _set(v, 9)]),),
        (MergeClause(MergeAction.UPDATE, Compare("target.v", Operator.GT, 5), [_set(v, 0)]),),
    )
    target = [{"k": n, "v": n * 2} for n in range(5)]
    source = [{"k": 1, "v": 0}, {"k": 2, "v": 77}, {"k": 8, "v": 1}, {"k": None, "v": 1}]
    done = merge_rows(target, source, merge)
    assert [(r["k"], r["v"]) for r in done.rows] == [(0, 0), (2, 77), (3, 0), (4, 0), (8, 9), (None, 9)]
    assert (done.inserted, done.updated, done.deleted) == (2, 3, 1)
    with pytest.raises(InvalidRequest):
        merge_rows(target, [source[0], source[0]], merge)


def _set(column: DataField, value: Any) -> Any:
    return Assignment(column, ColumnValue(value) if isinstance(value, str) else Constant(value))


ID, ADDRESS, W = (
    DataField(0, "id", dt.IntType()),
    DataField(1, "a", dt.RowType((DataField(2, "zip", dt.IntType()),))),
    DataField(3, "w", dt.IntType()),
)
NAMES = MergeNames((ID, ADDRESS), (ID, W), "t", "s")


@pytest.mark.parametrize(
    ("text", "pairs", "rest"),
    [
        ("t.id = s.id", (("id", "id"),), False),
        ("(s.w = t.id) AND (t.id = s.id AND t.id = s.id)", (("id", "w"), ("id", "id")), False),
        ("t.id = w AND w > 3", (("id", "w"),), True),
        ("a.zip = w", (), True),
        ("t.id = t.a.zip", (), True),
        ("t.id = s.id OR w = 1", (), True),
        ("id", (("id", "id"),), False),
    ],
)
def test_equal_columns_are_taken_out_of_a_condition(text: str, pairs: Any, rest: bool) -> None:
    found = parse_on(text, NAMES)
    assert (found.pairs, found.condition is not None) == (pairs, rest)


@pytest.mark.parametrize(
    "text", ["", "t.id =", "t.x = s.id", "x.id = s.id", "id = w", "t.a = s.w", "s.a.zip = 1", "no"]
)
def test_a_wrong_condition_is_refused(text: str) -> None:
    names = NAMES if text != "t.a = s.w" else MergeNames((ADDRESS,), (W, DataField(4, "b", ADDRESS.type)), "t", "s")
    with pytest.raises(InvalidRequest):
        parse_on(text if text != "t.a = s.w" else "t.a = s.b", names)


LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)


@given(st.lists(LONGS, unique=True), st.lists(LONGS))
def test_integers_are_found_where_they_are(known: list[int], wanted: list[int]) -> None:
    slots = build_slots(np.array(known, np.int64))
    assert slots is not None
    found = find_integers(slots, np.array(known, np.int64), np.array(known + wanted, np.int64))
    positions = {value: position for position, value in enumerate(known)}
    assert found.tolist() == [positions.get(value, -1) for value in known + wanted]


def test_integers_that_all_collide_have_no_table() -> None:
    """They are found by Arrow instead, in time that does not depend on collisions."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    known = np.array([n * inverse % (1 << 64) for n in range(1000)], np.uint64).view(np.int64)
    assert build_slots(known) is None
    keys = [pa.array(known)]
    targets, sources = next(SourceIndex.of(keys, 1000).find_pairs(keys, 1000, 1 << 30))
    assert targets.tolist() == sources.tolist() == list(range(1000))
