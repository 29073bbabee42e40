"""A history to be: who acts, how often, in which order, and what goes wrong where.

Law: a plan is drawn from its seed alone; a smaller plan is one with less of something.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from attrs import evolve, field, frozen

from paimon.testing.faulty_files import Fault

HOUR_MILLIS = 3_600_000


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


STORE_FAULTS = tuple(Fault)
"""An object store's client tries again by itself, and may lose an answer."""
LOCAL_FAULTS = (Fault.FAILS, Fault.FAILS_AFTER, Fault.DIES, Fault.DIES_AFTER)
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
)


def _tuple(values: Iterable[Role]) -> tuple[Role, ...]:
    return tuple(values)


@frozen
class Plan:
    """One history.

    Parameters
    ----------
    seed : int
        What chance is drawn from: the order of steps and the choices of the actors.
    roles : tuple of Role
        The processes.
    turns : int
        How often each does its work.
    faults : mapping
        By the number of an operation of storage, what goes wrong with it.
    clock_steps : mapping
        By the number of an operation, milliseconds by which the clock jumps.
    is_store : bool
        Object-store semantics rather than those of a local disk.
    options : mapping
        Options of the table.
    """

    seed: int
    roles: tuple[Role, ...] = field(converter=_tuple)
    turns: int = 2
    faults: Mapping[int, Fault] = field(factory=dict)
    clock_steps: Mapping[int, int] = field(factory=dict)
    is_store: bool = False
    options: Mapping[str, str] = field(factory=dict)

    def smaller(self) -> Iterator[Plan]:
        """Plans with one thing less, those that take most away first."""
        for place in range(len(self.roles)):
            yield evolve(self, roles=self.roles[:place] + self.roles[place + 1 :])
        if self.turns > 1:
            yield evolve(self, turns=self.turns - 1)
        if self.faults:
            yield evolve(self, faults={})
        for number in self.faults:
            yield evolve(self, faults={n: f for n, f in self.faults.items() if n != number})
        if self.clock_steps:
            yield evolve(self, clock_steps={})


def drawn(seed: int) -> Plan:
    """The plan of a seed: two writers at least, some of the others, a few faults."""
    chance = random.Random(seed)
    others = [r for r in Role if r is not Role.WRITER]
    roles = [Role.WRITER, chance.choice((Role.WRITER, Role.STREAMER)), *chance.sample(others, chance.randint(1, 4))]
    is_store = chance.random() < 0.5
    kinds = STORE_FAULTS if is_store else LOCAL_FAULTS
    rate = chance.choice((0.0, 0.01, 0.03, 0.03))
    faults = {n: chance.choice(kinds) for n in range(1, 1500) if chance.random() < rate}
    steps = {chance.randrange(600): chance.randrange(1, 24 * HOUR_MILLIS)} if chance.random() < 0.3 else {}
    options = {"bucket": "1", "file.format": "avro", "commit.max-retries": "60", **chance.choice(_TABLES)}
    return Plan(seed, roles, chance.randint(1, 3), faults, steps, is_store, options)
