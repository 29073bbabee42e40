"""What an overwrite takes away, seen from the snapshot that it is built on.

Law: every live file of the partitions meant goes, then the new files come; postponed files stay unless the table is a
postpone table; with `dynamic` the partitions are those of the new files. Source:
`FileStoreCommitImpl.tryOverwritePartition`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from paimon.domain.commit.entries import Change
from paimon.domain.errors import InvalidRequest
from paimon.domain.manifest.entries import FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.partition.spec import parse_spec
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import DataField


@frozen
class PartitionFilter:
    """Which partitions an overwrite means: those in `only` where that is given, else those that match the spec."""

    fields: tuple[DataField, ...]
    spec: tuple[tuple[str, Any], ...] = ()
    only: frozenset[bytes] | None = None

    def __call__(self, partition: bytes) -> bool:
        """Whether this partition is meant."""
        if self.only is not None:
            return partition in self.only
        row = deserialize(partition, [f.type for f in self.fields])
        values = dict(zip([f.name for f in self.fields], row, strict=True))
        return all(values[name] == wanted for name, wanted in self.spec)

    def check_holds(self, change: Change) -> None:
        """Refuse new files outside the partitions meant."""
        for entry in change.entries:
            if not self(entry.partition):
                raise InvalidRequest(
                    f"file {entry.file.file_name} lies outside the partition that is overwritten: {dict(self.spec)}",
                    subject=entry.file.file_name,
                    hint="write only rows of that partition, or name the partition that the rows belong to",
                )


def partitions_of_spec(table: TableDefinition, spec: Mapping[str, object]) -> PartitionFilter:
    """The partitions that a static spec names (some of the partition columns; none: all partitions)."""
    fields = table.schema.partition_fields
    default_name = table.options.get("partition.default-name") or "__DEFAULT_PARTITION__"
    return PartitionFilter(fields, tuple(parse_spec(spec, fields, default_name).items()))


def partitions_written(change: Change) -> PartitionFilter:
    """The partitions that the change brings files of."""
    return PartitionFilter((), (), frozenset(e.partition for e in change.entries))


def overwriting(
    change: Change,
    live: Sequence[ManifestEntry],
    live_index: Sequence[IndexManifestEntry],
    meant: PartitionFilter,
    postpone: bool,
) -> Change:
    """The OVERWRITE of the files and index files of the partitions meant by those that `change` brings."""
    gone = [e.deleted() for e in live if meant(e.partition) and (e.bucket >= 0 or postpone)]
    gone_index = [evolve(e, kind=FileKind.DELETE) for e in live_index if meant(e.partition)]
    return Change(
        CommitKind.OVERWRITE,
        (*gone, *(e for e in change.entries if e.kind is FileKind.ADD)),
        (),
        (*gone_index, *(e for e in change.index if e.kind is FileKind.ADD)),
    )
