"""Select the leaf columns of a Parquet file that hold the wanted columns and the wanted parts of nested columns.

Invariant: a leaf is read if and only if a wanted field covers it. A wanted field that the file lacks selects nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import define, field, frozen

from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField, DataType
from paimon.ports.cache import ObjectCache


def count_leaves(kind: pa.DataType) -> int:
    """Return the number of leaf columns of a type as read from a file."""
    return sum(count_leaves(kind.field(i).type) for i in range(kind.num_fields)) if kind.num_fields else 1


def find_first_leaves(schema: pa.Schema) -> dict[str, int]:
    """Return the position of the first leaf of each top-level column."""
    starts, leaf = {}, 0
    for column in schema:
        starts[column.name] = leaf
        leaf += count_leaves(column.type)
    return starts


def find_wanted_leaves(schema: pa.Schema, fields: Sequence[DataField]) -> list[int]:
    """Return the positions of all leaves to decode."""
    starts = find_first_leaves(schema)
    leaves: list[int] = []
    for wanted in fields:
        if wanted.name in starts:
            leaves += _find_leaves(schema.field(wanted.name).type, wanted.type, starts[wanted.name])
    return leaves


def _find_leaves(kind: pa.DataType, wanted: DataType, start: int) -> list[int]:
    """Return the leaves from `start` on that a wanted part needs; at least one of each struct, for its nulls."""
    parts = _parts(kind, wanted)
    if parts is None:
        return list(range(start, start + count_leaves(kind)))
    leaves: list[int] = []
    at = start
    for child, part in parts:
        if part is not None:
            leaves += _find_leaves(child, part, at)
        at += count_leaves(child)
    return leaves or [start]


def _parts(kind: pa.DataType, wanted: DataType) -> list[tuple[pa.DataType, DataType | None]] | None:
    """Return the children of a stored type with the wanted type of each; None if all of it is wanted."""
    if not any(has_shape(kind) for has_shape in _shapes(wanted)):
        raise ValueError(f"a column of {type(wanted).__name__} is stored as {kind}")
    match wanted:
        case dt.RowType(fields=fields):
            by_name = {f.name: f.type for f in fields}
            return [(child.type, by_name.get(child.name)) for child in kind]
        case dt.ArrayType(element=element) | dt.VectorType(element=element):
            return [(kind.value_type, element)]
        case dt.MapType(key=key, value=value):
            return [(kind.key_type, key), (kind.item_type, value)]
        case dt.MultisetType(element=element):
            return [(kind.key_type, element), (kind.item_type, dt.IntType())]
    return None


def _shapes(wanted: DataType) -> tuple[Callable[[pa.DataType], bool], ...]:
    """Return the conditions of which a stored type must meet one."""
    match wanted:
        case dt.RowType() | dt.VariantType():
            return (pa.types.is_struct,)
        case dt.ArrayType() | dt.VectorType():
            return (pa.types.is_list,)
        case dt.MapType() | dt.MultisetType():
            return (pa.types.is_map,)
    return (lambda kind: not pa.types.is_nested(kind),)


# What is known of Parquet files that were read before: their footers, and how many rows fit into a batch.
#
# Invariant: knowledge of a file is used only while the file keeps its inode, size and times. Nothing is known of files
# that have none: those in memory and on object stores.


Identity: TypeAlias = tuple[int, ...]
"""Device, inode, size and times of a file. They change when the file is written."""
_VIEW = "footer of Parquet"
_FILE_BYTES = 8_000
_CHUNK_BYTES = 2_200
"""The memory of a file, and of each column in each row group, measured with pyarrow 26."""
_MOST_BATCHES = 48
"""For how many different reads of a file the rows of a batch are kept, and for how many the columns."""


@frozen(eq=False)
class SelectedColumns:
    """The columns that a read needs."""

    # positions of their leaf columns
    leaves: tuple[int, ...]
    # paths of these leaf columns
    paths: tuple[str, ...]
    # the columns in their canonical types
    schema: pa.Schema


@define(eq=False)
class KnownFile:
    """A file that was opened before. All methods are thread-safe."""

    # what the file is recognized by; None if it cannot be recognized
    identity: Identity | None
    footer: pq.FileMetaData
    # footer to decode values with; INT96 is twelve bytes there
    decoded: pq.FileMetaData
    schema: pa.Schema
    _fitting: dict[Hashable, int] = field(factory=dict, init=False)
    _selected: dict[tuple[DataField, ...], SelectedColumns] = field(factory=dict, init=False)

    @property
    def size_bytes(self) -> int:
        """The memory of the value."""
        return _FILE_BYTES + _CHUNK_BYTES * int(self.footer.num_columns * max(1, self.footer.num_row_groups))

    def select_columns(self, fields: tuple[DataField, ...]) -> SelectedColumns:
        """Return the columns that a read of some fields needs; they are found once for each read that is remembered."""
        found = self._selected.get(fields)
        if found is None:
            leaves = tuple(find_wanted_leaves(self.schema, fields))
            paths = tuple(self.footer.schema.column(leaf).path for leaf in leaves)
            found = SelectedColumns(leaves, paths, arrow_schema(fields))
            if len(self._selected) >= _MOST_BATCHES:
                self._selected.clear()
            self._selected[fields] = found
        return found

    def find_fitting_rows(self, read: Hashable, count: Callable[[], int]) -> int:
        """Return how many rows of a batch fit into memory, at least one.

        The number is cached by `read`, which is everything that it depends on. `count` checks the pages and counts the
        rows.
        """
        if self.identity is None:
            return count()
        found = self._fitting.get(read)
        if found is None:
            found = count()
            if len(self._fitting) >= _MOST_BATCHES:
                self._fitting.clear()
            self._fitting[read] = found
        return found


def identify_file(source: pa.NativeFile) -> Identity | None:
    """Return what a local file is recognized by; None for other files."""
    if not isinstance(source, pa.OSFile | pa.MemoryMappedFile):
        return None
    found = os.fstat(source.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def find_known_file(cache: ObjectCache | None, path: str, identity: Identity | None) -> KnownFile | None:
    """Return what is known of a file with its current identity; None if it is unknown, or was written since."""
    found = None if cache is None or identity is None else cache.get(path, _VIEW)
    return found if isinstance(found, KnownFile) and found.identity == identity else None


def remember_file(cache: ObjectCache | None, path: str, file: KnownFile) -> None:
    """Keep what is known of a file, if it can be recognized."""
    if cache is not None and file.identity is not None:
        cache.put(path, file, file.size_bytes, _VIEW)
