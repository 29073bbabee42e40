"""Encode and decode the parts of a blob file: the records of one BLOB column, and the index of their lengths.

Invariant: the bytes are those of Java. A record that was changed is found by its checksum.
Source: `BlobFormatWriter`, `BlobFileMeta`, `DeltaVarintCompressor`.
"""

# A file has the values of one column, in the order of the rows:
#
#     record 0 | record 2 | … | index | bytes of the index (4) | version 1 (1)
#
# A record is a value between fixed parts, 16 bytes together, with numbers in little endian:
#
#     CF 11 4E 58 | value | length of the whole record (8) | CRC-32 of all bytes before (4)
#
# The index has the length of each record. A row without a value (row 1 above) has the length -1 and no record, so the
# position of a record is the sum of the lengths before it. Each length is stored as the difference to the length
# before, as a zigzag varint: seven bits a byte, the lowest first. For the values "ab", null, "c":
#
#     lengths 18 -1 17 | differences 18 -19 18 | zigzag 36 37 36 | bytes 24 25 24
#
# Blobs are large and few, so a record costs one checksum in C. Everything that is done for a batch is columnar.

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.types.arrow_arrays import from_numpy

Lengths = npt.NDArray[np.int64]

NULL_LENGTH = -1
TAIL_BYTES = 5
"""The bytes after the index: its size, and the version of the format."""
MAX_BATCH_BYTES = 2**31 - 1
"""The most bytes of values in one Arrow array of binary values."""

_MAGIC = struct.pack("<i", 1481511375)
_OVERHEAD = 16
_VERSION = 1
_PLACEHOLDER_LENGTH = -2
"""Java 2.x writes it for a row whose value is in an older file."""


def measure_records(values: pa.BinaryArray) -> Lengths:
    """Return the length of the record of each value; -1 for nulls."""
    offsets = _read_offsets(values).astype(np.int64)
    lengths: Lengths = np.diff(offsets) + _OVERHEAD
    lengths[np.asarray(values.is_null())] = NULL_LENGTH
    return lengths


def encode_records(values: pa.BinaryArray) -> Iterator[bytes | memoryview]:
    """Yield the bytes of the records of the values in pieces; a value is not copied."""
    offsets = _read_offsets(values).tolist()
    valid = np.asarray(values.is_valid()).tolist()
    data = memoryview(values.buffers()[2] or b"")
    for start, end, is_valid in zip(offsets[:-1], offsets[1:], valid, strict=True):
        if is_valid:
            value = data[start:end]
            length = struct.pack("<q", end - start + _OVERHEAD)
            checksum = zlib.crc32(length, zlib.crc32(value, zlib.crc32(_MAGIC)))
            yield _MAGIC
            yield value
            yield length + struct.pack("<I", checksum)


def encode_index(lengths: Lengths) -> bytes:
    """Return the end of a file: the index, its size and the version."""
    index = _encode_varints(np.diff(lengths, prepend=0))
    return index + struct.pack("<iB", len(index), _VERSION)


def decode_tail(tail: bytes, file_bytes: int, path: str) -> int:
    """Return the size of the index from the last bytes of a file of this size."""
    if len(tail) < TAIL_BYTES:
        raise CorruptTable(path, "is shorter than a blob file")
    size, version = struct.unpack("<iB", tail)
    if version != _VERSION:
        raise CorruptTable(path, f"has blob format version {version}, but only {_VERSION} is known")
    if not 0 <= size <= file_bytes - TAIL_BYTES:
        raise CorruptTable(path, f"names an index of {size} bytes")
    return int(size)


def decode_index(index: bytes, record_bytes: int, path: str) -> Lengths:
    """Return the length of each record from the index of a file with so many bytes of records."""
    lengths: Lengths = np.cumsum(_decode_varints(index, path))
    if (lengths == _PLACEHOLDER_LENGTH).any():
        raise Unsupported("placeholders in a BLOB file of Java 2.x", hint="read the other columns")
    records = lengths[lengths != NULL_LENGTH]
    if len(records) and (records.min() < _OVERHEAD or records.max() > record_bytes):
        raise CorruptTable(
            path, f"has an index with impossible record lengths, from {records.min()} to {records.max()} bytes"
        )
    if int(records.sum()) != record_bytes:
        raise CorruptTable(path, f"has {record_bytes} bytes of records, but its index names {records.sum()}")
    return lengths


