"""What actors were told, held against what stands.

Law: a commit that was done is there and one that was refused is not, each of them at most once; a tag that was made
stands until its maker deletes it; where nothing fails nobody is refused, except for what others did meanwhile; and
nobody loses as many races as a commit may, for others make fewer snapshots than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from paimon.testing.world.acting.deeds import Deed, Told
from paimon.testing.world.plan import WRITERS, Plan, Role

_BATCH = 2**31
"""Identifiers from here on are those of batch commits, which tell nothing of how often.

A writer that repeats a commit may publish the compaction that it lacks under such an identifier, nothing else.
"""
_LOST = "the commit lost the race"
Commit = tuple[str, int, str]
"""User, identifier, kind."""


def promises(
    plan: Plan, deeds: Sequence[Deed], commits: Mapping[Commit, int], tags: Mapping[str, int]
) -> Iterator[str]:
    """What is not as somebody was told.

    Parameters
    ----------
    commits : mapping
        How many of the snapshots that stand are of a commit.
    tags : mapping
        The snapshots that tags name.
    """
    yield from (f"commit {c[1]} of {c[0]} took place {n} times" for c, n in commits.items() if n > 1 and c[1] < _BATCH)
    yield from _refused(deeds, commits)
    writers = {d.actor for d in deeds if d.role in WRITERS}
    yield from (
        f"{user} committed a batch of kind {kind}, which no writer does"
        for user, identifier, kind in commits
        if user in writers and identifier >= _BATCH and kind != "COMPACT"
    )
    yield from _tags(deeds, tags)
    yield from (f"{d.actor} was refused: {d.text}" for d in deeds if d.told is Told.REFUSED and _LOST in d.text)
    if plan.is_smooth:
        yield from (
            f"{d.actor} was told {d.told.value} for no reason: {d.text}"
            for d in deeds
            if d.told is not Told.DONE and not _may_be_refused(d, plan)
        )


def _refused(deeds: Sequence[Deed], commits: Mapping[Commit, int]) -> Iterator[str]:
    told: dict[tuple[str, int], set[Told]] = {}
    for deed in deeds:
        if deed.role in WRITERS:
            told.setdefault((deed.actor, deed.number), set()).add(deed.told)
    standing = {(user, identifier) for user, identifier, _ in commits}
    for user, identifier in standing:
        if told.get((user, identifier)) == {Told.REFUSED}:
            yield f"{user} was told that {identifier} is refused, and it is there"
        if user in {actor for actor, _ in told} and (user, identifier) not in told and identifier < _BATCH:
            yield f"{user} never asked for {identifier}, and it is there"


def _tags(deeds: Sequence[Deed], tags: Mapping[str, int]) -> Iterator[str]:
    """Names are used by one tagger alone; what it was not told of may have taken place, and says nothing."""
    for tagger in {d.actor for d in deeds if d.role is Role.TAGGER}:
        made: dict[str, int] = {}
        for deed in (d for d in deeds if d.actor == tagger):
            if deed.told is not Told.DONE:
                made.clear()
            elif deed.named is not None:
                made.pop(deed.named.tag, None)
                made |= {} if deed.named.snapshot is None else {deed.named.tag: deed.named.snapshot}
        for name, snapshot in made.items():
            if tags.get(name) != snapshot:
                yield f"{tagger} made tag {name} of snapshot {snapshot}, and it names {tags.get(name)}"


def _may_be_refused(deed: Deed, plan: Plan) -> bool:
    """Whether others can be the reason: who reads or tags a state that expires, or compacts what others replace."""
    if deed.role in WRITERS or deed.role is Role.CHANGER:
        return False
    return deed.role is Role.COMPACTOR or Role.EXPIRER in plan.roles or "snapshot.num-retained.max" in plan.options
