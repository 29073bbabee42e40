"""An expiry that stalls while others roll back and commit again does not delete the new snapshots with the same ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from attrs import Factory, evolve, frozen
from support.case_lists import mark_products
from support.expiry_table import ExpiryTable

from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.domain.paths import TablePaths
from paimon.operations.refs.rollback import roll_back
from paimon.testing.faulty_files import Fault, FaultyFiles

COUNT = 5
DECOUPLED = {"changelog-producer": "input", "snapshot.num-retained.max": "20", "changelog.num-retained.max": "30"}


@frozen(eq=False)
class Queue(PutIfAbsentSnapshotCommit):
    """Table locks. The other process does not act while one is locked."""

    locked_roots: list[str] = Factory(list)

    @contextmanager
    def lock(self, paths: TablePaths) -> Iterator[None]:
        self.locked_roots.append(paths.root)
        try:
            yield
        finally:
            self.locked_roots.pop()


def create_history(options: dict[str, str]) -> ExpiryTable:
    w = ExpiryTable.new(options)
    for number in range(COUNT):
        w.append(number)
    return w


class Interrupted:
    """The expirer's storage: before one operation without a lock, others roll back and commit."""

    def __init__(self, w: ExpiryTable, target: int, commits: int, place: int) -> None:
        self._others, self._target, self._commits, self._left = w, target, commits, place
        self.names: list[str] = []
        self.is_done = False
        self.queue: Queue | None = None

    def __call__(self, operation: str, path: str) -> Fault | None:
        assert self.queue is not None
        if not self.is_done and not self.queue.locked_roots:
            self._left -= 1
            self.is_done = self._left < 0
            if self.is_done:
                self._act()
        return None

    def _act(self) -> None:
        w = self._others
        if w.latest() is None or w.table.paths.snapshot(self._target) not in w.contents:
            return  # it has expired: a rollback is refused
        roll_back(w.context, self._target)
        for number in range(self._commits):
            w.append(100 + number)
        latest = w.latest()
        assert latest is not None and latest.id == self._target + self._commits
        self.names = [e.file.file_name for e in w.live(latest)]


@pytest.mark.parametrize(("change", "options"), mark_products([(1, 0), (1, COUNT), (COUNT - 2, 1)], [{}, DECOUPLED]))
def test_commits_after_a_rollback_are_not_expired_instead(change: tuple[int, int], options: dict[str, str]) -> None:
    """At any point of the stall: the state after the rollback, and the commits on it, stay the latest."""
    target, commits = change
    place, seen = 0, 0
    while True:
        w = create_history(options)
        plan = Interrupted(w.with_files(w.engine.files), target, commits, place)
        files = FaultyFiles(w.engine.files, plan)
        expirer = w.with_files(files)
        plan.queue = Queue(files)
        ExpiryTable(w.context.with_engine(evolve(expirer.engine, snapshots=plan.queue))).expire(1)
        if not plan.is_done:
            break
        if plan.names:
            seen += 1
            latest = w.latest()
            assert latest is not None and latest.id == target + commits
            assert [e.file.file_name for e in w.live(latest)] == plan.names
        w.reads()
        place += 1
    assert seen > 3
