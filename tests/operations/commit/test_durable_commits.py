"""A snapshot becomes visible only after all its files are on disk; a small commit waits for the disk three times."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from attrs import evolve

import paimon
from paimon.adapters.files import local
from paimon.adapters.files.local import LocalFiles
from paimon.domain.errors import CommitUncertain, StorageError
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.prepared_files import defer_flushes
from paimon.operations.metadata.snapshots import load_snapshot
from paimon.ports.files import DeferredFlush

_create_all = LocalFiles.flush_and_create

TABLES: Mapping[str, tuple[list[str], list[str], dict[str, str]]] = {
    "append": ([], [], {}),
    "index": ([], [], {"file-index.bloom-filter.columns": "id", "file-index.in-manifest-threshold": "1B"}),
    "key": (["id"], [], {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}),
    "changelog": (["id"], [], {"bucket": "1", "changelog-producer": "input"}),
    "deletion vectors": (["id"], [], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "dynamic buckets": (["id", "day"], ["day"], {"bucket": "-1"}),
    "across partitions": (["id"], ["day"], {}),
    "postponed": (["id"], [], {"bucket": "-2"}),
}  # fmt: skip


class Disk:
    """What a power loss would leave, and what it could take when a snapshot became visible."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self._root = root
        self._flush, self._link = os.fsync, os.link
        self._inodes: set[int] = set()
        self._names: dict[str, set[str]] = {}
        self._waits = 0
        # of each snapshot, by its id
        self.at_risk: dict[int, list[str]] = {}
        # of each snapshot, how often the thread waited since the one before
        self.waits: list[int] = []
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "link", self.link)

    def fsync(self, descriptor: int) -> None:
        """Note the bytes of a file, or the names of a directory before its flush."""
        found, path = os.fstat(descriptor), os.readlink(f"/proc/self/fd/{descriptor}")
        names = set(os.listdir(path)) if stat.S_ISDIR(found.st_mode) else set()
        self._waits += threading.current_thread() is threading.main_thread()
        self._flush(descriptor)
        self._inodes.add(found.st_ino)
        self._names.setdefault(path, set()).update(names)

    def link(self, source: str, target: str) -> None:
        """List what is in danger, then show the snapshot."""
        if "/snapshot-" in target:  # a schema refers to no other file
            hidden = [] if os.stat(source).st_ino in self._inodes else [source]
            self.at_risk[int(target.rpartition("-")[2])] = self.list_at_risk() + hidden
            self.waits.append(self._waits)
            self._waits = 0
        self._link(source, target)

    def list_at_risk(self) -> list[str]:
        """Return the names that a power loss could take now, without hints and hidden files."""
        found: list[str] = []
        for directory, _, names in os.walk(self._root):
            durable = self._names.get(directory, set())
            stored = [n for n in names if n not in ("LATEST", "EARLIEST") and not n.startswith(".")]
            found += [n for n in stored if n not in durable or os.stat(f"{directory}/{n}").st_ino not in self._inodes]
        return found


def make_rows(first: int) -> pa.Table:
    ids = pa.array(range(first, first + 10), pa.int64())
    return pa.table({"id": ids, "day": ["a"] * 5 + ["b"] * 5, "v": [1.0] * 10})


def create_table(tmp_path: Path, keys: list[str], partitions: list[str], options: dict[str, str]) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    return catalog.create_table(
        "d.t", make_rows(0).schema, primary_keys=keys, partition_keys=partitions, options=options
    )


@pytest.mark.parametrize("kind", TABLES)
def test_no_snapshot_is_visible_before_its_files_are_on_disk(tmp_path, monkeypatch, kind: str) -> None:
    disk = Disk(monkeypatch, tmp_path)
    table = create_table(tmp_path, *TABLES[kind])
    for first in (0, 5, 10):
        table.write(make_rows(first))
    table.write(make_rows(0).append_column("new", pa.array([1] * 10)), merge_schema=True)
    if kind != "postponed":
        table.overwrite(make_rows(0))
    assert disk.list_at_risk() == []
    assert [name for id, names in disk.at_risk.items() for name in names if not is_of_later(table, id, name)] == []


