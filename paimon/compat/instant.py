"""The states to which a catalog rolls a table back.

Source: `pypaimon.table.instant`.
"""

from __future__ import annotations

from attrs import define


@define
class Instant:
    """A snapshot (int) or a tag (str)."""

    value: int | str

    @staticmethod
    def snapshot(snapshot_id: int) -> Instant:
        """Return the state of a snapshot."""
        return Instant(snapshot_id)

    @staticmethod
    def tag(tag_name: str) -> Instant:
        """Return the state of a tag."""
        return Instant(tag_name)
