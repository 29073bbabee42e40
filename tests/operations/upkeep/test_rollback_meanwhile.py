"""An expirer that stalls while others roll back and commit again: the numbers it was about to delete are theirs now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from attrs import Factory, evolve, frozen
from retention_world import World

from paimon.adapters.snapshots.renaming import FileSnapshotCommit
from paimon.domain.paths import TablePaths
from paimon.operations.maintain.refs.rollback import roll_back
from paimon.testing.faulty_files import Fault, FaultyFiles

COUNT = 5
DECOUPLED = {"changelog-producer": "input", "snapshot.num-retained.max": "20", "changelog.num-retained.max": "30"}


@frozen(eq=False)
class Queue(FileSnapshotCommit):
    """Turns that others wait for: they do nothing while one is held."""

    holders: list[str] = Factory(list)

    @contextmanager
    def turn(self, paths: TablePaths) -> Iterator[None]:
        self.holders.append(paths.root)
        try:
            yield
        finally:
            self.holders.pop()


def grown(options: dict[str, str]) -> World:
    w = World.new(options)
    for number in range(COUNT):
        w.append(number)
    return w


class Interrupted:
    """The expirer's storage: before one operation that is in nobody's turn, others roll back and commit."""

    def __init__(self, w: World, target: int, commits: int, place: int) -> None:
        self._others, self._target, self._commits, self._left = w, target, commits, place
        self.names: list[str] = []
        self.is_done = False
        self.queue: Queue | None = None

    def __call__(self, operation: str, path: str) -> Fault | None:
        assert self.queue is not None
        if not self.is_done and not self.queue.holders:
            self._left -= 1
            self.is_done = self._left < 0
            if self.is_done:
                self._act()
        return None

    def _act(self) -> None:
        w = self._others
        if w.latest() is None or w.table.paths.snapshot(self._target) not in w.contents:
            return  # it has expired: a rollback is refused
        roll_back(w.engine, w.table, self._target)
        for number in range(self._commits):
            w.append(100 + number)
        latest = w.latest()
        assert latest is not None and latest.id == self._target + self._commits
        self.names = [e.file.file_name for e in w.live(latest)]


@pytest.mark.parametrize("options", [{}, DECOUPLED], ids=["together", "decoupled"])
@pytest.mark.parametrize(("target", "commits"), [(1, 0), (1, COUNT), (COUNT - 2, 1)])
def test_what_was_committed_after_a_rollback_is_not_expired_instead(
    target: int, commits: int, options: dict[str, str]
) -> None:
    """Wherever the stall is: the state that was rolled back to, and what was committed on it, stays the latest."""
    place, seen = 0, 0
    while True:
        w = grown(options)
        plan = Interrupted(w.through(w.engine.files), target, commits, place)
        files = FaultyFiles(w.engine.files, plan)
        expirer = w.through(files)
        plan.queue = Queue(files)
        World(evolve(expirer.engine, snapshots=plan.queue), w.table).expire(1)
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
