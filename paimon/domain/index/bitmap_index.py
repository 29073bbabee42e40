"""The file index `bitmap`: the rows of each value of a column, in the versions 1 and 2.

Invariant: the bytes equal those that Java writes for the same column. A selection contains exactly the rows with the
value. What does not fit together is a `ValueError`.
Source: `BitmapFileIndex`, `BitmapFileIndexMeta`, `BitmapFileIndexMetaV2`.
"""

# The column red, blue, null, red as version 2 (offsets from the start of the bitmaps):
#
#     2 | rows 4 | values 2 | has null | null: offset -3, length | blocks 1 | blue, block at 0 | size of all blocks
#     block:   2 entries | blue, offset -2, length -1 | red, offset 0, length 18
#     bitmaps: {0, 3}
#
# A negative offset o stands for the single row -1 - o, which needs no bitmap. The entries of a block are sorted, and
# the head names the first value of each block, so a lookup decodes one block. Version 1 has no blocks: the head lists
# all values with their offsets. Bitmaps follow in the order of Java's hash map; that of nulls is the first.
#
# Entries are built column-wise: Arrow joins the binary columns `value`, `offset`, `length` row by row, and the bytes of
# the joined column are the block. One Python step is needed for each value of two rows and more, for its bitmap.

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from pyroaring import BitMap

from paimon.domain.index.container import order_computed
from paimon.domain.index.index_bytes import IndexBytes, check_rows, join_fields, pack_bitmap, pack_int, to_bitmap
from paimon.domain.index.index_keys import GroupedRows, Key, KeyForm, Keys, decode_keys, encode_keys, hash_integers
from paimon.domain.predicate.expression import Operator
from paimon.domain.row.row_hash_columnar import hash_texts
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy

NEWEST_VERSION = 2
_INT = np.dtype(">i4")


@frozen(eq=False)
class _Bodies:
    """The bitmaps of all keys: where the one of each key is, by the number of the key."""

    offsets: Keys
    lengths: Keys
    data: bytes


def encode_bitmap_index(groups: GroupedRows, form: KeyForm, version: int, block_bytes: int) -> bytes:
    """Encode the rows of a column; `block_bytes` is the largest size of a block of version 2."""
    nulls = pack_bitmap(to_bitmap(groups.null_rows))
    has_null_bitmap = len(groups.null_rows) > 1
    map_order = _to_map_order(groups, form)
    bodies = _encode_bodies(groups, map_order, len(nulls) if has_null_bitmap else 0)
    head = bytes([version]) + pack_int(groups.row_count) + pack_int(len(groups.keys))
    head += bytes([len(groups.null_rows) > 0])
    if len(groups.null_rows):
        head += pack_int(-1 - int(groups.null_rows[0]) if len(groups.null_rows) == 1 else 0)
    if version == 1:
        head += _join_entries(groups.keys, form, map_order, bodies.offsets)[0]
    else:
        head += pack_int(len(nulls)) if len(groups.null_rows) else b""
        head += _encode_blocks(groups.keys, form, bodies, block_bytes)
    return head + (nulls if has_null_bitmap else b"") + bodies.data


def _to_map_order(groups: GroupedRows, form: KeyForm) -> Keys:
    hashes = hash_integers(to_numpy(groups.keys), form) if form.width else hash_texts(groups.keys)
    return order_computed(hashes, groups.ends_with_known_key)


def _encode_bodies(groups: GroupedRows, map_order: Keys, first_offset: int) -> _Bodies:
    """Encode the bitmaps of keys with two rows and more, in the order of the map."""
    counts = np.diff(groups.bounds)
    offsets = -1 - groups.rows[groups.bounds[:-1]] if len(counts) else np.empty(0, np.int64)
    lengths = np.full(len(counts), -1, np.int64)
    many = map_order[counts[map_order] > 1]
    parts = [
        pack_bitmap(to_bitmap(groups.rows[start:end]))
        for start, end in zip(groups.bounds[many].tolist(), groups.bounds[many + 1].tolist(), strict=True)
    ]
    lengths[many] = [len(part) for part in parts]
    offsets[many] = first_offset + np.cumsum(lengths[many]) - lengths[many]
    return _Bodies(offsets, lengths, b"".join(parts))


def _encode_blocks(keys: pa.Array, form: KeyForm, bodies: _Bodies, block_bytes: int) -> bytes:
    """Encode the entries in the order of their keys, as blocks behind a list of their first keys."""
    order = np.argsort(to_numpy(keys)) if form.width else to_numpy(pc.sort_indices(keys)).astype(np.int64)
    entries, ends = _join_entries(keys, form, order, bodies.offsets, bodies.lengths)
    starts = [0]
    while starts[-1] < len(order):
        begin = int(ends[starts[-1]])
        next_start = int(np.searchsorted(ends, begin + block_bytes - len(pack_int(0)), side="right")) - 1
        starts.append(max(next_start, starts[-1] + 1))
    blocks = [
        pack_int(end - start) + entries[int(ends[start]) : int(ends[end])] for start, end in itertools.pairwise(starts)
    ]
    sizes = np.array([0, *map(len, blocks)], np.int64)
    first = order[np.array(starts[:-1], np.int64)]
    places = np.zeros(len(keys), np.int64)
    places[first] = np.cumsum(sizes)[:-1]
    heads, _ = _join_entries(keys, form, first, places)
    return pack_int(len(blocks)) + heads + pack_int(int(sizes.sum())) + b"".join(blocks)