def decode_records(data: Any, lengths: Lengths, path: str) -> pa.BinaryArray:
    """Return the values of consecutive rows; `data` has their records, and `lengths` the length of each."""
    sizes = np.maximum(lengths, 0)
    ends = np.cumsum(sizes)
    is_null = lengths == NULL_LENGTH
    _check_records(memoryview(data).cast("B"), (ends - sizes)[~is_null].tolist(), ends[~is_null].tolist(), path)
    bounds = np.empty(2 * len(lengths) + 1, np.int32)
    # Every second slot is a value, and the others are the bytes between two values.
    bounds[0:-1:2], bounds[1::2] = ends - sizes + np.where(is_null, 0, 4), ends - np.where(is_null, 0, 12)
    bounds[-1] = ends[-1] if len(ends) else 0
    slots = pa.BinaryArray.from_buffers(pa.binary(), 2 * len(lengths), [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    places = np.arange(len(lengths), dtype=np.int64) * 2
    return slots.take(pa.array(places, mask=is_null) if is_null.any() else from_numpy(places))


def count_rows_within(lengths: Lengths, limit_bytes: int) -> int:
    """Return how many first rows have records of at most this size together, at least 1."""
    return max(1, int(np.searchsorted(np.cumsum(np.maximum(lengths, 0)), limit_bytes, side="right")))


def count_rows_until(lengths: Lengths, target_bytes: int) -> int:
    """Return how many first rows have records of at least this size together; all rows if they are smaller."""
    found = int(np.searchsorted(np.cumsum(np.maximum(lengths, 0)), target_bytes))
    return min(found + 1, len(lengths))


def _read_offsets(values: pa.BinaryArray) -> npt.NDArray[np.int32]:
    return np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)


def _check_records(data: memoryview, starts: list[int], ends: list[int], path: str) -> None:
    for start, end in zip(starts, ends, strict=True):
        length, checksum = struct.unpack_from("<qI", data, end - 12)
        if data[start : start + 4] != _MAGIC or length != end - start:
            raise CorruptTable(path, f"has no record of {end - start} bytes where its index names one")
        if zlib.crc32(data[start : end - 4]) != checksum:
            raise CorruptTable(path, "has a record that does not match its checksum")


def _encode_varints(numbers: Lengths) -> bytes:
    """Encode signed integers as zigzag varints."""
    rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    groups: list[npt.NDArray[np.uint64]] = []
    while not groups or rest.any():
        groups.append(rest & np.uint64(0x7F))
        rest = rest >> np.uint64(7)
    columns = np.stack(groups, axis=1).astype(np.uint8) if len(numbers) else np.zeros((0, 1), np.uint8)
    has_more = np.flip(np.logical_or.accumulate(np.flip(columns != 0, axis=1), axis=1), axis=1)
    is_stored = has_more.copy()
    is_stored[:, 0] = True
    follows = np.zeros_like(is_stored)
    follows[:, :-1] = is_stored[:, 1:]
    return (columns | np.where(follows, 0x80, 0).astype(np.uint8))[is_stored].tobytes()


def _decode_varints(data: bytes, path: str) -> Lengths:
    """Decode zigzag varints."""
    stored = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(stored < 0x80)
    if len(stored) and (not len(ends) or ends[-1] != len(stored) - 1):
        raise CorruptTable(path, "has an index that ends inside a number")
    starts = np.concatenate([np.zeros(min(1, len(ends)), np.int64), ends[:-1] + 1])
    places = np.arange(len(stored)) - np.repeat(starts, ends - starts + 1)
    if len(places) and places.max() > 9:
        raise CorruptTable(path, "has a number of more than 10 bytes in its index")
    parts = (stored & 0x7F).astype(np.uint64) << (places * 7).astype(np.uint64)
    values = np.bitwise_or.reduceat(parts, starts) if len(starts) else np.zeros(0, np.uint64)
    decoded: Lengths = (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64)
    return decoded
