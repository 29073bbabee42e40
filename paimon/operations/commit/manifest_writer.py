"""Write the manifests, manifest lists and index manifests of one commit, and merge those of its base.

Invariant: one commit has one manifest writer, which records every file that it creates. So exactly the files of lost
attempts can be deleted. Merged or not, the same files are live.

Source: `ManifestFile`, `ManifestList`, `IndexManifestFile`, `ManifestFileMerger`.
"""

# A snapshot names two lists of manifests: the files of its base, and what it changes (the delta).
#
#     snapshot 8   base list    m1 m2 m3 m4 m5        all files before, as few manifests as possible
#                  delta list   m6                    the change
#
# While a commit runs, others publish. What depends on the change alone (the delta, the changelog, and their lists) is
# written once and used by all attempts. What depends on the base (the base list, the index manifest) is written by each
# attempt, and deleted if that one is lost.
#
# If the base has too many manifests, they are merged. This is expensive, so a retry uses the merged ones again if their
# inputs are still next to each other in the new base; otherwise it merges nothing:
#
#     attempt 1   base m1 m2 m3 m4       merged: M(m1..m4)
#     attempt 2   base m1 m2 m3 m4 m5    M m5          or, after another commit merged:  base X m5   ->   X m5

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from attrs import evolve, frozen

from paimon.domain.commit.entries import Change
from paimon.domain.commit.index_entries import live_index_files
from paimon.domain.commit.next_snapshot import SnapshotContent, Stamp, WrittenList, delta_rows, next_snapshot
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import StorageError
from paimon.domain.manifest.avro_schema import INDEX_MANIFEST_ENTRY, MANIFEST_ENTRY, MANIFEST_LIST
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.entry_codec import entry_to_record, index_entry_to_record, manifest_to_record
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, entry_columns
from paimon.domain.manifest.manifest_stats import manifest_meta, manifest_meta_of_columns
from paimon.domain.manifest.merge_entries import mark_kept, mark_merged
from paimon.domain.manifest.merge_plan import (
    FullMerge,
    MergeLimits,
    count_parts,
    is_full_merge_due,
    manifests_with_deletes,
    mark_after_full_merge,
    must_change,
    order_by_partition,
    plan_full_merge,
    plan_minor_merge,
    split_rows,
)
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.stats.simple_stats import EMPTY_STATS
from paimon.operations.commit.base import CommitBase
from paimon.operations.metadata.manifests import cache_manifest, cache_manifest_list, index_path, read_manifest_columns
from paimon.operations.metadata.metadata_files import delete_files
from paimon.operations.table_context import TableContext
from paimon.ports.files import DeferredFlush, ManyFiles

_SMALL_BYTES = 1024 * 1024
"""Larger files are written at once and not kept in memory for one call with others."""
Parts = TypeVar("Parts", Sequence[ManifestEntry], Integers)
_SIZE_MARGIN = 1.1
"""Planned size as a factor of the target, because entries differ in size."""


