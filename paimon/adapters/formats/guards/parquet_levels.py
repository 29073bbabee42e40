"""Find the largest number of values that one row of a Parquet list column has, from the repetition levels of its chunk.

A repetition level of 0 begins a row. This check runs only for chunks whose lists have more elements than the limit of
one batch.

Invariant: the time is in proportion to the number of runs, not of values, and more than `_MOST_RUNS` runs are refused.
Source: Parquet format, "Data Pages" (repetition levels) and "Run Length Encoding / Bit-Packing Hybrid".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from attrs import define

from paimon.adapters.formats.guards.parquet_bytes import Stored
from paimon.adapters.formats.guards.parquet_pages import DATA_PAGES, DICTIONARY_PAGE, header_number, read_page_header
from paimon.adapters.formats.thrift import ByteReader, ThriftStruct

_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_SECOND = 3
"""Data pages of version 2, whose levels are not compressed and precede the values."""
_RLE = 3
_ENCODING_OF_LEVELS = 4
_REPETITION_BYTES = 6
_LENGTH_BYTES = 4
_MOST_RUNS = 4_000_000
_GROUP = 8
_SLICE_GROUPS = 1 << 16


def count_longest_row_values(stored: Stored, start: int, end: int, values: int, codec: int, highest: int) -> int:
    """Return the number of values of the longest row among the first `values` of a chunk.

    `start` and `end` are the offsets of the chunk, whose page headers were checked before. `highest` is the highest
    repetition level of the leaf. Levels that are damaged, or not encoded in runs, raise ValueError.
    """
    rows = _Rows()
    at = start
    while rows.values < values and at < end:
        header, length = read_page_header(stored.read_at, at)
        kind, size, packed = (header_number(header, number) for number in (1, 2, 3))
        at += length
        if kind != DICTIONARY_PAGE:
            inner = header.get(DATA_PAGES.get(kind, 0))
            if not isinstance(inner, ThriftStruct):
                raise ValueError(f"the page at {at} is not a data page")
            levels = _level_runs(stored.read_at(packed, at), kind, size, inner, codec)
            try:
                _read_runs(levels, highest.bit_length(), header_number(inner, 1), rows)
            except IndexError as error:
                raise ValueError("repetition levels end in the middle of a run") from error
        at += packed
    return rows.longest


@define
class _Rows:
    """The rows seen so far. A row may continue on the next page."""

    values: int = 0
    longest: int = 0
    current: int = 0
    runs: int = 0

    def add_values(self, count: int) -> None:
        """Add values to the current row."""
        self.current += count
        self.longest = max(self.longest, self.current)

    def begin_rows(self, count: int) -> None:
        """Begin `count` rows of one value each; the last one may continue."""
        if count:
            self.current = 0
            self.add_values(1)


def _level_runs(page: bytes, kind: int, size: int, inner: ThriftStruct, codec: int) -> bytes:
    """Return the runs of the repetition levels of a page."""
    if kind == _SECOND:
        return page[: header_number(inner, _REPETITION_BYTES)]
    if header_number(inner, _ENCODING_OF_LEVELS) != _RLE:
        raise ValueError("lists have too many elements, and their levels are not encoded in runs")
    if codec:
        if codec not in _CODECS:
            raise ValueError("lists have too many elements, and are compressed with LZ4 in Hadoop's frames")
        page = pa.decompress(page, size, codec=_CODECS[codec], asbytes=True)
    length = int.from_bytes(page[:_LENGTH_BYTES], "little")
    return page[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _read_runs(levels: bytes, width: int, count: int, rows: _Rows) -> None:
    """Read the runs of `count` levels."""
    source, left = ByteReader(levels), count
    while left > 0:
        head = source.read_varint()
        rows.runs += 1
        count_in_run = min(left, (head >> 1) * (_GROUP if head & 1 else 1))
        if count_in_run <= 0 or rows.runs > _MOST_RUNS:
            raise ValueError("lists have too many elements, and the runs of their levels are damaged or too many")
        if head & 1:
            _read_packed_run(source.read_bytes((head >> 1) * width), width, count_in_run, rows)
        else:
            (rows.add_values if any(source.read_bytes((width + 7) // 8)) else rows.begin_rows)(count_in_run)
        left -= count_in_run
    rows.values += count


def _read_packed_run(packed: bytes, width: int, count: int, rows: _Rows) -> None:
    """Read a run of `count` bit-packed levels."""
    step = _SLICE_GROUPS * width
    for start in range(0, -(-count // _GROUP) * width, step):
        bits = np.unpackbits(np.frombuffer(packed[start : start + step], np.uint8), bitorder="little")
        sliced = min(count, _SLICE_GROUPS * _GROUP)
        continues = np.any(bits.reshape(-1, width), axis=1)[:sliced]
        begins = np.flatnonzero(np.logical_not(continues))
        if len(begins):
            rows.add_values(int(begins[0]))
            rows.longest = max(rows.longest, int(np.diff(begins).max(initial=0)))
            rows.begin_rows(1)
            rows.add_values(sliced - int(begins[-1]) - 1)
        else:
            rows.add_values(sliced)
        count -= sliced
