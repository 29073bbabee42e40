"""Snapshots, tags and instants by the names of pypaimon.

Source: `pypaimon.snapshot`, `pypaimon.tag`, `pypaimon.table.instant`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import attrs
from attrs import define

from paimon import Snapshot as PaimonSnapshot
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, snapshot_from_json
from paimon.domain.snapshot.snapshot import Tag as PaimonTag

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
    return {
        **same,
        "commit_kind": snapshot.commit_kind.value,
        "properties": dict(snapshot.properties) or None,
        "writer_version": snapshot.unknown.get("writerVersion"),
    }


def from_paimon_snapshot(snapshot: PaimonSnapshot) -> Snapshot:
    """Return the snapshot of pypaimon for one of this library."""
    return Snapshot(**_members(snapshot))


def from_paimon_tag(tag: PaimonTag) -> Tag:
    """Return the tag of pypaimon for one of this library."""
    created = None if tag.create_time is None else datetime.fromisoformat(tag.create_time)
    retained = None if tag.retained_seconds is None else timedelta(seconds=tag.retained_seconds)
    return Tag(**_members(tag.snapshot), tag_create_time=created, tag_time_retained=retained)


@define
class Instant:
    """A snapshot (int) or a tag (str)."""

    value: int | str

    @staticmethod
    def snapshot(snapshot_id: int) -> SnapshotInstant:
        """Return the state of a snapshot."""
        return SnapshotInstant(snapshot_id)

    @staticmethod
    def tag(tag_name: str) -> TagInstant:
        """Return the state of a tag."""
        return TagInstant(tag_name)

    def to_dict(self) -> dict[str, Any]:
        """Return the members of its JSON."""
        if isinstance(self.value, int):
            return {"type": "snapshot", "snapshotId": self.value}
        return {"type": "tag", "tagName": self.value}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Instant:
        """Return the state for the members of its JSON."""
        kind = data.get("type")
        if kind == "snapshot":
            return SnapshotInstant(data["snapshotId"])
        if kind == "tag":
            return TagInstant(data["tagName"])
        raise ValueError(f"Unknown instant type: {kind}")


class SnapshotInstant(Instant):
    """The state of a snapshot."""

    @property
    def snapshot_id(self) -> int | str:
        """The id of the snapshot."""
        return self.value


class TagInstant(Instant):
    """The state of a tag."""

    @property
    def tag_name(self) -> int | str:
        """The name of the tag."""
        return self.value
