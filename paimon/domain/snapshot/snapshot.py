"""Snapshots and tags as values, and as files, with their hints.

Invariant: A published snapshot is immutable. Its files are those of its base manifest list, changed by its delta
manifest list. `snapshot_from_json(snapshot_to_json(s))` equals `s`, including members of other versions. A file from
Java 1.4 is written back byte by byte. A hint that is not a positive number is ignored.
Source: `Snapshot`, `Tag`, `HintFileUtils`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any

from attrs import field, frozen

from paimon.domain.errors import Unsupported
from paimon.domain.json_text import LONG_MAX, SNAPSHOT_FILE, Members, dump_json, load_object
from paimon.domain.markup import format_count, format_time
from paimon.domain.report import CardDisplay, Report
from paimon.domain.secrets import redact_option

BATCH_COMMIT_IDENTIFIER = 9_223_372_036_854_775_807
"""The commit identifier of every batch commit."""
NO_WATERMARK = -(2**63)
"""The value that Java writes for a missing watermark."""


class CommitKind(Enum):
    """The kind of change that a snapshot made."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@frozen(hash=False, repr=False)
class Snapshot(CardDisplay):
    """The content of a snapshot file. Times are epoch milliseconds, counts are physical rows, sizes are bytes.

    `unknown` holds members that this library does not know, so that they are written back.
    """

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int | None = None
    delta_record_count: int | None = None
    changelog_record_count: int | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] = field(factory=dict)
    next_row_id: int | None = None
    uuid: str | None = None
    writer_version: str | None = None
    operation: str | None = None
    version: int = 3
    unknown: Mapping[str, Any] = field(factory=dict)

    @property
    def identity(self) -> str:
        """A text that differs between snapshots with the same id: the uuid, or the delta manifest list for Java 1.x."""
        return self.uuid or self.delta_manifest_list

    @property
    def summary(self) -> str:
        """The snapshot in one line: id, kind, time, and the number of records with its change."""
        records = "" if self.total_record_count is None else f" · {format_count(self.total_record_count, 'record')}"
        delta = "" if self.delta_record_count is None else f" ({self.delta_record_count:+,})"
        return f"{self.id} · {self.commit_kind.value} · {format_time(self.time_millis)}{records}{delta}"

    def __repr__(self) -> str:
        return f"Snapshot({self.summary}, schema {self.schema_id}, user {self.commit_user!r})"

    def _report(self) -> Report:
        identifier = "batch" if self.commit_identifier == BATCH_COMMIT_IDENTIFIER else str(self.commit_identifier)
        facts = {
            "kind": self.commit_kind.value,
            "committed": format_time(self.time_millis),
            "by": f"{self.commit_user}, identifier {identifier}",
            "schema": str(self.schema_id),
            "records": _format_count(self.total_record_count),
            "records added": _format_count(self.delta_record_count),
            "changelog records": _format_count(self.changelog_record_count),
            "watermark": "" if self.watermark in (None, NO_WATERMARK) else str(self.watermark),
            "properties": "\n".join(f"{name} = {redact_option(name, text)}" for name, text in self.properties.items()),
            "written by": self.writer_version or "",
        }
        return Report(f"snapshot {self.id}", "Snapshot", facts.items())

    def is_same(self, other: Snapshot) -> bool:
        """Return whether both are the same commit.

        The delta manifest list is compared, because copies in tags and changelogs by Java 1.4 lose the uuid.
        """
        return self.delta_manifest_list == other.delta_manifest_list