class ManifestWriter:
    """The writer of the manifests of one commit; `written` are the paths of its files that it did not discard."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._uuid = context.engine.ids.uuid()
        self._counters = {"manifest": 0, "manifest-list": 0, "index-manifest": 0}
        self._pending_files: dict[str, bytes] | None = None
        self.written: set[str] = set()

    @contextmanager
    def batch_small_files(self, deferred: Collection[str] = ()) -> Iterator[None]:
        """Write small files at the end of the block, all in one call if the storage supports it.

        The files do not exist before the block ends. The `deferred` files are flushed with them.
        """
        files = self._context.files
        if not isinstance(files, ManyFiles):
            yield
            return
        self._pending_files = {}
        try:
            yield
            if deferred and isinstance(files, DeferredFlush):
                files.flush_and_create(deferred, self._pending_files)
            else:
                files.create_all(self._pending_files)
        finally:
            self._pending_files = None

    def write_manifests(self, entries: Sequence[ManifestEntry]) -> tuple[ManifestFileMeta, ...]:
        """Write entries as manifests; each but the last has about the target size or more."""
        if self._context.options.manifest_delete_file_drop_stats:
            entries = [_without_stats(e) if e.kind is FileKind.DELETE else e for e in entries]
        types = [f.type for f in self._context.schema.partition_fields]

        def describe(name: str, size: int, part: Sequence[ManifestEntry]) -> ManifestFileMeta:
            cache_manifest(self._context, name, part)
            return manifest_meta(name, size, part, types)

        return self._write_parts(entries, lambda part: map(entry_to_record, part), describe)

    def copy_entries(self, columns: EntryColumns, rows: Integers) -> tuple[ManifestFileMeta, ...]:
        """Write the entries at these positions as manifests of the same sizes; their stored bytes are copied."""
        types = [f.type for f in self._context.schema.partition_fields]
        return self._write_parts(
            rows, columns.pick, lambda name, size, part: manifest_meta_of_columns(name, size, columns, part, types)
        )

    def _write_parts(
        self,
        entries: Parts,
        to_records: Callable[[Parts], Iterable[Mapping[str, Any]]],
        describe: Callable[[str, int, Parts], ManifestFileMeta],
    ) -> tuple[ManifestFileMeta, ...]:
        if not len(entries):
            return ()
        data = self._encode_records(to_records(entries), MANIFEST_ENTRY)
        target = self._context.options.manifest_target_size_bytes
        # A manifest below the target is merged again: with all parts slightly too small, every commit would merge.
        size = max(1, int(len(entries) * target * _SIZE_MARGIN / len(data)))
        if size >= len(entries):
            return (describe(self._write_file("manifest", data), len(data), entries),)
        metas = []
        for start in range(0, len(entries), size):
            part = entries[start : start + size]
            data = self._encode_records(to_records(part), MANIFEST_ENTRY)
            metas.append(describe(self._write_file("manifest", data), len(data), part))
        return tuple(metas)

    def write_manifest_list(self, metas: Sequence[ManifestFileMeta]) -> WrittenList:
        """Write a manifest list; an empty list is a file, too."""
        data = self._encode_records(map(manifest_to_record, metas), MANIFEST_LIST)
        name = self._write_file("manifest-list", data)
        cache_manifest_list(self._context, name, metas)
        return WrittenList(name, len(data))

    def write_index_manifest(self, entries: Sequence[IndexManifestEntry]) -> str | None:
        """Write the complete list of live index files, and return its name; None without index files."""
        if not entries:
            return None
        return self._write_file(
            "index-manifest", self._encode_records(map(index_entry_to_record, entries), INDEX_MANIFEST_ENTRY)
        )

    def discard(self, keep: Iterable[str] = ()) -> None:
        """Delete the written files except those named in `keep`; files that cannot be deleted become orphans."""
        kept = {self._context.paths.manifest(name) for name in keep}
        to_delete = sorted(self.written - kept)
        self.written &= kept
        try:
            if to_delete:
                delete_files(self._context.engine, to_delete)
        except StorageError:
            self._context.engine.observer.count("commit.manifests_left_behind", len(to_delete))

    def _encode_records(self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any]) -> bytes:
        options = self._context.options
        return self._context.engine.records.write_records(
            records, schema, options.manifest_compression, options.manifest_format
        )

    def _write_file(self, kind: str, data: bytes) -> str:
        name = f"{kind}-{self._uuid}-{self._counters[kind]}"
        self._counters[kind] += 1
        path = self._context.paths.manifest(name)
        self.written.add(path)
        if self._pending_files is not None and len(data) <= _SMALL_BYTES:
            self._pending_files[path] = data
        else:
            with self._context.files.create(path) as sink:
                sink.write(data)
        return name


def _without_stats(entry: ManifestEntry) -> ManifestEntry:
    return evolve(entry, file=evolve(entry.file, value_stats=EMPTY_STATS, value_stats_cols=()))


Manifests = tuple[ManifestFileMeta, ...]


class BaseMerge:
    """The merge of the base manifests for all attempts of one commit."""

    def __init__(self, context: TableContext, writer: ManifestWriter) -> None:
        self._context = context
        self._writer = writer
        self._limits = build_merge_limits(context.table)
        self._partition_types = [f.type for f in context.schema.partition_fields]
        self._merge_input: Manifests | None = None
        self._merge_output: Manifests = ()

    @property
    def new_manifest_names(self) -> set[str]:
        """Names of the manifests that the last merge wrote."""
        return {m.file_name for m in self._merge_output} - {m.file_name for m in self._merge_input or ()}

    def merge_manifests(self, manifests: Sequence[ManifestFileMeta]) -> Manifests:
        """Return the manifests of the new base manifest list: the same live files in the same or fewer manifests.

        `manifests` are those of the base, oldest first.
        """
        given = tuple(manifests)
        if self._merge_input is None:
            self._merge_input, self._merge_output = given, self._merge(given)
            return self._merge_output
        start = _find_run(self._merge_input, given)
        if start is None:
            self._merge_input = self._merge_output = given
            return given
        return (*given[:start], *self._merge_output, *given[start + len(self._merge_input) :])

    def _merge(self, manifests: Manifests) -> Manifests:
        if is_full_merge_due(manifests, self._limits):
            merged = self.merge_fully(manifests)
            if merged is not None:
                return merged
        return self._merge_minor(manifests)

    def merge_fully(self, manifests: Manifests) -> Manifests | None:
        """Merge the manifests and apply every DELETE entry; None if there is nothing to merge."""
        changed, _ = self._read_columns(manifests_with_deletes(manifests))
        deletes = changed.filter(changed.kinds == int(FileKind.DELETE))
        partitions = {changed.partition_rows[place] for place in np.unique(deletes.partitions).tolist()}
        plan = plan_full_merge(manifests, partitions, self._partition_types, self._limits)
        return None if plan is None else self._rewrite(plan, deletes)

    def _rewrite(self, plan: FullMerge, deletes: EntryColumns) -> Manifests:
        columns, counts = self._read_columns(plan.read)
        rewritten = [plan.rewrites_all or must_change(manifest, self._limits) for manifest in plan.read]
        mask, stays = mark_after_full_merge(mark_kept(columns, deletes), counts, rewritten)
        kept = [manifest for manifest, stay in zip(plan.read, stays, strict=True) if stay]
        left = columns.filter(mask)
        order = order_by_partition(left, self._partition_types)
        return (*plan.kept, *kept, *self._writer.copy_entries(left, order))

    def _merge_minor(self, manifests: Manifests) -> Manifests:
        merged: list[ManifestFileMeta] = []
        for group in plan_minor_merge(manifests, self._limits):
            if len(group) == 1:
                merged += group
            else:
                columns, _ = self._read_columns(group)
                left = columns.filter(mark_merged(columns))
                order = order_by_partition(left, self._partition_types)
                for part in split_rows(
                    left.partitions[order], count_parts(sum(m.file_size for m in group), self._limits)
                ):
                    merged += self._writer.copy_entries(left, order[part])
        return tuple(merged)

    def _read_columns(self, manifests: Sequence[ManifestFileMeta]) -> tuple[EntryColumns, list[int]]:
        """Return the entries of manifests, and how many each manifest has."""
        parts = read_manifest_columns(self._context, [manifest.file_name for manifest in manifests])
        return entry_columns(parts), [count for part in parts for count in part.counts]


def build_merge_limits(table: TableDefinition) -> MergeLimits:
    """Return the merge limits that the table's `manifest.*` options set."""
    options = table.options
    return MergeLimits(
        options.manifest_target_size_bytes,
        options.manifest_full_compaction_bytes,
        options.manifest_merge_min_count,
    )


