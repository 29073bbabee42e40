"""Read the present time of the storage, by which the age of its files is measured, and the wall clock of a time zone.

Invariant: the age of a file is never the difference of the storage's time and the local clock, because either may be
wrong. The time that is returned is not later than the storage's present time.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from attrs import frozen

from paimon.domain.errors import InvalidRequest, PaimonWarning, StorageError
from paimon.domain.paths import join_path
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

_TOLERANCE_MILLIS = 60_000
"""Clocks that differ less are taken for equal. Some storages round the times of files to seconds."""


@frozen
class OlderThan:
    """Which files are old: those last written before a moment (epoch milliseconds), or else longer ago than an age."""

    age_millis: int
    moment_millis: int | None = None

    def to_moment_millis(self, now_millis: int) -> int:
        """Return the moment before which an old file was last written."""
        return now_millis - self.age_millis if self.moment_millis is None else self.moment_millis


def read_storage_millis(context: TableContext) -> int | None:
    """Return the storage's time by a new file, else by the newest metadata file; None without times."""
    return probe_storage_millis(context) or find_newest_metadata_millis(context)


def probe_storage_millis(context: TableContext) -> int | None:
    """Return the storage's time by a trial file, and warn of a wrong clock; None if it cannot be written."""
    # A process that dies here leaves an orphan file: those of this directory are removed.
    path = join_path(context.paths.manifests, f".time-{context.engine.ids.uuid()}")
    clock, files = context.engine.clock, context.files
    started = clock.now_millis()
    try:
        files.replace(path, b"")
        status = files.status(path)
    except StorageError:
        status = None
    finally:
        with suppress(StorageError):
            files.delete([path])
    if status is None or status.modified_millis is None:
        return None
    _warn_about_local_clock(context, started, status.modified_millis, clock.now_millis())
    return status.modified_millis + 1  # files that were written before are older, in the same millisecond too


def find_newest_metadata_millis(context: TableContext) -> int | None:
    """Return the time of the newest file in the directories of snapshots, schemas and manifests; None without times."""
    directories = (context.paths.snapshots, context.paths.schemas, context.paths.manifests)
    return find_newest_millis(status for directory in directories for status in context.files.list(directory))


def find_newest_millis(statuses: Iterable[FileStatus]) -> int | None:
    """Return a time just after the newest of these files was written; None if none has a time."""
    times = [s.modified_millis for s in statuses if s.modified_millis is not None and not s.is_directory]
    return max(times) + 1 if times else None


def _warn_about_local_clock(context: TableContext, started: int, modified: int, ended: int) -> None:
    ahead = started - modified if started > modified else ended - modified
    if started - _TOLERANCE_MILLIS <= modified <= ended + _TOLERANCE_MILLIS:
        return
    context.engine.observer.count("storage.clock_differs", 1)
    offset = f"{abs(ahead) // 1000} s {'ahead of' if ahead > 0 else 'behind'}"
    warnings.warn(
        f"Table {context.table.table_name!r}: the clock of this machine is {offset} the clock of the storage. "
        "The age of files is measured by the latter.",
        PaimonWarning,
        stacklevel=2,
    )


_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?")


def to_local_millis(engine: Engine, millis: int, zone: str | None = None) -> int:
    """Convert epoch milliseconds to the wall clock of a zone (by default local), as if that were UTC."""
    name = (zone or "").strip()
    if not name:
        return millis + engine.clock.local_offset_millis(millis)
    if name in ("Z", "UTC", "GMT", "UT"):
        return millis
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return millis + (minutes if offset[1] == "+" else -minutes) * 60_000
    try:
        there = datetime.fromtimestamp(millis / 1000, UTC).astimezone(ZoneInfo(name)).utcoffset()
    except (ValueError, OSError, KeyError) as error:
        hint = "use a name such as Asia/Shanghai, or an offset such as +08:00"
        raise InvalidRequest(f"Time zone {name!r} is not known.", subject=name, hint=hint) from error
    return millis + round(there.total_seconds() * 1000) if there else millis
