"""Rows of a block found by the places of their keys: the pairs that a search of all rows finds."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.lsm import key_places
from paimon.domain.lsm.key_places import PLACES, found, with_places
from paimon.domain.lsm.keys import comparable_values
from paimon.domain.row.columnar import hash_rows
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField

OTHER_NAN = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
FIELDS = (
    DataField(0, "a", dt.DoubleType()),
    DataField(1, "b", dt.VarCharType()),
    DataField(2, "c", dt.FloatType()),
    DataField(3, "d", dt.IntType()),
)
FLOATS = st.sampled_from([None, float("nan"), OTHER_NAN, 0.0, -0.0, 1.5, float("inf")])
KEYS = st.tuples(FLOATS, st.sampled_from([None, "", "a", "a\0", "longer than a word"]), FLOATS, st.integers(0, 3))
Key = tuple[Any, ...]


def batch(keys: list[Key]) -> pa.RecordBatch:
    columns = zip(*keys, strict=True) if keys else [[]] * len(FIELDS)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, arrow_schema(FIELDS), strict=True)], schema=arrow_schema(FIELDS)
    )


@given(
    block=st.lists(KEYS, max_size=30, unique_by=comparable_values),
    asked=st.lists(KEYS, max_size=30, unique_by=comparable_values),
    width=st.integers(1, len(FIELDS)),
)
def test_the_pairs_are_those_of_equal_keys(block: list[Key], asked: list[Key], width: int) -> None:
    by_key = {comparable_values(key[:width]): place for place, key in enumerate(block)}
    if len(by_key) < len(block):  # a block holds a key once
        block = [block[place] for place in by_key.values()]
        by_key = {comparable_values(key[:width]): place for place, key in enumerate(block)}
    expected = [
        (place, by_key[comparable_values(key[:width])])
        for place, key in enumerate(asked)
        if comparable_values(key[:width]) in by_key
    ]
    mine, theirs = found(batch(asked), with_places(batch(block), FIELDS[:width]), FIELDS[:width])
    assert list(zip(mine.tolist(), theirs.tolist(), strict=True)) == expected


def test_hashes_that_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(columns: Any, types: Any) -> Any:
        return hash_rows(columns, types) & 1 | -(1 << 31)

    monkeypatch.setattr(key_places, "hash_rows", few)
    keys = [(None, None, None, i) for i in range(50)]
    block = with_places(batch(keys[::2]), FIELDS)
    assert block.schema.field(PLACES).type == pa.uint64()
    mine, theirs = found(batch(keys), block, FIELDS)
    assert mine.tolist() == list(range(0, 50, 2)) and theirs.tolist() == list(range(25))
