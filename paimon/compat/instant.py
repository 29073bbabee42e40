"""The states to which a catalog rolls a table back.

Source: `pypaimon.table.instant`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define


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
