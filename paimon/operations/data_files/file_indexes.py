"""Read the file indexes of data files: embedded in the manifest, or from the `.index` file next to a data file.

Invariant: of an `.index` file, the head and the indexes that a condition needs are read, and nothing else. An `.index`
file never changes, so the cache of the engine keeps its head and its small indexes.
Source: `FileIndexEvaluator`, `FileIndexPredicate`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import pyarrow as pa
from attrs import frozen

from paimon.domain.deletion.row_slice import RowSelection
from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.index.bloom_filter import BloomFilter
from paimon.domain.index.container import REBUILD_HINT, IndexEntry, decode_head, read_head_length
from paimon.domain.index.select_rows import FileIndexes
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.paths import join_path
from paimon.domain.predicate.expression import Predicate
from paimon.domain.types.data_types import DataType
from paimon.ports.engine import Engine

_FIRST_BYTES = 8_192
"""The first read of an `.index` file, which contains most heads."""
_MOST_CACHED_BYTES = 1 << 20
"""Larger indexes are read for each condition."""
_ENTRY_BYTES = 500
"""The memory of a cached value without its bytes."""
_HEAD, _FILTERS = "head", "bloom filters of"


def index_path(path: str, file: DataFileMeta) -> str | None:
    """Return the path of the `.index` file of a data file at a path; None if it has none."""
    return None if file.index_name is None else join_path(path.rpartition("/")[0], file.index_name)


def select_rows(
    engine: Engine, path: str, file: DataFileMeta, types: Mapping[str, DataType], predicate: Predicate
) -> RowSelection:
    """Return the rows of a data file at a path that a predicate, bound to the columns of the file, can select."""
    if file.embedded_index is not None:
        name = f"the embedded index of {path}"
        return FileIndexes.of(file.embedded_index, name, file.row_count, types).select(predicate)
    index = index_path(path, file)
    assert index is not None
    return _select_by_file(engine, index, file, types, predicate)


def _select_by_file(
    engine: Engine, path: str, file: DataFileMeta, types: Mapping[str, DataType], predicate: Predicate
) -> RowSelection:
    with contextlib.closing(_IndexFile(engine, path)) as source:
        return FileIndexes(path, file.row_count, types, source.read_entries(), source.read_index).select(predicate)


def read_bloom_filters(
    engine: Engine, path: str, file: DataFileMeta, types: Mapping[str, DataType]
) -> Mapping[str, BloomFilter]:
    """Return cached bloom filters of a data file's columns, by its path: most index paths need no joining."""
    if not file.has_indexes:
        return {}
    view = " ".join((_FILTERS, *types, *file.extra_files))
    found = engine.cache.get(path, view)
    if not isinstance(found, dict):
        found = _read_bloom_filters(engine, path, file, types)
        size = sum(len(f.bits) + _ENTRY_BYTES for f in found.values()) + _ENTRY_BYTES
        engine.cache.put(path, found, size, view)
    return found


def _read_bloom_filters(
    engine: Engine, path: str, file: DataFileMeta, types: Mapping[str, DataType]
) -> dict[str, BloomFilter]:
    if file.embedded_index is not None:
        name = f"the embedded index of {path}"
        return FileIndexes.of(file.embedded_index, name, file.row_count, types).open_bloom_filters()
    index = index_path(path, file)
    assert index is not None
    with contextlib.closing(_IndexFile(engine, index, caches=False)) as source:
        return FileIndexes(index, file.row_count, types, source.read_entries(), source.read_index).open_bloom_filters()


def check_indexes(engine: Engine, path: str, file: DataFileMeta, types: Mapping[str, DataType]) -> None:
    """Decode all indexes of a data file at a path; `CorruptTable` if one is damaged. A missing file is no damage."""
    index = index_path(path, file)
    if file.embedded_index is not None:
        FileIndexes.of(file.embedded_index, f"the embedded index of {path}", file.row_count, types).check()
    elif index is not None and engine.files.status(index) is not None:
        with contextlib.closing(_IndexFile(engine, index, caches=False)) as source:
            FileIndexes(index, file.row_count, types, source.read_entries(), source.read_index).check()


class _IndexFile:
    """An `.index` file, which is opened only for what the cache lacks. The caller closes it."""

    def __init__(self, engine: Engine, path: str, *, caches: bool = True) -> None:
        self._engine = engine
        self._path = path
        self._caches = caches
        self._source: pa.NativeFile | None = None
        # the first bytes of the file, if they were read
        self._head = b""

    def read_entries(self) -> tuple[IndexEntry, ...]:
        """Return what the head of the file lists."""
        found = self._engine.cache.get(self._path, _HEAD)
        if not isinstance(found, tuple):
            self._head = _read_head(self._open(), self._path)
            found = decode_head(self._head, self._path)
            self._engine.cache.put(self._path, found, _ENTRY_BYTES * (len(found) + 1), _HEAD)
        return found

    def read_index(self, entry: IndexEntry) -> bytes:
        """Return the bytes of one index; small ones are cached."""
        view = f"index {entry.start}"
        found = self._engine.cache.get(self._path, view)
        if isinstance(found, bytes):
            return found
        source = self._open()
        if not 0 <= entry.start <= entry.start + entry.length <= source.size():
            raise CorruptTable(
                self._path, f"ends inside the index {entry.kind!r} of column {entry.column!r}", hint=REBUILD_HINT
            )
        data = self._head[entry.start : entry.start + entry.length]
        if len(data) < entry.length:
            data += bytes(source.read_at(entry.length - len(data), entry.start + len(data)))
        if self._caches and len(data) <= _MOST_CACHED_BYTES:
            self._engine.cache.put(self._path, data, len(data) + _ENTRY_BYTES, view)
        return data

    def close(self) -> None:
        """Close the file if it is open."""
        if self._source is not None:
            self._source.close()

    def _open(self) -> pa.NativeFile:
        if self._source is None:
            self._source = _open_index(self._engine, self._path)
        return self._source


def _open_index(engine: Engine, path: str) -> pa.NativeFile:
    try:
        return engine.files.open(path)
    except NotFound as error:
        raise CorruptTable(path, "does not exist, but a manifest references it", hint=REBUILD_HINT) from error


def _read_head(source: pa.NativeFile, path: str) -> bytes:
    """Return the first bytes of an index file, at least its head."""
    head = bytes(source.read_at(min(_FIRST_BYTES, source.size()), 0))
    length = read_head_length(head, path)
    return bytes(source.read_at(length, 0)) if len(head) < length <= source.size() else head


@frozen
class IndexContainer:
    """The indexes of a data file: where they are, and what the head of their container lists."""

    # the `.index` file; None: the indexes are in the manifest
    path: str | None
    size_bytes: int
    entries: tuple[IndexEntry, ...]


def read_container(engine: Engine, path: str, file: DataFileMeta) -> IndexContainer | None:
    """Return the container of a data file at a path; None if it has no indexes."""
    if file.embedded_index is not None:
        entries = decode_head(file.embedded_index, f"the embedded index of {path}")
        return IndexContainer(None, len(file.embedded_index), entries)
    index = index_path(path, file)
    if index is None:
        return None
    with _open_index(engine, index) as source:
        return IndexContainer(index, source.size(), decode_head(_read_head(source, index), index))
