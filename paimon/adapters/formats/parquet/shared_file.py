"""The bytes of a Parquet file for another decoder, such as that of a query engine.

Invariant: a decoder that obeys the footer gets no byte of a requested column before the pages of its chunk are checked:
their sizes, their numbers of values, and their checksums. A chunk is checked once as long as its file keeps its inode,
size and times. Only flat columns are shared whose stored type is the canonical one, so that both decoders return the
same values.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import define, field, frozen

from paimon.adapters.formats.guards.parquet_batches import Leaf, PageBudget, check_flat_chunk
from paimon.adapters.formats.guards.parquet_footer import open_parquet_file
from paimon.adapters.formats.guards.parquet_pages import ChunkPages, Stored
from paimon.adapters.formats.parquet.known_files import Identity, identify_file
from paimon.adapters.formats.parquet.leaf_columns import find_first_leaves
from paimon.adapters.formats.parquet.reader import corrupt_files
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField
from paimon.ports.formats import ShareRequest

_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
"""The codecs that each decoder has. LZ4 has two forms, which decoders confuse, and Spark lacks BROTLI."""
_ENCODINGS = frozenset({"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"})
"""The encodings that each decoder has for all types that may have them."""
_FLOATING = frozenset({"FLOAT", "DOUBLE"})
"""With a bloom filter, an engine may miss -0.0 where it looks for 0.0, and NaN in other bits."""
_FOREIGN = b"org.apache.spark."
"""Spark's keys begin so. Its own reader may shift dates and times of its files, which this library does not."""
_MOST_GROUPS = 10_000
_CHECK_BYTES = 400
"""The memory of the check of one chunk."""
_CHUNK_BYTES = 150
"""The memory of one chunk of a request."""
_MOST_REQUESTS = 32
"""For how many different requests the chunks of a file are kept."""


@frozen
class _Chunk:
    """A requested column in a row group, with the offsets of its pages."""

    group: int
    start: int
    end: int
    rows: int


@define(eq=False)
class PageChecks:
    """What is known of a file: chunks of earlier requests, checked pages with their sizes. Thread-safe."""

    identity: Identity
    size_bytes: int
    _pages: dict[tuple[int, int, int], ChunkPages] = field(factory=dict, init=False)
    _requests: dict[Hashable, tuple[_Chunk, ...]] = field(factory=dict, init=False)

    def find_chunks(self, request: Hashable) -> tuple[_Chunk, ...] | None:
        """Return the chunks of a request that the file fulfils; None if it is not known."""
        return self._requests.get(request)

    def add_chunks(self, request: Hashable, chunks: tuple[_Chunk, ...]) -> None:
        """Record the chunks of a request that the file fulfils."""
        if len(self._requests) >= _MOST_REQUESTS:
            self._requests.clear()
        self._requests[request] = chunks

    def find(self, chunk: _Chunk) -> ChunkPages | None:
        """Return the pages of a chunk; None if it is not checked."""
        return self._pages.get((chunk.start, chunk.end, chunk.rows))

    def add(self, chunk: _Chunk, pages: ChunkPages) -> None:
        """Record that a chunk is checked."""
        self._pages[chunk.start, chunk.end, chunk.rows] = pages


