"""Find which of some files are still needed.

Invariant: a file is needed if the state of a reference contains it, or if the metadata of a reference names it.
Metadata that cannot be read is an error, unless its reference has disappeared. Then all references are read again,
because a new reference may need the same files.

Source: `OrphanFilesClean.collectWithoutDataFile`, `FileDeletionBase`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.maintenance.referenced_files_columnar import Mentions, ever_live, find_mentions
from paimon.domain.manifest.entries import ManifestFileMeta
from paimon.domain.manifest.entry_columns import Mask, entry_columns
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.expire.references import Reference, ReferencedPart, can_read_delta
from paimon.operations.metadata.manifests import read_index_manifest, read_manifest_columns, read_manifest_list
from paimon.operations.table_context import TableContext

_ENTRIES_AT_ONCE = 200_000
"""Manifest entries that are in memory at the same time."""
_ATTEMPTS = 20
"""How often the references are read, as long as some disappear during the check."""


def find_referenced_files(
    references: Sequence[Reference],
    names: pa.Array,
    read_again: Callable[[], Sequence[Reference]],
    partitions: frozenset[bytes] | None = None,
) -> Mask:
    """Return for each of the distinct file names whether a reference needs it.

    `read_again` returns the current references, if one disappears during the check. Manifests without entries of
    `partitions` are not read. Fails if the metadata of a reference cannot be read.
    """
    attempts = 1
    while True:
        try:
            return _ReferenceReader(partitions).find_referenced(references, names)
        except CorruptTable:
            if attempts == _ATTEMPTS or all(h.context.files.status(h.path) is not None for h in references):
                raise
            attempts += 1
            references = read_again()


@frozen(eq=False)
class _ListedFiles:
    """The files of one manifest list or index manifest: their names, and its data manifests."""

    names: tuple[str, ...]
    manifests: tuple[ManifestFileMeta, ...] = ()


class _ReferenceReader:
    """One pass over the metadata of all references, which reads each list and manifest once."""

    def __init__(self, partitions: frozenset[bytes] | None) -> None:
        self._partitions = partitions
        self._parts: dict[str, _ListedFiles] = {}
        self._manifests: dict[str, tuple[TableContext, ManifestFileMeta]] = {}

    def find_referenced(self, references: Sequence[Reference], names: pa.Array) -> Mask:
        """Return a mask of the file names that these references need."""
        named: set[str] = set()
        states: list[frozenset[str]] = []
        for reference in references:
            for parts in self._read_groups(reference):
                manifests = [m for part in parts for m in part.manifests]
                named.update(name for part in parts for name in part.names)
                self._manifests |= {
                    m.file_name: (reference.context, m) for m in manifests if self._can_contain(reference.context, m)
                }
                states.append(frozenset(m.file_name for m in manifests))
            named.update(_find_single_files(reference))
        mask: Mask = pc.is_in(names, pa.array(sorted(named), pa.string())).to_numpy(zero_copy_only=False)
        return mask | ever_live(states, self._find_mentions(names), len(names))

    def _read_groups(self, reference: Reference) -> Iterator[list[_ListedFiles]]:
        """Yield the manifest lists that form one state, and those of which only the names count."""
        context, snapshot = reference.context, reference.snapshot
        changelog = snapshot.changelog_manifest_list
        if reference.part is ReferencedPart.CHANGES:
            yield from self._read_changes(context, snapshot)
            return
        yield [
            self._read_list(context, snapshot.base_manifest_list),
            self._read_list(context, snapshot.delta_manifest_list),
        ]
        if snapshot.index_manifest is not None:
            yield [self._read_index(context, snapshot.index_manifest)]
        if changelog is not None and reference.part is ReferencedPart.ALL:
            yield from self._read_if_present(
                context, changelog
            )  # a rollback to a tag by Java restores a snapshot without it

    def _read_changes(self, context: TableContext, snapshot: Snapshot) -> Iterator[list[_ListedFiles]]:
        if snapshot.changelog_manifest_list is not None:
            yield [self._read_list(context, snapshot.changelog_manifest_list)]
            return
        # If the table has a changelog producer, these lists were deleted with the snapshot.
        for parts in self._read_if_present(context, snapshot.base_manifest_list):
            yield [_ListedFiles(part.names) for part in parts]
        for parts in self._read_if_present(context, snapshot.delta_manifest_list):
            yield parts if can_read_delta(snapshot) else [_ListedFiles(part.names) for part in parts]

    def _read_if_present(self, context: TableContext, name: str) -> Iterator[list[_ListedFiles]]:
        try:
            part = self._read_list(context, name)
        except CorruptTable as error:
            if not isinstance(error.__cause__, NotFound):
                raise
            return
        yield [part]

    def _read_list(self, context: TableContext, name: str) -> _ListedFiles:
        if name not in self._parts:
            metas = read_manifest_list(context, name)
            self._parts[name] = _ListedFiles((name, *(m.file_name for m in metas)), metas)
        return self._parts[name]

    def _read_index(self, context: TableContext, name: str) -> _ListedFiles:
        if name not in self._parts:
            entries = read_index_manifest(context, name)
            self._parts[name] = _ListedFiles((name, *(e.file_name for e in entries)))
        return self._parts[name]

    def _can_contain(self, context: TableContext, manifest: ManifestFileMeta) -> bool:
        types = [f.type for f in context.schema.partition_fields]
        if self._partitions is None or not types:
            return self._partitions is None or bool(self._partitions)
        return any(may_hold_partition(manifest, deserialize(p, types), types) for p in self._partitions)

    def _find_mentions(self, names: pa.Array) -> Mapping[str, Mentions]:
        found: dict[str, Mentions] = {}
        for context, metas in self._split_batches():
            parts = read_manifest_columns(context, [m.file_name for m in metas])
            counts = [count for part in parts for count in part.counts]
            batch_mentions = find_mentions(entry_columns(parts), counts, names)
            found |= dict(zip((m.file_name for m in metas), batch_mentions, strict=True))
        return found

    def _split_batches(self) -> Iterator[tuple[TableContext, list[ManifestFileMeta]]]:
        batch: list[ManifestFileMeta] = []
        entries = 0
        last: TableContext | None = None
        for context, meta in self._manifests.values():
            if last is not None and batch and (context is not last or entries > _ENTRIES_AT_ONCE):
                yield last, batch
                batch, entries = [], 0
            last = context
            batch.append(meta)
            entries += meta.num_added_files + meta.num_deleted_files
        if last is not None and batch:
            yield last, batch


def _find_single_files(reference: Reference) -> list[str]:
    statistics = reference.snapshot.statistics
    return [] if statistics is None or reference.part is ReferencedPart.CHANGES else [statistics]
