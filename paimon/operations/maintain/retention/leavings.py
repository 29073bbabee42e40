"""What snapshots, changelogs and tags leave behind when they go, and its removal.

Law: only what nobody holds any more is removed; holders are looked up after whatever went is gone, so that a tag or
branch that was made at the same time is seen, or sees that its snapshot is gone. Metadata that is missing here leaves
files behind, never the other way round. Source: `SnapshotDeletion`, `ChangelogDeletion`, `TagDeletion`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
from attrs import Factory, frozen

from paimon.domain.errors import CorruptTable
from paimon.domain.maintenance.retention.dropped import FileKey, added_files, dropped_files
from paimon.domain.manifest.columns import entry_columns
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.paths import check_within, join
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.file_deletion import delete_files
from paimon.operations.maintain.retention.held import held_files
from paimon.operations.maintain.retention.holders import Holder
from paimon.operations.read.deletion.index_manifest import index_path
from paimon.operations.read.manifests import (
    data_manifests,
    entries_at,
    live_entries,
    read_index_manifest,
    read_manifest_columns,
    read_manifest_list,
)
from paimon.ports.engine import Engine


@frozen(eq=False)
class Leavings:
    """Files that may be needed no more: data files by their keys, metadata files by path, with their names."""

    data: dict[FileKey, None] = Factory(dict)
    metadata: dict[str, str] = Factory(dict)

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not (self.data or self.metadata)


def of_snapshots(
    engine: Engine, table: TableDefinition, gone: Sequence[Snapshot], following: Snapshot | None, keeps_changelogs: bool
) -> Leavings:
    """What expired snapshots leave; `following` is the next that stays.

    Where changelogs stay longer, their files do: those of the producer, or without one what stands for them.
    """
    found = Leavings()
    appends_are_changes = keeps_changelogs and table.options.changelog_producer == "none"
    deltas: list[list[ManifestEntry]] = []
    stretch = (*gone, *([following] if following else []))
    for delta in _entries(engine, table, [s.delta_manifest_list for s in stretch]):
        if delta is None:
            deltas.clear()  # what it brings back cannot be known
        else:
            deltas.append(delta)
    found.data.update(dropped_files(deltas, spare_appended=appends_are_changes))
    if not keeps_changelogs:
        _add_changelogs(engine, table, found, gone)
    for snapshot in gone:
        if not appends_are_changes:
            _add_lists(engine, table, found, [snapshot.base_manifest_list, snapshot.delta_manifest_list])
        _add_index_and_statistics(engine, table, found, snapshot)
    return found


def of_changelogs(engine: Engine, table: TableDefinition, gone: Sequence[Snapshot]) -> Leavings:
    """What expired changelogs leave."""
    found = Leavings()
    _add_changelogs(engine, table, found, gone)
    without = [s for s in gone if s.changelog_manifest_list is None]
    for snapshot in without:
        _add_lists(engine, table, found, [snapshot.base_manifest_list, snapshot.delta_manifest_list])
    deltas = _entries(engine, table, [s.delta_manifest_list for s in without]) if without else []
    found.data.update(dropped_files(delta for delta in deltas if delta is not None))
    return found


def of_tag(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> Leavings:
    """What a deleted tag leaves, where its snapshot is gone too."""
    found = Leavings()
    try:
        live = live_entries(engine, table, data_manifests(engine, table, snapshot))
    except CorruptTable:
        live = []
    found.data.update(added_files(live))
    _add_lists(engine, table, found, [snapshot.base_manifest_list, snapshot.delta_manifest_list])
    _add_index_and_statistics(engine, table, found, snapshot)
    return found


def remove(
    engine: Engine,
    table: TableDefinition,
    leavings: Leavings,
    holders: Sequence[Holder],
    again: Callable[[], Sequence[Holder]],
) -> int:
    """Delete what none of the holders needs, data files first; answers how many files that were.

    `again` answers the holders by now, where some went away while they were asked.
    """
    if leavings.is_empty:
        return 0
    keys, paths = list(leavings.data), list(leavings.metadata)
    names = [key[3] for key in keys] + [leavings.metadata[path] for path in paths]
    asked = pa.array(names, pa.string()).dictionary_encode()
    partitions = frozenset(key[0] for key in keys)
    places = asked.indices.to_numpy(zero_copy_only=False)
    held = held_files(engine, holders, asked.dictionary, again, partitions)[places]
    free = np.flatnonzero(~held)
    gone = [keys[i] for i in free if i < len(keys)]
    files = _paths(table, gone)
    files += [paths[i - len(keys)] for i in free if i >= len(keys)]
    if files:
        delete_files(engine, files)
    if table.options.snapshot_clean_empty_directories:
        _remove_empty_directories(engine, table, gone)
    return len(files)


def _entries(engine: Engine, table: TableDefinition, lists: Sequence[str]) -> list[list[ManifestEntry] | None]:
    """The entries that each of some lists leads to, in their order; None for one that cannot be read (any more)."""
    try:
        return list(_entries_at_once(engine, table, lists))
    except CorruptTable:
        if len(lists) == 1:
            return [None]
        return [_entries(engine, table, [name])[0] for name in lists]


def _entries_at_once(engine: Engine, table: TableDefinition, lists: Sequence[str]) -> Iterator[list[ManifestEntry]]:
    manifests = [[m.file_name for m in read_manifest_list(engine, table, name)] for name in lists]
    parts = read_manifest_columns(engine, table, [name for names in manifests for name in names])
    entries = iter(entries_at(entry_columns(parts)))
    counts = iter([count for part in parts for count in part.counts])
    for names in manifests:
        yield list(islice(entries, sum(islice(counts, len(names)))))


def _add_changelogs(engine: Engine, table: TableDefinition, found: Leavings, gone: Sequence[Snapshot]) -> None:
    lists = [s.changelog_manifest_list for s in gone if s.changelog_manifest_list is not None]
    for entries in _entries(engine, table, lists) if lists else ():
        found.data.update(added_files(entries or ()))
    _add_lists(engine, table, found, lists)


def _add_lists(engine: Engine, table: TableDefinition, found: Leavings, lists: Iterable[str]) -> None:
    for name in lists:
        try:
            manifests = [m.file_name for m in read_manifest_list(engine, table, name)]
        except CorruptTable:
            manifests = []
        found.metadata.update({table.paths.manifest(n): n for n in (name, *manifests)})  # a list that is there is whole


def _add_index_and_statistics(engine: Engine, table: TableDefinition, found: Leavings, snapshot: Snapshot) -> None:
    if snapshot.index_manifest is not None:
        source = table.paths.manifest(snapshot.index_manifest)
        try:
            entries = read_index_manifest(engine, table, snapshot.index_manifest)
            found.metadata.update({index_path(table, entry, source): entry.file_name for entry in entries})
        except CorruptTable:
            pass
        found.metadata[source] = snapshot.index_manifest
    if snapshot.statistics is not None:
        found.metadata[table.paths.statistics(snapshot.statistics)] = snapshot.statistics


def _paths(table: TableDefinition, keys: Sequence[FileKey]) -> list[str]:
    """Where files lie; those outside the roots that the caller allowed are left alone."""
    roots = (table.location, *table.allowed_roots)
    buckets = BucketPaths.of(table)
    directories = {k[:3]: k[2] if k[2] is not None else buckets.directory(k[0], k[1]) for k in keys}
    allowed = {place: directory for place, directory in directories.items() if _is_within(directory, roots)}
    return [join(allowed[key[:3]], key[3]) for key in keys if key[:3] in allowed]


def _is_within(directory: str, roots: Sequence[str]) -> bool:
    try:
        check_within(directory, roots, directory)
    except CorruptTable:
        return False
    return True


def _remove_empty_directories(engine: Engine, table: TableDefinition, keys: Sequence[FileKey]) -> None:
    """Remove the directories of buckets, and of partitions, that hold nothing any more."""
    buckets = BucketPaths.of(table)
    level = {buckets.directory(key[0], key[1]) for key in keys if key[2] is None}
    remove_if_empty(engine, level, len(table.schema.partition_keys))


def remove_if_empty(engine: Engine, directories: Collection[str], partition_levels: int) -> None:
    """Remove the directories of buckets that hold nothing, and then those of partitions above them."""
    level = set(directories)
    for _ in range(1 + partition_levels):
        if level:
            engine.files.delete(sorted(level))
        level = {d.rpartition("/")[0] for d in level if engine.files.status(d) is None}
