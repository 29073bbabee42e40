"""Merge the manifests of the base snapshot when there are too many.

Invariant: merged or not, the same files are live. A retry uses the merged manifests again if their inputs are still
next to each other in the new base. Otherwise that attempt merges nothing.

Source: `ManifestFileMerger`, `ManifestFileLegacyMerger`, `FileStoreCommitImpl.ManifestMergeResult`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.manifest.clusters import count_parts, sort_by_partition, split_entries
from paimon.domain.manifest.entries import FileKind, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.entry_columns import entry_columns
from paimon.domain.manifest.merge import merge_entries
from paimon.domain.manifest.merge_plan import (
    FullMerge,
    MergeLimits,
    entries_after_full_merge,
    is_full_merge_due,
    manifests_with_deletes,
    must_change,
    plan_full_merge,
    plan_minor_merge,
)
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.manifests import ManifestWriter
from paimon.operations.metadata.manifests import read_manifest_columns, to_entries
from paimon.operations.table_context import TableContext

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
        deletes = [
            entry
            for manifest in manifests_with_deletes(manifests)
            for entry in self._read_entries(manifest)
            if entry.kind is FileKind.DELETE
        ]
        plan = plan_full_merge(manifests, {e.partition for e in deletes}, self._partition_types, self._limits)
        return None if plan is None else self._rewrite(plan, {e.identity for e in deletes})

    def _rewrite(self, plan: FullMerge, deleted: set[tuple[object, ...]]) -> Manifests:
        manifests = list(plan.kept)
        entries: list[ManifestEntry] = []
        for manifest in plan.read:
            remaining = entries_after_full_merge(
                self._read_entries(manifest), deleted, must_change(manifest, self._limits)
            )
            if remaining is None:
                manifests.append(manifest)
            else:
                entries += remaining
        return (*manifests, *self._writer.write_manifests(sort_by_partition(entries, self._partition_types)))

    def _merge_minor(self, manifests: Manifests) -> Manifests:
        merged: list[ManifestFileMeta] = []
        for group in plan_minor_merge(manifests, self._limits):
            if len(group) == 1:
                merged += group
            else:
                entries = sort_by_partition(merge_entries(self._read_entries(*group)), self._partition_types)
                for part in split_entries(entries, count_parts(sum(m.file_size for m in group), self._limits)):
                    merged += self._writer.write_manifests(part)
        return tuple(merged)

    def _read_entries(self, *manifests: ManifestFileMeta) -> list[ManifestEntry]:
        names = [manifest.file_name for manifest in manifests]
        return to_entries(entry_columns(read_manifest_columns(self._context, names)))


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
