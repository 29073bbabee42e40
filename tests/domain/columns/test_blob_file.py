"""The records and the index of a blob file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.columns.blob_file import (
    NULL_LENGTH,
    TAIL_BYTES,
    count_rows_until,
    count_rows_within,
    decode_index,
    decode_records,
    decode_tail,
    encode_index,
    encode_records,
    measure_records,
)
from paimon.domain.errors import CorruptTable, Unsupported

VALUES = st.lists(st.none() | st.binary(max_size=200), max_size=12)


def encode(values: pa.BinaryArray) -> bytes:
    return b"".join(encode_records(values)) + encode_index(measure_records(values))


def decode(data: bytes) -> pa.BinaryArray:
    size = decode_tail(data[-TAIL_BYTES:], len(data), "p")
    end = len(data) - TAIL_BYTES - size
    lengths = decode_index(data[end : end + size], end, "p")
    return decode_records(pa.py_buffer(data[:end]), lengths, "p")


@given(VALUES, st.integers(0, 3))
def test_what_is_encoded_is_decoded(values: list[bytes | None], left_out: int) -> None:
    array = pa.array(values, pa.binary())[left_out:]
    assert decode(encode(array)).equals(array)


def test_the_bytes_of_the_specified_example() -> None:
    data = encode(pa.array([b"ab", None, b"c"], pa.binary()))
    assert data[:14].hex() == "cf114e586162" + "1200000000000000"
    assert data[-8:].hex() == "242524" + "03000000" + "01"


@given(st.lists(st.integers(-1, 2**62) | st.sampled_from([63, 64, 2**13, 2**31]), max_size=20))
def test_lengths_of_all_sizes_are_kept(numbers: list[int]) -> None:
    lengths = np.array([16 + n if n >= 0 else NULL_LENGTH for n in numbers], np.int64)
    total = sum(n for n in lengths.tolist() if n > 0)
    if total < 2**63:
        assert decode_index(encode_index(lengths)[:-TAIL_BYTES], total, "p").tolist() == lengths.tolist()


def test_each_changed_byte_is_found() -> None:
    values = pa.array([b"first", None, b"", b"second"], pa.binary())
    data = encode(values)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x55
        with pytest.raises(CorruptTable):
            decode(bytes(changed))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (b"\x80", "ends inside a number"),
        (b"\x80" * 10 + b"\x01", "more than 10 bytes"),
        (b"\x08", "lengths, from 4 to 4 bytes"),
    ],
)
def test_a_wrong_index_is_refused(index: bytes, message: str) -> None:
    with pytest.raises(CorruptTable, match=message):
        decode_index(index, 4, "p")


def test_a_placeholder_of_a_later_version_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="placeholders"):
        decode_index(encode_index(np.array([-2]))[:-TAIL_BYTES], 0, "p")


def test_rows_are_counted_by_the_bytes_of_their_records() -> None:
    lengths = np.array([20, NULL_LENGTH, 30, 50])
    assert [count_rows_within(lengths, limit) for limit in (1, 20, 49, 50, 1000)] == [1, 2, 2, 3, 4]
    assert [count_rows_until(lengths, target) for target in (1, 20, 21, 50, 51, 1000)] == [1, 1, 3, 3, 4, 4]
