"""Integers that are packed block by block are the words that `pack_keys` makes of whole columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.merge.ordering import normalized_keys
from paimon.domain.merge.ordering.normalized_keys import pack_keys, to_key_parts

TYPES = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64, pa.date32(): 32, pa.timestamp("us"): 64}


@st.composite
def draw_columns(draw: st.DrawFn) -> list[pa.ChunkedArray]:
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    columns = []
    for kind in draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3)):
        limit = 1 << (TYPES[kind] - 1)
        values = st.one_of(st.integers(-2, 2), st.integers(-limit, limit - 1), st.just(-limit), st.just(limit - 1))
        storage = pa.int32() if kind == pa.date32() else pa.int64() if kind == pa.timestamp("us") else kind
        rows = [draw(st.lists(values, min_size=length, max_size=length)) for length in lengths]
        columns.append(pa.chunked_array([pa.array(part, storage).view(kind) for part in rows]))
    return columns


@settings(max_examples=150)
@given(columns=draw_columns(), block=st.integers(1, 5), is_aligned=st.booleans())
def test_blocks_are_packed_as_whole_columns(columns: list[pa.ChunkedArray], block: int, is_aligned: bool) -> None:
    given_columns = columns if is_aligned else [columns[0].combine_chunks(), *columns[1:]]
    expected = pack_keys(part for column in columns for part in to_key_parts(column.combine_chunks()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalized_keys, "_BLOCK_ROWS", block)
        found = normalized_keys.pack_key_columns(given_columns)
    assert len(found) == len(expected)
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def test_columns_with_nulls_text_and_no_rows_are_packed() -> None:
    for column in (pa.array([3, None, 1]), pa.array(["b", "a"]), pa.array([], pa.int64())):
        expected = pack_keys(to_key_parts(column))
        found = normalized_keys.pack_key_columns([column])
        assert [word.tolist() for word in found] == [word.tolist() for word in expected]
