"""Merging window by window equals merging at once. Deduplicate returns the newest rows."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.lsm.keys import to_comparable_values
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.key_groups import mask_newest_rows
from paimon.domain.merge.windows import Piece, count_below, count_through, cut_into_windows
from paimon.domain.types.data_types import BigIntType, DataField, VarCharType

KEYS = (DataField(0, "a", VarCharType()), DataField(1, "b", BigIntType()))
SPEC = MergeSpec(KEYS)
A_KEY = st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(-3, 3))


@st.composite
def run_tables(draw: st.DrawFn, repeats: bool = False) -> list[pa.Table]:
    """Sorted runs, the oldest first. Keys are unique in each run, unless it `repeats` them."""
    tables = []
    for age, keys in enumerate(draw(st.lists(st.lists(A_KEY, unique=not repeats, max_size=15), max_size=5))):
        rows = sorted(keys)
        kinds = draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
        tables.append(
            pa.table(
                {
                    "a": pa.array([a for a, _ in rows], pa.string()),
                    "b": pa.array([b for _, b in rows], pa.int64()),
                    "_SEQUENCE_NUMBER": pa.array([100 * age + i for i in range(len(rows))], pa.int64()),
                    "_VALUE_KIND": pa.array(kinds, pa.int8()),
                }
            )
        )
    return tables


def test_keys_are_counted_below_a_bound_and_through_it() -> None:
    batch = pa.record_batch({"b": pa.array([1, 3, 5, 7], pa.int64())})
    bounds = [to_comparable_values([bound]) for bound in (0, 1, 3, 4, 7, 8)]
    assert [count_below(batch, bound, KEYS[1:]) for bound in bounds] == [0, 0, 1, 2, 3, 4]
    assert [count_through(batch, bound, KEYS[1:]) for bound in bounds] == [0, 1, 2, 2, 4, 4]


@settings(max_examples=100)
@given(st.data(), st.booleans(), st.integers(1, 6), st.sampled_from([0, 50, 300, 1 << 20]), st.sampled_from([1, -1]))
def test_merging_in_windows_equals_merging_at_once(
    data: st.DataObject, repeats: bool, batch_rows: int, budget: int, order: int
) -> None:
    tables = data.draw(run_tables(repeats))
    runs = [
        map(Piece, table.to_batches(max_chunksize=batch_rows), itertools.repeat(age))
        for age, table in enumerate(tables)
    ]
    cut = list(cut_into_windows(runs[::order], KEYS, budget, repeats))  # the runs of a section are in any order
    assert all(window and [p.age for p in window] == sorted(p.age for p in window) for window in cut)
    parts = [merge(pa.Table.from_batches([p.batch for p in window]), SPEC) for window in cut]
    whole = merge(pa.concat_tables(tables), SPEC) if tables else pa.table({})
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()
    if budget == 1 << 20:
        assert len(cut) <= 1


def test_buffers_stay_within_the_budget_and_one_batch_a_run() -> None:
    buffered = 0
    most = 0

    def pieces(age: int) -> itertools.chain[Piece]:
        def make_piece(start: int) -> Piece:
            nonlocal buffered, most
            keys = pa.table({"a": pa.array(["x"] * 100), "b": pa.array(range(start * 100, start * 100 + 100))})
            buffered += 1
            most = max(most, buffered)
            return Piece(keys.to_batches()[0], age)

        return itertools.chain(make_piece(start) for start in range(50))

    for window in cut_into_windows([pieces(0), pieces(1), pieces(2)], KEYS, 0):
        buffered -= sum(p.batch.num_rows for p in window) / 100
    assert most <= 4


def test_returned_windows_are_not_referenced() -> None:
    def run(age: int) -> Iterator[Piece]:
        for start in range(0, 50, 10):
            rows = pa.table({"a": ["x"] * 10, "b": list(range(start, start + 10))})
            yield Piece(rows.to_batches()[0], age)

    seen = 0
    for window in cut_into_windows([run(0), run(1)], KEYS, 0):
        references = [weakref.ref(piece.batch) for piece in window]
        window.clear()
        assert [ref() for ref in references] == [None] * len(references)
        seen += len(references)
    assert seen == 10


@pytest.mark.parametrize("spread", [1, 50, 1 << 40])
@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), st.integers(-8, 8)), min_size=1, max_size=40), st.booleans())
def test_newest_rows_equal_the_result_of_deduplicate(spread: int, keys: list[int | None], text: bool) -> None:
    spread_keys = [None if k is None else k * spread for k in keys]
    as_text = pa.array([None if k is None else f"key {k}" for k in spread_keys], pa.string())
    column = as_text if text else pa.array(spread_keys, pa.int64())
    table = pa.table(
        {
            "k": column,
            "_SEQUENCE_NUMBER": pa.array(range(len(keys)), pa.int64()),
            "_VALUE_KIND": pa.array([0] * len(keys), pa.int8()),
        }
    )
    merged_numbers = merge(table, MergeSpec((DataField(0, "k", BigIntType()),)))["_SEQUENCE_NUMBER"].to_pylist()
    assert np.flatnonzero(
        mask_newest_rows([pa.chunked_array([column.slice(0, 3), column.slice(3)])])
    ).tolist() == sorted(merged_numbers)
