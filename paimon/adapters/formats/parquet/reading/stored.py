"""The bytes of a Parquet file as its reader takes them: where they lie, or fetched ahead where that is far away.

Law: ranges that lie close together are one request, and nothing is asked for twice within a piece: what was fetched
ahead is what pages are judged by, and what Arrow decodes.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from functools import cached_property

import pyarrow as pa

from paimon.adapters.formats.parquet.thrift import ThriftStruct, decode

_HOLE_BYTES = 8 * 1024
_RANGE_BYTES = 32 * 1024 * 1024
"""As Arrow's own fetching ahead has it."""
_END_BYTES = 8
"""The length of the footer, and the magic."""


class Ahead(io.RawIOBase):
    """A seekable file of which whole ranges are fetched before they are read."""

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._size = source.size()
        self._position = 0
        self._held: list[tuple[int, bytes]] = []

    def load(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch the ranges from start to end; what was held before is let go."""
        self._held = []
        within = ((max(0, start), min(end, self._size)) for start, end in ranges)
        for start, end in _joined(sorted(r for r in within if r[0] < r[1])):
            self._held.append((start, self._source.read_at(end - start, start)))

    def read_at(self, size: int, start: int) -> bytes:
        """The bytes at a place, fewer only at the end."""
        for begun, data in self._held:
            if begun <= start and start + size <= begun + len(data):
                return data[start - begun : start - begun + size]
        return bytes(self._source.read_at(size, start))

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self.read_at(wanted, self._position) if wanted else b""
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; answers the position."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """Bytes of the file."""
        return int(self._size)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start <= joined[-1][1] + _HOLE_BYTES and end - joined[-1][0] <= _RANGE_BYTES:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


class Stored:
    """A file's bytes for who looks at headers: `whole` where they are in memory, or are mapped."""

    def __init__(self, source: pa.NativeFile) -> None:
        self.ahead: Ahead | None = None
        self.whole: memoryview | None = None
        if isinstance(source, pa.MemoryMappedFile | pa.BufferReader):
            source.seek(0)
            self.whole = memoryview(source.read_buffer())
            source.seek(0)
        elif not isinstance(source, pa.OSFile):
            self.ahead = Ahead(source)
        self.source: pa.NativeFile = source if self.ahead is None else pa.PythonFile(self.ahead, mode="r")
        self.read_at = source.read_at if self.ahead is None else self.ahead.read_at

    @cached_property
    def footer(self) -> ThriftStruct:
        """The footer as it stands, decoded once: a file may have row groups by the thousand."""
        size = self.source.size()
        (length,) = struct.unpack("<I", bytes(self.read_at(_END_BYTES, size - _END_BYTES))[:4])
        return decode(bytes(self.read_at(length, size - _END_BYTES - length)))
