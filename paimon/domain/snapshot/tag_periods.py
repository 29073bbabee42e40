"""Periods of automatic tags: their names, and the period of a time.

Times are local wall-clock times in milliseconds, encoded as if they were UTC. A tag is named after the start of its
period.

Invariant: `parse_name(format_name(t))` is `t` if `t` is the start of a period.
Source: `TagPeriodHandler`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.parse import parse_duration_millis
from paimon.domain.options.table_options import TableOptions

_HOUR = 3_600_000
_EPOCH = datetime(1970, 1, 1)
_LENGTHS: Mapping[str, int] = {"daily": 24 * _HOUR, "hourly": _HOUR, "two-hours": 2 * _HOUR}
_DAYS = {"with_dashes": "%Y-%m-%d", "without_dashes": "%Y%m%d", "without_dashes_and_spaces": "%Y%m%d"}
_HOURS = {"with_dashes": "%Y-%m-%d %H", "without_dashes": "%Y%m%d %H", "without_dashes_and_spaces": "%Y%m%d%H"}
_MINUTES = "%Y%m%d%H%M"


@frozen
class TagPeriods:
    """Periods of one length, and the format of their names."""

    # the length of a period
    millis: int
    # a format for `strftime`
    name_format: str
    # periods are days; a blank and more text may then follow a name
    daily: bool = False

    @classmethod
    def of(cls, options: TableOptions) -> TagPeriods:
        """Return the periods that the options `tag.creation-period*` and `tag.period-formatter` define."""
        duration = options.get("tag.creation-period-duration")
        if duration is not None:
            return cls(parse_duration_millis(duration, "tag.creation-period-duration"), _MINUTES)
        period = (options.get("tag.creation-period") or "daily").strip().lower()
        form = (options.get("tag.period-formatter") or "with_dashes").strip().lower()
        if period == "two-hours":  # Java has one name format for these
            return cls(_LENGTHS[period], _HOURS["with_dashes"])
        daily = period == "daily"
        return cls(_LENGTHS[period], (_DAYS if daily else _HOURS)[form], daily)

    def check_delay(self, delay_millis: int) -> None:
        """Refuse a delay that is not shorter than a period."""
        if delay_millis >= self.millis:
            raise InvalidRequest(
                f"Option 'tag.creation-delay' ({delay_millis} ms) must be below the tag period ({self.millis} ms)",
                subject="tag.creation-delay",
            )

    def parse_name(self, name: str) -> int | None:
        """Return the start of the period that an automatic tag is named after; None if the name is of another form."""
        text = name.split(" ")[0] if self.daily else name
        try:
            time = datetime.strptime(text, self.name_format)
        except ValueError:
            return None
        return (time - _EPOCH) // timedelta(milliseconds=1) if time.strftime(self.name_format) == text else None

    def format_name(self, time: int) -> str:
        """Return the name of the tag for the period that starts at `time`."""
        return (_EPOCH + timedelta(milliseconds=time)).strftime(self.name_format)

    def last_ended_start(self, time: int) -> int:
        """Return the start of the last period that ended at or before `time`."""
        return time // self.millis * self.millis - self.millis

    def next_start(self, time: int) -> int:
        """Return the start of the next period."""
        return time + self.millis
