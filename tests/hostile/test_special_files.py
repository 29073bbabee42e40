"""A FIFO, a device, a socket or a directory in place of a file: no reader blocks, and the error names the file."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import paimon
from paimon.adapters.files import local as regular
from paimon.adapters.files.fsspec_files import FsspecFiles
from paimon.adapters.files.local import LocalFiles
from paimon.domain.errors import CorruptTable, PaimonError

SECONDS = 20


def in_time(call: Callable[[], object]) -> object:
    """The result of a call, or its error. A call that never returns fails the test instead of stopping it."""
    ended: list[object] = []

    def run() -> None:
        try:
            ended.append(call())
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert ended, f"the call has not ended within {SECONDS} s"
    return ended[0]


@contextlib.contextmanager
def below(directory: Path) -> Iterator[None]:
    """The address of a socket has at most about a hundred bytes, so the path is short and relative."""
    before = os.open(".", os.O_RDONLY)
    os.chdir(directory)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with below(path.parent), socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_directory(path: Path) -> None:
    path.mkdir()


SPECIAL = {
    "a FIFO": make_fifo,
    "a socket": make_socket,
    "a character device": make_device,
    "a directory": make_directory,
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("way", ["read", "open"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str, way: str) -> None:
    path = tmp_path / "file"
    SPECIAL[kind](path)
    error = in_time(lambda: getattr(LocalFiles(), way)(str(path)))
    assert isinstance(error, CorruptTable), error
    assert (error.path, error.reason) == (str(path), f"is {kind}, not a regular file")


def test_a_fifo_behind_a_url_is_not_read_either(tmp_path: Path) -> None:
    make_fifo(tmp_path / "file")
    error = in_time(lambda: FsspecFiles(f"local://{tmp_path}").read(f"local://{tmp_path}/file"))
    assert isinstance(error, CorruptTable), error


@pytest.mark.parametrize("size", [0, 1000, 100_000])
@pytest.mark.parametrize("descriptors", [regular._DESCRIPTORS, "/no/such/directory"])
def test_regular_files_are_opened_by_their_descriptor(
    tmp_path: Path, size: int, descriptors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on systems without a directory of file descriptors."""
    monkeypatch.setattr(regular, "_DESCRIPTORS", descriptors)
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    before = len(os.listdir("/proc/self/fd"))
    with LocalFiles(mapped_bytes=10_000).open(f"{tmp_path}/file") as source:
        (tmp_path / "file").unlink()
        assert (source.size(), source.read()) == (size, content)
        source.seek(size // 2)
        assert source.read() == content[size // 2 :]
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_is_replaced_after_the_check_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"sound")
    open_arrow = regular.open_arrow

    def replace_and_open(file: object, *, mapped: bool) -> pa.NativeFile:
        path.unlink()
        make_fifo(path)
        return open_arrow(file, mapped=mapped)  # type: ignore[arg-type]

    monkeypatch.setattr("paimon.adapters.files.local.open_arrow", replace_and_open)
    source = in_time(lambda: LocalFiles().open(str(path)))
    assert isinstance(source, pa.NativeFile), source
    assert source.read() == b"sound"


PLACES = {
    "schema": "schema/schema-0",
    "snapshot": "snapshot/snapshot-2",
    "manifest list": "manifest/manifest-list-*",
    "manifest": "manifest/manifest-[0-9a-f]*",
    "data file": "bucket-0/data-*",
    "index file": "index/index-*",
    "index manifest": "manifest/index-manifest-*",
    "tag": "tag/tag-t",
    "consumer": "consumer/consumer-c",
    "schema of a branch": "branch/branch-b/schema/schema-0",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    table = catalog.create_table("d.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options=options)
    table.write([{"k": i, "v": "a"} for i in range(20)])
    table.write([{"k": i, "v": "b"} for i in range(5)])
    table.tags.create("t")
    table.branches.create("b", tag="t")
    table.consumers.reset("c", 1)
    return tmp_path / "d.db" / "t"


def read_everything(root: Path) -> list[object]:
    """Rows, states and references, each for itself."""
    calls: list[Callable[[], object]] = [
        lambda: paimon.open_table(root).scan().to_arrow(),
        lambda: paimon.open_table(root).scan(tag="t").to_arrow(),
        lambda: list(paimon.open_table(root).snapshots()),
        lambda: paimon.open_table(f"{root}$consumers").scan().to_arrow(),  # type: ignore[union-attr]
        lambda: paimon.open_table(f"{root}$branch_b").scan().to_arrow(),  # type: ignore[union-attr]
        lambda: paimon.open_table(root).maintain.check(deep=True),
        lambda: paimon.open_table(root).write([{"k": 1, "v": "c"}]),
    ]
    return [in_time(call) for call in calls]


@pytest.mark.filterwarnings("ignore:the commit to:RuntimeWarning")
@pytest.mark.parametrize("place", PLACES)
def test_a_fifo_in_the_place_of_a_file_of_a_table(root: Path, place: str) -> None:
    assert not [e for e in read_everything(root)[:-1] if isinstance(e, Exception)]
    for path in root.glob(PLACES[place]):
        path.unlink()
        make_fifo(path)
    errors = [e for e in read_everything(root) if isinstance(e, Exception)]
    assert errors
    assert all(isinstance(e, PaimonError) for e in errors), errors
    assert any("is a FIFO" in str(e) for e in errors), errors


def test_a_hint_that_is_a_fifo_is_no_hint(root: Path) -> None:
    for name in ("LATEST", "EARLIEST"):
        (root / "snapshot" / name).unlink(missing_ok=True)
        make_fifo(root / "snapshot" / name)
    rows = in_time(lambda: paimon.open_table(root).scan().to_arrow())
    assert isinstance(rows, pa.Table), rows
    assert rows.num_rows == 20
