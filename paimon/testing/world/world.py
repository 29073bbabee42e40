"""Running a plan, and judging what came of it.

Law: what was acknowledged is there, once and for all; what was refused is not; what is uncertain is there whole or not
at all. Every state that stands can be read and goes at least as far as those before it. What lies on the storage is
held by something, or found by the cleaner.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import field, frozen

from paimon.domain.errors import PaimonError
from paimon.domain.identifier import Identifier
from paimon.domain.paths import TablePaths
from paimon.domain.types.ddl import parse_columns
from paimon.operations.evolve import create_table
from paimon.ports.effects import Clock, Ids, Random
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO
from paimon.scan import Scan
from paimon.table import Table, open_at
from paimon.testing.faulty_files import Fault, ProcessDied
from paimon.testing.turns import CountedIds, NoChance, TurnClock, Turns
from paimon.testing.world.actors import COLUMNS, KEYS, Actor, Deed, Told, version_rows
from paimon.testing.world.plan import HOUR_MILLIS, Plan, Role
from paimon.testing.world.storage import ProcessFiles, TimedFiles

Assemble = Callable[[FileIO, Clock, Ids, Random], Engine]
"""An engine of one process, on this storage, clock, ids and chance."""
ROOT = "/lake/d.db/t"
_LIVES = 4
"""How often a process that died comes back."""
_STICKY = 0.9
_STALLS = 0.15
"""How often one who gives way is not seen for long: meanwhile others commit, expire and clean."""
_STALL_STEPS = (50, 400)


@frozen
class Verdict:
    """What came of a plan: nothing wrong, or what; and the story."""

    plan: Plan
    wrongs: tuple[str, ...]
    story: tuple[str, ...] = field(repr=False)

    @property
    def is_well(self) -> bool:
        """Whether all laws were kept."""
        return not self.wrongs


class World:
    """One run of one plan."""

    def __init__(self, plan: Plan, assemble: Assemble) -> None:
        self._plan = plan
        self._assemble = assemble
        self._turns = Turns()
        self._clock = TurnClock(self._turns)
        self._ids = CountedIds()
        self._order = random.Random(plan.seed)
        self._storage = TimedFiles(self._clock.now_millis)
        self._operations = 0
        self._last: str | None = None
        self._stalled: dict[str, int] = {}
        self._is_calm = True
        self.deeds: list[Deed] = []
        self.story: list[str] = []

    def run(self) -> Verdict:
        """Act, then judge."""
        fields = parse_columns(COLUMNS)
        create_table(self._calm(), TablePaths(ROOT), fields, ("id",), (), dict(self._plan.options), None)
        self._is_calm = False
        actors = [self._actor(number, role) for number, role in enumerate(self._plan.roles)]
        outcomes = self._turns.run({a.name: self._lives(a) for a in actors}, self._choose)
        self._is_calm = True
        wrongs = [f"{name} ended by {o!r}" for name, o in outcomes.items() if o is not None]
        wrongs += Judgement(self, actors).wrongs()
        return Verdict(self._plan, tuple(wrongs), tuple(self.story))

    def table(self) -> Table:
        """The table as one sees it to whom nothing happens."""
        return _opened(self._calm())

    @property
    def faults(self) -> Mapping[int, Fault]:
        """What went wrong where."""
        return self._plan.faults

    @property
    def storage(self) -> TimedFiles:
        """What lies there."""
        return self._storage

    def later(self, millis: int) -> None:
        """Let time pass."""
        self._clock.sleep_millis(millis)

    def _calm(self) -> Engine:
        return self._assemble(self._storage, self._clock, self._ids, NoChance())

    def _actor(self, number: int, role: Role) -> Actor:
        name = f"{role.value}-{number}"
        chance = random.Random(f"{self._plan.seed} {name}")
        return Actor(name, number, role, self._plan.turns, lambda: self._process(name), self._note, chance)

    def _process(self, name: str) -> Table:
        files = ProcessFiles(self._storage, self._fault, leaves_parts=not self._plan.is_store)
        return _opened(self._assemble(files, self._clock, self._ids, NoChance()))

    def _lives(self, actor: Actor) -> Callable[[], None]:
        def live() -> None:
            for _ in range(_LIVES):
                try:
                    actor.run()
                    return
                except ProcessDied:
                    self._note(Deed(actor.name, 0, Told.DIED))

        return live

    def _note(self, deed: Deed) -> None:
        self.deeds.append(deed)
        self.story.append(f"{deed.actor}: {deed.told.value} {deed.number}: {deed.detail}")

    def _fault(self, operation: str, path: str) -> Fault | None:
        """Every operation is a step, and may fail."""
        if self._is_calm:
            return None
        self._turns.pause()
        self._operations += 1
        number = self._operations
        if number in self._plan.clock_steps:
            self._clock.jump_millis(self._plan.clock_steps[number])
            self.story.append(f"the clock jumps {self._plan.clock_steps[number] / HOUR_MILLIS:.1f} hours")
        fault = self._plan.faults.get(number)
        if fault in (Fault.TELLS_NOTHING, Fault.SAYS_EXISTS) and operation != "put_if_absent":
            fault = None
        what = f" and {fault.value}" if fault else ""
        self.story.append(f"{number} {self._turns.actor}: {operation} {path.removeprefix(ROOT)}{what}")
        return fault

    def _choose(self, names: Sequence[str]) -> str:
        """Mostly the one who ran last: histories in which everybody stops everywhere look all alike."""
        self._stalled = {name: left - 1 for name, left in self._stalled.items() if left > 1}
        able = [name for name in names if name not in self._stalled] or list(names)
        last = self._last
        if last is None or last not in able or self._order.random() > _STICKY:
            if last in able and len(able) > 1 and self._order.random() < _STALLS:
                self._stalled[str(last)] = self._order.randrange(*_STALL_STEPS)
                able.remove(str(last))
            last = self._last = self._order.choice(able)
        return last


class Judgement:
    """Looks at what is left when everybody is done."""

    def __init__(self, world: World, actors: Sequence[Actor]) -> None:
        self._world = world
        self._writers = [a for a in actors if a.role in (Role.WRITER, Role.STREAMER)]

    def wrongs(self) -> list[str]:
        """Everything that is not as it must be."""
        try:
            table = self._world.table()
            return [*self._states(table), *self._promises(table), *self._readers(), *self._remains(table)]
        except PaimonError as error:
            return [f"the table cannot be read any more: {type(error).__name__}: {error}"]

    def _states(self, table: Table) -> Iterator[str]:
        """Each state is a prefix of each writer's history, and no state goes back."""
        report = table.maintain.check(deep=True)
        yield from (str(fault) for fault in report.faults if not fault.kind.is_harmless)
        before: Mapping[int, int] = {}
        commits = Counter((s.commit_user, s.commit_identifier, s.commit_kind) for s in table.snapshots())
        yield from (f"commit {c[1]} of {c[0]} took place {n} times" for c, n in commits.items() if n > 1 and c[1] < 100)
        for snapshot in table.snapshots():
            reached, wrong = self._reached(table, snapshot.id)
            if wrong:
                yield f"snapshot {snapshot.id}: {wrong}"
                continue
            back = [w for w, n in before.items() if reached[w] < n]
            if back:
                yield f"snapshot {snapshot.id} goes back for writers {back}"
            before = reached
        for tag in table.tags:
            _, wrong = _versions(dict(_rows(table.scan(["id", "version"], tag=tag))), self._numbers)
            if wrong:
                yield f"tag {tag}: {wrong}"

    def _promises(self, table: Table) -> Iterator[str]:
        latest = table.snapshot()
        reached, wrong = self._reached(table, latest.id) if latest else (dict.fromkeys(self._numbers, 0), "")
        if wrong:
            return  # said of its state
        for writer in self._writers:
            deeds = [d for d in self._world.deeds if d.actor == writer.name]
            acknowledged = max((d.number for d in deeds if d.told is Told.DONE), default=0)
            attempted = max((d.number for d in deeds), default=0)
            died = any(d.told is Told.DIED for d in deeds)
            if reached[writer.number] < acknowledged:
                yield f"{writer.name} was told that {acknowledged} is done, and {reached[writer.number]} is there"
            if reached[writer.number] > max(attempted, writer.turns if died else 0):
                yield f"{writer.name} never wrote {reached[writer.number]}"
            last = {d.number: d.told for d in deeds if d.number}
            if not self._world.faults and set(last.values()) - {Told.DONE}:
                yield f"{writer.name} was refused for no reason: {[d.detail for d in deeds if d.told is not Told.DONE]}"
            if not died and last.get(reached[writer.number]) is Told.REFUSED:
                yield f"{writer.name} was told that {reached[writer.number]} is refused, and it is there"

    def _readers(self) -> Iterator[str]:
        for deed in self._world.deeds:
            if deed.actor.startswith("reader") and deed.told is Told.DONE:
                snapshot, rest = deed.detail.split(" ", 1)
                listed, _, doubled = rest.rpartition(" ")
                _, wrong = _versions(dict(ast.literal_eval(listed)), self._numbers)
                if wrong or doubled != "0":
                    yield f"{deed.actor} read of snapshot {snapshot}: {wrong or 'a key twice'}"

    def _remains(self, table: Table) -> Iterator[str]:
        """After the cleaner nothing is left that nobody holds, and nothing is gone that somebody does."""
        self._world.later(100 * HOUR_MILLIS)
        table.maintain.remove_orphans()
        report = table.maintain.check()
        yield from (f"after the cleaner: {f}" for f in report.faults if not f.kind.is_harmless)
        hidden = [p for p in self._world.storage.contents if p.rpartition("/")[2].startswith(".")]
        if hidden:
            yield f"parts are left: {hidden}"

    @property
    def _numbers(self) -> list[int]:
        return [w.number for w in self._writers]

    def _reached(self, table: Table, snapshot: int) -> tuple[dict[int, int], str]:
        return _versions(dict(_rows(table.scan(["id", "version"], snapshot=snapshot))), self._numbers)


