"""Committers on one table in any order of steps, with concurrent expiry, faults, and processes that die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from support.commit_tables import check_table, create, engine_on, list_referenced_files, live_names, message, table_at

from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import CommitConflict, CommitUncertain, PaimonError, StorageError
from paimon.operations.commit.commit import commit
from paimon.operations.metadata.snapshots import snapshot_ids
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied
from paimon.testing.interleaving import ConstantRandom, Interleaving, SequentialIds, SimulatedClock
from paimon.testing.memory_files import MemoryFiles

WRITERS = ("a", "b", "c")
COMMITS = 2
ANY_FAULT = [*Fault]


class CommitSimulation:
    """Writers, and an expirer if `expires`, on one memory. The test supplies `order` and `faults`."""

    def __init__(self, order: Sequence[int], faults: Sequence[tuple[int, Fault]], expires: bool, target: str) -> None:
        self.interleaving = Interleaving()
        self.memory = MemoryFiles()
        self.ids = SequentialIds()
        self.table = table_at(
            "/lake/t",
            options={"commit.max-retries": "50", "manifest.target-file-size": target, "manifest.merge-min-count": "3"},
        )
        self._order = list(order)
        self._faults = dict(faults)
        self._expires = expires
        self._operations = 0
        create(engine_on(self.memory), self.table)

    def plan(self, operation: str, path: str) -> Fault | None:
        """Let another actor run before each operation, and return its fault."""
        self.interleaving.pause()
        self._operations += 1
        return self._faults.get(self._operations)

    def choose(self, names: Sequence[str]) -> str:
        """Choose the next actor in the drawn order, which repeats at its end."""
        self._order.append(self._order.pop(0) if self._order else 0)
        return names[self._order[-1] % len(names)]

    def run(self) -> dict[str, object]:
        """All writers (and the expirer) to their end."""
        actors: dict[str, Callable[[], object]] = {name: self._writer(name) for name in WRITERS}
        if self._expires:
            actors["expirer"] = self._expirer
        return self.interleaving.run(actors, self.choose)

    def _engine(self) -> Engine:
        return engine_on(
            FaultyFiles(self.memory, self.plan), SimulatedClock(self.interleaving), self.ids, ConstantRandom()
        )

    def _writer(self, name: str) -> Callable[[], object]:
        def work() -> list[tuple[str, object]]:
            engine = self._engine()
            results: list[tuple[str, object]] = self.results.setdefault(name, [])
            for number in range(COMMITS):
                file = f"{name}{number}"
                request = CommitRequest((message(self.table, [file]),), name, commit_identifier=number)
                try:
                    results.append((file, commit(TableContext(engine, self.table), request)))
                except PaimonError as error:
                    results.append((file, error))
            return results

        return work

    def _expirer(self) -> None:
        """Expire all snapshots except the newest, in ascending order, snapshot files only. It reads without faults."""
        for _ in range(3):
            self.interleaving.pause()
            ids = snapshot_ids(TableContext(self.faultless, self.table))
            for old in ids[:-1]:
                self.interleaving.pause()
                self.memory.delete([self.table.paths.snapshot(old)])

    @property
    def faultless(self) -> Engine:
        """An engine that neither fails nor waits."""
        return engine_on(self.memory)

    results: dict[str, list[tuple[str, object]]]


def check_outcomes(simulation: CommitSimulation, results: Sequence[tuple[str, object]], died: bool) -> None:
    """Acknowledged rows exist once, refused rows do not exist, and uncertain rows may exist."""
    counts = Counter(live_names(simulation.faultless, simulation.table))
    assert all(count == 1 for count in counts.values())
    for file, outcome in results:
        if isinstance(outcome, CommitResult):
            assert counts[file] == 1, f"{file} was acknowledged and is lost"
        elif isinstance(outcome, CommitUncertain):
            assert counts[file] <= 1
        elif isinstance(outcome, CommitConflict | StorageError):
            assert counts[file] == 0, f"{file} was refused and is there"
        else:
            raise AssertionError(f"{file}: {outcome!r}")
    if not died:
        assert set(counts) <= {file for file, _ in results}


orders = st.lists(st.integers(0, 3), max_size=60)
fault_plans = st.lists(st.tuples(st.integers(1, 120), st.sampled_from(ANY_FAULT)), max_size=4)
targets = st.sampled_from(["8 mb", "1 b", "5 kb"])


@settings(max_examples=100, deadline=None)
@given(orders, fault_plans, st.booleans(), targets)
def test_no_commit_is_lost_or_doubled(
    order: list[int], faults: list[tuple[int, Fault]], expires: bool, target: str
) -> None:
    simulation = CommitSimulation(order, faults, expires, target)
    simulation.results = {}
    outcomes = simulation.run()
    died = any(isinstance(o, ProcessDied) for o in outcomes.values())
    check_table(simulation.faultless, simulation.table)
    check_outcomes(simulation, [t for results in simulation.results.values() for t in results], died)


@settings(max_examples=60, deadline=None)
@given(orders, targets)
def test_without_faults_all_commits_succeed_and_leave_no_files(order: list[int], target: str) -> None:
    simulation = CommitSimulation(order, [], False, target)
    simulation.results = {}
    simulation.run()
    newest = check_table(simulation.faultless, simulation.table)
    assert newest is not None
    assert newest.id == len(WRITERS) * COMMITS
    assert all(isinstance(o, CommitResult) for results in simulation.results.values() for _, o in results)
    check_outcomes(simulation, [t for results in simulation.results.values() for t in results], False)
    assert set(simulation.memory.contents) == list_referenced_files(simulation.faultless, simulation.table)