@define(eq=False)
class SharedParquetFile:
    """`paimon.ports.queries.SharedFile`: a state machine that knows which chunks are checked."""

    path: str
    size: int
    # checks of earlier readers of the same file, to which this one adds its own
    checks: PageChecks | None
    _stored: Stored
    _chunks: tuple[_Chunk, ...]
    _budgets: Mapping[int, PageBudget]
    _starts: list[int] = field(init=False)
    _whole: memoryview | None = field(init=False)
    _checked: set[int] = field(factory=set, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._starts = [chunk.start for chunk in self._chunks]
        self._whole = self._stored.whole

    @property
    def checks_bytes(self) -> int:
        """The memory of the checks of all chunks."""
        return 0 if self.checks is None else self.checks.size_bytes

    def read_at(self, size: int, start: int) -> bytes:
        """Return bytes of the file; see `paimon.ports.queries.SharedFile`."""
        whole = self._whole
        data = bytes(self._stored.read_at(size, start)) if whole is None else bytes(whole[start : start + size])
        first = max(0, bisect_right(self._starts, start) - 1)
        numbers = range(first, bisect_left(self._starts, start + size))
        unchecked = [n for n in numbers if n not in self._checked and self._chunks[n].end > start]
        if unchecked:
            with corrupt_files(self.path):
                self._check(unchecked, start, data)
        return data

    def _check(self, numbers: Sequence[int], start: int, data: bytes) -> None:
        """Check chunks in the bytes that are returned, or by reading those of which the bytes have a part only."""
        for number in numbers:
            chunk = self._chunks[number]
            pages = None if self.checks is None else self.checks.find(chunk)
            if pages is None:
                pages = self._read_pages(chunk, start, data)
            with self._lock:
                if number not in self._checked:  # two threads may check the same chunk
                    self._budgets[chunk.group].add(pages, chunk.end - chunk.start)
                    self._checked.add(number)
            if self.checks is not None:
                self.checks.add(chunk, pages)

    def _read_pages(self, chunk: _Chunk, start: int, data: bytes) -> ChunkPages:
        """Check the pages of a chunk."""
        if self._whole is not None:
            return check_flat_chunk(self._stored, chunk.start, chunk.end, chunk.rows)
        if not start <= chunk.start <= chunk.end <= start + len(data):
            start, data = chunk.start, bytes(self._stored.read_at(chunk.end - chunk.start, chunk.start))
        return check_flat_chunk(Stored(pa.BufferReader(data)), chunk.start - start, chunk.end - start, chunk.rows)


def share_file(source: pa.NativeFile, request: ShareRequest, most_bytes: int) -> SharedParquetFile | None:
    """Return a file's bytes for another decoder (see `FileSharing`); None if it may return other values."""
    if not isinstance(source, pa.OSFile | pa.MemoryMappedFile | pa.BufferReader):
        return None
    with corrupt_files(request.path):
        stored = Stored(source)
        identity = identify_file(source)
        checks = request.checks if isinstance(request.checks, PageChecks) else None
        checks = None if checks is None or checks.identity != identity else checks
        key = request.fields, request.row_count, tuple(request.constants.items())
        chunks = None if checks is None else checks.find_chunks(key)
        if chunks is None:
            file = open_parquet_file(stored, pre_buffer=False)
            chunks = _find_chunks(file, request)
            if chunks is None:
                return None
            if checks is None and identity is not None:
                columns = file.metadata.num_columns * file.metadata.num_row_groups
                checks = PageChecks(identity, _CHECK_BYTES * columns + _CHUNK_BYTES * columns * _MOST_REQUESTS)
            if checks is not None:
                checks.add_chunks(key, chunks)
        budgets = {group: PageBudget(most_bytes) for group in {chunk.group for chunk in chunks}}
    return SharedParquetFile(request.path, source.size(), checks, stored, chunks, budgets)


def _find_chunks(file: pq.ParquetFile, request: ShareRequest) -> tuple[_Chunk, ...] | None:
    """Return the requested chunks in order; None if another decoder may differ, ValueError for damage."""
    footer = file.metadata
    if footer.num_rows != request.row_count:
        raise ValueError(f"it has {footer.num_rows} rows, but its manifest records {request.row_count}")
    if any(key.startswith(_FOREIGN) for key in footer.metadata or ()):
        return None
    if footer.num_row_groups > _MOST_GROUPS or not _has_stored_types(file.schema_arrow, request.fields):
        return None
    starts = find_first_leaves(file.schema_arrow)
    leaves = [(f.name, Leaf.of(file.schema, starts[f.name])) for f in request.fields]
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    if not all(_is_shareable(group, leaves, request.constants) for group in groups):
        return None
    chunks = [_to_chunk(group, at, leaf) for at, group in enumerate(groups) for _, leaf in leaves]
    chunks.sort(key=lambda chunk: chunk.start)
    if any(chunk.end > following.start for chunk, following in pairwise(chunks)):
        raise ValueError("two columns share bytes")
    return tuple(chunks)


def _has_stored_types(schema: pa.Schema, fields: Sequence[DataField]) -> bool:
    """Return whether the columns are stored in their canonical types, under names that differ in more than case."""
    names = [name.lower() for name in schema.names]
    return len(set(names)) == len(names) and all(
        f.name in schema.names and schema.field(f.name).type == arrow_type(f.type) for f in fields
    )


def _is_shareable(group: pq.RowGroupMetaData, leaves: Sequence[tuple[str, Leaf]], constants: Mapping[str, Any]) -> bool:
    """Return whether each decoder has the codecs, and whether the statistics prove the constants."""
    for name, leaf in leaves:
        column = group.column(leaf.index)
        if not leaf.flat or column.compression not in _CODECS or not _ENCODINGS.issuperset(column.encodings):
            return False
        if column.physical_type == "INT96":  # decoders differ in the times that they wrap
            return False
        if column.physical_type in _FLOATING and getattr(column, "bloom_filter_offset", None) is not None:
            return False
        if name in constants and not _is_constant(column.statistics, constants[name]):
            return False
    return True


def _is_constant(statistics: pq.Statistics | None, value: Any) -> bool:
    if statistics is None or not statistics.has_min_max or not statistics.has_null_count or statistics.null_count:
        return False
    return all(type(bound) is type(value) and bound == value for bound in (statistics.min, statistics.max))


def _to_chunk(group: pq.RowGroupMetaData, number: int, leaf: Leaf) -> _Chunk:
    """Return a flat chunk; ValueError if its values are not as many as rows, or its dictionary is not first."""
    column = group.column(leaf.index)
    start, dictionary = column.data_page_offset, column.dictionary_page_offset
    if column.num_values != group.num_rows:
        raise ValueError(f"column {column.path_in_schema} has {column.num_values} values in {group.num_rows} rows")
    if dictionary is not None and dictionary > start:
        raise ValueError(f"the dictionary of column {column.path_in_schema} is behind its data")
    if dictionary:
        start = dictionary
    return _Chunk(number, start, start + column.total_compressed_size, group.num_rows)
