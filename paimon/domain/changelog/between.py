"""Which changes an incremental read asks for, as its options say it.

Law: at most one of `incremental-between`, `incremental-between-timestamp`, `incremental-to-auto-tag` is given; a range
leaves its start out and holds its end. Source: `CoreOptions`, `AbstractDataTableScan`.
"""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from paimon.domain.changelog.follow import FollowRules
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.snapshot.tag_periods import TagPeriods


class Bounds(Enum):
    """What the two ends of a range are; the value is the option that gives them."""

    NAMES = "incremental-between"
    TIMES = "incremental-between-timestamp"
    AUTO_TAG = "incremental-to-auto-tag"


@frozen
class Asked:
    """An incremental read as written; `start` is empty where it follows from `end`."""

    bounds: Bounds
    start: str
    end: str


@frozen(hash=False)
class Between:
    """An incremental read that found its snapshots.

    Parameters
    ----------
    start, end : Snapshot, optional
        Where the difference of two states is asked for; no start: against an empty table.
    snapshots : tuple of Snapshot
        Otherwise those whose changes are asked for, by `rules`.
    shows_level_0 : bool
        Whether files of level 0 are read, also where batch reads of a state hide them.
    """

    start: Snapshot | None = None
    end: Snapshot | None = None
    snapshots: tuple[Snapshot, ...] = ()
    rules: FollowRules = field(factory=lambda: FollowRules(produces=False))
    difference: bool = False
    shows_level_0: bool = False


def asked(options: TableOptions) -> Asked | None:
    """What the options ask for; None where they ask for no incremental read."""
    given = {bounds: text for bounds in Bounds if (text := options.get(bounds.value)) is not None}
    if len(given) > 1:
        names = ", ".join(bounds.value for bounds in given)
        raise InvalidRequest(f"more than one incremental read: {names}", hint="give exactly one of them")
    for bounds, text in given.items():
        return Asked(bounds, "", text.strip()) if bounds is Bounds.AUTO_TAG else _pair(bounds, text)
    return None


def _pair(bounds: Bounds, text: str) -> Asked:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InvalidRequest(
            f"{bounds.value} {text!r} is not two values", subject=bounds.value, hint="write start,end: '2,6'"
        )
    return Asked(bounds, *parts)


def snapshot_range(wanted: Asked) -> tuple[int, int]:
    """The two snapshot ids that are written; InvalidRequest where they are none, or in the wrong order."""
    try:
        start, end = int(wanted.start), int(wanted.end)
    except ValueError as error:
        raise InvalidRequest(
            f"{wanted.start!r} and {wanted.end!r} are neither two tags nor two snapshot ids",
            subject=wanted.bounds.value,
        ) from error
    if start > end:
        raise InvalidRequest(
            f"{wanted.bounds.value} ends at {end}, before its start {start}", subject=wanted.bounds.value
        )
    return start, end


def rules_of(mode: str, producer: str) -> FollowRules:
    """How the snapshots in between are read in a mode other than diff: no overwrite is seen."""
    return FollowRules(produces=mode == "changelog" or (mode == "auto" and producer != "none"))


def auto_tag_time(name: str, options: TableOptions) -> int | None:
    """The start of the period that an automatic tag of this name stands for; None for any other name."""
    return TagPeriods.of(options).time_of(name)
