"""The lookup hashes of a block find the rows that a search of all rows finds."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.lsm import lookup_hashes
from paimon.domain.lsm.keys import to_comparable_values
from paimon.domain.lsm.lookup_hashes import LOOKUP_HASHES, add_lookup_hashes, find_equal_keys
from paimon.domain.row.row_hash_columnar import hash_rows
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
    block=st.lists(KEYS, max_size=30, unique_by=to_comparable_values),
    asked=st.lists(KEYS, max_size=30, unique_by=to_comparable_values),
    width=st.integers(1, len(FIELDS)),
)
def test_the_pairs_are_those_of_equal_keys(block: list[Key], asked: list[Key], width: int) -> None:
    by_key = {to_comparable_values(key[:width]): place for place, key in enumerate(block)}
    if len(by_key) < len(block):  # keys are unique in a block
        block = [block[place] for place in by_key.values()]
        by_key = {to_comparable_values(key[:width]): place for place, key in enumerate(block)}
    expected = [
        (place, by_key[to_comparable_values(key[:width])])
        for place, key in enumerate(asked)
        if to_comparable_values(key[:width]) in by_key
    ]
    mine, theirs = find_equal_keys(batch(asked), add_lookup_hashes(batch(block), FIELDS[:width]), FIELDS[:width])
    assert list(zip(mine.tolist(), theirs.tolist(), strict=True)) == expected


def test_colliding_hashes_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    def hash_to_two_values(columns: Any, types: Any) -> Any:
        return hash_rows(columns, types) & 1 | -(1 << 31)

    monkeypatch.setattr(lookup_hashes, "hash_rows", hash_to_two_values)
    keys = [(None, None, None, i) for i in range(50)]
    block = add_lookup_hashes(batch(keys[::2]), FIELDS)
    assert block.schema.field(LOOKUP_HASHES).type == pa.uint64()
    mine, theirs = find_equal_keys(batch(keys), block, FIELDS)
    assert mine.tolist() == list(range(0, 50, 2)) and theirs.tolist() == list(range(25))
