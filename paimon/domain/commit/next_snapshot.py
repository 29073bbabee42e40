"""Compute the next snapshot from its base and the new content.

Invariant: The total record count is that of the base plus the delta. The watermark never decreases. Statistics are
inherited until the schema changes.
Source: `FileStoreCommitImpl.tryCommitOnce`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from paimon.domain.manifest.entries import FileKind, ManifestEntry
from paimon.domain.snapshot.snapshot import NO_WATERMARK, CommitKind, Snapshot


@frozen
class WrittenList:
    """A written manifest list: its file name, and its size in bytes."""

    name: str
    size: int


@frozen(hash=False)
class SnapshotContent:
    """A snapshot's new content: the complete `index_manifest`; `statistics` None inherits the base's."""

    kind: CommitKind
    base_list: WrittenList
    delta_list: WrittenList
    delta_rows: int
    changelog_list: WrittenList | None = None
    changelog_rows: int = 0
    index_manifest: str | None = None
    statistics: str | None = None
    watermark: int | None = None
    properties: Mapping[str, str] = field(factory=dict)
    next_row_id: int = 0
    operation: str | None = None


@frozen
class Stamp:
    """The commit user and commit identifier, the time, the schema and a new uuid."""

    commit_user: str
    commit_identifier: int
    schema_id: int
    uuid: str
    time_millis: int


def next_snapshot(base: Snapshot | None, content: SnapshotContent, stamp: Stamp) -> Snapshot:
    """Return the snapshot that follows the base; it has id 1 if the table has no snapshot."""
    changelog = content.changelog_list
    total = (base.total_record_count or 0) if base else 0
    return Snapshot(
        id=base.id + 1 if base else 1,
        uuid=stamp.uuid,
        schema_id=stamp.schema_id,
        base_manifest_list=content.base_list.name,
        base_manifest_list_size=content.base_list.size,
        delta_manifest_list=content.delta_list.name,
        delta_manifest_list_size=content.delta_list.size,
        changelog_manifest_list=changelog.name if changelog else None,
        changelog_manifest_list_size=changelog.size if changelog else None,
        changelog_record_count=content.changelog_rows if changelog else None,
        index_manifest=content.index_manifest,
        commit_user=stamp.commit_user,
        commit_identifier=stamp.commit_identifier,
        commit_kind=content.kind,
        time_millis=stamp.time_millis,
        total_record_count=total + content.delta_rows,
        delta_record_count=content.delta_rows,
        watermark=carry_watermark(base.watermark if base else None, content.watermark),
        statistics=content.statistics or _inherited_statistics(base, stamp.schema_id),
        properties=content.properties,
        next_row_id=content.next_row_id,
        operation=content.operation,
    )


def delta_rows(entries: Iterable[ManifestEntry]) -> int:
    """Return the rows of the added files minus those of the deleted files."""
    return sum(e.file.row_count if e.kind is FileKind.ADD else -e.file.row_count for e in entries)


def carry_watermark(before: int | None, given: int | None) -> int | None:
    """Return the later of both watermarks; None if neither exists."""
    known = [w for w in (before, given) if w is not None and w != NO_WATERMARK]
    return max(known, default=None)


def _inherited_statistics(base: Snapshot | None, schema_id: int) -> str | None:
    return base.statistics if base and base.schema_id == schema_id else None
