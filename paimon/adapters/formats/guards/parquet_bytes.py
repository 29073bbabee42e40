"""The bytes of a Parquet file as its reader and the guards take them: in place if local, fetched ahead if remote.

Invariant: ranges that are close together are one request, and no byte is requested twice within a piece. The guards
check the same bytes that Arrow decodes.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import cached_property

import pyarrow as pa

from paimon.adapters.formats.thrift import ThriftStruct, decode

MAGIC = b"PAR1"
_HOLE_BYTES = 8 * 1024
_RANGE_BYTES = 32 * 1024 * 1024
"""The limit of Arrow's own prefetching."""
_END_BYTES = 8
"""The length of the footer and the magic bytes."""
_FOOTER_BYTES = 64 * 1024
"""How many bytes Arrow reads to find the footer."""


class PrefetchedFile(io.RawIOBase):
    """A seekable file of which whole ranges are fetched before they are read."""

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._size = source.size()
        self._position = 0
        self._held: list[tuple[int, bytes]] = []

    def load(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch ranges of (start, end) offsets, and release the ranges that were held before."""
        self._held = []
        within = ((max(0, start), min(end, self._size)) for start, end in ranges)
        for start, end in _join_ranges(sorted(r for r in within if r[0] < r[1])):
            self._held.append((start, self._source.read_at(end - start, start)))

    def read_at(self, size: int, start: int) -> bytes:
        """Return `size` bytes at the offset `start`; fewer only at the end of the file."""
        for begin, data in self._held:
            if begin <= start and start + size <= begin + len(data):
                return data[start - begin : start - begin + size]
        return bytes(self._source.read_at(size, start))

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, or all that remain."""
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self.read_at(wanted, self._position) if wanted else b""
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position and return it."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return int(self._size)


def _join_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start <= joined[-1][1] + _HOLE_BYTES and end - joined[-1][0] <= _RANGE_BYTES:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


class Stored:
    """The bytes of a file for the guards.

    `whole` is the file's memory if it is in memory or mapped. `ahead` fetches ranges if the file is remote. `source`
    is the file that Arrow reads.
    """

    def __init__(self, source: pa.NativeFile) -> None:
        self.ahead: PrefetchedFile | None = None
        self.whole: memoryview | None = None
        if isinstance(source, pa.MemoryMappedFile | pa.BufferReader):
            source.seek(0)
            self.whole = memoryview(source.read_buffer())
            source.seek(0)
        elif not isinstance(source, pa.OSFile):
            self.ahead = PrefetchedFile(source)
        self.source: pa.NativeFile = source if self.ahead is None else pa.PythonFile(self.ahead, mode="r")
        self.read_at = source.read_at if self.ahead is None else self.ahead.read_at

    def fetch_footer(self) -> None:
        """Fetch the footer of a remote file, with no more requests than Arrow needs to open the file."""
        if self.ahead is None:
            return
        size = self.ahead.size()
        self.ahead.load([(size - _FOOTER_BYTES, size)])
        start = self._find_footer()[0]
        if 0 <= start < size - _FOOTER_BYTES:
            self.ahead.load([(start, size)])

    @cached_property
    def footer_bytes(self) -> bytes:
        """The footer as stored, of a file that Arrow has opened."""
        start, end = self._find_footer()
        return bytes(self.read_at(end - start, start))

    @cached_property
    def footer(self) -> ThriftStruct:
        """The decoded footer. It is decoded once, because a file may have thousands of row groups."""
        return decode(self.footer_bytes)

    def _find_footer(self) -> tuple[int, int]:
        """Return the offsets of the footer as the end of the file states them."""
        end = max(0, self.source.size() - _END_BYTES)
        length = int.from_bytes(bytes(self.read_at(_END_BYTES, end))[:4], "little")
        return end - length, end
