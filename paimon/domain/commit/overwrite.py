"""Compute what an overwrite removes from the snapshot that it is committed on.

Invariant: Each live file of the selected partitions is deleted, and then the new files are added. Postponed files stay,
except in a postpone table. A dynamic overwrite selects the partitions of the new files.
Source: `FileStoreCommitImpl.tryOverwritePartition`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from paimon.domain.columns.java_float_order import compare_values
from paimon.domain.commit.entries import Change
from paimon.domain.errors import InvalidRequest
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.partition.partition_text import parse_partition_spec
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import DataField


@frozen
class PartitionFilter:
    """The partitions that an overwrite replaces."""

    fields: tuple[DataField, ...]
    # Column names and internal values that a partition must have; empty selects all partitions
    spec: tuple[tuple[str, Any], ...] = ()
    # Serialized partitions; if given, they are selected instead of those of `spec`
    only: frozenset[bytes] | None = None

    def __call__(self, partition: bytes) -> bool:
        """Return whether the overwrite replaces this partition."""
        if self.only is not None:
            return partition in self.only
        row = deserialize(partition, [f.type for f in self.fields])
        values = dict(zip([f.name for f in self.fields], row, strict=True))
        return all(compare_values(values[name], wanted) == 0 for name, wanted in self.spec)

    def check_holds(self, change: Change) -> None:
        """Refuse new files outside the selected partitions."""
        for entry in change.entries:
            if not self(entry.partition):
                raise InvalidRequest(
                    f"File {entry.file.file_name!r} is outside the partition to overwrite: {dict(self.spec)}",
                    subject=entry.file.file_name,
                    hint="write only rows of that partition, or name the partition of the rows",
                )


def partitions_of_spec(table: TableDefinition, spec: Mapping[str, object]) -> PartitionFilter:
    """Return the partitions that a static spec selects; an empty spec selects all partitions."""
    fields = table.schema.partition_fields
    default_name = table.options.get("partition.default-name") or "__DEFAULT_PARTITION__"
    return PartitionFilter(fields, tuple(parse_partition_spec(spec, fields, default_name).items()))


def partitions_written(change: Change) -> PartitionFilter:
    """Return the partitions of the files that the change adds."""
    return PartitionFilter((), (), frozenset(e.partition for e in change.entries))


def build_overwrite(
    change: Change,
    live: Sequence[ManifestEntry],
    live_index: Sequence[IndexManifestEntry],
    selected: PartitionFilter,
    postpone: bool,
) -> Change:
    """Return the OVERWRITE that replaces the files of the selected partitions; with `postpone` also postponed files."""
    gone = [e.to_delete_entry() for e in live if selected(e.partition) and (e.bucket >= 0 or postpone)]
    gone_index = [evolve(e, kind=FileKind.DELETE) for e in live_index if selected(e.partition)]
    return Change(
        CommitKind.OVERWRITE,
        (*gone, *(e for e in change.entries if e.kind is FileKind.ADD)),
        (),
        (*gone_index, *(e for e in change.index if e.kind is FileKind.ADD)),
        key_index=change.key_index,
        read_state=change.read_state,
    )
