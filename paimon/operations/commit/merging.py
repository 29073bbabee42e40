"""The base list of a new snapshot: the manifests of the base, merged where they have become many.

Law: merged or not, the same files are live. A result is used again on a retry as long as what it was made from still
stands in one piece in the new base; else that attempt merges nothing. Source: `ManifestFileMerger`,
`ManifestFileLegacyMerger`, `FileStoreCommitImpl.ManifestMergeResult`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.manifest.clusters import by_partition, cut, parts_wanted
from paimon.domain.manifest.columns import entry_columns
from paimon.domain.manifest.entries import FileKind, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.merge import merge_entries
from paimon.domain.manifest.merge_plan import (
    FullMerge,
    MergeLimits,
    entries_after_full_merge,
    full_merge,
    full_merge_is_due,
    manifests_with_deletes,
    minor_merge,
    must_change,
)
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.manifests import ManifestWriter
from paimon.operations.read.manifests import entries_at, read_manifest_columns
from paimon.ports.engine import Engine

Manifests = tuple[ManifestFileMeta, ...]


class BaseMerge:
    """Merges manifests for the attempts of one commit."""

    def __init__(self, engine: Engine, table: TableDefinition, writer: ManifestWriter) -> None:
        self._engine = engine
        self._table = table
        self._writer = writer
        self._limits = merge_limits(table)
        self._partition_types = [f.type for f in table.schema.partition_fields]
        self._before: Manifests | None = None
        self._after: Manifests = ()

    @property
    def made(self) -> set[str]:
        """Names of the manifests that the last merge wrote."""
        return {m.file_name for m in self._after} - {m.file_name for m in self._before or ()}

    def merged(self, manifests: Sequence[ManifestFileMeta]) -> Manifests:
        """The manifests of the new base list."""
        given = tuple(manifests)
        if self._before is None:
            self._before, self._after = given, self._merge(given)
            return self._after
        start = _position(self._before, given)
        if start is None:
            self._before = self._after = given
            return given
        return (*given[:start], *self._after, *given[start + len(self._before) :])

    def _merge(self, manifests: Manifests) -> Manifests:
        if full_merge_is_due(manifests, self._limits):
            fully = self.fully(manifests)
            if fully is not None:
                return fully
        return self._minor(manifests)

    def fully(self, manifests: Manifests) -> Manifests | None:
        """All manifests, with every DELETE applied; None where there is nothing to merge."""
        deletes = [
            entry
            for manifest in manifests_with_deletes(manifests)
            for entry in self._entries(manifest)
            if entry.kind is FileKind.DELETE
        ]
        plan = full_merge(manifests, {e.partition for e in deletes}, self._partition_types, self._limits)
        return None if plan is None else self._rewrite(plan, {e.identity for e in deletes})

    def _rewrite(self, plan: FullMerge, deleted: set[tuple[object, ...]]) -> Manifests:
        kept = list(plan.kept)
        entries: list[ManifestEntry] = []
        for manifest in plan.read:
            left = entries_after_full_merge(self._entries(manifest), deleted, must_change(manifest, self._limits))
            if left is None:
                kept.append(manifest)
            else:
                entries += left
        return (*kept, *self._writer.manifests(by_partition(entries, self._partition_types)))

    def _minor(self, manifests: Manifests) -> Manifests:
        merged: list[ManifestFileMeta] = []
        for group in minor_merge(manifests, self._limits):
            if len(group) == 1:
                merged += group
            else:
                entries = by_partition(merge_entries(self._entries(*group)), self._partition_types)
                for part in cut(entries, parts_wanted(sum(m.file_size for m in group), self._limits)):
                    merged += self._writer.manifests(part)
        return tuple(merged)

    def _entries(self, *manifests: ManifestFileMeta) -> list[ManifestEntry]:
        names = [manifest.file_name for manifest in manifests]
        return entries_at(entry_columns(read_manifest_columns(self._engine, self._table, names)))


def merge_limits(table: TableDefinition) -> MergeLimits:
    """What the table's `manifest.*` options say about merging."""
    options = table.options
    return MergeLimits(
        options.manifest_target_size_bytes,
        options.manifest_full_compaction_bytes,
        options.manifest_merge_min_count,
    )


def _position(part: Manifests, whole: Manifests) -> int | None:
    """Where `part` stands in `whole` in one piece."""
    for start in range(len(whole) - len(part) + 1):
        if whole[start : start + len(part)] == part:
            return start
    return None