def _rows(scan: Scan) -> Iterator[tuple[int, int]]:
    rows = scan.to_arrow()
    return zip(rows["id"].to_pylist(), rows["version"].to_pylist(), strict=True)


def _versions(rows: Mapping[int, int], writers: Sequence[int]) -> tuple[dict[int, int], str]:
    """How far each writer's commits go in a state; a text where the state is none that they could have made."""
    reached: dict[int, int] = {}
    for writer in writers:
        held = {key: rows[key] for key in range(writer * KEYS, (writer + 1) * KEYS) if key in rows}
        version = max(held.values(), default=0)
        if held != version_rows(writer, version):
            return {}, f"holds {held} of writer {writer}, which no commit of it made"
        reached[writer] = version
    phantoms = set(rows) - {key for w in writers for key in range(w * KEYS, (w + 1) * KEYS)}
    return reached, f"holds rows of nobody: {sorted(phantoms)}" if phantoms else ""


def _opened(engine: Engine) -> Table:
    opened = open_at(engine, ROOT, Identifier("d", "t"), {})
    assert isinstance(opened, Table)
    return opened


def shrunk(verdict: Verdict, assemble: Assemble, runs: int = 200) -> Verdict:
    """The smallest history found that still goes wrong."""
    for _ in range(runs):
        for plan in verdict.plan.smaller():
            smaller = World(plan, assemble).run()
            if not smaller.is_well:
                verdict = smaller
                break
        else:
            return verdict
    return verdict


def told(verdict: Verdict) -> str:
    """The story of a history, with what is wrong at its end."""
    plan = verdict.plan
    head = f"seed {plan.seed}: {', '.join(r.value for r in plan.roles)}; {dict(plan.options)}"
    return "\n".join([head, *verdict.story, *(f"WRONG: {w}" for w in verdict.wrongs)])
