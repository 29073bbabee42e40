"""Select the automatic tags that are due, and the tags that expire.

Times are local wall-clock times in milliseconds. The first snapshot after the end of a period and the delay is tagged.
With automatic completion each period has a tag, one for each snapshot; otherwise missed periods have none.

Invariant: A period is tagged at most once.
Source: `TagAutoCreation`, `TagTimeExpire`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import frozen

from paimon.domain.options.table_options import TableOptions
from paimon.domain.snapshot.snapshot import Tag
from paimon.domain.snapshot.tag_periods import TagPeriods

_EPOCH = datetime(1970, 1, 1)


@frozen
class AutoTags:
    """Rules for automatic tags."""

    periods: TagPeriods
    # the time after the end of a period at which its tag is due
    delay_millis: int = 0
    # whether tags are also created for missed periods
    completes: bool = False

    @classmethod
    def of(cls, options: TableOptions) -> AutoTags:
        """Return the rules of the options `tag.*`; raise `InvalidRequest` if the delay is not shorter than a period."""
        periods = TagPeriods.of(options)
        periods.check_delay(options.tag_creation_delay_millis)
        return cls(periods, options.tag_creation_delay_millis, options.tag_automatic_completion)

    def is_due(self, time: int, last: int | None) -> bool:
        """Return whether a snapshot of this time gets a tag, if the newest automatic tag is of the period `last`."""
        if last is None:
            return True
        following = self.periods.next_start(last)
        return time - self.delay_millis >= self.periods.next_start(following)

    def due_period(self, time: int, last: int | None) -> int:
        """Return the period whose tag the snapshot of this time gets."""
        if self.completes and last is not None:
            return self.periods.next_start(last)
        return self.periods.last_ended_start(time)

    def select_automatic(self, names: Mapping[str, object] | list[str] | tuple[str, ...]) -> dict[str, int]:
        """Return the tags with names of automatic tags and the start of their periods, oldest first."""
        found = {name: time for name in names if (time := self.periods.parse_name(name)) is not None}
        return dict(sorted(found.items(), key=lambda item: item[1]))


def expired_tags(tags: list[Tag], made: Mapping[str, int | None], now: int, older_than: int | None = None) -> list[str]:
    """Return the names of the expired tags, and of all tags created before `older_than`. Times are local milliseconds.

    `made` has the file time of each tag without a time to live; None if the storage does not know it.
    """
    return [tag.name for tag in tags if _is_expired(tag, made.get(tag.name), now, older_than)]


def _is_expired(tag: Tag, written: int | None, now: int, older_than: int | None) -> bool:
    lives = tag.create_time is not None and tag.retained_seconds is not None
    created = parse_local_time(tag.create_time) if lives and tag.create_time is not None else written
    if created is None:
        return False
    if lives and tag.retained_seconds is not None and now > created + tag.retained_seconds * 1000:
        return True
    return older_than is not None and created < older_than


def parse_local_time(iso: str) -> int:
    """Return the local time in a tag file in milliseconds."""
    whole, _, fraction = iso.partition(".")
    seconds = (datetime.fromisoformat(whole) - _EPOCH) // timedelta(seconds=1)
    return seconds * 1000 + int((fraction + "000")[:3])


def format_local_time(millis: int) -> str:
    """Return a local time in milliseconds as the text of a tag file."""
    return (_EPOCH + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")
