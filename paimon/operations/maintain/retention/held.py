"""Which of some files anybody still needs.

Law: a file is needed where a holder's state has it or its metadata names it. Metadata that cannot be read raises,
unless its holder went away meanwhile; then all holders are looked up anew, because what it held may be held by one that
came after it. Source: `OrphanFilesClean.collectWithoutDataFile`, `FileDeletionBase`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.maintenance.reach.columnar import Mentions, ever_live, mentions
from paimon.domain.manifest.columns import Mask, entry_columns
from paimon.domain.manifest.entries import ManifestFileMeta
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.maintain.retention.holders import Held, Holder, shows_delta
from paimon.operations.read.manifests import read_index_manifest, read_manifest_columns, read_manifest_list
from paimon.ports.engine import Engine

_ENTRIES_AT_ONCE = 200_000
"""Manifest entries that are in memory at a time."""
_LOOKS = 20
"""How often holders may go away while they are asked, before this is given up."""


def held_files(
    engine: Engine,
    holders: Sequence[Holder],
    names: pa.Array,
    again: Callable[[], Sequence[Holder]],
    partitions: frozenset[bytes] | None = None,
) -> Mask:
    """Marks those file names that the holders need.

    Parameters
    ----------
    names : array of string
        File names, each once.
    again : callable
        Those who hold files by now, where some of `holders` went away.
    partitions : frozenset of bytes, optional
        Where the data files among them lie: manifests that hold no entry of these are not read.

    Raises
    ------
    CorruptTable, StorageError
        Something that a holder needs cannot be read.
    """
    looks = 1
    while True:
        try:
            return _Survey(engine, partitions).held(holders, names)
        except CorruptTable:
            if looks == _LOOKS or all(engine.files.status(h.path) is not None for h in holders):
                raise
            looks += 1
            holders = again()


@frozen(eq=False)
class _Part:
    """What one manifest list, or index manifest, contributes: names, and data manifests."""

    names: tuple[str, ...]
    manifests: tuple[ManifestFileMeta, ...] = ()


class _Survey:
    """One pass over the metadata of all holders; each list and manifest is read once."""

    def __init__(self, engine: Engine, partitions: frozenset[bytes] | None) -> None:
        self._engine = engine
        self._partitions = partitions
        self._parts: dict[str, _Part] = {}
        self._wanted: dict[str, tuple[TableDefinition, ManifestFileMeta]] = {}

    def held(self, holders: Sequence[Holder], names: pa.Array) -> Mask:
        """See `held_files`."""
        named: set[str] = set()
        states: list[frozenset[str]] = []
        for holder in holders:
            for parts in self._groups(holder):
                manifests = [m for part in parts for m in part.manifests]
                named.update(name for part in parts for name in part.names)
                self._wanted |= {m.file_name: (holder.table, m) for m in manifests if self._may_hold(holder.table, m)}
                states.append(frozenset(m.file_name for m in manifests))
            named.update(_single_files(holder))
        mask: Mask = pc.is_in(names, pa.array(sorted(named), pa.string())).to_numpy(zero_copy_only=False)
        return mask | ever_live(states, self._mentions(names), len(names))

    def _groups(self, holder: Holder) -> Iterator[list[_Part]]:
        """The lists that make up one state each, and those whose names alone count."""
        table, snapshot = holder.table, holder.snapshot
        changelog = snapshot.changelog_manifest_list
        if holder.held is Held.CHANGES:
            yield from self._changes(table, snapshot)
            return
        yield [self._list(table, snapshot.base_manifest_list), self._list(table, snapshot.delta_manifest_list)]
        if snapshot.index_manifest is not None:
            yield [self._index(table, snapshot.index_manifest)]
        if changelog is not None and holder.held is Held.ALL:
            yield from self._unless_missing(table, changelog)  # a rollback to a tag in Java brings it back without

    def _changes(self, table: TableDefinition, snapshot: Snapshot) -> Iterator[list[_Part]]:
        if snapshot.changelog_manifest_list is not None:
            yield [self._list(table, snapshot.changelog_manifest_list)]
            return
        # Where the table has a producer, these lists went with the snapshot.
        for parts in self._unless_missing(table, snapshot.base_manifest_list):
            yield [_Part(part.names) for part in parts]
        for parts in self._unless_missing(table, snapshot.delta_manifest_list):
            yield parts if shows_delta(snapshot) else [_Part(part.names) for part in parts]

    def _unless_missing(self, table: TableDefinition, name: str) -> Iterator[list[_Part]]:
        try:
            part = self._list(table, name)
        except CorruptTable as error:
            if not isinstance(error.__cause__, NotFound):
                raise
            return
        yield [part]

    def _list(self, table: TableDefinition, name: str) -> _Part:
        if name not in self._parts:
            metas = read_manifest_list(self._engine, table, name)
            self._parts[name] = _Part((name, *(m.file_name for m in metas)), metas)
        return self._parts[name]

    def _index(self, table: TableDefinition, name: str) -> _Part:
        if name not in self._parts:
            entries = read_index_manifest(self._engine, table, name)
            self._parts[name] = _Part((name, *(e.file_name for e in entries)))
        return self._parts[name]

    def _may_hold(self, table: TableDefinition, manifest: ManifestFileMeta) -> bool:
        types = [f.type for f in table.schema.partition_fields]
        if self._partitions is None or not types:
            return self._partitions is None or bool(self._partitions)
        return any(may_hold_partition(manifest, deserialize(p, types), types) for p in self._partitions)

    def _mentions(self, names: pa.Array) -> Mapping[str, Mentions]:
        found: dict[str, Mentions] = {}
        for table, metas in self._batches():
            parts = read_manifest_columns(self._engine, table, [m.file_name for m in metas])
            counts = [count for part in parts for count in part.counts]
            said = mentions(entry_columns(parts), counts, names)
            found |= dict(zip((m.file_name for m in metas), said, strict=True))
        return found

    def _batches(self) -> Iterator[tuple[TableDefinition, list[ManifestFileMeta]]]:
        batch: list[ManifestFileMeta] = []
        entries = 0
        last: TableDefinition | None = None
        for table, meta in self._wanted.values():
            if last is not None and batch and (table is not last or entries > _ENTRIES_AT_ONCE):
                yield last, batch
                batch, entries = [], 0
            last = table
            batch.append(meta)
            entries += meta.num_added_files + meta.num_deleted_files
        if last is not None and batch:
            yield last, batch


def _single_files(holder: Holder) -> list[str]:
    statistics = holder.snapshot.statistics
    return [] if statistics is None or holder.held is Held.CHANGES else [statistics]
