"""Every FileIO of the library fulfils the contract; on local disk also between processes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import stat
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Event

import pytest
from fsspec.implementations.memory import MemoryFile
from support.fsspec_object_store import ObjectStore, register

from paimon.adapters.files import local
from paimon.adapters.files.fsspec_files import FsspecFiles
from paimon.adapters.files.local import LocalFiles
from paimon.adapters.files.opening import files_at
from paimon.adapters.files.put_if_absent import judge_trial, prove_exclusive
from paimon.adapters.files.routed_files import route_files
from paimon.domain.errors import AlreadyExists, CorruptTable, NotFound, StorageError
from paimon.ports.files import DeferredFlush, Directories, FileIO, PutOutcome
from paimon.testing.contracts import DeferredFlushContract, DirectoriesContract, FileIOContract, ManyFilesContract
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied, draw_faults, plan_numbered_faults
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.stress_test import get_process_context

register()
ROUNDS = 40
PROCESSES = 6


class TestLocalFiles(FileIOContract):
    def make_files(self) -> tuple[FileIO, str]:
        return LocalFiles(), os.path.join(tempfile.mkdtemp(), "root")


class TestLocalDirectories(DirectoriesContract):
    def make_files(self) -> tuple[FileIO, str]:
        return LocalFiles(), os.path.join(tempfile.mkdtemp(), "root")


class TestManyLocalFiles(ManyFilesContract, DeferredFlushContract):
    def make_files(self) -> tuple[FileIO, str]:
        return LocalFiles(), os.path.join(tempfile.mkdtemp(), "root")


class TestLocalFilesByUrl(FileIOContract):
    def make_files(self) -> tuple[FileIO, str]:
        return LocalFiles(), "file:" + os.path.join(tempfile.mkdtemp(), "root")


class TestMemoryFiles(FileIOContract):
    def make_files(self) -> tuple[FileIO, str]:
        return MemoryFiles(), "/root"


class TestFsspecMemory(FileIOContract):
    def make_files(self) -> tuple[FileIO, str]:
        root = f"memory://{uuid.uuid4()}/root"
        return FsspecFiles(root), root


class TestObjectStore(FileIOContract):
    def make_files(self) -> tuple[FileIO, str]:
        root = f"az://{uuid.uuid4()}/root"
        return FsspecFiles(root), root


class TestRoutedFiles(FileIOContract):
    """Paths of the own storage, and those of another one in the class below."""

    root = "/root"

    def make_files(self) -> tuple[FileIO, str]:
        other = f"memory://{uuid.uuid4()}"
        routes = {f"{other}/": lambda: FsspecFiles(other), "/other/": MemoryFiles}
        return route_files(MemoryFiles(), routes), {"/root": "/root", "memory": f"{other}/root"}[self.root]


class TestRoutedFilesOfAnotherStorage(TestRoutedFiles):
    root = "memory"


class TestOptionalMethodsOfRoutedFiles(DirectoriesContract, ManyFilesContract, DeferredFlushContract):
    def make_files(self) -> tuple[FileIO, str]:
        return route_files(LocalFiles(), {"s3://b/": MemoryFiles}), os.path.join(tempfile.mkdtemp(), "root")


def test_deferred_files_of_another_storage_are_durable_without_a_flush(tmp_path: Path) -> None:
    files = route_files(LocalFiles(), {"s3://b/": MemoryFiles})
    assert isinstance(files, DeferredFlush)
    names = [f"{tmp_path}/x", "s3://b/x"]
    for name in names:
        files.create_deferred(name).close()
    files.flush_and_create(names, {f"{tmp_path}/y": b"1"})
    assert [files.read(name) for name in (*names, f"{tmp_path}/y")] == [b"", b"", b"1"]


def test_a_bucket_itself_is_in_its_storage() -> None:
    files = route_files(MemoryFiles(), {"s3://b/": MemoryFiles})
    files.replace("s3://b/a", b"1")
    assert [status.name for status in files.list("s3://b")] == ["a"]


def test_links_do_not_lead_out_of_a_local_root_of_tables_in_another_storage(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "file").write_bytes(b"1")
    (root / "link").symlink_to(outside)
    files = files_at("memory://tables", {}, 1 << 20, [str(root)])
    with pytest.raises(CorruptTable, match="symbolic link"):
        files.read(f"file://{root}/link/file")


def test_routed_files_delete_in_each_storage_and_open_none_before() -> None:
    opened: list[str] = []

    def open_other() -> FileIO:
        opened.append("other")
        return MemoryFiles()

    files = route_files(MemoryFiles(), {"s3://b/": open_other})
    files.replace("/a", b"1")
    assert opened == []
    files.replace("s3://b/a", b"2")
    files.replace("s3://b/b", b"3")
    files.delete(["/a", "s3://b/a", "/missing"])
    assert (files.status("/a"), files.status("s3://b/a"), files.read("s3://b/b"), opened) == (
        None,
        None,
        b"3",
        ["other"],
    )
    assert isinstance(route_files(LocalFiles(), {"s3://b/": open_other}), Directories)


class TestFaultyWithoutFaults(FileIOContract):
    def make_files(self) -> tuple[FileIO, str]:
        return FaultyFiles(MemoryFiles(), plan_numbered_faults({})), "/root"


def _race(directory: str, me: int, barrier: Barrier, results: multiprocessing.Queue) -> None:
    files = LocalFiles()
    for number in range(ROUNDS):
        barrier.wait()
        outcome = files.put_if_absent(f"{directory}/snapshot-{number}", f"{me}".encode() * 500)
        results.put((number, me, outcome is PutOutcome.CREATED))


@pytest.mark.slow("starts processes, which load the library")
def test_racing_processes_have_one_winner_each_round(tmp_path) -> None:
    context = get_process_context()
    barrier, results = context.Barrier(PROCESSES), context.Queue()
    racers = [context.Process(target=_race, args=(str(tmp_path), me, barrier, results)) for me in range(PROCESSES)]
    for racer in racers:
        racer.start()
    outcomes = [results.get(timeout=60) for _ in range(ROUNDS * PROCESSES)]
    for racer in racers:
        racer.join(60)
    for number in range(ROUNDS):
        winners = [me for n, me, won in outcomes if n == number and won]
        assert len(winners) == 1
        assert (tmp_path / f"snapshot-{number}").read_bytes() == f"{winners[0]}".encode() * 500
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_local_directories_move_and_go(tmp_path) -> None:
    files = LocalFiles()
    files.replace(f"{tmp_path}/a/x/file", b"1")
    files.move_directory(f"{tmp_path}/a", f"{tmp_path}/b/c")
    assert files.read(f"{tmp_path}/b/c/x/file") == b"1"
    files.make_directory(f"{tmp_path}/d/e")
    with pytest.raises(AlreadyExists):
        files.move_directory(f"{tmp_path}/b", f"{tmp_path}/d")
    with pytest.raises(NotFound):
        files.move_directory(f"{tmp_path}/nope", f"{tmp_path}/z")
    files.delete([f"{tmp_path}/b", f"{tmp_path}/d/e"])
    assert files.status(f"{tmp_path}/b") is not None
    assert files.status(f"{tmp_path}/d/e") is None
    files.delete_directory(f"{tmp_path}/b")
    files.delete_directory(f"{tmp_path}/b")
    assert files.status(f"{tmp_path}/b") is None


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_to_a_full_disk_leaves_no_file(tmp_path, monkeypatch, failing: str) -> None:
    def raise_disk_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    files = LocalFiles()
    output = files.create(f"{tmp_path}/data")
    output.write(b"1")
    monkeypatch.setattr(os, failing, raise_disk_full)
    with pytest.raises(StorageError, match="No space left") as refusal:
        output.close()
    assert refusal.value.path == f"{tmp_path}/data"
    if failing == "fsync":
        with pytest.raises(StorageError):
            files.put_if_absent(f"{tmp_path}/snapshot-1", b"1")
    assert list(tmp_path.iterdir()) == []


def test_files_written_together_are_flushed_after_their_names(tmp_path, monkeypatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(str(tmp_path))
        steps.append(f"flush {name.split('.')[1] if '.tmp' in name else name}")
        fsync(descriptor)

    def noted_replace(source: str, target: str) -> None:
        steps.append(f"name {os.path.basename(target)}")
        replace(source, target)

    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    LocalFiles().create_all({f"{tmp_path}/a/x": b"1", f"{tmp_path}/a/y": b"2", f"{tmp_path}/b/z": b"3"})
    assert steps[:3] == ["name x", "name y", "name z"]
    assert sorted(steps[3:]) == ["flush /a", "flush /a/x", "flush /a/y", "flush /b", "flush /b/z"]
    assert [(tmp_path / n).read_bytes() for n in ("a/x", "a/y", "b/z")] == [b"1", b"2", b"3"]
    assert sorted(os.listdir(tmp_path / "a")) == ["x", "y"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_files_written_together_are_complete_or_absent_when_the_disk_fails(tmp_path, monkeypatch, failing: str) -> None:
    calls: list[object] = []
    right = getattr(os, failing)

    def fail_after_call(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        right(*arguments)

    monkeypatch.setattr(os, failing, fail_after_call)
    with pytest.raises(StorageError, match="No space left"):
        LocalFiles().create_all({f"{tmp_path}/{name}": b"data" for name in "xyz"})
    assert sorted(os.listdir(tmp_path)) == {"fsync": ["x", "y", "z"], "replace": ["x"]}[failing]
    assert {(tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == {b"data"}


def test_files_are_flushed_when_no_thread_can_start(tmp_path, monkeypatch) -> None:
    """As in a thread of the program that writes after the main thread has ended."""
    flushed: list[int] = []
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    monkeypatch.setattr(local, "_flush_threads", lambda _: pool)
    monkeypatch.setattr(os, "fsync", flushed.append)
    LocalFiles().create_all({f"{tmp_path}/{name}": b"data" for name in "xyz"})
    assert (sorted(os.listdir(tmp_path)), len(flushed)) == (["x", "y", "z"], 4)


def test_a_directory_that_cannot_be_flushed_is_an_outcome_of_its_own(tmp_path, monkeypatch) -> None:
    files, plain = LocalFiles(), os.fsync

    def no_directories(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", no_directories)
    assert files.put_if_absent(f"{tmp_path}/snapshot-1", b"1") is PutOutcome.NOT_DURABLE
    assert files.read(f"{tmp_path}/snapshot-1") == b"1"


def test_a_failed_flush_is_raised_before_a_missing_file(tmp_path, monkeypatch) -> None:
    """A caller that learns of the missing file only would commit the others again, and flush them in vain."""
    files, plain, names = LocalFiles(), os.fsync, [f"{tmp_path}/{name}" for name in ("gone", "x", "y")]
    files.create_all(dict.fromkeys(names[1:], b"1"))

    def fail(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}") in names:
            raise OSError(errno.EIO, "Input/output error")
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    for order in permutations(names):
        with pytest.raises(StorageError, match="Input/output error") as failed:
            files.flush_and_create(order, {})
        notes = failed.value.__notes__
        assert len(notes) == 2
        assert any("gone" in note for note in notes)


def test_a_failed_flush_is_raised_before_an_interrupt(tmp_path, monkeypatch) -> None:
    """Another thread, whose file it is, would flush it again, in vain."""
    files, plain, name = LocalFiles(), os.fsync, f"{tmp_path}/x"
    files.create_all({name: b"1"})
    failed = Event()

    def fail(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}") == name:
            failed.set()
            raise OSError(errno.EIO, "Input/output error")
        assert failed.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="Input/output error") as raised:
        files.flush_and_create([name], {})
    assert raised.value.__notes__ == ["KeyboardInterrupt"]
    monkeypatch.setattr(os, "fsync", plain)


def test_a_disk_without_hard_links_is_refused(tmp_path, monkeypatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StorageError, match="hard links"):
        LocalFiles().put_if_absent(f"{tmp_path}/snapshot-1", b"1")
    assert list(tmp_path.iterdir()) == []


def test_deleting_a_directory_does_not_follow_links(tmp_path) -> None:
    files = LocalFiles()
    files.replace(f"{tmp_path}/precious/file", b"1")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "link").symlink_to(tmp_path / "precious")
    files.delete_directory(f"{tmp_path}/table")
    assert files.read(f"{tmp_path}/precious/file") == b"1"


def test_local_errors_name_the_path(tmp_path) -> None:
    files = LocalFiles()
    files.replace(f"{tmp_path}/file", b"1")
    for call in (
        lambda: files.put_if_absent(f"{tmp_path}/file/below", b"1"),
        lambda: files.create(f"{tmp_path}/file/below"),
    ):
        with pytest.raises(StorageError) as refusal:
            call()
        assert refusal.value.path.startswith(str(tmp_path))


def test_a_storage_without_exclusive_create_is_refused(tmp_path) -> None:
    files = FsspecFiles(f"file://{tmp_path}")
    with pytest.raises(StorageError, match="single-writer"):
        files.put_if_absent(f"file://{tmp_path}/y", b"1")
    assert list(tmp_path.iterdir()) == []


def test_single_writer_can_be_declared(tmp_path) -> None:
    path = f"file://{tmp_path}/a/y"
    files = FsspecFiles(path, {"single-writer": True})
    assert files.put_if_absent(path, b"1") is PutOutcome.CREATED
    assert files.put_if_absent(path, b"2") is PutOutcome.EXISTS
    assert files.read(path) == b"1"
    with files.create(f"file://{tmp_path}/b/z") as output:
        output.write(b"data")
    assert files.read(f"file://{tmp_path}/b/z") == b"data"


def test_a_store_that_ignores_exclusive_create_fails_the_trial() -> None:
    root = f"gcs://{uuid.uuid4()}"
    files = FsspecFiles(root)
    with pytest.raises(StorageError, match="trial"):
        files.put_if_absent(f"{root}/y", b"1")
    assert list(files.list(root)) == []


CREATED, EXISTS, UNKNOWN, _ = PutOutcome


@pytest.mark.parametrize(
    ("first", "second", "stored", "expected"),
    [
        (CREATED, EXISTS, b"1", True),
        (EXISTS, EXISTS, b"1", True),  # the client's own retry caused the first reply
        (UNKNOWN, EXISTS, b"1", True),
        (CREATED, CREATED, b"2", False),
        (CREATED, UNKNOWN, b"2", False),
        (EXISTS, CREATED, b"2", False),
        (CREATED, CREATED, b"1", False),
        (UNKNOWN, CREATED, b"2", None),  # perhaps the first never arrived
        (CREATED, UNKNOWN, b"1", None),  # perhaps the second never arrived
        (UNKNOWN, UNKNOWN, None, None),
    ],
)
def test_a_trial_detects_put_if_absent(
    first: PutOutcome, second: PutOutcome, stored: bytes | None, expected: bool | None
) -> None:
    assert judge_trial(first, second, stored) is expected


@pytest.mark.parametrize("silent", [1, 2, 3])
def test_an_inconclusive_trial_is_repeated_three_times(silent: int) -> None:
    stored: dict[str, bytes] = {}
    names: list[str] = []

    def put(path: str, data: bytes) -> PutOutcome:
        if path not in names:
            names.append(path)
        if len(names) <= silent:
            return PutOutcome.UNKNOWN
        outcome = PutOutcome.EXISTS if path in stored else PutOutcome.CREATED
        stored.setdefault(path, data)
        return outcome

    def read(path: str) -> bytes:
        if path not in stored:
            raise NotFound("file", path)
        return stored[path]

    def prove() -> None:
        prove_exclusive("x://b/d/f", put, read, lambda paths: [stored.pop(p, None) for p in paths])  # type: ignore

    if silent < 3:
        prove()
    else:
        with pytest.raises(StorageError, match="did not confirm whether it overwrites existing files"):
            prove()
    assert stored == {}
    assert all(name.startswith("x://b/d/.") for name in names)


def test_errors_of_fsspec_clients_show_no_secret(monkeypatch) -> None:
    root = f"az://{uuid.uuid4()}"
    files = FsspecFiles(root, {"account_key": "hush-hush-hush"})

    def raise_with_secret(self, *args, **options):
        raise OSError("signature of hush-hush-hush does not match")

    for name in ("cat_file", "pipe_file", "ls", "info", "rm_file"):
        monkeypatch.setattr(ObjectStore, name, raise_with_secret)
    for call in (
        lambda: files.read(f"{root}/x"),
        lambda: files.replace(f"{root}/x", b""),
        lambda: files.list(root),
        lambda: files.status(f"{root}/x"),
        lambda: files.delete([f"{root}/x"]),
    ):
        with pytest.raises(StorageError) as outcomes:
            call()
        chain = [outcomes.value, outcomes.value.__cause__]
        assert "hush" not in "".join(map(str, chain)) and outcomes.value.__suppress_context__


def test_an_error_of_a_put_is_an_unknown_outcome(monkeypatch) -> None:
    root = f"az://{uuid.uuid4()}"
    files = FsspecFiles(root)
    assert files.put_if_absent(f"{root}/x", b"1") is PutOutcome.CREATED
    plain = ObjectStore.pipe_file

    def times_out(self, path, value, mode="overwrite"):
        plain(self, path, value, mode)
        raise TimeoutError

    monkeypatch.setattr(ObjectStore, "pipe_file", times_out)
    assert files.put_if_absent(f"{root}/y", b"1") is PutOutcome.UNKNOWN
    assert files.read(f"{root}/y") == b"1"


class ClientPayloadError(Exception):
    """As aiohttp names a body that was cut."""


def test_fsspec_retries_when_a_reply_is_lost(monkeypatch) -> None:
    """Every call reaches the store. Its first reply is lost, in one of the ways that clients report."""
    lost: dict[str, int] = {}
    errors = [ConnectionResetError(), TimeoutError(), ClientPayloadError("cut")]

    def losing(name: str):
        plain = getattr(ObjectStore, name)

        def call(self, path, *values, **named):
            found = plain(self, path, *values, **named)
            lost[name] = lost.get(name, 0) + 1
            if lost[name] % 2:
                raise errors[lost[name] // 2 % 3]
            return found

        return call

    root = f"az://{uuid.uuid4()}"
    FsspecFiles(root).replace(f"{root}/d/f", b"0123456789")
    for name in ("cat_file", "ls", "info", "rm_file", "pipe_file"):
        monkeypatch.setattr(ObjectStore, name, losing(name))
    files = FsspecFiles(root, {"max_retries": 6})
    assert files.read(f"{root}/d/f") == b"0123456789"
    assert [status.name for status in files.list(f"{root}/d")] == ["f"]
    assert files.status(f"{root}/d/f").size == 10
    files.replace(f"{root}/d/f", b"new")
    assert files.read(f"{root}/d/f") == b"new"
    files.delete([f"{root}/d/f"])
    assert files.status(f"{root}/d/f") is None
    assert lost.keys() == {"cat_file", "ls", "info", "rm_file", "pipe_file"}
    files.replace(f"{root}/g", b"1")
    lost.clear()
    with pytest.raises(StorageError, match="ConnectionResetError"):
        FsspecFiles(root, {"max_retries": 0}).list(root)


def test_a_read_of_an_open_file_is_retried_from_its_start(monkeypatch) -> None:
    root = f"az://{uuid.uuid4()}"
    FsspecFiles(root).replace(f"{root}/f", bytes(range(100)))
    call_numbers = iter(range(100))
    plain = MemoryFile.read

    def cut(self, size=-1):
        found = plain(self, size)
        if next(call_numbers) % 2 == 0:
            raise ConnectionResetError
        return found

    monkeypatch.setattr(MemoryFile, "read", cut)
    with FsspecFiles(root).open(f"{root}/f") as opened:
        assert opened.read(10) == bytes(range(10))
        assert opened.read_at(5, 50) == bytes(range(50, 55))
        assert opened.size() == 100


def test_foreign_urls_are_refused() -> None:
    with pytest.raises(StorageError):
        FsspecFiles("memory://a").read("s3://bucket/key")


def test_faults_occur_where_they_are_planned() -> None:
    inner = MemoryFiles()
    plan = {
        0: Fault.FAIL_BEFORE,
        1: Fault.REPLY_UNKNOWN,
        2: Fault.REPLY_EXISTS,
        4: Fault.FAIL_BEFORE,
        6: Fault.DIE_BEFORE,
    }
    files = FaultyFiles(inner, plan_numbered_faults(plan))
    with pytest.raises(StorageError):
        files.put_if_absent("/a", b"1")
    assert inner.contents == {}
    assert files.put_if_absent("/a", b"1") is PutOutcome.UNKNOWN
    assert files.put_if_absent("/b", b"2") is PutOutcome.EXISTS
    assert inner.contents == {"/a": b"1", "/b": b"2"}
    with pytest.raises(StorageError):
        files.create("/c").close()
    output = files.create("/c")
    with pytest.raises(ProcessDied):
        output.close()
    output.abort()
    with pytest.raises(ProcessDied):
        files.read("/a")
    assert inner.contents == {"/a": b"1", "/b": b"2"}


def test_plans_are_drawn_by_seed() -> None:
    assert draw_faults(7, 1000, 0.03) == draw_faults(7, 1000, 0.03)
    assert 10 < len(draw_faults(7, 1000, 0.03)) < 60
