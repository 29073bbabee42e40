"""The snapshot that a commit builds on, read only as far as the commit needs.

Law: nothing is read before it is asked for, and only of the partitions asked for, so that a plain append costs the
same however long the table's history is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paimon.domain.commit.conflicts.rows import may_conflict
from paimon.domain.commit.entries import Change
from paimon.domain.commit.index_entries import live_index_files
from paimon.domain.manifest.entries import IndexManifestEntry, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.manifests import ManifestWriter
from paimon.operations.read.manifests import data_manifests, entries_at, live_columns, read_index_manifest
from paimon.ports.engine import Engine


class CommitBase:
    """One base; `snapshot` None: the table has none yet."""

    def __init__(self, engine: Engine, table: TableDefinition, snapshot: Snapshot | None) -> None:
        self._engine = engine
        self._table = table
        self._manifests: tuple[ManifestFileMeta, ...] | None = None
        self.snapshot = snapshot

    @property
    def manifests(self) -> tuple[ManifestFileMeta, ...]:
        """The base's manifests, oldest first."""
        # Not a cached_property: before Python 3.12 that holds one lock for all instances while it reads.
        if self._manifests is None:
            self._manifests = data_manifests(self._engine, self._table, self.snapshot) if self.snapshot else ()
        return self._manifests

    @property
    def index_files(self) -> tuple[IndexManifestEntry, ...]:
        """The live index files."""
        if self.snapshot is None or self.snapshot.index_manifest is None:
            return ()
        return read_index_manifest(self._engine, self._table, self.snapshot.index_manifest)

    @property
    def next_row_id(self) -> int:
        """The first row id that is free (0 without row tracking)."""
        return (self.snapshot.next_row_id or 0) if self.snapshot else 0

    def live(self, meant: Callable[[bytes], bool]) -> list[ManifestEntry]:
        """The live files of the partitions meant, looking into every manifest."""
        columns = live_columns(self._engine, self._table, self.manifests)
        wanted = np.array([meant(partition) for partition in columns.partition_rows], dtype=bool)
        return entries_at(columns.where(wanted[columns.partitions]))

    def live_beside(self, change: Change) -> list[ManifestEntry]:
        """The live files that may conflict with the change, looking only into manifests that may hold some."""
        schema = self._table.schema
        types = [f.type for f in schema.partition_fields]
        wanted = [deserialize(p, types) for p in change.partitions]
        near = [m for m in self.manifests if any(may_hold_partition(m, values, types) for values in wanted)]
        live = live_columns(self._engine, self._table, near)
        return entries_at(live.where(may_conflict(live, change, bool(schema.primary_keys))))

    def index_manifest_after(self, change: Change, writer: ManifestWriter) -> str | None:
        """The name of the index manifest that holds after the change: the base's own where no index file changes."""
        if not change.index:
            return self.snapshot.index_manifest if self.snapshot else None
        live = live_index_files(self.index_files, change.index, self._table.is_bucketed)
        return writer.index_manifest(live)
