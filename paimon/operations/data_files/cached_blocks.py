"""Keep blocks of remote files in the cache of the engine, so that lookups do not request them again.

Invariant: a block is what the storage returned for its range, because data files never change. Local files are opened
as they are: the operating system caches them. Where all blocks are cached, no request is sent, not even to open a file.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.errors import StorageError
from paimon.ports.cache import ObjectCache
from paimon.ports.files import WHOLE_BYTES, FileIO, FileStatus, OutputFile, PutOutcome, RangeInput

_BLOCK_BYTES = 64 * 1024
_MOST_CACHED_BYTES = 4 * 1024 * 1024
"""Longer reads are not cached: they would evict what lookups need."""
_ENTRY_BYTES = 300
"""The memory of a cached value without its bytes."""
_LOCAL = (pa.OSFile, pa.MemoryMappedFile, pa.BufferReader)
_SIZE = "size of the remote file"


class CachedBlockFiles:
    """See `paimon.ports.files.FileIO`. Open files read blocks from a cache first."""

    def __init__(self, files: FileIO, cache: ObjectCache) -> None:
        self._files = files
        self._cache = cache

    def open(self, path: str) -> pa.NativeFile:
        """Open a file; a remote one of known size is opened when a block is missing."""
        size = self._cache.get(path, _SIZE)
        source: pa.NativeFile | None = None
        if not isinstance(size, int):
            source = self._files.open(path)
            if isinstance(source, _LOCAL):
                return source
            size = int(source.size())
            self._cache.put(path, size, _ENTRY_BYTES, _SIZE)
        return pa.PythonFile(_BlockInput(self._files, self._cache, path, size, source), mode="r")

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Read a whole file."""
        return self._files.read(path, max_bytes)

    def create(self, path: str) -> OutputFile:
        """Begin a file."""
        return self._files.create(path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Write a file unless it exists."""
        return self._files.put_if_absent(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        self._files.replace(path, data)

    def list(self, path: str) -> Sequence[FileStatus]:
        """List a directory."""
        return self._files.list(path)

    def status(self, path: str) -> FileStatus | None:
        """Return what is known of a file."""
        return self._files.status(path)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files."""
        self._files.delete(paths)


class _BlockInput(RangeInput):
    """A seekable file whose blocks are cached; adjacent missing blocks are one request."""

    def __init__(self, files: FileIO, cache: ObjectCache, path: str, size: int, source: pa.NativeFile | None) -> None:
        super().__init__(size)
        self._files = files
        self._cache = cache
        self._path = path
        self._source = source

    def read_at(self, size: int, start: int) -> bytes:
        """Return a range, of cached blocks unless it is long."""
        if size > _MOST_CACHED_BYTES:
            return self._request(start, size)
        blocks = self._read_blocks(start // _BLOCK_BYTES, (start + size - 1) // _BLOCK_BYTES)
        return blocks[start % _BLOCK_BYTES : start % _BLOCK_BYTES + size]

    def _read_blocks(self, first: int, last: int) -> bytes:
        found = [self._cache.get(self._path, f"block {number}") for number in range(first, last + 1)]
        missing = [first + place for place, block in enumerate(found) if block is None]
        if missing:
            start = missing[0] * _BLOCK_BYTES
            data = self._request(start, min(self._size, (missing[-1] + 1) * _BLOCK_BYTES) - start)
            for number in range(missing[0], missing[-1] + 1):
                block = data[(number - missing[0]) * _BLOCK_BYTES :][:_BLOCK_BYTES]
                self._cache.put(self._path, block, len(block) + _ENTRY_BYTES, f"block {number}")
                found[number - first] = block
        return b"".join(block for block in found if isinstance(block, bytes))

    def _request(self, start: int, length: int) -> bytes:
        if self._source is None:
            self._source = self._files.open(self._path)
        data = bytes(self._source.read_at(length, start))
        if len(data) != length:
            raise StorageError(self._path, f"{len(data)} of {length} bytes at offset {start} were read")
        return data

    def close(self) -> None:
        """Close the file if it was opened."""
        if self._source is not None and not self.closed:
            self._source.close()
        super().close()
