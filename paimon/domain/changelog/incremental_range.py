"""Parse the options of an incremental read: which snapshots it reads, and as what.

Invariant: at most one of `incremental-between`, `incremental-between-timestamp` and `incremental-to-auto-tag` is set. A
range excludes its start and includes its end.

Source: `CoreOptions`, `AbstractDataTableScan`.
"""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.snapshot.tag_periods import TagPeriods


class Bounds(Enum):
    """What the two ends of a range are; the value is the option that sets them."""

    NAMES = "incremental-between"
    TIMES = "incremental-between-timestamp"
    AUTO_TAG = "incremental-to-auto-tag"


@frozen
class IncrementalOptions:
    """An incremental read as it is written in the options; `start` is empty where it is derived from `end`."""

    bounds: Bounds
    start: str
    end: str


@frozen(hash=False)
class Between:
    """An incremental read with its snapshots: the difference of two states, or the changes of several snapshots."""

    # the earlier state of a difference; None for an empty table
    start: Snapshot | None = None
    # the later state of a difference
    end: Snapshot | None = None
    # the snapshots whose changes are read, if no difference is read
    snapshots: tuple[Snapshot, ...] = ()
    # which files of `snapshots` hold their changes
    rules: FollowRules = field(factory=lambda: FollowRules(has_producer=False))
    # whether the difference of two states is read
    difference: bool = False
    # whether level 0 is read, even if batch reads skip it
    shows_level_0: bool = False


def parse_incremental_options(options: TableOptions) -> IncrementalOptions | None:
    """Return the incremental read that the options define; None where they define none."""
    given = {bounds: text for bounds in Bounds if (text := options.get(bounds.value)) is not None}
    if len(given) > 1:
        names = ", ".join(bounds.value for bounds in given)
        raise InvalidRequest(f"Options {names} are set together", hint="set only one of them")
    for bounds, text in given.items():
        return IncrementalOptions(bounds, "", text.strip()) if bounds is Bounds.AUTO_TAG else _pair(bounds, text)
    return None


def _pair(bounds: Bounds, text: str) -> IncrementalOptions:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InvalidRequest(
            f"Option {bounds.value!r} must be two values, but is {text!r}", subject=bounds.value, hint="write '2,6'"
        )
    return IncrementalOptions(bounds, *parts)


def parse_snapshot_range(wanted: IncrementalOptions) -> tuple[int, int]:
    """Return the two snapshot ids of a range."""
    try:
        start, end = int(wanted.start), int(wanted.end)
    except ValueError as error:
        raise InvalidRequest(
            f"Option {wanted.bounds.value!r} names neither two tags nor two snapshot ids: "
            f"{wanted.start!r} and {wanted.end!r}",
            subject=wanted.bounds.value,
            hint="give two ids or two tags, such as '2,6'",
        ) from error
    if start > end:
        raise InvalidRequest(
            f"Option {wanted.bounds.value!r} ends at {end}, before its start {start}", subject=wanted.bounds.value
        )
    return start, end


def get_follow_rules(mode: str, producer: str) -> FollowRules:
    """Return how the snapshots of a range are read in a mode other than `diff`: overwrites are skipped."""
    return FollowRules(has_producer=mode == "changelog" or (mode == "auto" and producer != "none"))


def parse_auto_tag_time(name: str, options: TableOptions) -> int | None:
    """Return the start of the period of the automatic tag with this name, in milliseconds; None for any other name."""
    return TagPeriods.of(options).parse_name(name)
