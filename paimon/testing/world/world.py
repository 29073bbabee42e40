"""Running a plan.

Law: one plan is one history. Every operation of storage is a step, before which anybody else may run; what goes wrong
with it is looked up by its number. Whoever begins a turn waits while a night is due, which comes when nobody is in the
midst of one: so time passes by days, and no turn takes as long as a cleaner waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from attrs import field, frozen

from paimon.domain.identifier import Identifier
from paimon.domain.paths import TablePaths
from paimon.domain.types.ddl import parse_columns
from paimon.operations.evolve import create_table
from paimon.ports.effects import Clock, Ids, Random
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO
from paimon.table import Table, open_at
from paimon.testing.faulty_files import Fault
from paimon.testing.turns import CountedIds, NoChance, TurnClock, Turns
from paimon.testing.world.acting.actors import Actor
from paimon.testing.world.acting.deeds import Deed
from paimon.testing.world.acting.rows import COLUMNS, loaded_rows
from paimon.testing.world.clocks import LOCAL, OwnClock
from paimon.testing.world.judging.judgement import wrongs
from paimon.testing.world.plan import HOUR_MILLIS, NIGHT_MILLIS, OUT_OF_REACH, Plan, Role
from paimon.testing.world.storage import ProcessFiles, TimedFiles

Assemble = Callable[[FileIO, Clock, Ids, Random], Engine]
"""An engine of one process, on this storage, clock, ids and chance."""
ROOT = "/lake/d.db/t"
_STICKY = 0.9
_STALLS = 0.15
"""How often one who gives way is not seen for long: meanwhile others commit, expire and clean."""
_STALL_STEPS = (50, 400)
_DELAY_MILLIS = 60_000
_READS = ("read", "open", "status")
_WRITES = ("put_if_absent", "replace", "close")


@frozen
class Verdict:
    """What came of a plan: nothing wrong, or what; the story, and the number of operations."""

    plan: Plan
    wrongs: tuple[str, ...]
    story: tuple[str, ...] = field(repr=False)
    operations: int = 0

    @property
    def is_well(self) -> bool:
        """Whether all laws were kept."""
        return not self.wrongs


class World:
    """One run of one plan; also the stage of its actors."""

    def __init__(self, plan: Plan, assemble: Assemble) -> None:
        self._plan = plan
        self._assemble = assemble
        self._turns = Turns()
        self._clock = TurnClock(self._turns)
        self._offsets: dict[str, int] = {}
        self._ids = CountedIds()
        self._order = random.Random(plan.seed)
        self._storage = TimedFiles(self._storage_clock().now_millis, leaves_parts=not plan.is_store)
        self._operations = self._puts = 0
        self._moment = 0
        self._last: str | None = None
        self._stalled: dict[str, int] = {}
        self._nights = list(plan.nights)
        self._busy: set[str] = set()
        self._flaky = {f"{plan.roles[n].value}-{n}": where for n, where in plan.flaky.items()}
        self._opened: dict[str, int] = {}
        self.deeds: list[Deed] = []
        self.story: list[str] = []

    def run(self) -> Verdict:
        """Act, then judge."""
        plan = self._plan
        create_table(self._calm(), TablePaths(ROOT), parse_columns(COLUMNS), ("id",), (), dict(plan.options), None)
        if plan.loaded:
            table = self.table()
            table.write(loaded_rows(plan.loaded), kind_column="kind", commit_user="loader")
            table.compact(full=True)
        actors = [self._actor(number, role) for number, role in enumerate(plan.roles)]
        outcomes = self._turns.run({a.name: a.live for a in actors}, self._choose)
        found = [f"{name} ended by {o!r}" for name, o in outcomes.items() if o is not None]
        try:
            found += wrongs(plan, self.table, self.deeds, self._storage, self._later)
        except Exception as error:  # whatever it is, the history is not well
            found.append(f"judging ended by {error!r}")
        return Verdict(plan, tuple(found), tuple(self.story), self._operations)

    def table(self) -> Table:
        """The table as one sees it to whom nothing happens."""
        return _opened(self._calm())

    def open(self, actor: str) -> Table:
        """The table as a fresh process sees it: nothing is remembered."""
        self._opened[actor] = self.moment()
        chance = random.Random(f"{self._plan.seed} {actor} {self._opened[actor]}")
        files = ProcessFiles(self._storage, self._fault, chance)
        return _opened(self._assemble(files, self._clock_of(actor), self._ids, NoChance()))

    def begin(self, actor: str) -> int:
        """A turn begins, after the nights that are due; one that goes on with what it has prepared waits for none."""
        while actor not in self._busy and self._nights and self._operations >= self._nights[0]:
            if self._busy:
                self._turns.pause()
                continue
            del self._nights[0]
            self._later(NIGHT_MILLIS)
            self.story.append("days pass")
        self._busy.add(actor)
        return self.moment()

    def end(self, actor: str) -> None:
        """A turn ends."""
        self._busy.discard(actor)

    def moment(self) -> int:
        """The next moment."""
        self._moment += 1
        return self._moment

    def note(self, deed: Deed) -> None:
        """Keep a deed for the judgement."""
        self.deeds.append(deed)
        self.story.append(f"{deed.actor}: {deed.told.value} {deed.number}: {deed.text}")

    def _later(self, millis: int) -> None:
        self._clock.jump_millis(millis)

    def _calm(self) -> Engine:
        return self._assemble(self._storage, self._clock, self._ids, NoChance())

    def _actor(self, number: int, role: Role) -> Actor:
        name = f"{role.value}-{number}"
        return Actor(name, number, role, self._plan.turns, self, random.Random(f"{self._plan.seed} {name}"))

    def _clock_of(self, actor: str) -> OwnClock:
        return OwnClock(self._clock, actor if self._plan.is_store else LOCAL, self._offsets)

    def _storage_clock(self) -> OwnClock:
        return OwnClock(self._clock, "the store" if self._plan.is_store else LOCAL, self._offsets)

    def _fault(self, operation: str, path: str) -> Fault | None:
        """Every operation is a step, and may fail."""
        self._turns.pause()
        self._operations += 1
        self._moment += 1
        number, actor = self._operations, str(self._turns.actor)
        self._step_clock(number, actor)
        if number in self._plan.delays:
            self._delay(number, actor)
        fault = self._plan.faults.get(number)
        if operation == "put_if_absent" and "/snapshot/" in path:
            self._puts += 1
            fault = self._plan.put_faults.get(self._puts, fault)
        if fault is None and operation in _READS and self._is_out_of_reach(actor, path):
            fault = Fault.FAILS
        if fault in (Fault.TELLS_NOTHING, Fault.SAYS_EXISTS) and operation != "put_if_absent":
            fault = None
        if fault is Fault.TEARS and operation not in _WRITES:
            fault = Fault.DIES
        what = f" and {fault.value}" if fault else ""
        self.story.append(f"{number} {actor}: {operation} {path.removeprefix(ROOT)}{what}")
        return fault

    def _is_out_of_reach(self, actor: str, path: str) -> bool:
        """Whether this process cannot read this file in its turn, and may in the next."""
        where = self._flaky.get(actor)
        if where is None or f"/{where}" not in path:
            return False
        chance = random.Random(f"{self._plan.seed} {actor} {self._opened[actor]} {path}")
        return chance.random() < OUT_OF_REACH[where]

    def _step_clock(self, number: int, actor: str) -> None:
        if number not in self._plan.clocks:
            return
        clock, offset = self._clock_of(actor), self._plan.clocks[number]
        self._offsets[clock.owner] = offset
        self.story.append(f"the clock of {clock.owner} is now {offset / HOUR_MILLIS:+.1f} hours off")

    def _delay(self, number: int, actor: str) -> None:
        self.story.append(f"{number} {actor} waits for its storage")
        self._stalled[actor] = self._plan.delays[number]
        self._later(_DELAY_MILLIS)
        self._turns.pause()

    def _choose(self, names: Sequence[str]) -> str:
        """Mostly the one who ran last: histories in which everybody stops everywhere look all alike."""
        if self._stalled:
            self._stalled = {name: left - 1 for name, left in self._stalled.items() if left > 1}
        able = [name for name in names if name not in self._stalled] or list(names)
        last = self._last
        if last is None or last not in able or self._order.random() > _STICKY:
            if last in able and len(able) > 1 and self._order.random() < _STALLS:
                self._stalled[str(last)] = self._order.randrange(*_STALL_STEPS)
                able.remove(str(last))
            last = self._last = self._order.choice(able)
        return last


def _opened(engine: Engine) -> Table:
    opened = open_at(engine, ROOT, Identifier("d", "t"), {})
    assert isinstance(opened, Table)
    return opened


def shrunk(verdict: Verdict, assemble: Assemble, runs: int = 400) -> Verdict:
    """The smallest history found, by so many runs, that still goes wrong."""
    left = runs
    while left > 0:
        for plan in verdict.plan.smaller():
            left -= 1
            smaller = World(plan, assemble).run()
            if not smaller.is_well:
                verdict = smaller
                break
            if left <= 0:
                break
        else:
            break
    return verdict


def told(verdict: Verdict) -> str:
    """The story of a history, with what is wrong at its end."""
    plan = verdict.plan
    where = "an object store" if plan.is_store else "a local disk"
    head = f"seed {plan.seed}: {', '.join(r.value for r in plan.roles)}; on {where}; {dict(plan.options)}"
    return "\n".join([head, *verdict.story, *(f"WRONG: {w}" for w in verdict.wrongs)])
