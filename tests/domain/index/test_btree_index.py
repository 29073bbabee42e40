"""B-tree indexes: files are the same however their rows arrive, and searches find each row that matches."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from paimon.domain.index.btree_blocks import (
    Block,
    Footer,
    KeyBounds,
    Place,
    decode_varints,
    encode_varints,
    read_varint,
)
from paimon.domain.index.btree_keys import BtreeKeys, supports_btree
from paimon.domain.index.btree_reader import BtreeFile
from paimon.domain.index.btree_writer import BtreeWriter
from paimon.domain.maintenance.sort_order import SortOrder, add_sort_keys, sort_by_keys
from paimon.domain.manifest.entries import FileKind, GlobalIndex, IndexManifestEntry
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import Compare, Operator, Predicate
from paimon.domain.row.values import to_array
from paimon.domain.scan.prune_by_global_index import BTREE, find_indexes, select_row_ids
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.testing.strategies.predicates import predicates
from paimon.testing.strategies.values import values_of

TYPES: tuple[DataType, ...] = (
    dt.BooleanType(), dt.TinyIntType(), dt.SmallIntType(), dt.IntType(), dt.BigIntType(), dt.FloatType(),
    dt.DoubleType(), dt.DecimalType(12, 3), dt.DecimalType(38, 3), dt.VarCharType(), dt.DateType(), dt.TimeType(3),
    dt.TimestampType(0), dt.TimestampType(3), dt.LocalZonedTimestampType(6), dt.TimestampType(9),
)  # fmt: skip
FAR_ROWS = 3_000
"""The distance of two row ids, so that ranges do not join them."""


def build(values: Sequence[Any], data_type: DataType, block_bytes: int, cuts: Sequence[int] = ()) -> tuple[bytes, Any]:
    """Return the file of values whose row ids are multiples of `FAR_ROWS`, and its metadata; rows arrive in parts."""
    field, keys, writer = (
        DataField(0, "a", data_type),
        BtreeKeys(data_type),
        BtreeWriter(BtreeKeys(data_type), block_bytes),
    )
    order = SortOrder("order", (field,))
    ids = pa.array(np.arange(len(values), dtype=np.int64) * FAR_ROWS)
    table = pa.table({"a": to_array(values, data_type), "id": ids})
    rows = sort_by_keys(add_sort_keys(table, order, 0), order)
    column, ids = rows["a"].combine_chunks(), np.asarray(rows["id"])
    nulls, parts = column.null_count, list[bytes]()
    writer.add_nulls(ids[:nulls])
    sortable, ids = keys.to_sortable(column.slice(nulls)), ids[nulls:]
    edges = sorted({0, len(ids), *(cut for cut in cuts if cut < len(ids))})
    for start, end in pairwise(edges):
        parts += writer.add(sortable.slice(start, end - start), ids[start:end])
    parts += writer.finish()
    data = b"".join(parts)
    assert (writer.file_size, writer.row_count) == (len(data), len(values))
    return data, writer.bounds.encode()


def open_file(data: bytes, bounds: bytes, data_type: DataType) -> BtreeFile:
    return BtreeFile(len(data), BtreeKeys(data_type), KeyBounds.decode(bounds), lambda at, size: data[at : at + size])


def select(values: Sequence[Any], data_type: DataType, predicate: Predicate, block_bytes: int) -> set[int] | None:
    """Return the numbers of the values that the index selects, of those that it has; None for all."""
    data, bounds = build(values, data_type, block_bytes)
    column, last = DataField(0, "a", data_type), len(values) * FAR_ROWS - 1
    index = GlobalIndex(0, last, 0, None, bounds)
    entry = IndexManifestEntry(FileKind.ADD, b"", 0, BTREE, "f", len(data), len(values), global_index=index)
    found = select_row_ids(
        predicate,
        {"a": column},
        find_indexes([entry], [column]),
        lambda field, entries, wanted: [wanted.search(open_file(data, bounds, data_type))],
    )
    return None if found is None else {i for i in range(len(values)) if found.cut(i * FAR_ROWS, i * FAR_ROWS + 1)}


@settings(max_examples=80)
@given(st.data())
def test_selections_contain_each_matching_row(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from(TYPES))
    pool = data.draw(st.lists(values_of(data_type), min_size=1, max_size=20))
    values = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=30))
    column = DataField(0, "a", data_type)
    predicate = data.draw(predicates([column], rows=[(value,) for value in values]))
    selected = select(values, data_type, predicate, data.draw(st.sampled_from([1, 40, 65_536])))
    matching = {i for i, value in enumerate(values) if matches(predicate, {"a": value})}
    assert selected is None or matching <= selected


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_comparisons_with_a_value_select_its_rows(data_type: DataType) -> None:
    """A planted mistake in the order or the bytes of keys would select other rows, or none."""
    low, high = (True, False) if isinstance(data_type, dt.BooleanType) else (1, 3)
    if isinstance(data_type, dt.VarCharType):
        low, high = "a", "b"  # type: ignore[assignment]
    values = [high, None, low, high]
    for op, expected in ((Operator.EQ, {0, 3}), (Operator.GE, {0, 3} if high > low else {0, 2, 3})):
        found = select(values, data_type, Compare("a", op, high), 1)
        assert found is not None
        assert found >= expected and 1 not in found
        if not isinstance(data_type, dt.TimestampType | dt.LocalZonedTimestampType | dt.FloatType | dt.DoubleType):
            assert found == expected


@settings(max_examples=60)
@given(st.data())
def test_a_file_does_not_depend_on_how_its_rows_arrive(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from(TYPES))
    values = data.draw(st.lists(values_of(data_type), min_size=1, max_size=40))
    block_bytes = data.draw(st.sampled_from([1, 30, 100, 65_536]))
    whole = build(values, data_type, block_bytes)
    cuts = data.draw(st.lists(st.integers(0, len(values)), max_size=5))
    assert build(values, data_type, block_bytes, cuts) == whole
    file = open_file(*whole, data_type)
    rows = [row for _, ids in file.read_all() for row in ids.tolist()]
    nulls = file.find_nulls()
    assert nulls is not None
    assert sorted([*rows, *nulls.tolist()]) == [i * FAR_ROWS for i in range(len(values))]
    stored = [key for key, _ in file.read_all()]
    assert stored == sorted(set(stored))  # type: ignore[type-var]


def test_only_the_blocks_of_a_condition_are_read() -> None:
    keys = BtreeKeys(dt.BigIntType())
    data, bounds = build(range(20_000), dt.BigIntType(), 1_000)
    read: list[int] = []

    def read_part(at: int, size: int) -> bytes:
        read.append(size)
        return data[at : at + size]

    file = BtreeFile(len(data), keys, KeyBounds.decode(bounds), read_part)
    assert file.find_rows([(10, 12), (9_000, 9_001)]) == pytest.approx(np.array([10, 11, 9_000]) * FAR_ROWS)
    assert len(read) == 4  # the footer, the index block, and two blocks
    assert file.find_rows([(20_000, None), (None, 0)]) == pytest.approx([])
    assert len(read) == 4  # the bounds decide


def test_unselective_conditions_of_a_large_file_select_all() -> None:
    data, bounds = build(range(200_000), dt.BigIntType(), 65_536)
    file = open_file(data, bounds, dt.BigIntType())
    assert len(data) > 2 << 20
    assert file.find_rows([(0, 190_000)]) is None
    assert len(file.find_rows([(0, 10_000)])) == 10_000  # type: ignore[arg-type]


@settings(max_examples=100)
@given(st.data())
def test_damage_is_reported(data: st.DataObject) -> None:
    stored, bounds = build([*range(50), None], dt.IntType(), 100)
    damaged = bytearray(stored)
    damaged[data.draw(st.integers(0, len(stored) - 53))] ^= 1 << data.draw(st.integers(0, 7))
    file = open_file(bytes(damaged), bounds, dt.IntType())
    with pytest.raises(ValueError, match=r"checksum|varint|block|part|bitmap|key|entry"):
        list(file.read_all())
        file.find_nulls()


def test_truncated_files_and_foreign_files_are_reported() -> None:
    stored, bounds = build([*range(50), None], dt.IntType(), 100)
    for data in (stored[:20], stored[:-1], b"x" * 100, b""):
        with pytest.raises(ValueError, match=r"footer|magic|outside"):
            open_file(data, bounds, dt.IntType()).find_rows([(0, 9)])


@pytest.mark.parametrize("entry", [b"\x80", b"\xff" * 8 + b"\x7f\x00"], ids=["endless varints", "long keys"])
def test_blocks_that_name_long_ranges_need_little_memory(entry: bytes) -> None:
    """Without the check, the ranges of these entries have together a hundred gigabytes."""
    count = 200_000
    starts = np.arange(0, count * len(entry), len(entry), dtype="<i4").tobytes()
    block = entry * count + b"\x01" + starts + count.to_bytes(4, "little") + b"\x01"
    damaged = Block.decode(block + b"\0" + zlib.crc32(block + b"\0").to_bytes(4, "little"))
    with pytest.raises(ValueError, match="a varint is not at its place"):
        damaged.row_ids(0, count)


def test_a_bitmap_of_too_many_rows_selects_all() -> None:
    rows = BitMap64()
    rows.add_range(0, 1 << 30)
    data = rows.serialize()
    footer = Footer(Place(0, 0), Place(0, len(data))).encode()
    stored = data + zlib.crc32(data).to_bytes(4, "little") + footer
    assert open_file(stored, KeyBounds(None, None, True).encode(), dt.IntType()).find_nulls() is None


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 300), max_size=20))
@example([0, 127, 128, 2**63 - 1])
def test_varints(numbers: list[int]) -> None:
    data, lengths = encode_varints(np.array(numbers, np.int64))
    assert decode_varints(data).tolist() == numbers
    assert int(lengths.sum()) == len(data)
    at = 0
    for number, length in zip(numbers, lengths.tolist(), strict=True):
        assert read_varint(data.tobytes(), at) == (number, at + length)
        at += length


def test_the_layout_of_a_file() -> None:
    """The bytes of Java's writer for the same rows."""
    data, bounds = build(["b", "a", "b", None], dt.VarCharType(), 65_536)
    ids = [bytes.fromhex(text) for text in ("00", "b817", "f02e", "a846")]
    entries = b"\x01a" + b"\x03\x01" + ids[1] + b"\x01b" + b"\x04\x02" + ids[0] + ids[2]
    block = entries + (0).to_bytes(4, "little") + (6).to_bytes(4, "little") + (2).to_bytes(4, "little") + b"\x01"
    assert data.startswith(block + b"\0" + zlib.crc32(block + b"\0").to_bytes(4, "little"))
    assert bounds[:11] == b"\x01\0\0\0a\x01\0\0\0b\x01"
    assert data[-8:] == b"\x01\0\0\0" + b"ITBP"


def test_bounds_of_1_4_have_no_flags() -> None:
    assert KeyBounds.decode(b"\0\0\0\0\x02\0\0\0ab\x01") == KeyBounds(b"", b"ab", True)
    assert KeyBounds.decode(KeyBounds(None, None, True).encode()) == KeyBounds(None, None, True)
    assert KeyBounds.decode(KeyBounds(b"", b"x", False).encode()) == KeyBounds(b"", b"x", False)


def test_types_without_an_order_have_no_index() -> None:
    others = (dt.CharType(3), dt.VarBinaryType(), dt.ArrayType(dt.IntType()), dt.MapType(dt.IntType(), dt.IntType()))
    assert [t for t in (*TYPES, *others) if not supports_btree(t)] == list(others)


def test_the_waiting_key_is_kept_once() -> None:
    """All pieces have the same key, so none of it is encoded before the end."""
    keys = BtreeKeys(dt.VarCharType())
    writer = BtreeWriter(keys, 1024)
    piece = keys.to_sortable(pa.array(["hot" * 100] * 1000))
    for first in range(0, 5000, 1000):
        assert list(writer.add(piece, np.arange(first, first + 1000))) == []
    assert writer._key is not None and len(writer._key) == 1
    assert list(writer.finish())
