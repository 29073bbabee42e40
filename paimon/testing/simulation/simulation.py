"""Run a plan: interleave its actors, apply its faults, and check the history.

Invariant: one plan gives one history. Each storage operation is a step, before which any other actor may run, and its
number selects its fault. A time jump lasts days. It happens when no actor is within a step, so that no step lasts as
long as the minimum age of orphan files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from attrs import field, frozen

from paimon.domain.identifier import Identifier
from paimon.domain.paths import TablePaths
from paimon.domain.schema.missing_columns import MISSING_COLUMNS
from paimon.domain.snapshot.snapshot import snapshot_from_json
from paimon.domain.types.ddl import parse_columns
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.ports.effects import Clock, Ids
from paimon.ports.effects import Random as RandomPort
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO
from paimon.table import Table, open_at
from paimon.testing.faulty_files import Fault
from paimon.testing.interleaving import (
    ConstantRandom,
    Interleaving,
    OffsetClock,
    SequentialIds,
    SimulatedClock,
    catch_outcome,
)
from paimon.testing.simulation.actions import Action, WorkResult
from paimon.testing.simulation.actors import Actor
from paimon.testing.simulation.check_history import find_violations
from paimon.testing.simulation.replaced_tables import (
    DATABASE,
    TABLE,
    WAREHOUSE,
    SnapshotPut,
    TableTimes,
    check_replaced_tables,
    run_replacer,
)
from paimon.testing.simulation.shared_keys import PARTITION_COLUMN
from paimon.testing.simulation.simulated_rows import COLUMNS, build_initial_rows
from paimon.testing.simulation.simulated_storage import DiskFiles, DiskProcessFiles, ProcessFiles, TimedFiles
from paimon.testing.simulation.simulation_plan import (
    HOUR_MILLIS,
    READ_FAILURE_RATES,
    TIME_JUMP_MILLIS,
    Plan,
    Role,
    TableKind,
)

Assemble = Callable[[FileIO, Clock, Ids, RandomPort], Engine]
"""Returns the engine of one process, which uses this storage, clock, ids and random numbers."""
ROOT = f"{WAREHOUSE}/{DATABASE}.db/{TABLE}"
"""The directory of the table."""
_MACHINE = "the machine"
"""The owner of the clock that all processes on one machine share."""
_CONTINUE_RATE = 0.9
"""How often the actor that ran last runs again."""
_STALL_RATE = 0.15
"""How often an actor that does not continue is stalled for many steps, while others commit, expire and clean."""
_STALL_STEPS = (50, 400)
_DELAY_MILLIS = 60_000
_READS = ("read", "open", "status")
_WRITES = ("put_if_absent", "replace", "close")
_REPLIES = (Fault.REPLY_UNKNOWN, Fault.REPLY_EXISTS, Fault.REPLY_NOT_DURABLE)


@frozen
class SimulationResult:
    """The result of a plan.

    Parameters
    ----------
    plan : Plan
        The plan that was run.
    violations : tuple of str
        One sentence per violated invariant; empty for a correct history.
    trace : tuple of str
        One line per storage operation, action and event.
    operations : int
        The number of storage operations of all processes.
    """

    plan: Plan
    violations: tuple[str, ...]
    trace: tuple[str, ...] = field(repr=False)
    operations: int = 0

    @property
    def is_correct(self) -> bool:
        """Whether no invariant was violated."""
        return not self.violations


class Simulation:
    """One run of one plan; it is also the environment of the actors.

    Parameters
    ----------
    plan : Plan
        The actors and the faults.
    assemble : callable
        Returns the engine of one process.
    """

    def __init__(self, plan: Plan, assemble: Assemble) -> None:
        self._plan = plan
        self._assemble = assemble
        self._interleaving = Interleaving()
        self._clock = SimulatedClock(self._interleaving)
        self._clock_offsets: dict[str, int] = {}
        self._ids = SequentialIds()
        self._order = Random(plan.seed)
        storage = DiskFiles if plan.defers_flushes else TimedFiles
        self._storage = storage(self._storage_clock().now_millis, not plan.is_store, lambda: self._time)
        self._processes: list[ProcessFiles] = []
        self._power_losses = list(plan.power_losses)
        self._operations = self._puts = 0
        self._time = 0
        self._table_times = TableTimes()
        self._last_actor: str | None = None
        self._stalled: dict[str, int] = {}
        self._time_jumps = list(plan.time_jumps)
        self._actors_in_step: set[str] = set()
        self._flaky_reads = {f"{plan.roles[n].value}-{n}": kind for n, kind in plan.flaky_reads.items()}
        self._open_times: dict[str, int] = {}
        self.actions: list[Action] = []
        self.trace: list[str] = []

    def run(self) -> SimulationResult:
        """Run all actors, then check the history."""
        plan = self._plan
        engine = self._faultless_engine()
        create_table(engine, TablePaths(ROOT), _declare_table(plan))
        if plan.initial_rows:
            table = self.open_without_faults()
            table.write(build_initial_rows(plan.initial_rows), kind_column="kind", commit_user="loader")
            table.compact(full=True)
        actors = [self._create_actor(number, role) for number, role in enumerate(plan.roles)]
        outcomes = self._interleaving.run({a.name: a.run for a in actors}, self._choose_actor)
        self._lose_power()
        found = [f"{name} ended with {o!r}" for name, o in outcomes.items() if o is not None]
        checked = catch_outcome(self._find_violations)  # any error of the check is a violation, too
        found += [f"the check ended with {checked!r}"] if isinstance(checked, BaseException) else checked
        return SimulationResult(plan, tuple(found), tuple(self.trace), self._operations)

    def _find_violations(self) -> list[str]:
        if self._plan.table_kind is not TableKind.REPLACED:
            return find_violations(
                self._plan, self.open_without_faults, self.actions, self._storage, self._clock.advance_millis
            )
        contents = self._storage.contents
        self._table_times.observe(self.next_time(), contents)
        puts = [SnapshotPut(snapshot_from_json(data, path), time) for path, data, time in self._storage.snapshot_puts]
        return [*check_replaced_tables(self.actions, puts, self._table_times, contents, self.open_without_faults)]

    def open_without_faults(self) -> Table:
        """Open the table on a storage without faults."""
        return _open_simulated_table(self._faultless_engine())

    def open_table(self, actor: str) -> Table:
        """Open the table as a new process would, with empty caches."""
        table = _open_simulated_table(self._open_engine(actor))
        self._table_times.record_opened(actor, self._time, table)
        return table

    def replace_table(self, actor: str, role: Role) -> WorkResult:
        """Drop, rename or create the table as a new process would."""
        return run_replacer(role, self._open_engine(actor), _declare_table(self._plan))

    def _open_engine(self, actor: str) -> Engine:
        self._open_times[actor] = self.next_time()
        random = Random(f"{self._plan.seed} {actor} {self._open_times[actor]}")
        if isinstance(self._storage, DiskFiles):
            files: ProcessFiles = DiskProcessFiles(self._storage, self._next_fault, random)
        else:
            files = ProcessFiles(self._storage, self._next_fault, random)
        self._processes.append(files)
        return self._assemble(files, self._clock_of(actor), self._ids, ConstantRandom())

    def begin_step(self, actor: str) -> int:
        """Start a step after the due time jumps; a step that continues with prepared files waits for none."""
        is_new_step = actor not in self._actors_in_step
        while is_new_step and self._time_jumps and self._operations >= self._time_jumps[0]:
            if self._actors_in_step:
                self._interleaving.pause()
                continue
            del self._time_jumps[0]
            self._clock.advance_millis(TIME_JUMP_MILLIS)
            self.trace.append(f"{TIME_JUMP_MILLIS // HOUR_MILLIS} hours pass")
        self._actors_in_step.add(actor)
        return self.next_time()

    def end_step(self, actor: str) -> None:
        """End the step of an actor."""
        self._actors_in_step.discard(actor)

    def next_time(self) -> int:
        """Return a logical time that is greater than all earlier ones."""
        self._time += 1
        return self._time

    def record_action(self, action: Action) -> None:
        """Add an action to the history and to the trace."""
        self.actions.append(action)
        self.trace.append(f"{action.actor}: {action.outcome.value} {action.number}: {action.description}")

    def _faultless_engine(self) -> Engine:
        return self._assemble(self._storage, self._clock, self._ids, ConstantRandom())

    def _create_actor(self, number: int, role: Role) -> Actor:
        name = f"{role.value}-{number}"
        random = Random(f"{self._plan.seed} {name}")
        return Actor(name, number, role, self._plan.steps_per_actor, self, random, self._plan.table_kind)

    def _clock_of(self, actor: str) -> OffsetClock:
        return OffsetClock(self._clock, actor if self._plan.is_store else _MACHINE, self._clock_offsets)

    def _storage_clock(self) -> OffsetClock:
        return OffsetClock(self._clock, "the store" if self._plan.is_store else _MACHINE, self._clock_offsets)

    def _next_fault(self, operation: str, path: str) -> Fault | None:
        """Let other actors run, count the operation, and return its fault."""
        self._interleaving.pause()
        self._operations += 1
        self._time += 1
        number, actor = self._operations, str(self._interleaving.current_actor)
        self._table_times.observe(self._time, self._storage.contents)
        self._change_clock(number, actor)
        if number in self._plan.delays:
            self._delay_actor(number, actor)
        if self._power_losses and number >= self._power_losses[0]:
            del self._power_losses[0]
            self._lose_power()
        fault = self._select_fault(number, actor, operation, path)
        suffix = f" and {fault.value}" if fault else ""
        self.trace.append(f"{number} {actor}: {operation} {path.removeprefix(ROOT)}{suffix}")
        return fault

    def _lose_power(self) -> None:
        """Let the disk lose what is not flushed, and all processes die."""
        if isinstance(self._storage, DiskFiles):
            self.trace.append("the power is lost")
            self._storage.lose_power(Random(f"{self._plan.seed} {self._operations}"))
            for files in self._processes:
                files.kill()

    def _select_fault(self, number: int, actor: str, operation: str, path: str) -> Fault | None:
        """Return the planned fault of an operation, replaced by a similar one if the operation cannot have it."""
        fault = self._plan.faults.get(number)
        if operation == "put_if_absent" and "/snapshot/" in path:
            self._puts += 1
            fault = self._plan.put_faults.get(self._puts, fault)
        if fault is None and operation in _READS and self._is_unreadable(actor, path):
            fault = Fault.FAIL_BEFORE
        if fault in _REPLIES and operation != "put_if_absent":
            fault = None
        if fault is Fault.TORN_WRITE and operation not in _WRITES:
            fault = Fault.DIE_BEFORE
        return fault

    def _is_unreadable(self, actor: str, path: str) -> bool:
        """Return whether a process cannot read a file until it opens the table again."""
        kind = self._flaky_reads.get(actor)
        if kind is None or f"/{kind}" not in path:
            return False
        random = Random(f"{self._plan.seed} {actor} {self._open_times[actor]} {path}")
        return random.random() < READ_FAILURE_RATES[kind]

    def _change_clock(self, number: int, actor: str) -> None:
        if number not in self._plan.clock_offsets:
            return
        clock, offset_millis = self._clock_of(actor), self._plan.clock_offsets[number]
        self._clock_offsets[clock.owner] = offset_millis
        self.trace.append(f"the clock of {clock.owner} is now {offset_millis / HOUR_MILLIS:+.1f} hours off")

    def _delay_actor(self, number: int, actor: str) -> None:
        self.trace.append(f"{number} {actor} waits for its storage")
        self._stalled[actor] = self._plan.delays[number]
        self._clock.advance_millis(_DELAY_MILLIS)
        self._interleaving.pause()

    def _choose_actor(self, names: Sequence[str]) -> str:
        """Choose mostly the actor that ran last; with equal chances all histories would look alike."""
        if self._stalled:
            self._stalled = {name: steps - 1 for name, steps in self._stalled.items() if steps > 1}
        candidates = [name for name in names if name not in self._stalled] or list(names)
        last = self._last_actor
        if last is None or last not in candidates or self._order.random() > _CONTINUE_RATE:
            if last in candidates and len(candidates) > 1 and self._order.random() < _STALL_RATE:
                self._stalled[str(last)] = self._order.randrange(*_STALL_STEPS)
                candidates.remove(str(last))
            last = self._last_actor = self._order.choice(candidates)
        return last


def _declare_table(plan: Plan) -> TableDeclaration:
    options = {MISSING_COLUMNS: "null", **plan.options}  # writers do not know the columns that other actors add
    if plan.table_kind is not TableKind.CROSS_PARTITION:
        return TableDeclaration(parse_columns(COLUMNS), ("id",), options=options)
    return TableDeclaration(parse_columns(f"{PARTITION_COLUMN}, {COLUMNS}"), ("id",), ("p",), options)


def _open_simulated_table(engine: Engine) -> Table:
    table = open_at(engine, ROOT, Identifier(DATABASE, TABLE), {})
    assert isinstance(table, Table)
    return table


def shrink(result: SimulationResult, assemble: Assemble, max_runs: int = 400) -> SimulationResult:
    """Search for a smaller plan whose history still violates an invariant.

    Parameters
    ----------
    result : SimulationResult
        The result of a history with violations.
    assemble : callable
        Returns the engine of one process.
    max_runs : int
        The number of histories to run at most.

    Returns
    -------
    SimulationResult
        The result of the smallest plan found, or `result`.
    """
    runs_left = max_runs
    while runs_left > 0:
        for plan in result.plan.enumerate_smaller_plans():
            runs_left -= 1
            smaller = Simulation(plan, assemble).run()
            if not smaller.is_correct:
                result = smaller
                break
            if runs_left <= 0:
                break
        else:
            break
    return result


def describe_result(result: SimulationResult) -> str:
    """Return the plan, the trace and the violations of a history, one per line."""
    plan = result.plan
    storage = "an object store" if plan.is_store else "a local disk"
    roles = ", ".join(r.value for r in plan.roles)
    head = f"seed {plan.seed}: {roles}; {plan.table_kind.value}; on {storage}; {dict(plan.options)}"
    return "\n".join([head, *result.trace, *(f"VIOLATION: {text}" for text in result.violations)])
