"""The file index `range-bitmap`: a sorted dictionary of the values, and the code of each row by its binary digits.

Invariant: the bytes equal those that Java writes for the same column. What does not fit together is a `ValueError`.
Source: `RangeBitmap`, `ChunkedDictionary`, `FixedLengthChunk`, `VariableLengthChunk`, `BitSliceIndexBitmap`.
"""

# The parts, each behind the length of its head:
#
#     head         version, rows, number of values, smallest and largest value, bytes of the dictionary
#     dictionary   chunks: where the head of each chunk is, the heads, then the keys of all chunks
#     slices       the rows that are not null, and the digits of their codes (`bit_slices.py`)
#
# The code of a value is its position in the sorted dictionary, so a comparison of values is one of codes. A chunk has
# its first key and the code of that in its head, and as many further keys as fit into `chunk-size`. A lookup finds the
# chunk by the first keys, then the key in the chunk:
#
#     values 3, 4, 8, 9, with two further keys a chunk:   chunk 0: 3 (code 0) | 4 8       chunk 1: 9 (code 3) |
#     find 8 -> chunk 0, code 2        find 5 -> code 2, not contained: the next larger value has this code

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from pyroaring import BitMap

from paimon.domain.index.bit_sliced_index import BitSlices
from paimon.domain.index.index_bytes import IndexBytes, join_fields, pack_bitmap, pack_int
from paimon.domain.index.index_keys import Key, KeyForm, Keys, NumberedRows, decode_keys, encode_keys
from paimon.domain.predicate.expression import Operator
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy

_VERSION = b"\x01"
_SLICES_WITHOUT_VALUES = 64
_INT_BYTES = 4


def encode_range_bitmap(column: NumberedRows, form: KeyForm, chunk_bytes: int) -> bytes:
    """Encode the rows of a column; `chunk_bytes` limits the further keys of a chunk of the dictionary."""
    order = np.argsort(to_numpy(column.keys)) if form.width else to_numpy(pc.sort_indices(column.keys)).astype(np.int64)
    count = len(order)
    stored, ends = _encode_sorted(column.keys.take(from_numpy(order)), form)
    bounds = stored[: ends[1]] + stored[ends[-2] :] if count else b""
    dictionary = _encode_dictionary(stored, ends, form, chunk_bytes)
    head = _VERSION + pack_int(column.row_count) + pack_int(count) + bounds + pack_int(len(dictionary))
    codes = np.empty(count, np.int64)
    codes[order] = np.arange(count)
    slice_count = max(1, (count - 1).bit_length()) if count else _SLICES_WITHOUT_VALUES
    slices = BitSlices.of(codes[column.numbers], column.rows, count - 1, slice_count)
    return pack_int(len(head)) + head + dictionary + _encode_slices(slices)


def _encode_sorted(keys: pa.Array, form: KeyForm) -> tuple[bytes, Keys]:
    """Return all keys as they are stored, and where each of them starts, with the end of the last."""
    if form.width:
        return encode_keys(to_numpy(keys), form).tobytes(), np.arange(len(keys) + 1) * form.width
    return join_fields(to_numpy(pc.binary_length(keys)).astype(">i4"), keys)


def _encode_dictionary(stored: bytes, ends: Keys, form: KeyForm, chunk_bytes: int) -> bytes:
    starts = _find_chunks(ends, form, chunk_bytes)
    heads, areas = [], []
    area_offset = 0
    for start, end in itertools.pairwise(starts):
        offsets, keys = _encode_area(stored, ends, start + 1, end, form)
        first = stored[int(ends[start]) : int(ends[start + 1])]
        head = _VERSION + first + pack_int(start) + pack_int(area_offset) + pack_int(end - start - 1)
        if form.width:
            heads.append(head + pack_int(len(keys)) + pack_int(form.width))
        else:
            heads.append(head + pack_int(len(offsets)) + pack_int(len(keys)))
        areas.append(offsets + keys)
        area_offset += len(areas[-1])
    places = np.cumsum([0, *map(len, heads)])
    body = b"".join(heads)
    head = _VERSION + pack_int(len(heads)) + pack_int(_INT_BYTES * len(heads)) + pack_int(len(body))
    return pack_int(len(head)) + head + places[:-1].astype(">i4").tobytes() + body + b"".join(areas)


