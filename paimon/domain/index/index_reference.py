"""Build the bytes of one file index row by row, as Java's writers do: the reference of the columnar builders.

Invariant: it shares no helper with the columnar builders but the hash functions and the order of single values.
Source: `BloomFilterFileIndex`, `BitmapFileIndex`, `BitSliceIndexBitmapFileIndex`, `RangeBitmapFileIndex`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

from pyroaring import BitMap

from paimon.domain.columns.java_float_order import to_float_sort_key
from paimon.domain.index.bloom_filter import xx_hash
from paimon.domain.row.row_hash import hash_bytes
from paimon.domain.schema.declared_indexes import DeclaredIndex
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

_FORMATS: dict[type[DataType], str] = {
    dt.BooleanType: ">b", dt.TinyIntType: ">b", dt.SmallIntType: ">h", dt.IntType: ">i", dt.DateType: ">i",
    dt.TimeType: ">i", dt.FloatType: ">f", dt.DoubleType: ">d",
}  # fmt: skip


def build_index(index: DeclaredIndex, data_type: DataType, values: Sequence[Any]) -> bytes | None:
    """Return the bytes of an index of internal values; None where the kind cannot contain them."""
    keys = [None if value is None else _to_key(value, data_type) for value in values]
    match index.kind:
        case "bloom-filter":
            return _build_bloom_filter(keys, data_type, index.items, index.false_positive_rate)
        case "bitmap":
            return _build_bitmap(keys, data_type, index.version, index.block_bytes)
        case "bsi":
            return _build_bit_slices(keys)
    return _build_range_bitmap(keys, data_type, index.chunk_bytes(data_type))


def _to_key(value: Any, data_type: DataType) -> Any:
    if isinstance(data_type, dt.TIMESTAMP_TYPES):
        return value // (1_000_000 if data_type.precision <= 3 else 1_000)
    if isinstance(data_type, dt.DecimalType):
        return int(Decimal(value).scaleb(data_type.scale, Context(prec=40)))
    return value.encode() if isinstance(value, str) else value


def _store(key: Any, data_type: DataType) -> bytes:
    if isinstance(key, bytes):
        return len(key).to_bytes(4, "big") + key
    return struct.pack(_FORMATS.get(type(data_type), ">q"), math.nan if key != key else key)


def _sort_key(key: Any) -> Any:
    return to_float_sort_key(key) if isinstance(key, float) else key


def _pack(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def _pack_rows(rows: BitMap) -> bytes:
    rows.run_optimize()
    return bytes(rows.serialize())


def _build_bloom_filter(keys: Sequence[Any], data_type: DataType, items: int, rate: float) -> bytes:
    wanted = int(-items * math.log(rate) / math.log(2) ** 2)
    bits = wanted + 8 - wanted % 8
    count = max(1, round(bits / items * math.log(2)))
    data = bytearray(bits // 8)
    for key in keys:
        if key is not None:
            hashed = xx_hash(key) if isinstance(key, bytes) else _hash_number(key, data_type)
            low, high = struct.unpack("<ii", struct.pack("<Q", hashed & 0xFFFF_FFFF_FFFF_FFFF))
            for i in range(1, count + 1):
                (combined,) = struct.unpack("<i", struct.pack("<I", low + i * high & 0xFFFF_FFFF))
                place = (~combined if combined < 0 else combined) % bits
                data[place // 8] |= 1 << place % 8
    return _pack(count) + bytes(data)


def _hash_number(key: Any, data_type: DataType) -> int:
    """Return the hash of Thomas Wang, in signed arithmetic of 64 bits."""
    number = _wrap(int.from_bytes(_store(key, data_type), "big", signed=True))
    number = _wrap(~number + (number << 21))
    number ^= number >> 24
    number = _wrap(number + (number << 3) + (number << 8))
    number ^= number >> 14
    number = _wrap(number + (number << 2) + (number << 4))
    number ^= number >> 28
    return _wrap(number + (number << 31))


def _wrap(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class _JavaMap:
    """The buckets of a `HashMap` that `computeIfAbsent` fills."""

    def __init__(self) -> None:
        self.buckets: list[list[tuple[int, Any]]] = [[] for _ in range(16)]
        self.rows: dict[Any, list[int]] = {}

    def add(self, key: Any, hashed: int, identity: Any, row: int) -> None:
        """Add a row to those of a key."""
        if len(self.rows) > len(self.buckets) * 3 // 4:
            older = [entry for bucket in self.buckets for entry in bucket]
            self.buckets = [[] for _ in range(2 * len(self.buckets))]
            for entry in older:
                self.buckets[entry[0] % len(self.buckets)].append(entry)
        if identity not in self.rows:
            spread = hashed % (1 << 32)
            spread ^= spread >> 16
            self.buckets[spread % len(self.buckets)].insert(0, (spread, key))
        self.rows.setdefault(identity, []).append(row)

    def list_keys(self) -> list[Any]:
        """Return the keys in the order of iteration."""
        return [key for bucket in self.buckets for _, key in bucket]


def _hash_key(key: Any, data_type: DataType) -> int:
    if isinstance(key, bytes):
        return hash_bytes(key)
    if isinstance(data_type, dt.BooleanType):
        return 1231 if key else 1237
    stored = _store(key, data_type)
    bits = int.from_bytes(stored, "big", signed=True)
    return bits ^ (bits % (1 << 64) >> 32) if len(stored) == 8 else bits


def _build_bitmap(keys: Sequence[Any], data_type: DataType, version: int, block_bytes: int) -> bytes:
    found, nulls = _JavaMap(), BitMap()
    for row, key in enumerate(keys):
        if key is None:
            nulls.add(row)
        else:
            found.add(key, _hash_key(key, data_type), _store(key, data_type), row)
    null_bytes = _pack_rows(nulls)
    body = null_bytes if len(nulls) > 1 else b""
    entries: list[tuple[Any, int, int]] = []
    for key in found.list_keys():
        rows = found.rows[_store(key, data_type)]
        if len(rows) == 1:
            entries.append((key, -1 - rows[0], -1))
        else:
            data = _pack_rows(BitMap(rows))
            entries.append((key, len(body), len(data)))
            body += data
    head = bytes([version]) + _pack(len(keys), len(entries)) + bytes([len(nulls) > 0])
    if nulls:
        head += _pack(-1 - nulls[0] if len(nulls) == 1 else 0, *([len(null_bytes)] if version == 2 else []))
    if version == 1:
        return head + b"".join(_store(key, data_type) + _pack(offset) for key, offset, _ in entries) + body
    blocks: list[tuple[Any, list[bytes]]] = []
    for key, offset, length in sorted(entries, key=lambda e: _sort_key(e[0])):
        entry = _store(key, data_type) + _pack(offset, length)
        if not blocks or 4 + sum(map(len, blocks[-1][1])) + len(entry) > block_bytes:
            blocks.append((key, []))
        blocks[-1][1].append(entry)
    head += _pack(len(blocks))
    packed = b""
    for key, rows_of_block in blocks:
        head += _store(key, data_type) + _pack(len(packed))
        packed += _pack(len(rows_of_block)) + b"".join(rows_of_block)
    return head + _pack(len(packed)) + packed + body


def _build_bit_slices(keys: Sequence[Any]) -> bytes | None:
    if -(1 << 63) in keys:
        return None
    out = b"\x01" + _pack(len(keys))
    for wants_negative in (False, True):
        own = {row: abs(key) for row, key in enumerate(keys) if key is not None and (key < 0) == wants_negative}
        out += bytes([len(own) > 0])
        if own:
            largest = max(own.values())
            out += b"\x01" + struct.pack(">qq", 0, largest) + _pack_rows(BitMap(own)) + _pack(largest.bit_length())
            out += b"".join(_slices(own, largest.bit_length()))
    return out


def _slices(numbers: dict[int, int], count: int) -> list[bytes]:
    return [_pack_rows(BitMap([row for row, number in numbers.items() if number >> i & 1])) for i in range(count)]


def _build_range_bitmap(keys: Sequence[Any], data_type: DataType, chunk_bytes: int) -> bytes:
    stored = {_store(k, data_type): k for k in keys if k is not None}
    ordered = sorted(stored, key=lambda data: _sort_key(stored[data]))
    codes = {data: code for code, data in enumerate(ordered)}
    dictionary = _build_dictionary(ordered, isinstance(data_type, dt.CHARACTER_TYPES), chunk_bytes)
    bounds = ordered[0] + ordered[-1] if ordered else b""
    head = b"\x01" + _pack(len(keys), len(ordered)) + bounds + _pack(len(dictionary))
    numbers = {row: codes[_store(key, data_type)] for row, key in enumerate(keys) if key is not None}
    slices = _slices(numbers, max(1, (len(ordered) - 1).bit_length()) if ordered else 64)
    existing = _pack_rows(BitMap(numbers))
    places, offset = b"", 0
    for part in slices:
        places += _pack(offset, len(part))
        offset += len(part)
    tail = bytes([1, len(slices)]) + _pack(len(existing), len(places)) + places
    return _pack(len(head)) + head + dictionary + _pack(len(tail)) + tail + existing + b"".join(slices)


def _build_dictionary(ordered: Sequence[bytes], has_offsets: bool, chunk_bytes: int) -> bytes:
    chunks: list[list[bytes]] = []
    for data in ordered:
        further = chunks[-1][1:] if chunks else []
        fits = sum(map(len, further)) + len(data) <= chunk_bytes
        if not chunks or not fits or (has_offsets and 4 * len(further) + 4 > chunk_bytes):
            chunks.append([])
        chunks[-1].append(data)
    offsets, heads, area, code = b"", b"", b"", 0
    for first, *further in chunks:
        starts = b"".join(_pack(sum(map(len, further[:i]))) for i in range(len(further))) if has_offsets else b""
        keys = b"".join(further)
        offsets += _pack(len(heads))
        sizes = (len(starts), len(keys)) if has_offsets else (len(keys), len(first))
        heads += b"\x01" + first + _pack(code, len(area), len(further), *sizes)
        area += starts + keys
        code += 1 + len(further)
    head = b"\x01" + _pack(len(chunks), len(offsets), len(heads))
    return _pack(len(head)) + head + offsets + heads + area
