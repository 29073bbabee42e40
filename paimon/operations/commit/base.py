"""Read the snapshot that a commit builds on, only as far as the commit needs it.

Invariant: manifests are read on first use, and only for the partitions of the change. A plain append costs the same
for a short and for a long history.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paimon.domain.commit.conflicts.live_files import may_conflict
from paimon.domain.commit.entries import Change
from paimon.domain.commit.index_entries import live_index_files
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.manifest_stats import may_hold_partition
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.binary_row import deserialize
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.domain.types.type_text import format_type
from paimon.operations.commit.manifest_writer import ManifestWriter
from paimon.operations.metadata.manifests import read_data_manifests, read_index_manifest, read_live_columns, to_entries
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.metadata.type_proof import TypeProof
from paimon.operations.table_context import TableContext


class CommitBase:
    """The snapshot that an attempt builds on; None if the table has none. `schema_id` is that of the newest schema."""

    def __init__(self, context: TableContext, snapshot: Snapshot | None, schema_id: int | None = None) -> None:
        self._context = context
        self._schema_id = context.schema.id if schema_id is None else schema_id
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
        own, newest = self._context.schema, self._schema_id
        ids = [*range(own.id + 1, newest), newest]
        if self.snapshot is not None and self.snapshot.schema_id not in (own.id, *ids):
            ids.insert(0, self.snapshot.schema_id)
        engine, paths = self._context.engine, self._context.paths
        schemas = (own if i == own.id else load_schema(engine, paths, i) for i in ids)
        return tuple(TableOptions.of(schema.options).bucket for schema in schemas)

    def check_types(self, change: Change) -> None:
        """Refuse new rows whose column changed its type since the files were written, if they may not fit the new type.

        The statistics of a file must show that all values fit. Compacted files have no new rows.
        """
        added = [e.file for e in change.entries if e.kind is FileKind.ADD and e.file.schema_id != self._schema_id]
        if not added or change.kind is CommitKind.COMPACT:
            return
        newest = load_schema(self._context.engine, self._context.paths, self._schema_id)
        misfit = next(iter(TypeProof(self._context, newest).find_misfits(added)), None)
        if misfit is not None:
            wanted = format_type(misfit.change.wanted.with_nullable(True))
            raise CommitConflict(
                f"Column {misfit.change.name!r} became {wanted}, but {misfit.describe()}",
                files=[misfit.file_name],
                hint="open the table again, and write the rows under its new schema",
            )

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
        return to_entries(live.filter(may_conflict(live, change, bool(schema.primary_keys))))

    def write_index_manifest_after(self, change: Change, writer: ManifestWriter) -> str | None:
        """Return the name of the index manifest after the change; None if no index file is live.

        A change without index files keeps the index manifest of the base.
        """
        if not change.index:
            return self.snapshot.index_manifest if self.snapshot else None
        live = live_index_files(self.index_files, change.index, self._context.table.is_bucketed)
        return writer.write_index_manifest(live)
