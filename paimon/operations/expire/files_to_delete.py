"""Find the files that expired snapshots, changelogs and deleted tags referenced, and delete those that nothing needs.

Invariant: only files without a reference are deleted. References are read after the expired objects are gone. So a tag
or branch that is created concurrently either is seen here, or fails because its snapshot is gone. Missing metadata
leaves files behind; it never deletes too many.

Source: `SnapshotDeletion`, `ChangelogDeletion`, `TagDeletion`.
"""

# A file may be needed by any snapshot, changelog, tag or branch, so it cannot be deleted with the first one that named
# it. Two steps keep the check cheap. First, candidates: what the expired objects named and their successor does not.
#
#     snapshot 5   + a + b          expired, with 6
#     snapshot 6   + c - a          its delta removed a: candidate a
#     snapshot 7   + d - b - c      stays; its delta removed b and c: candidates b and c
#
# So candidates come from deltas alone, without the live files of any snapshot. If a delta cannot be read, the ones
# before it are forgotten: it may have added one of their files again. Manifests, lists, index files and statistics of
# the expired snapshots are candidates as they are.
#
# Second, references (`references.py`): names that a tag, a branch, a remaining snapshot or a changelog needs are struck
# off. The references are read after the expired objects are gone. A tag that is created later is either seen here,
# or fails, because it reads its snapshot again after it was written. If a reference disappears during the check, all
# are read again.
#
# Data files are deleted before the manifests that name them, so that an interrupted expiry can be repeated.

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
from attrs import Factory, frozen

from paimon.domain.errors import CorruptTable, PaimonWarning
from paimon.domain.maintenance.snapshot_expiry import FileKey, find_removed_files, list_added_files
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.manifest.entry_columns import entry_columns
from paimon.domain.markup import format_count
from paimon.domain.paths import is_within, join_path
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.external_paths import ENTROPY_LEVELS, is_entropy
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.expire.referenced_files import find_referenced_files
from paimon.operations.expire.references import Reference
from paimon.operations.metadata.manifests import (
    index_path,
    read_data_manifests,
    read_index_manifest,
    read_live_entries,
    read_manifest_columns,
    read_manifest_list,
    to_entries,
)
from paimon.operations.metadata.metadata_files import delete_files
from paimon.operations.table_context import TableContext


@frozen(eq=False)
class FilesToDelete:
    """Files that may not be needed any more."""

    # data files in the order of deletion; a dict that serves as an ordered set
    data: dict[FileKey, None] = Factory(dict)
    # the names of metadata files, by path
    metadata: dict[str, str] = Factory(dict)

    @property
    def is_empty(self) -> bool:
        """Whether there are no files."""
        return not (self.data or self.metadata)


def find_files_of_snapshots(
    context: TableContext, expired: Sequence[Snapshot], following: Snapshot | None, keeps_changelogs: bool
) -> FilesToDelete:
    """Return the files that only expired snapshots may reference; check them against all references before deletion.

    `following` is the next snapshot, if it stays. With `keeps_changelogs`, changelogs live longer than snapshots:
    changelog files stay, and without a changelog producer the deltas stay.
    """
    found = FilesToDelete()
    appends_are_changes = keeps_changelogs and context.options.changelog_producer == "none"
    deltas: list[list[ManifestEntry]] = []
    snapshots = (*expired, *([following] if following else []))
    for delta in _read_entries(context, [s.delta_manifest_list for s in snapshots]):
        if delta is None:
            deltas.clear()  # it may have added files again that earlier deltas removed
        else:
            deltas.append(delta)
    found.data.update(find_removed_files(deltas, keep_appended=appends_are_changes))
    if not keeps_changelogs:
        _add_changelogs(context, found, expired)
    for snapshot in expired:
        if not appends_are_changes:
            _add_lists(context, found, [snapshot.base_manifest_list, snapshot.delta_manifest_list])
        _add_index_and_statistics(context, found, snapshot)
    return found


def find_files_of_changelogs(context: TableContext, expired: Sequence[Snapshot]) -> FilesToDelete:
    """Return the files that only expired changelogs may reference."""
    found = FilesToDelete()
    _add_changelogs(context, found, expired)
    without = [s for s in expired if s.changelog_manifest_list is None]
    for snapshot in without:
        _add_lists(context, found, [snapshot.base_manifest_list, snapshot.delta_manifest_list])
    deltas = _read_entries(context, [s.delta_manifest_list for s in without]) if without else []
    found.data.update(find_removed_files(delta for delta in deltas if delta is not None))
    return found


def find_files_of_tag(context: TableContext, snapshot: Snapshot) -> FilesToDelete:
    """Return the files that only a deleted tag may reference; its snapshot is gone too."""
    found = FilesToDelete()
    try:
        live = read_live_entries(context, read_data_manifests(context, snapshot))
    except CorruptTable:
        live = []
    found.data.update(list_added_files(live))
    _add_lists(context, found, [snapshot.base_manifest_list, snapshot.delta_manifest_list])
    _add_index_and_statistics(context, found, snapshot)
    return found


