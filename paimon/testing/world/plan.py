"""A history to be: who acts, how often, in which order, and what goes wrong where.

Law: a plan is drawn from its seed alone; a smaller plan is one with less of something. Clocks stay within half a day
of the true time, and turns are short beside `FLOOR_MILLIS`: what a cleaner is told to leave alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from attrs import evolve, field, frozen

from paimon.testing.faulty_files import Fault

HOUR_MILLIS = 3_600_000
FLOOR_MILLIS = 48 * HOUR_MILLIS
"""Files younger than this may belong to somebody who is about to commit them."""
NIGHT_MILLIS = 80 * HOUR_MILLIS
_SKEW_MILLIS = 12 * HOUR_MILLIS
_OPERATIONS = 1_200


class Role(Enum):
    """What a process does, again and again."""

    WRITER = "writer"
    STREAMER = "streamer"
    COMPACTOR = "compactor"
    EXPIRER = "expirer"
    CLEANER = "cleaner"
    TAGGER = "tagger"
    CHANGER = "changer"
    READER = "reader"


WRITERS = (Role.WRITER, Role.STREAMER)
STORE_FAULTS = tuple(f for f in Fault if f is not Fault.TEARS)
"""An object store's client tries again by itself, and may lose an answer; a put is there whole or not at all."""
LOCAL_FAULTS = (Fault.FAILS, Fault.FAILS_AFTER, Fault.TELLS_NOTHING, Fault.DIES, Fault.DIES_AFTER, Fault.TEARS)
_ANY_TABLE = {"bucket": "1", "file.format": "avro", "commit.max-retries": "60"}
_KEEPS_FEW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
_TABLES: tuple[Mapping[str, str], ...] = (
    {"write-only": "true"},
    {"num-sorted-run.compaction-trigger": "2"},
    {"num-sorted-run.compaction-trigger": "2", "changelog-producer": "lookup"},
    {"write-only": "true", "changelog-producer": "input"},
    {
        "num-sorted-run.compaction-trigger": "3",
        "deletion-vectors.enabled": "true",
        "deletion-vectors.merge-on-read": "true",
    },
    {"write-only": "true", "manifest.merge-min-count": "2", "manifest.target-file-size": "1 b"},
    {"write-only": "true", "num-sorted-run.compaction-trigger": "2", "bucket": "2"},
    {
        "write-only": "true",
        "num-sorted-run.compaction-trigger": "2",
        "compaction.max-size-amplification-percent": "100000",
    },
    {"num-sorted-run.compaction-trigger": "2", **_KEEPS_FEW},
    {
        "write-only": "true",
        "changelog-producer": "input",
        "changelog.num-retained.min": "1",
        "changelog.num-retained.max": "3",
        **_KEEPS_FEW,
    },
)
HIDES_LEVEL_0 = {"num-sorted-run.compaction-trigger": "3", "deletion-vectors.enabled": "true"}
"""A table whose reads skip level 0: what is acknowledged must be compacted by then."""
OUT_OF_REACH: Mapping[str, float] = {
    "tag/": 0.6,
    "manifest/": 0.15,
    "snapshot/snapshot-": 0.2,
    "bucket-": 0.2,
    "schema/": 0.5,
}
"""Kinds of files that a bad connection keeps a process from, and from which share of them."""


def _roles(values: Iterable[Role]) -> tuple[Role, ...]:
    return tuple(values)


