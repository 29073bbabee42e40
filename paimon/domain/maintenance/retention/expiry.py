"""Which snapshots and long-lived changelogs expire.

Law: they go from the oldest on, without gaps. The newest `num_min` always stay, and so does what a consumer has yet to
read. Of the rest, all but the newest `num_max` go, and a snapshot whose successor is older than the time retained;
at most `limit` go at once. Source: `ExpireSnapshotsImpl`, `ExpireChangelogImpl`, `ExpireConfig`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions

NOT_HELD = 2**63 - 1
"""The snapshot that the slowest consumer reads next, where there is no consumer."""


@frozen
class Retention:
    """How many snapshots (or changelogs) stay, how long (milliseconds), and how many may go at once."""

    num_min: int
    num_max: int
    time_millis: int
    limit: int

    @classmethod
    def of_snapshots(cls, options: TableOptions) -> Retention:
        """That of `snapshot.*`."""
        limit = options.snapshot_expire_limit
        return cls(
            options.snapshot_num_retained_min, options.snapshot_num_retained_max, options.snapshot_time_retained_millis,
            limit,
        )  # fmt: skip

    @classmethod
    def of_changelogs(cls, options: TableOptions) -> Retention:
        """That of `changelog.*`, each by default that of `snapshot.*`."""
        limit = options.snapshot_expire_limit
        return cls(
            options.changelog_num_retained_min, options.changelog_num_retained_max,
            options.changelog_time_retained_millis, limit,
        )  # fmt: skip

    def check(self) -> None:
        """Refuse numbers that contradict each other."""
        if self.num_min < 1:
            raise InvalidRequest(f"{self.num_min} snapshots cannot be what stays at least", hint="keep at least 1")
        if self.num_max < self.num_min:
            raise InvalidRequest(
                f"at most {self.num_max} snapshots cannot stay where at least {self.num_min} must",
                hint="raise num-retained.max or lower num-retained.min",
            )


def keeps_changelogs(options: TableOptions) -> bool:
    """Whether changelogs outlive their snapshots: one of the changelog settings asks for more than the snapshots'."""
    snapshots, changelogs = Retention.of_snapshots(options), Retention.of_changelogs(options)
    return (
        changelogs.num_max > snapshots.num_max
        or changelogs.num_min > snapshots.num_min
        or changelogs.time_millis > snapshots.time_millis
    )


@frozen
class Reach:
    """What may expire at most: ids from `first` up to, not including, `last`; below `aged` they go whatever their age.

    Empty where `last` is not above `first`.
    """

    first: int
    aged: int
    last: int


def may_expire(retention: Retention, earliest: int, latest: int, held_from: int = NOT_HELD) -> Reach:
    """What numbers and consumers alone let go.

    Parameters
    ----------
    earliest, latest : int
        The first id of what expires (snapshots, or changelogs), and the newest snapshot.
    held_from : int
        The smallest id that a consumer has yet to read.
    """
    retention.check()
    last = min(latest - retention.num_min + 1, held_from, earliest + retention.limit)
    return Reach(earliest, max(latest - retention.num_max + 1, earliest), last)


def expired_until(reach: Reach, retention: Retention, ages: Iterable[tuple[int, int]], now_millis: int) -> int:
    """The first id that stays.

    Parameters
    ----------
    ages : iterable of (int, int)
        Ids from `reach.aged` on, ascending, each with the time (milliseconds) from which its age counts: that of the
        next snapshot, by which it was replaced, or a changelog's own; read only as far as needed.
    """
    before = now_millis - retention.time_millis
    for expiring, since in ages:
        if expiring >= reach.last:
            break
        if since >= before:
            return max(expiring, reach.first)
    return max(reach.last, reach.first)
