"""The contract of SnapshotCommit as tests, for every way to publish a snapshot.

An adapter that keeps the contract of `paimon.ports.snapshots` passes. Derive a class from
`SnapshotCommitContract`, whose `make_commit` returns the adapter.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import nullcontext
from functools import partial

from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot, snapshot_from_json
from paimon.ports.files import FileIO
from paimon.ports.snapshots import PublishOutcome, SnapshotCommit
from paimon.testing.contracts.files import expect_error
from paimon.testing.contracts.races import run_together

_WRITERS = 4
_ROUNDS = 3
_TIMEOUT_SECONDS = 60


class SnapshotCommitContract(ABC):
    """The tests of the port. A subclass implements `make_commit`."""

    @abstractmethod
    def make_commit(self) -> tuple[SnapshotCommit, FileIO, str]:
        """Return a new adapter, its storage, and the path of a table that does not exist yet.

        The adapter should wait at most a second for the commit lock, or the tests take long.
        """

    def test_a_published_snapshot_can_be_read(self) -> None:
        """Each of several snapshots is in its file, with all fields."""
        commit, files, root = self.make_commit()
        paths = TablePaths(root)
        base = None
        for snapshot_id in (1, 2, 3):
            snapshot = _snapshot(snapshot_id, "a")
            assert commit.publish(paths, snapshot, base) is PublishOutcome.PUBLISHED
            path = paths.snapshot(snapshot_id)
            assert snapshot_from_json(files.read(path), path) == snapshot
            base = snapshot

    def test_an_existing_snapshot_does_not_change(self) -> None:
        """The second writer of an id loses, whether it has the lock or not."""
        commit, files, root = self.make_commit()
        paths = TablePaths(root)
        assert commit.publish(paths, _snapshot(1, "first"), None) is PublishOutcome.PUBLISHED
        content = files.read(paths.snapshot(1))
        for lock in (nullcontext(), commit.lock(paths)):
            with lock:
                assert commit.publish(paths, _snapshot(1, "second"), None) is PublishOutcome.LOST
        assert files.read(paths.snapshot(1)) == content

    def test_a_repeated_publish_is_lost_and_changes_nothing(self) -> None:
        """A caller that did not receive the first reply finds its own snapshot."""
        commit, files, root = self.make_commit()
        paths = TablePaths(root)
        snapshot = _snapshot(1, "a")
        outcomes = [commit.publish(paths, snapshot, None) for _ in range(2)]
        assert outcomes == [PublishOutcome.PUBLISHED, PublishOutcome.LOST]
        path = paths.snapshot(1)
        assert snapshot_from_json(files.read(path), path) == snapshot

    def test_one_of_concurrent_writers_wins(self) -> None:
        """With the lock and without it. The file has the content of the winner."""
        for has_lock in (False, True):
            commit, files, root = self.make_commit()
            paths = TablePaths(root)
            base: Snapshot | None = None

            def publish(snapshot: Snapshot) -> PublishOutcome:
                """Publish one snapshot in a thread."""
                with commit.lock(paths) if has_lock else nullcontext():  # noqa: B023
                    return commit.publish(paths, snapshot, base)  # noqa: B023

            for snapshot_id in range(1, _ROUNDS + 1):
                snapshots = [_snapshot(snapshot_id, f"writer-{n}") for n in range(_WRITERS)]
                outcomes = run_together([partial(publish, snapshot) for snapshot in snapshots])
                assert outcomes.count(PublishOutcome.LOST) == _WRITERS - 1
                base = snapshots[outcomes.index(PublishOutcome.PUBLISHED)]
                path = paths.snapshot(snapshot_id)
                assert snapshot_from_json(files.read(path), path) == base

    def test_tables_do_not_wait_for_each_other(self) -> None:
        """The locks of two tables are independent, and each table has its own ids."""
        commit, _, root = self.make_commit()
        one, other = TablePaths(f"{root}/one"), TablePaths(f"{root}/other")
        for paths in (one, other):
            assert commit.publish(paths, _snapshot(1, "a"), None) is PublishOutcome.PUBLISHED
        with commit.lock(one), commit.lock(other):
            for paths in (one, other):
                assert commit.publish(paths, _snapshot(2, "b"), _snapshot(1, "a")) is PublishOutcome.PUBLISHED

    def test_the_lock_needs_no_snapshot(self) -> None:
        """The first writer of a table takes it before anything exists."""
        commit, _, root = self.make_commit()
        paths = TablePaths(root)
        with commit.lock(paths):
            assert commit.publish(paths, _snapshot(1, "a"), None) is PublishOutcome.PUBLISHED

    def test_the_lock_is_released_after_an_error(self) -> None:
        """The error is not suppressed, and the next block runs."""
        commit, _, root = self.make_commit()
        paths = TablePaths(root)
        commit.publish(paths, _snapshot(1, "a"), None)
        for _ in range(2):
            expect_error(ZeroDivisionError, lambda: _fail_under_lock(commit, paths))
        with commit.lock(paths):
            pass

    def test_no_writer_waits_for_ever(self) -> None:
        """A writer publishes without the lock if its owner never releases it."""
        commit, _, root = self.make_commit()
        paths = TablePaths(root)
        first = _snapshot(1, "a")
        commit.publish(paths, first, None)
        outcomes: list[PublishOutcome] = []

        def publish() -> None:
            """Publish while the lock has another owner."""
            with commit.lock(paths):
                outcomes.append(commit.publish(paths, _snapshot(2, "b"), first))

        with commit.lock(paths):
            waiting = threading.Thread(target=publish, daemon=True)
            waiting.start()
            waiting.join(_TIMEOUT_SECONDS)
            assert outcomes == [PublishOutcome.PUBLISHED]


def _snapshot(snapshot_id: int, writer: str) -> Snapshot:
    return Snapshot(
        id=snapshot_id,
        schema_id=0,
        base_manifest_list=f"manifest-list-{writer}-0",
        delta_manifest_list=f"manifest-list-{writer}-1",
        commit_user=writer,
        commit_identifier=snapshot_id,
        commit_kind=CommitKind.APPEND,
        time_millis=1_700_000_000_000 + snapshot_id,
        total_record_count=snapshot_id,
        delta_record_count=1,
    )


def _fail_under_lock(commit: SnapshotCommit, paths: TablePaths) -> None:
    with commit.lock(paths):
        raise ZeroDivisionError
