"""Committers on one table, step by step in any order, with an expiry beside them, faults, and processes that die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from commit_world import ROWS, create, engine_on, live_names, message, table_at
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.errors import CommitConflict, CommitUncertain, PaimonError, StorageError
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.commit import CommitRequest, CommitResult, commit
from paimon.operations.read.manifests import read_manifest, read_manifest_list
from paimon.operations.read.snapshots import latest_snapshot, snapshot_ids, snapshots
from paimon.ports.engine import Engine
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.turns import CountedIds, NoChance, TurnClock, Turns

WRITERS = ("a", "b", "c")
COMMITS = 2
ANY_FAULT = [*Fault]


class World:
    """Writers, and an expirer where `expires`, on one memory; `order` and `faults` come from the test."""

    def __init__(self, order: Sequence[int], faults: Sequence[tuple[int, Fault]], expires: bool, target: str) -> None:
        self.turns = Turns()
        self.memory = MemoryFiles()
        self.ids = CountedIds()
        self.table = table_at(
            "/lake/t", options={"commit.max-retries": "50", "manifest.target-file-size": target,
                                "manifest.merge-min-count": "3"},
        )
        self._order = list(order)
        self._faults = dict(faults)
        self._expires = expires
        self._operations = 0
        create(engine_on(self.memory), self.table)

    def plan(self, operation: str, path: str) -> Fault | None:
        """Every operation is a turn, and may fail."""
        self.turns.pause()
        self._operations += 1
        return self._faults.get(self._operations)

    def choose(self, names: Sequence[str]) -> str:
        """The next in the drawn order; by turns when that is used up."""
        self._order.append(self._order.pop(0) if self._order else 0)
        return names[self._order[-1] % len(names)]

    def run(self) -> dict[str, object]:
        """All writers (and the expirer) to their end."""
        actors: dict[str, Callable[[], object]] = {name: self._writer(name) for name in WRITERS}
        if self._expires:
            actors["expirer"] = self._expirer
        return self.turns.run(actors, self.choose)

    def _engine(self) -> Engine:
        return engine_on(FaultyFiles(self.memory, self.plan), TurnClock(self.turns), self.ids, NoChance())

    def _writer(self, name: str) -> Callable[[], object]:
        def work() -> list[tuple[str, object]]:
            engine = self._engine()
            told: list[tuple[str, object]] = self.told.setdefault(name, [])
            for number in range(COMMITS):
                file = f"{name}{number}"
                request = CommitRequest((message(self.table, [file]),), name, identifier=number)
                try:
                    told.append((file, commit(engine, self.table, request)))
                except PaimonError as error:
                    told.append((file, error))
            return told

        return work

    def _expirer(self) -> None:
        """Keeps only the newest snapshot, upwards, snapshot files only; reads the true state, so that it never errs."""
        for _ in range(3):
            self.turns.pause()
            ids = snapshot_ids(self.calm, self.table.paths)
            for old in ids[:-1]:
                self.turns.pause()
                self.memory.delete([self.table.paths.snapshot(old)])

    @property
    def calm(self) -> Engine:
        """An engine that neither fails nor waits."""
        return engine_on(self.memory)

    told: dict[str, list[tuple[str, object]]]


def check_table(engine: Engine, table: TableDefinition) -> Snapshot | None:
    """The table is whole: ids without gaps, counts that add up, every manifest readable."""
    ids = snapshot_ids(engine, table.paths)
    assert list(ids) == list(range(ids[0], ids[-1] + 1)) if ids else True
    for snapshot in snapshots(engine, table.paths):
        live = CommitBase(engine, table, snapshot).live(lambda _: True)
        assert snapshot.total_record_count == ROWS * len(live)
    return latest_snapshot(engine, table.paths)


def check_promises(world: World, told: Sequence[tuple[str, object]], died: bool) -> None:
    """What was acknowledged is there once; what was refused is not; what is uncertain may be."""
    counts = Counter(live_names(world.calm, world.table))
    assert all(count == 1 for count in counts.values())
    for file, outcome in told:
        if isinstance(outcome, CommitResult):
            assert counts[file] == 1, f"{file} was acknowledged and is lost"
        elif isinstance(outcome, CommitUncertain):
            assert counts[file] <= 1
        elif isinstance(outcome, CommitConflict | StorageError):
            assert counts[file] == 0, f"{file} was refused and is there"
        else:
            raise AssertionError(f"{file}: {outcome!r}")
    if not died:
        assert set(counts) <= {file for file, _ in told}


orders = st.lists(st.integers(0, 3), max_size=60)
fault_plans = st.lists(st.tuples(st.integers(1, 120), st.sampled_from(ANY_FAULT)), max_size=4)
targets = st.sampled_from(["8 mb", "1 b", "5 kb"])


@settings(max_examples=100, deadline=None)
@given(orders, fault_plans, st.booleans(), targets)
def test_no_commit_is_lost_or_doubled(
    order: list[int], faults: list[tuple[int, Fault]], expires: bool, target: str
) -> None:
    world = World(order, faults, expires, target)
    world.told = {}
    outcomes = world.run()
    died = any(isinstance(o, ProcessDied) for o in outcomes.values())
    check_table(world.calm, world.table)
    check_promises(world, [t for told in world.told.values() for t in told], died)


@settings(max_examples=60, deadline=None)
@given(orders, targets)
def test_without_faults_all_commits_succeed_and_leave_nothing_behind(order: list[int], target: str) -> None:
    world = World(order, [], False, target)
    world.told = {}
    world.run()
    newest = check_table(world.calm, world.table)
    assert newest is not None
    assert newest.id == len(WRITERS) * COMMITS
    assert all(isinstance(o, CommitResult) for told in world.told.values() for _, o in told)
    check_promises(world, [t for told in world.told.values() for t in told], False)
    assert set(world.memory.contents) == referenced(world.calm, world.table)


def referenced(engine: Engine, table: TableDefinition) -> set[str]:
    """Paths of all files that the snapshots that stand need."""
    paths = {table.paths.schema(0), table.paths.latest_hint}
    for snapshot in snapshots(engine, table.paths):
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        metas = [m for name in lists for m in read_manifest_list(engine, table, name)]
        paths |= {table.paths.snapshot(snapshot.id), *(table.paths.manifest(n) for n in lists)}
        paths |= {table.paths.manifest(m.file_name) for m in metas}
        assert all(read_manifest(engine, table, m.file_name) for m in metas)
    return paths
