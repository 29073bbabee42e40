"""Writing manifests, manifest lists and index manifests.

Law: one commit has one writer of manifests, which knows every file that it made, so that what a lost attempt leaves
behind can be taken away, and nothing else. Source: `ManifestFile`, `ManifestList`, `IndexManifestFile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from paimon.domain.commit.next_snapshot import WrittenList
from paimon.domain.errors import StorageError
from paimon.domain.manifest.avro_schema import INDEX_MANIFEST_ENTRY, MANIFEST_ENTRY, MANIFEST_LIST
from paimon.domain.manifest.codec import entry_to_record, manifest_to_record
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.index_codec import index_entry_to_record
from paimon.domain.manifest.manifest_stats import manifest_meta
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.stats.simple_stats import EMPTY_STATS
from paimon.operations.file_deletion import delete_files
from paimon.operations.read.manifests import remember_manifest_list
from paimon.ports.engine import Engine
from paimon.ports.files import ManyFiles

_SMALL_BYTES = 1024 * 1024
"""Files up to this size may wait in memory for others that are written with them."""
_SURPLUS = 1.1
"""Entries differ in size: so much more than the target is meant to be."""


class ManifestWriter:
    """Names and writes the manifests of one commit; `written` are the paths of all that it made and did not discard."""

    def __init__(self, engine: Engine, table: TableDefinition) -> None:
        self._engine = engine
        self._table = table
        self._uuid = engine.ids.uuid()
        self._counters = {"manifest": 0, "manifest-list": 0, "index-manifest": 0}
        self._waiting: dict[str, bytes] | None = None
        self.written: set[str] = set()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written inside is there at the end of the block at the latest: all at once where the storage can."""
        many = self._engine.files
        if not isinstance(many, ManyFiles):
            yield
            return
        self._waiting = {}
        try:
            yield
            many.create_all(self._waiting)
        finally:
            self._waiting = None

    def manifests(self, entries: Sequence[ManifestEntry]) -> tuple[ManifestFileMeta, ...]:
        """Write entries as manifests of at least about the target size, but the last of them."""
        if self._table.options.manifest_delete_file_drop_stats:
            entries = [_without_stats(e) if e.kind is FileKind.DELETE else e for e in entries]
        if not entries:
            return ()
        data = self._encoded(map(entry_to_record, entries), MANIFEST_ENTRY)
        target = self._table.options.manifest_target_size_bytes
        # A manifest below the target is merged again: with parts all a little too small every commit would merge.
        size = max(1, int(len(entries) * target * _SURPLUS / len(data)))
        if size >= len(entries):
            return (self._manifest(entries, data),)
        parts = [entries[i : i + size] for i in range(0, len(entries), size)]
        return tuple(self._manifest(p, self._encoded(map(entry_to_record, p), MANIFEST_ENTRY)) for p in parts)

    def manifest_list(self, metas: Sequence[ManifestFileMeta]) -> WrittenList:
        """Write a manifest list (an empty one is a file too)."""
        data = self._encoded(map(manifest_to_record, metas), MANIFEST_LIST)
        name = self._create("manifest-list", data)
        remember_manifest_list(self._engine, self._table, name, metas)
        return WrittenList(name, len(data))

    def index_manifest(self, entries: Sequence[IndexManifestEntry]) -> str | None:
        """Write the complete list of live index files; None where there are none."""
        if not entries:
            return None
        return self._create("index-manifest", self._encoded(map(index_entry_to_record, entries), INDEX_MANIFEST_ENTRY))

    def discard(self, keep: Iterable[str] = ()) -> None:
        """Remove what was written, except the files named in `keep`; what cannot be removed is left as an orphan."""
        kept = {self._table.paths.manifest(name) for name in keep}
        gone = sorted(self.written - kept)
        self.written &= kept
        try:
            if gone:
                delete_files(self._engine, gone)
        except StorageError:
            self._engine.observer.count("commit.manifests_left_behind", len(gone))

    def _manifest(self, entries: Sequence[ManifestEntry], data: bytes) -> ManifestFileMeta:
        name = self._create("manifest", data)
        types = [f.type for f in self._table.schema.partition_fields]
        return manifest_meta(name, len(data), entries, types)

    def _encoded(self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any]) -> bytes:
        options = self._table.options
        return self._engine.records.write_records(
            records, schema, options.manifest_compression, options.manifest_format
        )

    def _create(self, kind: str, data: bytes) -> str:
        name = f"{kind}-{self._uuid}-{self._counters[kind]}"
        self._counters[kind] += 1
        path = self._table.paths.manifest(name)
        self.written.add(path)
        if self._waiting is not None and len(data) <= _SMALL_BYTES:
            self._waiting[path] = data
        else:
            with self._engine.files.create(path) as sink:
                sink.write(data)
        return name


def _without_stats(entry: ManifestEntry) -> ManifestEntry:
    return evolve(entry, file=evolve(entry.file, value_stats=EMPTY_STATS, value_stats_cols=()))
