"""The values that catalogs of pypaimon return: databases, partitions, tags and pages of them.

Source: `pypaimon.catalog.database`, `pypaimon.api.api_response`, `pypaimon.snapshot.table_snapshot`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Generic, TypeVar

from attrs import define

from paimon.compat.snapshot import Snapshot

T = TypeVar("T")


class Database:
    """A database."""

    def __init__(self, name: str, options: dict[str, str], comment: str | None = None) -> None:
        self.name = name
        self.options = options
        self.comment = comment


@define
class PagedList(Generic[T]):
    """A part of a listing, and the token with which it continues."""

    elements: list[T]
    next_page_token: str | None = None


@define
class Partition:
    """A partition and its size."""

    spec: dict[str, str]
    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int = 0
    total_buckets: int = 0
    done: bool = False
    options: dict[str, str] | None = None


@define
class GetTagResponse:
    """A tag of a catalog: the creation time is in epoch milliseconds, the time to live in the form of ISO 8601."""

    tag_name: str | None = None
    snapshot: Snapshot | None = None
    tag_create_time: int | None = None
    tag_time_retained: str | None = None


@define
class TableSnapshot:
    """The latest snapshot of a table, with the size of the table."""

    snapshot: Snapshot
    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int = 0


def to_iso_duration(duration: timedelta) -> str:
    """Return a duration in the form of ISO 8601, as Java writes it.

    >>> to_iso_duration(timedelta(days=1, minutes=5))
    'PT24H5M'
    """
    hours, rest = divmod(duration, timedelta(hours=1))
    minutes, rest = divmod(rest, timedelta(minutes=1))
    seconds = f"{rest.total_seconds():.6f}".rstrip("0").rstrip(".")
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{seconds}S" if rest else ""]
    return "PT" + ("".join(parts) or "0S")


def cut_page(names: list[str], size: int | None, token: str | None) -> tuple[list[str], str | None]:
    """Return a page of sorted names, and the token of the next page."""
    left = [name for name in names if token is None or name > token]
    if not size or size >= len(left):
        return left, None
    return left[:size], left[size - 1]


def to_partition(row: Mapping[str, Any]) -> Partition:
    """Return the partition of a row of the system table `partitions`."""
    spec = dict(part.partition("=")[::2] for part in str(row["partition"]).split("/"))
    updated = row.get("last_update_time")
    millis = int(updated.timestamp() * 1000) if updated is not None else 0
    return Partition(spec, row["record_count"], row["file_size_in_bytes"], row["file_count"], millis)
