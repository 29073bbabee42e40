"""Write the manifests, manifest lists and index manifests of one commit.

Invariant: one commit has one manifest writer, which records every file that it creates. So exactly the files of lost
attempts can be deleted.

Source: `ManifestFile`, `ManifestList`, `IndexManifestFile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from paimon.domain.commit.next_snapshot import WrittenList
from paimon.domain.errors import StorageError
from paimon.domain.manifest.avro_schema import INDEX_MANIFEST_ENTRY, MANIFEST_ENTRY, MANIFEST_LIST
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.entry_codec import entry_to_record, manifest_to_record
from paimon.domain.manifest.index_codec import index_entry_to_record
from paimon.domain.manifest.manifest_stats import manifest_meta
from paimon.domain.stats.simple_stats import EMPTY_STATS
from paimon.operations.metadata.delete_files import delete_files
from paimon.operations.metadata.manifests import cache_manifest_list
from paimon.operations.table_context import TableContext
from paimon.ports.files import ManyFiles

_SMALL_BYTES = 1024 * 1024
"""Larger files are written at once and not kept in memory for one call with others."""
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
    def batch_small_files(self) -> Iterator[None]:
        """Write small files at the end of the block, all in one call if the storage supports it.

        The files do not exist before the block ends.
        """
        files = self._context.files
        if not isinstance(files, ManyFiles):
            yield
            return
        self._pending_files = {}
        try:
            yield
            files.create_all(self._pending_files)
        finally:
            self._pending_files = None

    def write_manifests(self, entries: Sequence[ManifestEntry]) -> tuple[ManifestFileMeta, ...]:
        """Write entries as manifests; each but the last has about the target size or more."""
        if self._context.options.manifest_delete_file_drop_stats:
            entries = [_without_stats(e) if e.kind is FileKind.DELETE else e for e in entries]
        if not entries:
            return ()
        data = self._encode_records(map(entry_to_record, entries), MANIFEST_ENTRY)
        target = self._context.options.manifest_target_size_bytes
        # A manifest below the target is merged again: with all parts slightly too small, every commit would merge.
        size = max(1, int(len(entries) * target * _SIZE_MARGIN / len(data)))
        if size >= len(entries):
            return (self._write_manifest(entries, data),)
        parts = [entries[i : i + size] for i in range(0, len(entries), size)]
        return tuple(
            self._write_manifest(p, self._encode_records(map(entry_to_record, p), MANIFEST_ENTRY)) for p in parts
        )

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

    def _write_manifest(self, entries: Sequence[ManifestEntry], data: bytes) -> ManifestFileMeta:
        name = self._write_file("manifest", data)
        types = [f.type for f in self._context.schema.partition_fields]
        return manifest_meta(name, len(data), entries, types)

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
