"""What is known of Parquet files that were read before: footers, batches that fit, and which checksums agree.

Invariant: knowledge of a file is used only while the file keeps its inode, size and times. Nothing is known of files
that have none: those in memory and on object stores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from itertools import product
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import define, field, frozen

from paimon.adapters.formats.guards.parquet_batches import BatchPlan
from paimon.adapters.formats.guards.parquet_pages import Stored
from paimon.adapters.formats.parquet.cut_pages import PageIndex
from paimon.adapters.formats.parquet.leaf_columns import find_first_leaves, find_wanted_leaves
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.ports.cache import ObjectCache

Identity: TypeAlias = tuple[int, ...]
"""Device, inode, size and times of a file. They change when the file is written."""
_VIEW = "footer of Parquet"
_FILE_BYTES = 8_000
_CHUNK_BYTES = 3_000
"""The memory of a file, and of each column in each row group with its page index, measured with pyarrow 26."""
_MOST_BATCHES = 48
"""For how many different reads of a file the rows of a batch are kept, and for how many the columns."""


@frozen(eq=False)
class SelectedColumns:
    """The columns that a read needs."""

    # positions of their leaf columns
    leaves: tuple[int, ...]
    # paths of these leaf columns
    paths: tuple[str, ...]
    # positions of leaf columns that are not inside of others
    outer: frozenset[int]
    # the columns in their canonical types
    schema: pa.Schema


@define(eq=False)
class KnownFile:
    """A file that was opened before. All methods are thread-safe."""

    # what the file is recognized by; None if it cannot be recognized
    identity: Identity | None
    footer: pq.FileMetaData
    # the footer with which Arrow decodes: INT96 is twelve bytes there
    decoding_footer: pq.FileMetaData
    schema: pa.Schema
    # the column chunks whose checksums were compared, by row group and leaf column
    _compared: set[tuple[int, int]] = field(factory=set, init=False)
    # None: not read yet
    _page_index: PageIndex | Literal[False] | None = field(default=None, init=False)
    _plans: dict[Hashable, BatchPlan] = field(factory=dict, init=False)
    _selected: dict[tuple[DataField, ...], SelectedColumns] = field(factory=dict, init=False)

    @property
    def size_bytes(self) -> int:
        """The memory of the value."""
        return _FILE_BYTES + _CHUNK_BYTES * int(self.footer.num_columns * max(1, self.footer.num_row_groups))

    def find_page_index(self, stored: Stored) -> PageIndex | None:
        """Return the page index of the file; None if there is none, or it is not used."""
        if self._page_index is None:
            is_plain = self.decoding_footer is self.footer
            found = PageIndex.of(stored, self.footer.num_columns * self.footer.num_row_groups) if is_plain else None
            self._page_index = found or False
        return self._page_index or None

    def select_columns(self, fields: tuple[DataField, ...]) -> SelectedColumns:
        """Return the columns that a read of some fields needs; they are found once for each read that is remembered."""
        found = self._selected.get(fields)
        if found is None:
            leaves = tuple(find_wanted_leaves(self.schema, fields))
            paths = tuple(self.footer.schema.column(leaf).path for leaf in leaves)
            first = find_first_leaves(self.schema)
            outer = frozenset(first[f.name] for f in self.schema if not pa.types.is_nested(f.type))
            found = SelectedColumns(leaves, paths, outer, arrow_schema(fields))
            if len(self._selected) >= _MOST_BATCHES:
                self._selected.clear()
            self._selected[fields] = found
        return found

    def plan_batches(self, read: Hashable, plan: Callable[[], BatchPlan]) -> BatchPlan:
        """Return how batches are decoded; `plan` is called once for all that `read` names."""
        if self.identity is None:
            return plan()
        found = self._plans.get(read)
        if found is None:
            found = plan()
            if len(self._plans) >= _MOST_BATCHES:
                self._plans.clear()
            self._plans[read] = found
        return found

    def needs_checksums(self, groups: Sequence[int], leaves: Sequence[int]) -> bool:
        """Return whether checksums of these columns were not compared since the file was written."""
        return not self._compared.issuperset(product(groups, leaves))

    def note_checksums(self, groups: Sequence[int], leaves: Sequence[int]) -> None:
        """Remember that all pages of these columns agree with their checksums. Remote bytes are sent again."""
        if self.identity is not None:
            self._compared.update(product(groups, leaves))


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
