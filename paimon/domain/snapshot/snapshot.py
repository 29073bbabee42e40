"""Snapshots and tags as values.

Invariant: A published snapshot is immutable. Its files are those of its base manifest list, changed by its delta
manifest list.
Source: `Snapshot`, `Tag`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import field, frozen

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
