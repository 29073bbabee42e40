"""The periods of automatic tags: their names, and which period a time belongs to.

Law: times are the local wall clock in milliseconds, encoded as if UTC; a tag is named after the start of its period;
`time_of(name_of(t))` is `t` for the start of a period. Source: `TagPeriodHandler`.
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
    """Periods of one length, and the form of their names."""

    millis: int
    form: str
    daily: bool = False

    @classmethod
    def of(cls, options: TableOptions) -> TagPeriods:
        """Those that the options `tag.creation-period`, `-duration` and `tag.period-formatter` ask for."""
        duration = options.get("tag.creation-period-duration")
        if duration is not None:
            return cls(parse_duration_millis(duration, "tag.creation-period-duration"), _MINUTES)
        period = (options.get("tag.creation-period") or "daily").strip().lower()
        form = (options.get("tag.period-formatter") or "with_dashes").strip().lower()
        if period == "two-hours":  # Java knows one form of these
            return cls(_LENGTHS[period], _HOURS["with_dashes"])
        daily = period == "daily"
        return cls(_LENGTHS[period], (_DAYS if daily else _HOURS)[form], daily)

    def check_delay(self, delay_millis: int) -> None:
        """Refuse a delay that is not shorter than a period."""
        if delay_millis >= self.millis:
            raise InvalidRequest(
                f"tag.creation-delay of {delay_millis} ms is not shorter than the period of {self.millis} ms",
                subject="tag.creation-delay",
            )

    def time_of(self, name: str) -> int | None:
        """The start of the period that an automatic tag of this name stands for; None for any other name."""
        text = name.split(" ")[0] if self.daily else name
        try:
            time = datetime.strptime(text, self.form)
        except ValueError:
            return None
        return (time - _EPOCH) // timedelta(milliseconds=1) if time.strftime(self.form) == text else None

    def name_of(self, time: int) -> str:
        """The name of the tag of the period that starts at `time`."""
        return (_EPOCH + timedelta(milliseconds=time)).strftime(self.form)

    def ended_before(self, time: int) -> int:
        """The start of the last period that had ended at `time`."""
        return time // self.millis * self.millis - self.millis

    def after(self, time: int) -> int:
        """The start of the next period."""
        return time + self.millis
