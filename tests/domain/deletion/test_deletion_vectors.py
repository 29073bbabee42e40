"""Deletion vectors are encoded and decoded unchanged for any set of rows, and damage is detected."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.deletion.vector import (
    DeletionVector,
    decode_vector,
    encode_index_file,
    encode_index_files,
    encode_vector,
    pack_runs,
    stored_bytes,
)
from paimon.domain.errors import CorruptTable, Unsupported

NEAR = st.sets(st.integers(0, 200_000), max_size=40)
RUNS = st.builds(
    lambda parts: {p for start, length in parts for p in range(start, start + length)},
    st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 9_000)), max_size=4),
)
FAR = st.sets(st.integers(0, (1 << 34) - 1), max_size=20)
KINDS = st.booleans()


@given(NEAR | RUNS, KINDS)
def test_any_vector_is_decoded_unchanged_within_the_size_of_the_manifest(rows: set[int], bitmap64: bool) -> None:
    vector = DeletionVector.of(list(rows))
    data, length = encode_vector(vector, bitmap64)
    again = decode_vector(data + b"more", length, "index-0")
    assert again.positions.tolist() == sorted(rows)
    assert encode_vector(again, bitmap64) == (data, length)
    assert len(data) <= stored_bytes(length)


@given(FAR)
def test_rows_beyond_32_bits_need_a_64_bit_vector(rows: set[int]) -> None:
    vector = DeletionVector.of(list(rows))
    data, length = encode_vector(vector, True)
    assert decode_vector(data, length, "index-0").positions.tolist() == sorted(rows)
    if rows and max(rows) > (1 << 31) - 1:
        with pytest.raises(Unsupported, match="32-bit deletion vector"):
            encode_vector(vector, False)


@given(st.lists(NEAR | RUNS, max_size=4))
def test_marking_in_steps_is_marking_all_at_once(steps: list[set[int]]) -> None:
    vector = DeletionVector()
    for rows in steps:
        before = vector.positions.tolist()
        added = vector.with_deleted(list(rows))
        assert vector.positions.tolist() == before
        vector = added
    assert vector.positions.tolist() == sorted(set().union(*steps))


@given(NEAR, st.integers(0, 200_000), st.integers(0, 300))
def test_the_mask_of_a_stretch_of_rows(rows: set[int], first: int, count: int) -> None:
    mask = DeletionVector.of(list(rows)).mask(first, count)
    assert mask.tolist() == [row in rows for row in range(first, first + count)]


@given(st.dictionaries(st.text("abc", min_size=1), NEAR | RUNS, max_size=5), KINDS, st.integers(0, 400))
def test_each_range_of_an_index_file_finds_its_vector(files: dict[str, set[int]], bitmap64: bool, target: int) -> None:
    vectors = [(name, DeletionVector.of(list(rows))) for name, rows in files.items()]
    whole = encode_index_file(vectors, bitmap64)
    rolled = encode_index_files(vectors, bitmap64, target)
    for contents in ([whole], rolled):
        found = {
            place.data_file: decode_vector(content.data[place.offset :], place.length, "index-0")
            for content in contents
            for place in content.places
        }
        assert {name: set(v.positions.tolist()) for name, v in found.items()} == files
        assert all(p.cardinality == found[p.data_file].cardinality for c in contents for p in c.places)
    assert all(content.data[:1] == b"\x01" for content in (whole, *rolled))
    # Every file except the last is larger than the target, and only because of its last vector.
    assert all(len(content.data) > target for content in rolled[:-1])
    assert all(content.places[-1].offset <= max(target, 1) for content in rolled)


def test_an_index_file_without_vectors_contains_only_its_version() -> None:
    assert encode_index_file([], False).data == b"\x01"
    assert encode_index_files([], False, 10) == ()


@given(NEAR.filter(bool), KINDS, st.data())
def test_a_changed_byte_is_found_out(rows: set[int], bitmap64: bool, data: st.DataObject) -> None:
    encoded, length = encode_vector(DeletionVector.of(list(rows)), bitmap64)
    at = data.draw(st.integers(0, len(encoded) - 1))
    damaged = bytearray(encoded)
    damaged[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises((CorruptTable, Unsupported), match="index-0"):
        decode_vector(bytes(damaged), length, "index-0")


@pytest.mark.parametrize("cut", [0, 3, 8, 20])
def test_an_end_that_is_missing_is_found_out(cut: int) -> None:
    encoded, length = encode_vector(DeletionVector.of(range(5)), False)
    with pytest.raises(CorruptTable, match="index-0"):
        decode_vector(encoded[:cut], length, "index-0")


def test_a_row_before_the_first_cannot_be_deleted() -> None:
    with pytest.raises(ValueError, match="-1"):
        DeletionVector.of(np.array([3, -1]))


@given(FAR | NEAR, st.integers(0, (1 << 34) - 1) | st.sampled_from([(1 << 32) - 5, 1 << 32, (1 << 33) - 1]))
def test_the_mask_over_the_edge_of_a_word(rows: set[int], first: int) -> None:
    near = rows | {first + 3, first + 9}
    mask = DeletionVector.of(list(near)).mask(first, 12)
    assert mask.tolist() == [row in near for row in range(first, first + 12)]


def test_a_vector_is_picklable() -> None:
    vector = DeletionVector.of([1, 2, 3, 1 << 33])
    again = pickle.loads(pickle.dumps(vector))
    assert encode_vector(again, True) == encode_vector(vector, True)


def test_a_vector_has_as_many_bitmaps_as_its_largest_position_needs() -> None:
    assert [len(DeletionVector.of(positions).words) for positions in ([5], [1 << 32], [5, 2 << 32])] == [1, 2, 3]
    assert len(DeletionVector.of([2 << 32]).with_deleted([5]).words) == 3


def test_runs_are_packed_in_copies() -> None:
    words = DeletionVector.of(range(0, 1000, 2)).with_deleted(range(1, 1000, 2)).words
    size = len(words[0].serialize())
    assert len(pack_runs(words)[0].serialize()) < size // 10
    assert len(words[0].serialize()) == size
