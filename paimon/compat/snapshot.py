"""Snapshots and tags as pypaimon returns them.

Source: `pypaimon.snapshot.snapshot`, `pypaimon.tag.tag`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import attrs

from paimon import Snapshot as PaimonSnapshot
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.snapshot.snapshot import Tag as PaimonTag
from paimon.domain.snapshot.snapshot_json import snapshot_from_json

if TYPE_CHECKING:
    from paimon.compat.file_io import FileIO

__all__ = ["BATCH_COMMIT_IDENTIFIER", "Changelog", "Snapshot", "Tag", "from_paimon_snapshot", "from_paimon_tag"]

_SAME = tuple(name for name in attrs.fields_dict(PaimonSnapshot) if name not in ("commit_kind", "operation", "unknown"))


@dataclass(kw_only=True)
class Snapshot:
    """One committed state of a table; times are epoch milliseconds."""

    version: int = 3
    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: str
    time_millis: int
    total_record_count: int | None = None
    delta_record_count: int | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    next_row_id: int | None = None
    properties: dict[str, str] | None = None
    uuid: str | None = None
    writer_version: str | None = None


_MEMBERS = tuple(member.name for member in fields(Snapshot))


@dataclass(kw_only=True)
class Changelog(Snapshot):
    """A snapshot whose changelog outlives it."""

    @staticmethod
    def from_snapshot(snapshot: Snapshot) -> Changelog:
        """Return the changelog of a snapshot."""
        return Changelog(**{name: getattr(snapshot, name) for name in _MEMBERS})

    @staticmethod
    def from_json(json_str: str) -> Changelog:
        """Parse the content of the file of a changelog."""
        return Changelog(**_members(snapshot_from_json(json_str.encode("utf8"), "changelog")))

    @staticmethod
    def from_path(file_io: FileIO, path: str) -> Changelog:
        """Read the file of a changelog."""
        try:
            return Changelog.try_from_path(file_io, path)
        except FileNotFoundError as error:
            raise RuntimeError(f"Failed to read changelog from path {path}") from error

    @staticmethod
    def try_from_path(file_io: FileIO, path: str) -> Changelog:
        """Read the file of a changelog; a missing file is a FileNotFoundError."""
        return Changelog.from_json(file_io.read_file_utf8(path))


@dataclass(kw_only=True)
class Tag(Snapshot):
    """A named state of a table; the creation time is known of tags with a time to live."""

    tag_create_time: datetime | None = None
    tag_time_retained: timedelta | None = None

    @staticmethod
    def from_snapshot_and_tag_ttl(
        snapshot: Snapshot, tag_time_retained: timedelta | None, tag_create_time: datetime
    ) -> Tag:
        """Return the tag of a snapshot."""
        members = {name: getattr(snapshot, name) for name in _MEMBERS}
        return Tag(**members, tag_create_time=tag_create_time, tag_time_retained=tag_time_retained)

    def trim_to_snapshot(self) -> Snapshot:
        """Return the state without the members of the tag."""
        return Snapshot(**{name: getattr(self, name) for name in _MEMBERS})


def _members(snapshot: PaimonSnapshot) -> dict[str, Any]:
    same = {name: getattr(snapshot, name) for name in _SAME}
    return {**same, "commit_kind": snapshot.commit_kind.value, "properties": dict(snapshot.properties) or None}


def from_paimon_snapshot(snapshot: PaimonSnapshot) -> Snapshot:
    """Return the snapshot of pypaimon for one of this library."""
    return Snapshot(**_members(snapshot))


def from_paimon_tag(tag: PaimonTag) -> Tag:
    """Return the tag of pypaimon for one of this library."""
    created = None if tag.create_time is None else datetime.fromisoformat(tag.create_time)
    retained = None if tag.retained_seconds is None else timedelta(seconds=tag.retained_seconds)
    return Tag(**_members(tag.snapshot), tag_create_time=created, tag_time_retained=retained)
