"""The search of an ordered block returns the pairs of the search by hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.lsm.lookup_hashes import add_lookup_hashes, find_equal_keys
from paimon.domain.lsm.ordered_keys import find_ordered_keys, is_ordered_block
from paimon.domain.types.data_types import (
    BigIntType,
    DataField,
    DataType,
    IntType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)

NUMBERS = [(TinyIntType(), pa.int8(), 8), (IntType(), pa.int32(), 32), (BigIntType(), pa.int64(), 64)]
TEXTS = st.sampled_from(["", "\0", "a", "a\0", "a\x7f", "aé", "b" * 40, "\uffff", "\U0001f600"]) | st.text(max_size=3)


def check_search(kind: DataType, block: list[Any], asked: list[Any], arrow: pa.DataType) -> None:
    key = DataField(0, "k", kind)
    ordered, wanted = (pa.record_batch({"k": pa.array(values, arrow)}) for values in (block, asked))
    assert is_ordered_block(ordered, [key])
    found = find_ordered_keys(wanted, ordered, key)
    expected = find_equal_keys(wanted, add_lookup_hashes(ordered, [key]), [key])
    assert [np.asarray(part).tolist() for part in found] == [part.tolist() for part in expected]


@given(data=st.data(), kind=st.sampled_from(NUMBERS))
def test_the_pairs_are_those_of_the_lookup_hashes(
    data: st.DataObject, kind: tuple[BigIntType, pa.DataType, int]
) -> None:
    least, most = -(2 ** (kind[2] - 1)), 2 ** (kind[2] - 1) - 1
    values = st.one_of(st.integers(-5, 5), st.sampled_from([least, most]))
    asked = data.draw(st.lists(st.none() | values))
    check_search(kind[0], sorted(data.draw(st.sets(values))), asked, kind[1])


@given(block=st.sets(TEXTS, max_size=20), asked=st.lists(st.none() | TEXTS))
def test_the_pairs_of_texts_are_those_of_the_lookup_hashes(block: set[str], asked: list[str | None]) -> None:
    ordered = sorted(block, key=str.encode)
    check_search(VarCharType(2147483647), ordered, asked, pa.string())
    encoded = [None if text is None else text.encode() for text in asked]
    check_search(VarBinaryType(2147483647), [text.encode() for text in ordered], encoded, pa.binary())


@pytest.mark.parametrize(
    "column",
    [
        *(pa.array([1, 1]), pa.array([2, 1]), pa.array([1, None]), pa.array([1.0, 2.0])),
        *(pa.array(["a", "a"]), pa.array(["b", "a"]), pa.array([None, "a"])),
    ],
    ids=["equal", "descending", "null", "floating", "equal texts", "descending texts", "null text"],
)
def test_other_blocks_are_not_ordered(column: pa.Array) -> None:
    assert not is_ordered_block(pa.record_batch({"k": column}), [DataField(0, "k", BigIntType())])


def test_a_key_of_two_columns_has_no_such_order() -> None:
    fields = [DataField(0, "a", IntType()), DataField(1, "b", IntType())]
    assert not is_ordered_block(pa.record_batch({"a": [1, 2], "b": [1, 2]}), fields)
