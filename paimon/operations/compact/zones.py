"""The wall clock of a time zone that an option names.

Invariant: an empty name is the zone of this machine. Java's forms are known: region names, `Z`, `+08:00`, `UTC+8`,
`GMT+08:00`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from paimon.domain.errors import InvalidRequest
from paimon.ports.engine import Engine

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?")


def to_local_millis(engine: Engine, millis: int, zone: str | None = None) -> int:
    """Convert epoch milliseconds to the wall clock of a time zone, by default that of this machine.

    The result is the wall clock as epoch milliseconds, as if the zone were UTC.
    """
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