def _join_entries(keys: pa.Array, form: KeyForm, order: Keys, *numbers: Keys) -> tuple[bytes, Keys]:
    """Return the entries `key, number, ...` of keys in an order, and where each of them starts, with their end."""
    taken = keys.take(from_numpy(order))
    if form.width:
        stored = [encode_keys(to_numpy(taken), form)]
    else:
        stored = [to_numpy(pc.binary_length(taken)).astype(_INT), taken]
    return join_fields(*stored, *(values[order].astype(_INT) for values in numbers))


@frozen(eq=False)
class BitmapIndex:
    """A decoded head, and what finds the entry of a key: its offset and the length, -1 if unknown."""

    form: KeyForm
    row_count: int
    # the offset of the nulls; None without nulls
    null_offset: int | None
    find_entry: Callable[[Key], tuple[int, int] | None]
    data: bytes
    # where the bitmaps start in `data`
    body: int

    @classmethod
    def decode(cls, data: bytes, form: KeyForm, row_count: int) -> BitmapIndex:
        """Decode an index of a file with so many rows; a `ValueError` if it is damaged."""
        source = IndexBytes(data)
        version = source.read_version(NEWEST_VERSION)
        if source.read_int() != row_count:
            raise ValueError("the number of rows differs")
        count = source.read_count()
        null_offset = source.read_int() if source.read_flag() else None
        if version == 1:
            entries = _read_entries(source, count, form, 1)
            return cls(form, row_count, null_offset, entries.find, data, source.position)
        if null_offset is not None:
            source.read_int()
        heads = _read_entries(source, source.read_count(), form, 1)
        size = source.read_count()
        start = source.position
        source.read_bytes(size)

        def find(key: Key) -> tuple[int, int] | None:
            """Return the entry of a key, from the block that can contain it."""
            place = heads.find_last(key)
            if place is None:
                return None
            block = IndexBytes(data[: start + size], start + place)
            return _read_entries(block, block.read_count(), form, 2).find(key)

        return cls(form, row_count, null_offset, find, data, source.position)

    def select(self, operator: Operator, key: Key) -> BitMap | None:
        """Return the rows that the comparison with a key selects; None if the index does not know them."""
        if operator not in (Operator.EQ, Operator.NE):
            return None
        entry = self.find_entry(key)
        rows = BitMap() if entry is None else self._read_rows(*entry)
        if operator is Operator.EQ:
            return rows
        return BitMap(range(self.row_count)) - rows - self.select_nulls()

    def select_nulls(self) -> BitMap:
        """Return the rows with null."""
        return BitMap() if self.null_offset is None else self._read_rows(self.null_offset, -1)

    def _read_rows(self, offset: int, length: int) -> BitMap:
        if offset < 0:
            return check_rows(BitMap([-1 - offset]), self.row_count)
        source = IndexBytes(self.data, self.body + offset)
        return source.read_bitmap(self.row_count) if length < 0 else source.read_sized_bitmap(length, self.row_count)


@frozen(eq=False)
class _Entries:
    """The entries of a head or of a block: sorted numbers, or texts."""

    # int64 in ascending order, or a mapping from text to its place
    keys: Keys | Mapping[bytes, int]
    # one row an entry: offset, and length if it is stored
    numbers: Keys

    def find(self, key: Key) -> tuple[int, int] | None:
        """Return offset and length of a key; a length of -1 is unknown."""
        if isinstance(self.keys, Mapping):
            place = self.keys.get(key) if isinstance(key, bytes) else None
        else:
            found = np.flatnonzero(self.keys == key)
            place = int(found[0]) if len(found) else None
        if place is None:
            return None
        row = self.numbers[place].tolist()
        return row[0], row[1] if len(row) > 1 else -1

    def find_last(self, key: Key) -> int | None:
        """Return the first number of the last entry whose key is not larger; None if there is none."""
        if isinstance(self.keys, Mapping):
            smaller = [place for text, place in self.keys.items() if text <= key]  # type: ignore[operator]
            return int(self.numbers[max(smaller)][0]) if smaller else None
        place = int(np.searchsorted(self.keys, key, side="right")) - 1
        return int(self.numbers[place][0]) if place >= 0 else None


def _read_entries(source: IndexBytes, count: int, form: KeyForm, number_count: int) -> _Entries:
    """Read entries of a key and one or two numbers."""
    tail = 4 * number_count
    if not form.width:
        return _read_text_entries(source, count, tail)
    size = form.width + tail
    if count * size > len(source.data) - source.position:
        raise ValueError(f"{count} entries exceed the index")
    raw = np.frombuffer(source.read_bytes(count * size), np.uint8).reshape(count, size)
    stored = np.ascontiguousarray(raw[:, : form.width]).view(form.dtype)[:, 0].astype(np.int64)
    numbers = np.ascontiguousarray(raw[:, form.width :]).view(_INT).astype(np.int64)
    return _Entries(decode_keys(stored, form), numbers)


def _read_text_entries(source: IndexBytes, count: int, tail: int) -> _Entries:
    if count * (4 + tail) > len(source.data) - source.position:
        raise ValueError(f"{count} entries exceed the index")
    keys: dict[bytes, int] = {}
    rest = bytearray()
    for place in range(count):
        keys[source.read_bytes(source.read_int())] = place
        rest += source.read_bytes(tail)
    return _Entries(keys, np.frombuffer(bytes(rest), _INT).astype(np.int64).reshape(count, tail // 4))