def _numbers(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(values)


@frozen(hash=False)
class Plan:
    """One history. Operations of storage are counted from 1, over all processes.

    Parameters
    ----------
    seed : int
        What chance is drawn from: the order of steps and the choices of the actors.
    roles : tuple of Role
        The processes.
    turns : int
        How often each does its work.
    faults : mapping
        By the number of an operation, what goes wrong with it.
    put_faults : mapping
        By the number of a put of a snapshot's file, counted from 1 over all processes, what goes wrong with it: these
        are the operations on which everything hangs.
    delays : mapping
        By the number of an operation, for how many steps of others it waits before it takes effect.
    clocks : mapping
        By the number of an operation, how many milliseconds the clock of who does it is off from then on. On a local
        disk all processes have the same clock, and files their times from it; on a store each process has its own.
    nights : tuple of int
        After so many operations, as soon as nobody is in the midst of a turn, days pass.
    flaky : mapping
        By the number of a process (its place in `roles`), the kind of files of which it cannot read some, in one turn
        these and in the next others: see `OUT_OF_REACH`.
    is_store : bool
        Object-store semantics rather than those of a local disk.
    loaded : int
        Rows that are there, compacted, before anybody begins.
    options : mapping
        Options of the table.
    """

    seed: int
    roles: tuple[Role, ...] = field(converter=_roles)
    turns: int = 2
    faults: Mapping[int, Fault] = field(factory=dict)
    put_faults: Mapping[int, Fault] = field(factory=dict)
    delays: Mapping[int, int] = field(factory=dict)
    clocks: Mapping[int, int] = field(factory=dict)
    nights: tuple[int, ...] = field(converter=_numbers, default=())
    flaky: Mapping[int, str] = field(factory=dict)
    is_store: bool = False
    loaded: int = 0
    options: Mapping[str, str] = field(factory=dict)

    @property
    def is_smooth(self) -> bool:
        """Whether nothing fails."""
        return not (self.faults or self.put_faults or self.flaky)

    def smaller(self) -> Iterator[Plan]:
        """Plans with less of one thing, those that take most away first."""
        for place in range(len(self.roles)):
            flaky = {n - (n > place): where for n, where in self.flaky.items() if n != place}
            yield evolve(self, roles=self.roles[:place] + self.roles[place + 1 :], flaky=flaky)
        if self.turns > 1:
            yield evolve(self, turns=self.turns - 1)
        if self.loaded:
            yield evolve(self, loaded=0)
        for name in ("faults", "put_faults", "delays", "clocks", "flaky"):
            for fewer in _fewer(getattr(self, name)):
                less: dict[str, Any] = {name: fewer}
                yield evolve(self, **less)
        for night in self.nights:
            yield evolve(self, nights=[n for n in self.nights if n != night])


def _fewer(held: Mapping[int, Any]) -> Iterator[Mapping[int, Any]]:
    """Halves, quarters … left out, at last single ones."""
    numbers = sorted(held)
    size = len(numbers)
    while size:
        for start in range(0, len(numbers), size):
            gone = set(numbers[start : start + size])
            yield {n: what for n, what in held.items() if n not in gone}
        size //= 2


def drawn(seed: int) -> Plan:
    """The plan of a seed: two writers at least, some of the others, and what goes wrong."""
    chance = random.Random(seed)
    others = [r for r in Role if r is not Role.WRITER]
    roles = [Role.WRITER, chance.choice(WRITERS), *chance.sample(others, chance.randint(1, 5))]
    is_store = chance.random() < 0.5
    kinds = STORE_FAULTS if is_store else LOCAL_FAULTS
    rate = chance.choice((0.0, 0.01, 0.03, 0.03))
    faults = {n: chance.choice(kinds) for n in range(1, _OPERATIONS) if chance.random() < rate}
    options = {**_ANY_TABLE, **chance.choice(_TABLES)}
    return Plan(
        seed,
        roles,
        turns=chance.choice((1, 2, 2, 3, 3, 4)),
        faults=faults,
        put_faults={chance.randint(1, 20): chance.choice(kinds) for _ in range(chance.choice((0, 0, 1, 3)))},
        delays={n: chance.randrange(20, 400) for n in _some(chance, 0.4, 4)},
        clocks={n: chance.randint(-_SKEW_MILLIS, _SKEW_MILLIS) for n in _some(chance, 0.4, 6)},
        nights=sorted(_some(chance, 0.7, 3)),
        flaky=_flaky(chance, roles),
        is_store=is_store,
        loaded=200 if chance.random() < 0.3 else 0,
        options=options,
    )


def drawn_hiding(seed: int) -> Plan:
    """The plan of a seed, on a table whose reads skip level 0."""
    plan = drawn(seed)
    few = _KEEPS_FEW if "snapshot.num-retained.max" in plan.options else {}
    # Nothing is loaded: the first of the loader's snapshots would hide it.
    return evolve(plan, loaded=0, options={**_ANY_TABLE, **HIDES_LEVEL_0, **few})


def _some(chance: random.Random, share: float, most: int) -> list[int]:
    """Numbers of operations, in that share of the plans."""
    count = chance.randint(1, most) if chance.random() < share else 0
    return [chance.randrange(1, _OPERATIONS // 3) for _ in range(count)]


def _flaky(chance: random.Random, roles: list[Role]) -> dict[int, str]:
    """Bad connections: seldom of writers, who would do nothing else than try again."""
    shares = {n: 0.1 if role in WRITERS else 0.45 for n, role in enumerate(roles)}
    kinds = (*OUT_OF_REACH, "tag/", "tag/", "manifest/")
    return {n: chance.choice(kinds) for n, share in shares.items() if chance.random() < share}