def is_of_later(table: paimon.Table, snapshot_id: int, name: str) -> bool:
    """Whether a file is of the compaction that follows a snapshot, which does not refer to it."""
    base = CommitBase(table.context, load_snapshot(table.context, snapshot_id))
    live = {n for e in base.read_live_files(lambda _: True) for n in e.file.stored_names}
    return name.startswith(("data-", "index-")) and name not in live | {e.file_name for e in base.index_files}


@pytest.mark.parametrize("keys", [[], ["id"]], ids=["append", "key"])
def test_a_small_commit_waits_three_times(tmp_path, monkeypatch, keys: list[str]) -> None:
    """For data files, manifests and their directories; for the snapshot; for its directory."""
    table = create_table(tmp_path, keys, [], {"bucket": "1"} if keys else {})
    table.write(make_rows(0))
    disk = Disk(monkeypatch, tmp_path)
    for _ in range(3):
        table.write(make_rows(0))
    assert disk.waits[1:] == [3, 3]


def test_threads_that_share_a_snapshot_flush_their_files(tmp_path, monkeypatch) -> None:
    disk = Disk(monkeypatch, tmp_path)
    table = create_table(tmp_path, [], [], {})
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: table.write(make_rows(n)), range(12)))
    assert table.scan().to_arrow().num_rows == 120
    assert disk.list_at_risk() == []


def test_large_and_many_files_are_flushed_by_their_writer(tmp_path, monkeypatch) -> None:
    """Not while the commit holds the commit lock."""
    monkeypatch.setattr(local, "_DEFERRED_BYTES", 100)
    table = create_table(tmp_path, [], [], {})
    deferred: list[str] = []
    flush = LocalFiles.flush_and_create

    def noted(self: LocalFiles, paths: Collection[str], files: Mapping[str, bytes]) -> None:
        deferred.extend(paths)
        flush(self, paths, files)

    monkeypatch.setattr(LocalFiles, "flush_and_create", noted)
    table.write(make_rows(0))
    assert len(deferred) == 1
    disk = Disk(monkeypatch, tmp_path)
    table.write(make_rows(0))
    assert disk.waits == [4]


def test_a_flush_that_fails_refuses_the_commit(tmp_path, monkeypatch) -> None:
    """Nothing is published, and no file stays; the next write succeeds."""
    table = create_table(tmp_path, [], [], {})
    table.write(make_rows(0))
    before, flush = sorted(tmp_path.rglob("*")), os.fsync

    def fail(descriptor: int) -> None:
        if "/data-" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EIO, "Input/output error")
        flush(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StorageError, match="Input/output error"):
            table.write(make_rows(0))
    assert table.scan().to_arrow().num_rows == 10
    assert [p for p in sorted(tmp_path.rglob("*")) if p not in before] == []
    table.write(make_rows(0))
    assert table.scan().to_arrow().num_rows == 20


