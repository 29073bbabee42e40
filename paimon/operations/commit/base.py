"""Read the snapshot that a commit builds on, only as far as the commit needs it.

Invariant: manifests are read on first use, and only for the partitions of the change. A plain append costs the same
for a short and for a long history.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

import numpy as np

from paimon.domain.commit.conflicts.files import mark_checked_files
from paimon.domain.commit.entries import Change
from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import DataFileMeta, FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.manifest.type_fit import UnsafeCast
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.binary_row import deserialize
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import (
    read_data_manifests,
    read_index_manifest,
    read_live_columns,
    read_manifest,
    read_manifest_list,
    to_entries,
)
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.metadata.type_proof import TypeProof
from paimon.operations.table_context import TableContext


class CommitBase:
    """The snapshot that an attempt builds on; None if the table has none. `schema_id` is that of the newest schema.

    It is the `Base` of `paimon.domain.commit.plan_change`.
    """

    def __init__(self, context: TableContext, snapshot: Snapshot | None, schema_id: int | None = None) -> None:
        self._context = context
        self.schema_id = context.schema.id if schema_id is None else schema_id
        self._manifests: tuple[ManifestFileMeta, ...] | None = None
        self.snapshot = snapshot

    @property
    def manifests(self) -> tuple[ManifestFileMeta, ...]:
        """The base's manifests, oldest first."""
        # Not a cached_property: before Python 3.12 that holds one lock for all instances while it reads.
        if self._manifests is None:
            self._manifests = read_data_manifests(self._context, self.snapshot) if self.snapshot else ()
        return self._manifests

    @property
    def index_files(self) -> tuple[IndexManifestEntry, ...]:
        """The live index files."""
        if self.snapshot is None or self.snapshot.index_manifest is None:
            return ()
        return read_index_manifest(self._context, self.snapshot.index_manifest)

    @property
    def next_row_id(self) -> int:
        """The first row id that is free (0 without row tracking)."""
        return (self.snapshot.next_row_id or 0) if self.snapshot else 0

    def read_bucket_options(self) -> tuple[int, ...]:
        """Return the option `bucket` of the schemas that a rescale since the start of a writer may have published.

        The last one is that of the newest schema. Dynamic options are ignored.
        """
        own, newest = self._context.schema, self.schema_id
        ids = [*range(own.id + 1, newest), newest]
        if self.snapshot is not None and self.snapshot.schema_id not in (own.id, *ids):
            ids.insert(0, self.snapshot.schema_id)
        engine, paths = self._context.engine, self._context.paths
        schemas = (own if i == own.id else load_schema(engine, paths, i) for i in ids)
        return tuple(TableOptions.of(schema.options).bucket for schema in schemas)

    def find_unsafe_cast(self, files: Iterable[DataFileMeta]) -> UnsafeCast | None:
        """Return a column of a file whose values may not fit the newest schema, by the statistics of the file."""
        newest = load_schema(self._context.engine, self._context.paths, self.schema_id)
        return next(iter(TypeProof(self._context, newest).find_unsafe_casts(files)), None)

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot of an id; None if it does not exist. The base is not read again."""
        if self.snapshot is not None and snapshot_id == self.snapshot.id:
            return self.snapshot
        return find_snapshot(self._context, snapshot_id)

    def read_delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return the entries that a snapshot added."""
        metas = read_manifest_list(self._context, snapshot.delta_manifest_list)
        return [entry for meta in metas for entry in read_manifest(self._context, meta.file_name)]

    def read_index_changes(self, snapshot: Snapshot) -> Sequence[IndexManifestEntry]:
        """Return the index files that a snapshot added or removed; all of them if the previous snapshot expired."""
        before = find_snapshot(self._context, snapshot.id - 1) if snapshot.id > 1 else None
        name = before.index_manifest if before else None
        if snapshot.index_manifest == name:
            return ()
        now, then = (read_index_manifest(self._context, n) if n else () for n in (snapshot.index_manifest, name))
        common = {e.file_name for e in now} & {e.file_name for e in then}
        return [e for e in (*now, *then) if e.file_name not in common]

    def read_added_since(self, snapshot_id: int, partitions: Container[bytes]) -> Iterable[ManifestEntry]:
        """Return at least the live files of the partitions that were added after a snapshot.

        Only the snapshots since then are read, or all live files where one of them expired.
        """
        assert self.snapshot is not None
        numbers = range(snapshot_id + 1, self.snapshot.id + 1)
        try:
            snapshots = [self.find_snapshot(number) for number in numbers]
            lists = [s.delta_manifest_list for s in snapshots if s is not None]
            metas = [m for name in lists for m in read_manifest_list(self._context, name)]
            added = [e for m in metas for e in read_manifest(self._context, m.file_name) if e.kind is FileKind.ADD]
        except CorruptTable:
            if all(self.find_snapshot(number) for number in numbers):
                raise
            snapshots = [None]  # one of them expired during the read
        if None in snapshots or not snapshots:  # a rollback, too, leaves the live files
            return self.read_live_files(partitions.__contains__)
        return added

    def read_live_files(self, is_wanted: Callable[[bytes], bool]) -> list[ManifestEntry]:
        """Return the live files of the wanted partitions, in the order of their addition; all manifests are read."""
        columns = read_live_columns(self._context, self.manifests)
        wanted = np.array([is_wanted(partition) for partition in columns.partition_rows], dtype=bool)
        return to_entries(columns.filter(wanted[columns.partitions]))

    def read_live_files_near(self, change: Change) -> list[ManifestEntry]:
        """Return the live files that may conflict with the change, from only those manifests that may contain some."""
        schema = self._context.schema
        types = [f.type for f in schema.partition_fields]
        wanted = [deserialize(p, types) for p in change.partitions]
        manifests = [m for m in self.manifests if any(may_hold_partition(m, values, types) for values in wanted)]
        live = read_live_columns(self._context, manifests)
        return to_entries(live.filter(mark_checked_files(live, change, bool(schema.primary_keys))))
