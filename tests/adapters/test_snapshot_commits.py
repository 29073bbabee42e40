"""The contract of SnapshotCommit on every adapter and storage."""

from __future__ import annotations

import os
import tempfile
import uuid

from paimon.adapters.catalogs.locking import CatalogLock, Database, LockedFiles
from paimon.adapters.files.fsspec_files import FsspecFiles
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.snapshots.commits import LockedSnapshotCommit, PutIfAbsentSnapshotCommit
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.ports.files import FileIO
from paimon.ports.snapshots import PublishOutcome, SnapshotCommit
from paimon.testing.contracts import SnapshotCommitContract
from paimon.testing.faulty_files import Fault, FaultyFiles, plan_numbered_faults
from paimon.testing.memory_files import MemoryFiles


class TestLockedOnLocalDisk(SnapshotCommitContract):
    def make_commit(self) -> tuple[SnapshotCommit, FileIO, str]:
        files = LocalFiles()
        return LockedSnapshotCommit(files, max_wait_seconds=0.2), files, os.path.join(tempfile.mkdtemp(), "t")


class TestPutIfAbsentOnLocalDisk(SnapshotCommitContract):
    def make_commit(self) -> tuple[SnapshotCommit, FileIO, str]:
        files = LocalFiles()
        return PutIfAbsentSnapshotCommit(files), files, os.path.join(tempfile.mkdtemp(), "t")


class TestPutIfAbsentInMemory(SnapshotCommitContract):
    def make_commit(self) -> tuple[SnapshotCommit, FileIO, str]:
        files = MemoryFiles()
        return PutIfAbsentSnapshotCommit(files), files, "/t"


class TestPutIfAbsentOnFsspec(SnapshotCommitContract):
    def make_commit(self) -> tuple[SnapshotCommit, FileIO, str]:
        root = f"memory://{uuid.uuid4()}/t"
        files = FsspecFiles(root)
        return PutIfAbsentSnapshotCommit(files), files, root


class TestPutIfAbsentUnderACatalogLock(SnapshotCommitContract):
    def make_commit(self) -> tuple[SnapshotCommit, FileIO, str]:
        database = Database(f"sqlite:///{tempfile.mkdtemp()}/locks.sqlite")
        files = LockedFiles(MemoryFiles(), CatalogLock(database, longest_wait_millis=50), "/lake", "key")
        return PutIfAbsentSnapshotCommit(files), files, "/lake/d.db/t"


def test_a_put_without_a_reply_is_unknown() -> None:
    one = Snapshot(1, 0, "base", "delta-1", "me", 1, CommitKind.APPEND, 0)
    silent = FaultyFiles(MemoryFiles(), plan_numbered_faults({0: Fault.REPLY_UNKNOWN}))
    assert PutIfAbsentSnapshotCommit(silent).publish(TablePaths("/t"), one, None) is PublishOutcome.UNKNOWN
