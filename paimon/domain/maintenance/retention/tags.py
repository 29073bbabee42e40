"""Which automatic tags are due, and which tags have had their time.

Law: times are local wall clocks in milliseconds. A period is tagged once, by the first snapshot after its end and the
delay; with completion every period gets its tag, one a snapshot, without it the missed ones stay missed. Source:
`TagAutoCreation`, `TagTimeExpire`.
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
    """The rules of automatic tags; delay in milliseconds."""

    periods: TagPeriods
    delay_millis: int = 0
    completes: bool = False

    @classmethod
    def of(cls, options: TableOptions) -> AutoTags:
        """Those of the options `tag.*`; InvalidRequest where they contradict each other."""
        periods = TagPeriods.of(options)
        periods.check_delay(options.tag_creation_delay_millis)
        return cls(periods, options.tag_creation_delay_millis, options.tag_automatic_completion)

    def is_due(self, time: int, last: int | None) -> bool:
        """Whether a snapshot of this time gets a tag, where the newest automatic tag is of the period `last`."""
        if last is None:
            return True
        following = self.periods.after(last)
        return time - self.delay_millis >= self.periods.after(following)

    def due_period(self, time: int, last: int | None) -> int:
        """The period that it is the tag of."""
        if self.completes and last is not None:
            return self.periods.after(last)
        return self.periods.ended_before(time)

    def auto(self, names: Mapping[str, object] | list[str] | tuple[str, ...]) -> dict[str, int]:
        """Those of the tags that are automatic by their names, with their periods, oldest first."""
        found = {name: time for name in names if (time := self.periods.time_of(name)) is not None}
        return dict(sorted(found.items(), key=lambda item: item[1]))


def expired_tags(
    tags: list[Tag], made: Mapping[str, int | None], now: int, older_than: int | None = None
) -> list[str]:
    """Names of the tags that have had their time.

    Parameters
    ----------
    made : mapping
        When the file of each tag without a time to live was written, None where the storage does not tell.
    now : int
        The local wall clock.
    older_than : int, optional
        Also those made before this time of the local wall clock, with a time to live or without.
    """
    return [tag.name for tag in tags if _is_expired(tag, made.get(tag.name), now, older_than)]


def _is_expired(tag: Tag, written: int | None, now: int, older_than: int | None) -> bool:
    lives = tag.create_time is not None and tag.retained_seconds is not None
    created = local_time(tag.create_time) if lives and tag.create_time is not None else written
    if created is None:
        return False
    if lives and tag.retained_seconds is not None and now > created + tag.retained_seconds * 1000:
        return True
    return older_than is not None and created < older_than


def local_time(iso: str) -> int:
    """A local time as a tag's file holds it, in milliseconds."""
    whole, _, fraction = iso.partition(".")
    seconds = (datetime.fromisoformat(whole) - _EPOCH) // timedelta(seconds=1)
    return seconds * 1000 + int((fraction + "000")[:3])


def local_iso(millis: int) -> str:
    """A local time as a tag's file holds it, as text."""
    return (_EPOCH + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")
