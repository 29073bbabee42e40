"""Snapshot files, tag files and hints.

Law: `snapshot_from_json(snapshot_to_json(s))` is `s`, members of other versions included; a file of Java 1.4 is
written back byte for byte. A hint is only a hint: whatever is not a positive number is no hint. Source: `Snapshot`,
`Tag`, `HintFileUtils`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from paimon.domain.errors import Unsupported
from paimon.domain.json_text import INT_MAX, LONG_MAX, SNAPSHOT_FILE, Members, dump_json, load_object
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot, Tag

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
"""JSON member -> attribute, in the order in which they are written."""
_TAG_MEMBERS = ("tagCreateTime", "tagTimeRetained")
_TIME = re.compile(r"(\d{1,9})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """The bytes of the snapshot's file; members without a value are left out."""
    return dump_json(_members(snapshot))


def _members(snapshot: Snapshot) -> dict[str, Any]:
    values = {name: getattr(snapshot, attribute) for name, attribute in _MEMBERS.items()}
    values["commitKind"] = snapshot.commit_kind.value
    values["properties"] = dict(snapshot.properties) or None
    return {**{k: v for k, v in values.items() if v is not None}, **snapshot.unknown}


def snapshot_from_json(data: bytes, path: str) -> Snapshot:
    """The snapshot (or long-lived changelog) that the file `path` holds.

    Raises
    ------
    CorruptTable
        No JSON, missing members, members of a wrong type or range.
    Unsupported
        A version or a commit kind of newer releases.
    """
    return _snapshot(load_object(data, path, SNAPSHOT_FILE))


def _snapshot(members: Members) -> Snapshot:
    version = members.optional_integer("version", 0, INT_MAX)
    version = 1 if version is None else version
    if not 1 <= version <= NEWEST_VERSION:
        raise Unsupported(f"snapshot version {version} in {members.path}", hint=f"known are 1 to {NEWEST_VERSION}")
    return Snapshot(
        version=version,
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
        commit_kind=_commit_kind(members),
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


def _commit_kind(members: Members) -> CommitKind:
    text = members.text("commitKind")
    try:
        return CommitKind(text)
    except ValueError as error:
        raise Unsupported(f"commit kind {text!r} in {members.path}") from error


def tag_to_json(tag: Tag) -> bytes:
    """The bytes of the tag's file."""
    members = _members(tag.snapshot)
    if tag.create_time is not None:
        members["tagCreateTime"] = _time_parts(tag.create_time)
    if tag.retained_seconds is not None:
        members["tagTimeRetained"] = Decimal(f"{tag.retained_seconds:.9f}")
    return dump_json(members)


def tag_from_json(name: str, data: bytes, path: str) -> Tag:
    """The tag `name` that the file `path` holds; see `snapshot_from_json`."""
    members = load_object(data, path, SNAPSHOT_FILE)
    return Tag(name, _snapshot(members), _create_time(members), _retained_seconds(members))


def _time_parts(iso: str) -> list[int]:
    """``2026-11-21T12:21:19.5`` as Java's ``[2026, 11, 21, 12, 21, 19, 500000000]``; zeros at the end are left out."""
    match = _TIME.fullmatch(iso)
    if match is None:
        raise ValueError(f"{iso!r} is no local ISO time")
    parts = [int(p) for p in match.groups(default="0")[:6]] + [int((match[7] or "").ljust(9, "0"))]
    while len(parts) > 5 and parts[-1] == 0:
        parts.pop()
    return parts


def _create_time(members: Members) -> str | None:
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


def _retained_seconds(members: Members) -> float | None:
    value = members.get("tagTimeRetained")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value < 2**63:
        raise members.corrupt("tagTimeRetained", "is not a number of seconds")
    return float(value)


def parse_hint(data: bytes) -> int | None:
    """The id that a LATEST or EARLIEST file names; None where it holds anything but a positive number."""
    text = data.strip()
    value = int(text) if text.isdigit() and len(text) <= 19 else 0
    return value if 0 < value <= LONG_MAX else None
