"""The golden reads that are not in reach yet, each with its reason. This list may only shrink."""

from __future__ import annotations

from golden_tables import GoldenRead


def unreached(read: GoldenRead) -> str | None:
    """Why this read is not in reach; None where it is."""
    if read.kind == "changes":
        return "changelog reads"
    return None