def _find_chunks(ends: Keys, form: KeyForm, chunk_bytes: int) -> list[int]:
    """Return the number of the first key of each chunk, and the number of all keys."""
    count = len(ends) - 1
    if form.width:
        return [*range(0, count, chunk_bytes // form.width + 1), count]
    starts = [0]
    while starts[-1] < count:
        further = starts[-1] + 1
        fitting = int(np.searchsorted(ends, int(ends[further]) + chunk_bytes, side="right")) - 1
        starts.append(max(further, min(fitting, further + chunk_bytes // _INT_BYTES, count)))
    return starts


def _encode_area(stored: bytes, ends: Keys, start: int, end: int, form: KeyForm) -> tuple[bytes, bytes]:
    """Return the offsets, which only texts have, and the bytes of the further keys of a chunk."""
    keys = stored[int(ends[start]) : int(ends[end])]
    return b"" if form.width else (ends[start:end] - ends[start]).astype(">i4").tobytes(), keys


def _encode_slices(slices: BitSlices) -> bytes:
    existing, digits = pack_bitmap(slices.existing), [pack_bitmap(rows) for rows in slices.slices]
    sizes = np.array([len(part) for part in digits], np.int64)
    places = np.stack([np.cumsum(sizes) - sizes, sizes], axis=1).astype(">i4").tobytes()
    head = _VERSION + bytes([len(digits)]) + pack_int(len(existing)) + pack_int(len(places)) + places
    return pack_int(len(head)) + head + existing + b"".join(digits)


@frozen(eq=False)
class RangeBitmap:
    """A decoded index; without a dictionary, all rows are null."""

    row_count: int
    dictionary: _Dictionary | None
    slices: BitSlices

    @classmethod
    def decode(cls, data: bytes, form: KeyForm, row_count: int) -> RangeBitmap:
        """Decode an index of a file with so many rows; a `ValueError` if it is damaged."""
        source = IndexBytes(data)
        source.read_count()
        source.read_version(1)
        if source.read_int() != row_count:
            raise ValueError("the number of rows differs")
        count = source.read_count()
        if not count:
            return cls(row_count, None, BitSlices(0, 0, BitMap(), ()))
        for _ in range(2):
            source.read_bytes(form.width or source.read_int())
        size = source.read_count()
        dictionary = _Dictionary.decode(IndexBytes(source.read_bytes(size)), form, count)
        return cls(row_count, dictionary, _decode_slices(source, row_count, count))

    def select(self, operator: Operator, key: Key) -> BitMap:
        """Return the rows that the comparison with a key selects."""
        if self.dictionary is None:
            return BitMap()
        code, is_contained = self.dictionary.find(key)
        if is_contained:
            return self.slices.select(operator, code)
        match operator:
            case Operator.EQ:
                return BitMap()
            case Operator.NE:
                return self.slices.existing
            case Operator.LT | Operator.LE:
                return self.slices.select(Operator.LT, code)
            case Operator.GT | Operator.GE:
                return self.slices.select(Operator.GE, code)

    def select_nulls(self) -> BitMap:
        """Return the rows with null."""
        return BitMap(range(self.row_count)) - self.slices.existing


@frozen(eq=False)
class _Dictionary:
    """The sorted keys, in chunks that are decoded when they are searched."""

    form: KeyForm
    key_count: int
    # where the head of each chunk starts in `heads`
    offsets: Keys
    heads: bytes
    areas: bytes

    @classmethod
    def decode(cls, source: IndexBytes, form: KeyForm, key_count: int) -> _Dictionary:
        """Decode the dictionary that fills the source."""
        source.read_count()
        source.read_version(1)
        chunk_count, offsets_size, heads_size = source.read_count(), source.read_count(), source.read_count()
        if not chunk_count or offsets_size != _INT_BYTES * chunk_count:
            raise ValueError(f"{chunk_count} chunks with {offsets_size} bytes of offsets")
        offsets = source.read_numbers(chunk_count, ">i4")
        heads = source.read_bytes(heads_size)
        return cls(form, key_count, offsets, heads, source.data[source.position :])

    def find(self, key: Key) -> tuple[int, bool]:
        """Return the code of a key, and that it is contained; otherwise the code of the next larger key."""
        chunks = range(len(self.offsets))
        place = bisect_right(chunks, key, key=lambda i: self._read_head(i).first) - 1
        if place < 0:
            return 0, False
        chunk = self._read_head(place)
        if chunk.first == key:
            return chunk.code, True
        further = chunk.read_keys(self.areas, self.form)
        within = bisect_left(further, key)
        code = chunk.code + 1 + within
        if not 0 <= chunk.code <= code <= self.key_count:
            raise ValueError(f"code {code} of {self.key_count} keys")
        return code, within < len(further) and further[within] == key

    def _read_head(self, place: int) -> _Chunk:
        source = IndexBytes(self.heads, max(0, int(self.offsets[place])))
        source.read_version(1)
        first = _read_key(source, self.form)
        return _Chunk(first, *(source.read_count() for _ in range(5)))


@frozen
class _Chunk:
    """The head of a chunk."""

    first: Key
    code: int
    # where its keys start in the area of all keys
    offset: int
    # the number of further keys
    size: int
    # bytes of the keys, and of one key; for texts bytes of the offsets, and of the keys
    length: int
    other_length: int

    def read_keys(self, areas: bytes, form: KeyForm) -> Sequence[Key]:
        """Return the further keys."""
        source = IndexBytes(areas, self.offset)
        if form.width:
            return list(decode_keys(source.read_numbers(self.size, form.dtype.str), form).tolist())
        starts = source.read_numbers(self.size, ">i4")
        keys = IndexBytes(source.read_bytes(self.other_length))
        found: list[Key] = []
        for start in starts.tolist():
            keys.position = max(0, start)
            found.append(_read_key(keys, form))
        return found


def _read_key(source: IndexBytes, form: KeyForm) -> Key:
    if not form.width:
        return source.read_bytes(source.read_int())
    return int(decode_keys(source.read_numbers(1, form.dtype.str), form)[0])


def _decode_slices(source: IndexBytes, row_count: int, key_count: int) -> BitSlices:
    size = source.read_count()
    head = IndexBytes(source.read_bytes(size))
    head.read_version(1)
    slice_count, existing_size, places_size = head.read_byte(), head.read_count(), head.read_count()
    if slice_count != max(1, (key_count - 1).bit_length()) or places_size != 2 * _INT_BYTES * slice_count:
        raise ValueError(f"{slice_count} slices for {key_count} keys")
    places = head.read_numbers(2 * slice_count, ">i4").reshape(-1, 2).tolist()
    existing = source.read_sized_bitmap(existing_size, row_count)
    start = source.position
    slices = [IndexBytes(source.data, start + o).read_sized_bitmap(n, row_count) for o, n in places]
    return BitSlices(0, key_count - 1, existing, slices)