def _format_count(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


@frozen(hash=False)
class Tag(CardDisplay):
    """A named copy of a snapshot that protects it from expiry.

    `create_time` (local ISO text) and `retained_seconds` are set only if the tag has a time to live.
    """

    name: str
    snapshot: Snapshot
    create_time: str | None = None
    retained_seconds: float | None = None

    def _report(self) -> Report:
        facts = {
            "snapshot": self.snapshot.summary,
            "created": (self.create_time or "").replace("T", " "),
            "retained": "" if self.retained_seconds is None else f"{self.retained_seconds:,g} s",
        }
        return Report(f"tag {self.name}", "Tag", facts.items())


NEWEST_VERSION = 3

_MEMBERS: Mapping[str, str] = {
    "version": "version",
    "uuid": "uuid",
    "id": "id",
    "schemaId": "schema_id",
    "baseManifestList": "base_manifest_list",
    "baseManifestListSize": "base_manifest_list_size",
    "deltaManifestList": "delta_manifest_list",
    "deltaManifestListSize": "delta_manifest_list_size",
    "changelogManifestList": "changelog_manifest_list",
    "changelogManifestListSize": "changelog_manifest_list_size",
    "indexManifest": "index_manifest",
    "commitUser": "commit_user",
    "writerVersion": "writer_version",
    "commitIdentifier": "commit_identifier",
    "commitKind": "commit_kind",
    "timeMillis": "time_millis",
    "totalRecordCount": "total_record_count",
    "deltaRecordCount": "delta_record_count",
    "changelogRecordCount": "changelog_record_count",
    "watermark": "watermark",
    "statistics": "statistics",
    "properties": "properties",
    "nextRowId": "next_row_id",
    "operation": "operation",
}
"""The attribute for each JSON member, in the order in which members are written."""
_TAG_MEMBERS = ("tagCreateTime", "tagTimeRetained")
_TIME = re.compile(r"(\d{1,9})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """Return the bytes of a snapshot file. Members without a value are left out."""
    return dump_json(_to_members(snapshot))


def _to_members(snapshot: Snapshot) -> dict[str, Any]:
    values = {name: getattr(snapshot, attribute) for name, attribute in _MEMBERS.items()}
    values["commitKind"] = snapshot.commit_kind.value
    values["properties"] = dict(snapshot.properties) or None
    return {**{k: v for k, v in values.items() if v is not None}, **snapshot.unknown}


def snapshot_from_json(data: bytes, path: str) -> Snapshot:
    """Decode a snapshot file, or the file of a decoupled changelog; unknown members are kept in `unknown`.

    Invalid content raises `CorruptTable`. A version or commit kind of a newer release raises `Unsupported`.
    """
    return _from_members(load_object(data, path, SNAPSHOT_FILE))


def _from_members(members: Members) -> Snapshot:
    return Snapshot(
        version=members.version("snapshot", NEWEST_VERSION),
        uuid=members.optional_text("uuid"),
        id=members.integer("id", 1),
        schema_id=members.integer("schemaId", 0),
        base_manifest_list=members.text("baseManifestList"),
        base_manifest_list_size=members.optional_integer("baseManifestListSize", 0),
        delta_manifest_list=members.text("deltaManifestList"),
        delta_manifest_list_size=members.optional_integer("deltaManifestListSize", 0),
        changelog_manifest_list=members.optional_text("changelogManifestList"),
        changelog_manifest_list_size=members.optional_integer("changelogManifestListSize", 0),
        index_manifest=members.optional_text("indexManifest"),
        commit_user=members.text("commitUser"),
        writer_version=members.optional_text("writerVersion"),
        commit_identifier=members.integer("commitIdentifier"),
        commit_kind=_read_commit_kind(members),
        time_millis=members.integer("timeMillis"),
        total_record_count=members.optional_integer("totalRecordCount", 0),
        delta_record_count=members.optional_integer("deltaRecordCount"),
        changelog_record_count=members.optional_integer("changelogRecordCount", 0),
        watermark=members.optional_integer("watermark"),
        statistics=members.optional_text("statistics"),
        properties=members.text_map("properties"),
        next_row_id=members.optional_integer("nextRowId", 0),
        operation=members.optional_text("operation"),
        unknown=members.without(frozenset((*_MEMBERS, *_TAG_MEMBERS))),
    )


def _read_commit_kind(members: Members) -> CommitKind:
    text = members.text("commitKind")
    try:
        return CommitKind(text)
    except ValueError as error:
        raise Unsupported(f"commit kind {text!r} in {members.path}") from error


def tag_to_json(tag: Tag) -> bytes:
    """Return the bytes of a tag file; a creation time that is not a local ISO time raises ValueError."""
    members = _to_members(tag.snapshot)
    if tag.create_time is not None:
        members["tagCreateTime"] = _to_time_parts(tag.create_time)
    if tag.retained_seconds is not None:
        members["tagTimeRetained"] = Decimal(f"{tag.retained_seconds:.9f}")
    return dump_json(members)


def tag_from_json(name: str, data: bytes, path: str) -> Tag:
    """Decode a tag file: CorruptTable if invalid, Unsupported for a newer version or commit kind."""
    members = load_object(data, path, SNAPSHOT_FILE)
    return Tag(name, _from_members(members), _read_create_time(members), _read_retained_seconds(members))


def _to_time_parts(iso: str) -> list[int]:
    """Convert ``2026-11-21T12:21:19.5`` to Java's ``[2026, 11, 21, 12, 21, 19, 500000000]``, without trailing zeros."""
    match = _TIME.fullmatch(iso)
    if match is None:
        raise ValueError(f"{iso!r} is not a local ISO time")
    parts = [int(p) for p in match.groups(default="0")[:6]] + [int((match[7] or "").ljust(9, "0"))]
    while len(parts) > 5 and parts[-1] == 0:
        parts.pop()
    return parts


def _read_create_time(members: Members) -> str | None:
    value = members.get("tagCreateTime")
    if value is None or (isinstance(value, str) and _TIME.fullmatch(value)):
        return value
    whole = isinstance(value, list) and all(isinstance(v, int) and not isinstance(v, bool) for v in value)
    if not whole or not 5 <= len(value) <= 7 or not all(0 <= v < 10**9 for v in value):
        raise members.corrupt("tagCreateTime", "is not a local time [y, M, d, h, m, s, nanos]")
    year, month, day, hour, minute, second, nanos = (*value, 0, 0)[:7]
    if month > 12 or day > 31 or max(hour, minute, second) > 60:
        raise members.corrupt("tagCreateTime", "is not a local time [y, M, d, h, m, s, nanos]")
    fraction = f".{nanos:09d}" if nanos else ""
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}"


def _read_retained_seconds(members: Members) -> float | None:
    value = members.get("tagTimeRetained")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value < 2**63:
        raise members.corrupt("tagTimeRetained", "is not a number of seconds")
    return float(value)


def parse_hint(data: bytes) -> int | None:
    """Return the id in a LATEST or EARLIEST file; None if the content is not a positive number."""
    text = data.strip()
    value = int(text) if text.isdigit() and len(text) <= 19 else 0
    return value if 0 < value <= LONG_MAX else None