def _find_run(part: Manifests, whole: Manifests) -> int | None:
    """Return the index at which `part` begins as a contiguous run of `whole`; None if it is not one."""
    for start in range(len(whole) - len(part) + 1):
        if whole[start : start + len(part)] == part:
            return start
    return None


def _list_added_paths(context: TableContext, change: Change) -> list[str]:
    """Return the paths of the data files, changelog files and index files that a change adds."""
    directories = BucketPaths.of(context.table)
    paths = {
        path: None
        for entry in (*change.entries, *change.changelog)
        if entry.kind is FileKind.ADD
        for path in entry.file.paths_in(directories.directory(entry.partition, entry.bucket))
    }
    index = [e for e in change.index if e.kind is FileKind.ADD]
    return [*paths, *(index_path(context.table, e, "commit message") for e in index)]


@frozen(eq=False)
class _Delta:
    """The manifests of a change, which do not depend on the base; `names` are the names of all these files."""

    change: Change
    added: WrittenList
    changelog: WrittenList | None
    names: frozenset[str]


class SnapshotFiles:
    """The files of one snapshot, for all attempts to publish it: a state machine.

    Delta manifests and their lists are written once, because other commits are published between the read of the
    newest snapshot and the put of the next one. Merged manifests of the base are used again if they still fit.
    """

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._writer = ManifestWriter(context)
        self._base_merge = BaseMerge(context, self._writer)
        self._delta: _Delta | None = None

    def write_snapshot(
        self, base: CommitBase, change: Change, request: CommitRequest, operation: str | None, next_row_id: int
    ) -> Snapshot:
        """Write the manifests and lists of the snapshot that follows the base, and return the snapshot."""
        with self._writer.batch_small_files(_list_added_paths(self._context, change) if request.flushes_files else ()):
            delta = self._write_delta(change)
            content = SnapshotContent(
                kind=change.kind,
                base_list=self._writer.write_manifest_list(self._base_merge.merge_manifests(base.manifests)),
                delta_list=delta.added,
                delta_rows=delta_rows(change.entries),
                changelog_list=delta.changelog,
                changelog_rows=sum(e.file.row_count for e in change.changelog),
                index_manifest=self._write_index_manifest(base, change),
                statistics=change.statistics.name if change.statistics else None,
                watermark=request.watermark,
                properties=request.properties,
                next_row_id=next_row_id,
                operation=operation,
            )
            ids, clock = self._context.engine.ids, self._context.engine.clock
            names = request.commit_user, request.commit_identifier
            return next_snapshot(base.snapshot, content, Stamp(*names, base.schema_id, ids.uuid(), clock.now_millis()))

    def discard_all(self) -> None:
        """Delete all files that were written, so that the next attempt names none of them."""
        self._writer.discard()
        self._delta = None
        self._base_merge = BaseMerge(self._context, self._writer)

    def discard_unshared(self) -> None:
        """Delete the files that the next attempt cannot use again."""
        self._writer.discard(keep=self._list_reusable_names())

    def discard_unreferenced(self, snapshot: Snapshot) -> None:
        """Delete the files of lost attempts that the published snapshot does not need."""
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
        named = {name for name in (*lists, snapshot.index_manifest) if name}
        self._writer.discard(keep=named | self._list_reusable_names())

    def _write_delta(self, change: Change) -> _Delta:
        """Write the manifests of a change, unless they exist from an earlier attempt."""
        if self._delta is None or self._delta.change != change:
            added = self._writer.write_manifests(change.entries)
            changelog = self._writer.write_manifests(change.changelog)
            lists = (
                self._writer.write_manifest_list(added),
                self._writer.write_manifest_list(changelog) if changelog else None,
            )
            names = {m.file_name for m in (*added, *changelog)} | {written.name for written in lists if written}
            self._delta = _Delta(change, *lists, frozenset(names))
        return self._delta

    def _write_index_manifest(self, base: CommitBase, change: Change) -> str | None:
        """Return the name of the index manifest after the change; None if no index file is live.

        A change without index files keeps the index manifest of the base.
        """
        if not change.index:
            return base.snapshot.index_manifest if base.snapshot else None
        live = live_index_files(base.index_files, change.index, self._context.table.is_bucketed)
        return self._writer.write_index_manifest(live)

    def _list_reusable_names(self) -> set[str]:
        """Return the names of the files that the next attempt can use again."""
        return {*(self._delta.names if self._delta else ()), *self._base_merge.new_manifest_names}