def test_no_file_is_flushed_again_after_its_flush_failed(tmp_path, monkeypatch) -> None:
    """The second flush would succeed on Linux, and lose the bytes; also where another thread made the first one."""
    table, flush, failed = create_table(tmp_path, [], [], {}), os.fsync, set[str]()

    def fail_once(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if "/data-" in path and path not in failed:
            failed.add(path)
            time.sleep(0.03)  # the other threads form a group
            raise OSError(errno.EIO, "Input/output error")
        flush(descriptor)

    def write(first: int) -> bool:
        try:
            table.write(make_rows(first))
        except StorageError:
            return False
        return True

    monkeypatch.setattr(os, "fsync", fail_once)
    with ThreadPoolExecutor(4) as threads:
        assert not any(threads.map(write, range(12)))
    assert len(failed) == 12
    assert table.scan().to_arrow().num_rows == 0


def fail_flushes(patch: pytest.MonkeyPatch, of: str) -> None:
    """Let the flushes fail whose path ends with this text."""
    flush = os.fsync

    def fail(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(of):
            raise OSError(errno.EIO, "Input/output error")
        flush(descriptor)

    patch.setattr(os, "fsync", fail)


@pytest.mark.parametrize("loses_reply", [False, True])
def test_a_snapshot_that_may_not_survive_a_power_loss_is_not_acknowledged(tmp_path, monkeypatch, loses_reply) -> None:
    """It is visible, and its commit is in doubt until the directory can be flushed; also if the link seems to fail."""
    table, link = create_table(tmp_path, [], [], {}), os.link
    table.write(make_rows(0))

    def link_and_fail(source: str, target: str) -> None:
        link(source, target)
        raise OSError(errno.EIO, "Input/output error")

    if loses_reply:
        monkeypatch.setattr(os, "link", link_and_fail)
        table.write(make_rows(10))
    rows = table.scan().count()
    with monkeypatch.context() as patch:
        fail_flushes(patch, of="/snapshot")
        with pytest.raises(CommitUncertain, match="is visible, but the storage failed to flush it") as failed:
            table.write(make_rows(20))
        error = failed.value
        assert table.scan().count() == rows + 10
        with pytest.raises(CommitUncertain):
            table.resolve(error)
        outcome = table.outcome(error.commit_user, snapshot=error.snapshot_id, identity=error.identity)
        assert outcome.committed is None
    assert table.resolve(error).already_committed
    assert table.scan().count() == rows + 10


@pytest.mark.parametrize("settings", [{"metastore": "jdbc"}, {"allowed_roots": ["memory://other/root"]}])
def test_a_wrapped_disk_flushes_a_snapshot_in_doubt(tmp_path, monkeypatch, settings) -> None:
    catalog = paimon.connect(tmp_path, **settings)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT")
    with monkeypatch.context() as patch:
        fail_flushes(patch, of="/snapshot")
        with pytest.raises(CommitUncertain) as failed:
            table.write([{"id": 1}])
        with pytest.raises(CommitUncertain):
            table.resolve(failed.value)
    assert table.resolve(failed.value).already_committed


def test_a_repeated_commit_is_durable_before_it_is_acknowledged(tmp_path, monkeypatch) -> None:
    builder = create_table(tmp_path, [], [], {}).new_stream_write_builder("job")
    commit = builder.new_commit()
    with builder.new_write() as writer:
        writer.write(make_rows(0))
        messages = writer.prepare_commit(1)
        with monkeypatch.context() as patch:
            fail_flushes(patch, of="/snapshot")
            for _ in range(2):
                with pytest.raises(CommitUncertain) as failed:
                    commit.commit(1, messages)
                assert failed.value.request is not None
        assert commit.commit(1, messages).already_committed


def test_a_storage_that_creates_files_singly_flushes_each(tmp_path) -> None:
    """Its commit has no common flush, so its writers leave none to it."""
    local_files, names = LocalFiles(), [n for n in dir(LocalFiles) if n[0] != "_" and n != "create_all"]
    single = type("Single", (), {n: staticmethod(getattr(local_files, n)) for n in names})()
    context = create_table(tmp_path, [], [], {}).context
    context = context.with_engine(evolve(context.engine, files=single))
    assert isinstance(single, DeferredFlush)
    assert defer_flushes(context) is context


def test_files_that_are_not_flushed_are_found(tmp_path, monkeypatch) -> None:
    """A planted mistake: without the flush of deferred files, `Disk` reports them."""
    monkeypatch.setattr(LocalFiles, "flush_and_create", lambda self, _, files: _create_all(self, (), files))
    disk = Disk(monkeypatch, tmp_path)
    create_table(tmp_path, [], [], {}).write(make_rows(0))
    assert [name.split("-")[0] for name in disk.at_risk[1]] == ["data"]
