"""The plan of a history: its actors, the number of their steps, and which faults happen at which operation.

Invariant: a plan is drawn from its seed alone, and a smaller plan has less of one thing. Clocks stay within half a day
of the true time, and steps are short compared with `ORPHAN_MIN_AGE_MILLIS`, the age below which no orphan is removed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from attrs import evolve, field, frozen

from paimon.testing.faulty_files import Fault

HOUR_MILLIS = 3_600_000
ORPHAN_MIN_AGE_MILLIS = 48 * HOUR_MILLIS
"""Younger files may belong to an actor that is about to commit them."""
TIME_JUMP_MILLIS = 80 * HOUR_MILLIS
_MAX_CLOCK_OFFSET_MILLIS = 12 * HOUR_MILLIS
_MAX_FAULT_NUMBER = 1_200
"""Faults are drawn for the operations below this number."""


class Role(Enum):
    """What an actor does in each of its steps."""

    WRITER = "writer"
    STREAMER = "streamer"
    COMPACTOR = "compactor"
    EXPIRER = "expirer"
    CLEANER = "cleaner"
    TAGGER = "tagger"
    SCHEMA_CHANGER = "changer"
    READER = "reader"
    RESCALER = "rescaler"
    OVERWRITER = "overwriter"
    DROPPER = "dropper"
    RENAMER = "renamer"
    CREATOR = "creator"


class TableKind(Enum):
    """How the table finds the bucket of a key; in all kinds except `FIXED` the writers write the same keys."""

    FIXED = "fixed buckets"
    DYNAMIC = "dynamic buckets"
    CROSS_PARTITION = "cross-partition"
    POSTPONED = "postponed buckets"
    REPLACED = "dropped, renamed and created again"


WRITERS = (Role.WRITER, Role.STREAMER)
REPLACERS = (Role.DROPPER, Role.RENAMER, Role.CREATOR)
"""They act on the catalog, and so need no table."""
STORE_FAULTS = tuple(f for f in Fault if f not in (Fault.TORN_WRITE, Fault.REPLY_NOT_DURABLE))
"""An object store has no torn writes; its client retries by itself, and a reply may be lost."""
LOCAL_FAULTS = (
    Fault.FAIL_BEFORE,
    Fault.FAIL_AFTER,
    Fault.REPLY_UNKNOWN,
    Fault.DIE_BEFORE,
    Fault.DIE_AFTER,
    Fault.TORN_WRITE,
)
"""A local disk never reports that a file exists which the same call created. See also `draw_power_loss_plan`."""
_COMMON_OPTIONS = {"bucket": "1", "file.format": "avro", "commit.max-retries": "60"}
_SHORT_RETENTION = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
_TABLE_OPTIONS: tuple[Mapping[str, str], ...] = (
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
    {"num-sorted-run.compaction-trigger": "2", **_SHORT_RETENTION},
    {
        "write-only": "true",
        "changelog-producer": "input",
        "changelog.num-retained.min": "1",
        "changelog.num-retained.max": "3",
        **_SHORT_RETENTION,
    },
)
_KIND_OPTIONS: Mapping[TableKind, Mapping[str, str]] = {
    TableKind.DYNAMIC: {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    TableKind.CROSS_PARTITION: {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    TableKind.POSTPONED: {"bucket": "-2", "postpone.default-bucket-num": "2"},
}
"""Small buckets, so that new keys often need a bucket that another writer may have created."""
HIDDEN_LEVEL_0 = {"num-sorted-run.compaction-trigger": "3", "deletion-vectors.enabled": "true"}
"""Options of a table whose reads skip level 0: a commit is compacted before it is acknowledged."""
READ_FAILURE_RATES: Mapping[str, float] = {
    "tag/": 0.6,
    "manifest/": 0.15,
    "snapshot/snapshot-": 0.2,
    "bucket-": 0.2,
    "schema/": 0.5,
}
"""The share of files that a flaky process cannot read, by a part of their path."""


def _to_roles(values: Iterable[Role]) -> tuple[Role, ...]:
    return tuple(values)


def _to_numbers(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(values)


@frozen(hash=False)
class Plan:
    """The plan of one history. Storage operations are counted from 1, over all processes.

    Parameters
    ----------
    seed : int
        The seed of all random numbers: the order of steps, and the choices of the actors.
    roles : tuple of Role
        One role per actor.
    steps_per_actor : int
        The number of steps that each actor takes.
    faults : mapping
        Faults by operation number.
    put_faults : mapping
        Faults by the number of the put of a snapshot file, counted from 1. These operations decide about commits.
    delays : mapping
        By operation number, for how many operations of other actors this operation waits.
    clock_offsets : mapping
        By operation number, how many milliseconds the clock of its process is off from then on. On a local disk, all
        processes and the modification times share one clock. On an object store, each process has its own clock.
    time_jumps : tuple of int
        Operation numbers after which days pass, as soon as no actor is within a step.
    flaky_reads : mapping
        By the position of an actor in `roles`, the kind of files that it cannot always read; a key of
        `READ_FAILURE_RATES`. The unreadable files change each time the actor opens the table.
    is_store : bool
        Whether the storage is an object store rather than a local disk.
    defers_flushes : bool
        Whether the local disk flushes files when it is told to. Then its power is lost at the end, too.
    power_losses : tuple of int
        Operation numbers at which all processes die, and the disk loses what was not flushed.
    initial_rows : int
        The number of rows that are written and compacted before the actors start.
    options : mapping
        The table options.
    table_kind : TableKind
        How the table finds the bucket of a key.
    """

    seed: int
    roles: tuple[Role, ...] = field(converter=_to_roles)
    steps_per_actor: int = 2
    faults: Mapping[int, Fault] = field(factory=dict)
    put_faults: Mapping[int, Fault] = field(factory=dict)
    delays: Mapping[int, int] = field(factory=dict)
    clock_offsets: Mapping[int, int] = field(factory=dict)
    time_jumps: tuple[int, ...] = field(converter=_to_numbers, default=())
    flaky_reads: Mapping[int, str] = field(factory=dict)
    is_store: bool = False
    defers_flushes: bool = False
    power_losses: tuple[int, ...] = field(converter=_to_numbers, default=())
    initial_rows: int = 0
    options: Mapping[str, str] = field(factory=dict)
    table_kind: TableKind = TableKind.FIXED

    @property
    def is_faultless(self) -> bool:
        """Whether no operation fails."""
        return not (self.faults or self.put_faults or self.flaky_reads or self.power_losses)

    @property
    def expires_snapshots(self) -> bool:
        """Whether a commit can expire before its writer repeats it, which then commits it again."""
        return Role.EXPIRER in self.roles or "snapshot.num-retained.max" in self.options

    def enumerate_smaller_plans(self) -> Iterator[Plan]:
        """Return plans with less of one thing, the smallest ones first."""
        for place in range(len(self.roles)):
            flaky = {n - (n > place): kind for n, kind in self.flaky_reads.items() if n != place}
            yield evolve(self, roles=self.roles[:place] + self.roles[place + 1 :], flaky_reads=flaky)
        if self.steps_per_actor > 1:
            yield evolve(self, steps_per_actor=self.steps_per_actor - 1)
        if self.initial_rows:
            yield evolve(self, initial_rows=0)
        for name in ("faults", "put_faults", "delays", "clock_offsets", "flaky_reads"):
            for smaller in _enumerate_smaller_mappings(getattr(self, name)):
                change: dict[str, Any] = {name: smaller}
                yield evolve(self, **change)
        for number in self.time_jumps:
            yield evolve(self, time_jumps=[n for n in self.time_jumps if n != number])
        for number in self.power_losses:
            yield evolve(self, power_losses=[n for n in self.power_losses if n != number])


def _enumerate_smaller_mappings(values: Mapping[int, Any]) -> Iterator[Mapping[int, Any]]:
    """Leave out all entries, then each half, each quarter, and so on to single entries."""
    numbers = sorted(values)
    size = len(numbers)
    while size:
        for start in range(0, len(numbers), size):
            removed = set(numbers[start : start + size])
            yield {n: value for n, value in values.items() if n not in removed}
        size //= 2


def draw_plan(seed: int) -> Plan:
    """Return the plan of a seed: two writers at least, some other actors, and their faults."""
    chance = random.Random(seed)
    other_roles = [r for r in Role if r not in (Role.WRITER, Role.RESCALER, Role.OVERWRITER, *REPLACERS)]
    roles = [Role.WRITER, chance.choice(WRITERS), *chance.sample(other_roles, chance.randint(1, 5))]
    is_store = chance.random() < 0.5
    kinds = STORE_FAULTS if is_store else LOCAL_FAULTS
    rate = chance.choice((0.0, 0.01, 0.03, 0.03))
    faults = {n: chance.choice(kinds) for n in range(1, _MAX_FAULT_NUMBER) if chance.random() < rate}
    options = {**_COMMON_OPTIONS, **chance.choice(_TABLE_OPTIONS)}
    return Plan(
        seed,
        roles,
        steps_per_actor=chance.choice((1, 2, 2, 3, 3, 4)),
        faults=faults,
        put_faults={chance.randint(1, 20): chance.choice(kinds) for _ in range(chance.choice((0, 0, 1, 3)))},
        delays={n: chance.randrange(20, 400) for n in _draw_numbers(chance, 0.4, 4)},
        clock_offsets={
            n: chance.randint(-_MAX_CLOCK_OFFSET_MILLIS, _MAX_CLOCK_OFFSET_MILLIS)
            for n in _draw_numbers(chance, 0.4, 6)
        },
        time_jumps=sorted(_draw_numbers(chance, 0.7, 3)),
        flaky_reads=_draw_flaky_reads(chance, roles),
        is_store=is_store,
        initial_rows=200 if chance.random() < 0.3 else 0,
        options=options,
    )


def draw_lasting_faults_plan(seed: int) -> Plan:
    """Return the plan of a seed with one more reader, in which each fault also hits the next operation.

    What a process does after a failed operation, such as the deletion of a hint that it could not write, fails too.
    """
    plan = draw_plan(seed)
    faults = {place: fault for number, fault in plan.faults.items() for place in (number, number + 1)}
    return evolve(plan, roles=(*plan.roles, Role.READER), faults=faults)


def draw_hidden_level_0_plan(seed: int) -> Plan:
    """Return the plan of a seed, on a table whose reads skip level 0."""
    plan = draw_plan(seed)
    retention = _SHORT_RETENTION if "snapshot.num-retained.max" in plan.options else {}
    # There are no initial rows, because the first snapshot of the loader would hide them.
    return evolve(plan, initial_rows=0, options={**_COMMON_OPTIONS, **HIDDEN_LEVEL_0, **retention})


def draw_rescale_plan(seed: int) -> Plan:
    """Return the plan of a seed with one more actor, which rescales the table."""
    plan = draw_plan(seed)
    return evolve(plan, roles=(*plan.roles, Role.RESCALER))


def draw_dynamic_plan(seed: int) -> Plan:
    """Return the plan of a seed, on a table with dynamic buckets; often one more actor overwrites the table."""
    more = (Role.COMPACTOR, Role.OVERWRITER)[: seed % 3]
    return _draw_shared_plan(seed, TableKind.DYNAMIC, more)


def draw_cross_partition_plan(seed: int) -> Plan:
    """Return the plan of a seed, on a table whose primary key lacks the partition column."""
    return _draw_shared_plan(seed, TableKind.CROSS_PARTITION, (Role.STREAMER,)[: seed % 2])


def draw_postponed_plan(seed: int) -> Plan:
    """Return the plan of a seed with one or two more compactors, on a table with postponed buckets.

    No snapshot expires: a compaction orders the rows of expired commits by the times of their files.
    """
    plan = _draw_shared_plan(seed, TableKind.POSTPONED, (Role.COMPACTOR, Role.COMPACTOR)[seed % 2 :])
    options = {name: value for name, value in plan.options.items() if "num-retained" not in name}
    return evolve(plan, roles=[r for r in plan.roles if r is not Role.EXPIRER], options=options)


def draw_power_loss_plan(seed: int) -> Plan:
    """Return the plan of a seed, on a local disk that defers flushes, loses its power, and fails to flush snapshots."""
    plan, chance = draw_plan(seed), random.Random(f"{seed} power")
    faults = {n: fault for n, fault in plan.faults.items() if fault in LOCAL_FAULTS}
    put_faults = {n: Fault.REPLY_NOT_DURABLE for n in range(1, 20) if chance.random() < 0.1}
    losses = sorted(_draw_numbers(chance, 0.7, 3))
    return evolve(plan, faults=faults, put_faults=put_faults, is_store=False, defers_flushes=True, power_losses=losses)


def draw_replaced_plan(seed: int) -> Plan:
    """Return the plan of a seed with actors that drop, rename and create the table; all clocks are right.

    Two tables that were created at the same time, by different clocks, could have equal schemas.
    """
    plan = draw_plan(seed)
    kept = [r for r in plan.roles if r in (*WRITERS, Role.COMPACTOR, Role.EXPIRER, Role.TAGGER, Role.READER)]
    roles = [*kept, Role.DROPPER, Role.CREATOR, Role.CREATOR, *(Role.RENAMER, Role.DROPPER)[: seed % 3]]
    steps = max(plan.steps_per_actor, 3)
    return evolve(
        plan,
        roles=roles,
        steps_per_actor=steps,
        initial_rows=0,
        clock_offsets={},
        flaky_reads={},
        table_kind=TableKind.REPLACED,
    )


def _draw_shared_plan(seed: int, kind: TableKind, more_roles: tuple[Role, ...]) -> Plan:
    plan = draw_plan(seed)
    options = {**plan.options, **_KIND_OPTIONS[kind]}
    return evolve(plan, roles=(*plan.roles, *more_roles), initial_rows=0, options=options, table_kind=kind)


def _draw_numbers(chance: random.Random, share: float, max_count: int) -> list[int]:
    """Draw operation numbers, with this probability, else none."""
    count = chance.randint(1, max_count) if chance.random() < share else 0
    return [chance.randrange(1, _MAX_FAULT_NUMBER // 3) for _ in range(count)]


def _draw_flaky_reads(chance: random.Random, roles: list[Role]) -> dict[int, str]:
    """Draw flaky actors; writers seldom, because a flaky writer only retries."""
    shares = {n: 0.1 if role in WRITERS else 0.45 for n, role in enumerate(roles)}
    kinds = (*READ_FAILURE_RATES, "tag/", "tag/", "manifest/")
    return {n: chance.choice(kinds) for n, share in shares.items() if chance.random() < share}