def delete_unreferenced_files(
    context: TableContext,
    files_to_delete: FilesToDelete,
    references: Sequence[Reference],
    read_again: Callable[[], Sequence[Reference]],
) -> int:
    """Delete files without references, data files first; `read_again` if a reference disappears meanwhile."""
    if files_to_delete.is_empty:
        return 0
    keys, paths = list(files_to_delete.data), list(files_to_delete.metadata)
    names = [key[3] for key in keys] + [files_to_delete.metadata[path] for path in paths]
    unique_names = pa.array(names, pa.string()).dictionary_encode()
    partitions = frozenset(key[0] for key in keys)
    places = unique_names.indices.to_numpy(zero_copy_only=False)
    needed = find_referenced_files(references, unique_names.dictionary, read_again, partitions)[places]
    unneeded = np.flatnonzero(~needed)
    data_files = [keys[i] for i in unneeded if i < len(keys)]
    files = _to_paths(context.table, data_files)
    files += [paths[i - len(keys)] for i in unneeded if i >= len(keys)]
    if files:
        delete_files(context.engine, files)
    if context.options.snapshot_clean_empty_directories:
        _delete_empty_directories_of(context, data_files)
    return len(files)


def _read_entries(context: TableContext, lists: Sequence[str]) -> list[list[ManifestEntry] | None]:
    """Return the entries of each manifest list, in order; None for a list that cannot be read."""
    try:
        return list(_read_entries_at_once(context, lists))
    except CorruptTable:
        if len(lists) == 1:
            return [None]
        return [_read_entries(context, [name])[0] for name in lists]


def _read_entries_at_once(context: TableContext, lists: Sequence[str]) -> Iterator[list[ManifestEntry]]:
    manifests = [[m.file_name for m in read_manifest_list(context, name)] for name in lists]
    parts = read_manifest_columns(context, [name for names in manifests for name in names])
    entries = iter(to_entries(entry_columns(parts)))
    counts = iter([count for part in parts for count in part.counts])
    for names in manifests:
        yield list(islice(entries, sum(islice(counts, len(names)))))


def _add_changelogs(context: TableContext, found: FilesToDelete, expired: Sequence[Snapshot]) -> None:
    lists = [s.changelog_manifest_list for s in expired if s.changelog_manifest_list is not None]
    for entries in _read_entries(context, lists) if lists else ():
        found.data.update(list_added_files(entries or ()))
    _add_lists(context, found, lists)


def _add_lists(context: TableContext, found: FilesToDelete, lists: Iterable[str]) -> None:
    for name in lists:
        try:
            manifests = [m.file_name for m in read_manifest_list(context, name)]
        except CorruptTable:
            manifests = []
        found.metadata.update({context.paths.manifest(n): n for n in (name, *manifests)})


def _add_index_and_statistics(context: TableContext, found: FilesToDelete, snapshot: Snapshot) -> None:
    if snapshot.index_manifest is not None:
        source = context.paths.manifest(snapshot.index_manifest)
        try:
            entries = read_index_manifest(context, snapshot.index_manifest)
            found.metadata.update({index_path(context.table, entry, source): entry.file_name for entry in entries})
        except CorruptTable:
            pass
        found.metadata[source] = snapshot.index_manifest
    if snapshot.statistics is not None:
        found.metadata[context.paths.statistics(snapshot.statistics)] = snapshot.statistics


def _to_paths(table: TableDefinition, keys: Sequence[FileKey]) -> list[str]:
    """Return the paths of data files; files outside the allowed roots are left out."""
    roots = table.roots
    buckets = BucketPaths.of(table)
    directories = {k[:3]: k[2] if k[2] is not None else buckets.directory(k[0], k[1]) for k in keys}
    allowed = {place: directory for place, directory in directories.items() if is_within(directory, roots)}
    warn_of_kept_files(table, [join_path(directories[k[:3]], k[3]) for k in keys if k[:3] not in allowed])
    return [join_path(allowed[key[:3]], key[3]) for key in keys if key[:3] in allowed]


def warn_of_kept_files(table: TableDefinition, paths: Sequence[str]) -> None:
    """Warn that files stay which nothing needs, because they lie outside the allowed roots."""
    if paths:
        kept = f"{format_count(len(paths), 'file')} outside the allowed roots stay, though nothing needs them"
        text = f"Table {table.table_name!r}: {kept}, such as {paths[0]!r}. Pass allowed_roots=[…], or delete them"
        warnings.warn(text, PaimonWarning, stacklevel=4)


def _delete_empty_directories_of(context: TableContext, keys: Sequence[FileKey]) -> None:
    """Delete the directories of buckets and partitions that are empty."""
    buckets = BucketPaths.of(context.table)
    places = {buckets.directory(key[0], key[1]) if key[2] is None else key[2] for key in keys}
    delete_empty_bucket_directories(context, [place for place in places if is_within(place, context.table.roots)])


def delete_empty_bucket_directories(context: TableContext, directories: Collection[str]) -> None:
    """Delete the empty directories of buckets, then the empty ones of partitions above them."""
    level = set(directories)
    for _ in range(ENTROPY_LEVELS):
        added = {directory for directory in level if is_entropy(directory.rpartition("/")[2])}
        context.files.delete(sorted(added))
        level = level - added | {directory.rpartition("/")[0] for directory in added}
    for _ in range(1 + len(context.schema.partition_keys)):
        if level:
            context.files.delete(sorted(level))
        level = {d.rpartition("/")[0] for d in level if context.files.status(d) is None}
