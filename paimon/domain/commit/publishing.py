"""Decide how publishing a snapshot continues, from what the storage shows after a put.

This module only decides; `paimon.operations.commit` reads the storage.

Invariant: "Exists" never means "written by another writer". A successful put counts only if the snapshot is in the
history of the table. An outcome that cannot be determined is reported as unknown.
Source: our own protocol (docs/decisions/publishing-snapshots.md).
"""

# A commit puts the file snapshot-N, where N - 1 is its base. Storages can reply wrongly: a put that times out may still
# succeed, or be repeated by a client, and a put that "failed because the file exists" may have found our own file. And
# expiry may delete snapshots at the same time, so that an id is free again although the history is past it. So after
# each put the file under N is read, and three questions are decided one after the other:
#
# 1. What is there (`Seen`), and what is next (`decide_next_step`)?
#
#        ours: CONFIRM    another's: CHECK_AGAIN from the new head    nothing, and the base exists: PUT_AGAIN
#        nothing, and the base is gone: GIVE_UP, because a put could succeed behind the head
#
# 2. Is our file in the history (`decide_place`)? If the base N - 1 still exists, it is. If not, N may have been used
#    before, by a snapshot that expired; then our file lies detached, below the real snapshots:
#
#        history before the put:   ... (N-1) (N)  N+1  N+2        (in brackets: expired)
#        our put:                        N                        detached: no later snapshot contains our files
#
#    The next existing snapshot shows it: if it contains our files, or is built on N, we are in the history
#    (`is_built_on`). If it does not, and nothing can be missing between the two, we are detached.
# 3. Did another put replace our file (`is_overwritten`)? On storages without put-if-absent both writers believe that
#    they won; the later file counts, unless the next snapshot was built on the earlier one.
#
# Whatever cannot be determined is UNKNOWN, and the caller gets `CommitUncertain`. `commit_status_at` and
# `commit_status_of_identifier` determine the status later, when a program asks.

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from paimon.domain.manifest.entries import FileKind, ManifestEntry

_Identity = tuple[object, ...]


class Seen(Enum):
    """What the storage holds under the id of a snapshot."""

    MINE = "mine"
    OTHER = "another's"
    NOTHING = "nothing"
    UNREADABLE = "unreadable"


class Step(Enum):
    """The next step of a publisher."""

    CONFIRM = "confirm"
    """The file is ours: check that the history contains it."""
    CHECK_AGAIN = "go on"
    """Another snapshot has this id: check conflicts again, from the new head."""
    PUT_AGAIN = "put again"
    GIVE_UP = "give up"
    """The outcome cannot be determined."""


class Place(Enum):
    """The position of a snapshot file relative to the history of the table."""

    IN_HISTORY = "in history"
    DETACHED = "detached"
    """Its id belonged to a snapshot that expired, so no history contains this one."""
    UNKNOWN = "unknown"


class CommitStatus(Enum):
    """The status of a commit whose outcome was unknown, determined later."""

    COMMITTED = "committed"
    NOT_COMMITTED = "not committed"
    """The history does not contain the commit, and no pending put can add it."""
    OPEN = "open"
    """Nothing is published so far, but a pending put can still succeed. Committing again decides: one of both wins."""
    UNKNOWN = "unknown"
    """The snapshots that show it have expired, or cannot be read."""


def decide_next_step(created: bool, seen: Seen, base_exists: bool) -> Step:
    """Return the next step after a put: `created` is the reply, `seen` what the storage holds."""
    if created or seen is Seen.MINE:
        return Step.CONFIRM
    if seen is Seen.OTHER:
        return Step.CHECK_AGAIN
    # An id whose base is deleted can have been used and freed again: a put would succeed behind the head.
    return Step.GIVE_UP if seen is Seen.NOTHING and not base_exists else Step.PUT_AGAIN


def decide_place(
    descends: bool | None, is_oldest: bool, is_newest: bool, is_next_adjacent: bool | None, still_exists: bool
) -> Place:
    """Return the place of a snapshot whose base has been deleted since the put; `UNKNOWN` if that is not determined.

    `descends` states whether the next existing snapshot contains its changes (None if not known). `is_next_adjacent`
    states whether that one has the next id (None if there is none). `still_exists` is read last: expiry deletes in
    ascending order, so if the snapshot exists, the ones between the two exist, too.
    """
    if is_oldest and (is_newest or descends):
        return Place.IN_HISTORY
    if descends or is_next_adjacent is None:
        return Place.UNKNOWN
    if is_next_adjacent:
        return Place.DETACHED if descends is False else Place.UNKNOWN
    return Place.DETACHED if still_exists else Place.UNKNOWN


def commit_status_at(seen: Seen, id_is_free: bool, where: Place) -> CommitStatus:
    """Return the status of a commit that was to be published under one snapshot id; `UNKNOWN` if it is not determined.

    `id_is_free` means that the history has not reached the id. `where` is used only if `seen` is `MINE`.
    """
    if seen is Seen.MINE:
        return {Place.IN_HISTORY: CommitStatus.COMMITTED, Place.DETACHED: CommitStatus.NOT_COMMITTED}.get(
            where, CommitStatus.UNKNOWN
        )
    if seen is Seen.OTHER:
        return CommitStatus.NOT_COMMITTED
    return CommitStatus.OPEN if seen is Seen.NOTHING and id_is_free else CommitStatus.UNKNOWN


def commit_status_of_identifier(commit_identifier: int, committed: Iterable[int]) -> CommitStatus:
    """Return the status of a commit of a user, by the commit identifiers of the user's snapshots in the history.

    A user commits with ascending identifiers. The status is `UNKNOWN` if the snapshots of earlier identifiers have
    expired.
    """
    known = set(committed)
    if commit_identifier in known:
        return CommitStatus.COMMITTED
    if all(number < commit_identifier for number in known):
        return CommitStatus.OPEN
    return CommitStatus.NOT_COMMITTED if any(number < commit_identifier for number in known) else CommitStatus.UNKNOWN


def is_overwritten(is_head: bool, is_in_next: bool | None) -> bool:
    """Return whether the history lacks a published snapshot, given that its id now holds another snapshot.

    `is_head` states whether the other snapshot is the newest one. `is_in_next` states whether the next one contains
    the changes, because it was built before the replacement. None means that there is no next one, or that this is not
    known.
    """
    return is_head or is_in_next is False


def is_built_on(
    delta: Iterable[ManifestEntry],
    live: Collection[_Identity],
    index: tuple[str | None, str | None],
    later_index: str | None,
) -> bool | None:
    """Return whether a later snapshot was built on the snapshot with this delta; None if this cannot be determined.

    The files are compared, because manifests are merged. `live` has the files that were live in the later snapshot, at
    least those that `delta` names. `index` has the index manifests before and after the snapshot.
    """
    added, deleted = _net_change(delta)
    if added:
        found = sum(identity in live for identity in added)
        return True if found == len(added) else None if found else False
    if any(identity in live for identity in deleted):
        return False
    before, after = index
    if before == after:
        return True  # it made no change that the later snapshot could lack
    return True if later_index == after else False if later_index == before else None


def _net_change(delta: Iterable[ManifestEntry]) -> tuple[set[_Identity], set[_Identity]]:
    added: set[_Identity] = set()
    deleted: set[_Identity] = set()
    for entry in delta:
        if entry.kind is FileKind.ADD:
            added.add(entry.identity)
        elif entry.identity in added:
            added.remove(entry.identity)
        else:
            deleted.add(entry.identity)
    return added, deleted
