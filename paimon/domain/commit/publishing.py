"""What follows from what the storage shows after a put: the decisions of publishing, without the reading.

Law: "exists" never means "not mine"; a won put counts only where the snapshot stands in the table's history; what
cannot be known is said to be unknown. Source: our own protocol (docs/decisions/publishing-snapshots.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from paimon.domain.manifest.entries import FileKind, ManifestEntry

_Identity = tuple[object, ...]


class Seen(Enum):
    """What stands under a snapshot's id."""

    MINE = "mine"
    ANOTHERS = "another's"
    NOTHING = "nothing"
    UNREADABLE = "unreadable"


class Step(Enum):
    """What a publisher does next."""

    CONFIRM = "confirm"
    """The file is ours: see that it stands in the history."""
    GO_ON = "go on"
    """Another's snapshot stands: check conflicts again, from the new head."""
    PUT_AGAIN = "put again"
    GIVE_UP = "give up"
    """Nobody can tell."""


class Place(Enum):
    """Where a snapshot that was put belongs."""

    IN_HISTORY = "in history"
    ASTRAY = "astray"
    """Its id was used before, by a snapshot that expired: no history knows this one."""
    UNKNOWN = "unknown"


class Fate(Enum):
    """What became of a commit whose outcome was unknown, asked later."""

    COMMITTED = "committed"
    NOT_COMMITTED = "not committed"
    """And it never will be by itself."""
    OPEN = "open"
    """Nothing stands so far; a put that is still under way may land. Committing again settles it: one of both wins."""
    UNKNOWN = "unknown"
    """The snapshots that would tell have expired, or cannot be read."""


def after_put(created: bool, seen: Seen, base_stands: bool) -> Step:
    """What to do once the storage answered a put ("created", or anything else), and the id was looked at."""
    if created or seen is Seen.MINE:
        return Step.CONFIRM
    if seen is Seen.ANOTHERS:
        return Step.GO_ON
    # An id whose base has gone may have been used and freed again: a put would succeed behind the head.
    return Step.GIVE_UP if seen is Seen.NOTHING and not base_stands else Step.PUT_AGAIN


def place(descends: bool | None, is_oldest: bool, is_newest: bool, next_stands: bool | None, stands: bool) -> Place:
    """Where a snapshot belongs whose base has gone since it was put.

    Parameters
    ----------
    descends : bool, optional
        Whether the first one after it that stands holds what it changed; None where nobody can tell.
    is_oldest, is_newest : bool
        Nothing older, nothing newer stands.
    next_stands : bool, optional
        Whether that first one after it is the very next, so that nothing can have come between; None: there is none.
    stands : bool
        It still stands, asked last: expiry goes upwards, so it would have gone before those between it and the later.
    """
    if is_oldest and (is_newest or descends):
        return Place.IN_HISTORY
    if descends or next_stands is None:
        return Place.UNKNOWN
    if next_stands:
        return Place.ASTRAY if descends is False else Place.UNKNOWN
    return Place.ASTRAY if stands else Place.UNKNOWN


def fate_at(seen: Seen, id_is_free: bool, where: Place) -> Fate:
    """What became of a commit that was to stand under one id.

    Parameters
    ----------
    seen : Seen
        What stands there now.
    id_is_free : bool
        History has not reached that id.
    where : Place
        Where the snapshot belongs, if it is what stands there.
    """
    if seen is Seen.MINE:
        return {Place.IN_HISTORY: Fate.COMMITTED, Place.ASTRAY: Fate.NOT_COMMITTED}.get(where, Fate.UNKNOWN)
    if seen is Seen.ANOTHERS:
        return Fate.NOT_COMMITTED
    return Fate.OPEN if seen is Seen.NOTHING and id_is_free else Fate.UNKNOWN


def fate_of_identifier(identifier: int, committed: Iterable[int]) -> Fate:
    """What became of a user's commit, by the identifiers that its snapshots tell, which rise."""
    known = set(committed)
    if identifier in known:
        return Fate.COMMITTED
    if all(number < identifier for number in known):
        return Fate.OPEN
    return Fate.NOT_COMMITTED if any(number < identifier for number in known) else Fate.UNKNOWN


def overwritten(is_head: bool, held_by_next: bool | None) -> bool:
    """Whether a published snapshot whose id holds another one now is lost.

    Parameters
    ----------
    is_head : bool
        What stands in its place is the newest snapshot.
    held_by_next : bool, optional
        Whether the next snapshot holds what it changed (it was built before the replacement); None where there is no
        next one any more, so that the id may have been used again behind the head, or nobody can tell.
    """
    return is_head or held_by_next is False


def built_on(
    delta: Iterable[ManifestEntry],
    held: Collection[_Identity],
    index: tuple[str | None, str | None],
    later_index: str | None,
) -> bool | None:
    """Whether a later snapshot was built on one with this delta: told by the files, for manifests get merged.

    Parameters
    ----------
    delta : iterable of ManifestEntry
        What the snapshot added and took away.
    held : collection of identities
        The files that were live when the later one was made (at least those that `delta` names).
    index : pair of str
        The index manifest before the snapshot, and its own.
    later_index : str
        The later one's index manifest.

    Returns
    -------
    bool or None
        None where nobody can tell.
    """
    added, taken = _net(delta)
    if added:
        found = sum(identity in held for identity in added)
        return True if found == len(added) else None if found else False
    if any(identity in held for identity in taken):
        return False
    before, after = index
    if before == after:
        return True  # it changed nothing that could be missed
    return True if later_index == after else False if later_index == before else None


def _net(delta: Iterable[ManifestEntry]) -> tuple[set[_Identity], set[_Identity]]:
    added: set[_Identity] = set()
    taken: set[_Identity] = set()
    for entry in delta:
        if entry.kind is FileKind.ADD:
            added.add(entry.identity)
        elif entry.identity in added:
            added.remove(entry.identity)
        else:
            taken.add(entry.identity)
    return added, taken
