"""Contract tests of the port FileIO.

An adapter that keeps the contract of `paimon.ports.files` passes. Derive a class from `FileIOContract`, whose
`make_files` returns a new adapter and an empty root.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from paimon.domain.errors import CorruptTable, NotFound, PaimonError, StorageError
from paimon.ports.files import FileIO, OutputFile, PutOutcome
from paimon.testing.contracts.races import run_together, run_watched

_RACERS = 4
_ROUNDS = 4
_YEAR_2001_MILLIS = 10**12


class FileIOContract(ABC):
    """Derive a test class from this one and implement `make_files`."""

    long_list = 1_100
    """The files of a long directory: more than a page of the listing, and than one request can delete."""

    @abstractmethod
    def make_files(self) -> tuple[FileIO, str]:
        """Return a new adapter and the path of an empty directory, which need not exist."""

    def test_created_file_is_visible_at_close(self) -> None:
        """A created file becomes visible when it is closed, and is complete."""
        files, root = self.make_files()
        path = f"{root}/a/b/data"
        output = files.create(path)
        assert output.write(b"one") == 3
        output.write(b"two")
        assert output.tell() == 6
        assert files.status(path) is None
        output.close()
        output.close()
        assert output.closed
        assert files.read(path) == b"onetwo"

    def test_aborted_file_leaves_nothing(self) -> None:
        """Neither `abort` nor an exception leaves a file."""
        files, root = self.make_files()
        output = files.create(f"{root}/x/aborted")
        output.write(b"1" * 100_000)
        output.abort()
        expect_error(ZeroDivisionError, lambda: _fail_while_writing(files, f"{root}/x/failed"))
        assert [s.name for s in files.list(f"{root}/x")] == []

    def test_an_aborted_file_keeps_the_one_of_its_name(self) -> None:
        """A later `close` does nothing, nor does an `abort` after `close`."""
        files, root = self.make_files()
        path = f"{root}/x/kept"
        output = files.create(path)
        output.write(b"old")
        output.close()
        output.abort()
        assert files.read(path) == b"old"
        output = files.create(path)
        output.write(b"new")
        for end in (output.abort, output.close, output.abort):
            end()
        assert files.read(path) == b"old"

    def test_with_block_closes(self) -> None:
        """A file becomes visible at the end of its `with` block, and replaces one of its name."""
        files, root = self.make_files()
        for data in (b"", b"second"):
            with files.create(f"{root}/x") as output:
                output.write(data)
            assert files.read(f"{root}/x") == data

    def test_arrow_reads_and_writes(self) -> None:
        """Arrow accepts the output as a sink, and `open` returns a seekable file."""
        files, root = self.make_files()
        table = pa.table({"a": list(range(1000))})
        with files.create(f"{root}/t.arrow") as output, pa.ipc.new_file(_sink(output), table.schema) as writer:
            writer.write_table(table)
        source = files.open(f"{root}/t.arrow")
        assert pa.ipc.open_file(source).read_all().equals(table)
        source.seek(0)
        assert source.read(6) == b"ARROW1"
        assert source.size() == len(files.read(f"{root}/t.arrow"))

    def test_put_if_absent(self) -> None:
        """The first call creates the file; later calls do not change it."""
        files, root = self.make_files()
        path = f"{root}/snapshot/snapshot-1"
        assert files.put_if_absent(path, b"first") is PutOutcome.CREATED
        assert files.put_if_absent(path, b"second") is PutOutcome.EXISTS
        assert files.read(path) == b"first"
        assert [s.name for s in files.list(f"{root}/snapshot")] == ["snapshot-1"]

    def test_put_if_absent_has_one_winner(self) -> None:
        """One of several concurrent calls creates the file, and the others do not change it."""
        files, root = self.make_files()
        mine = [str(n).encode() * 10_000 for n in range(_RACERS)]
        for round_number in range(_ROUNDS):
            path = f"{root}/r/{round_number}"
            outcomes = run_together([partial(files.put_if_absent, path, data) for data in mine])
            winners = [d for d, o in zip(mine, outcomes, strict=True) if o is PutOutcome.CREATED]
            assert winners == [files.read(path)]
            assert outcomes.count(PutOutcome.EXISTS) == _RACERS - 1

    def test_replace(self) -> None:
        """A call creates or replaces the file."""
        files, root = self.make_files()
        files.replace(f"{root}/h/LATEST", b"1")
        files.replace(f"{root}/h/LATEST", b"22")
        assert files.read(f"{root}/h/LATEST") == b"22"

    def test_a_reader_sees_the_old_or_the_new_content(self) -> None:
        """A file that is replaced is never missing, and never a part of its content."""
        files, root = self.make_files()
        path, contents = f"{root}/h/LATEST", (b"old" * 1_000, b"new" * 2_000)
        files.replace(path, contents[0])

        def replace() -> None:
            """Replace the content some times."""
            for content in (contents[1], contents[0], contents[1]):
                files.replace(path, content)

        assert run_watched(replace, lambda: files.read(path) in contents)

    def test_missing_files(self) -> None:
        """A read raises NotFound with the path, a listing is empty, and there is no status."""
        files, root = self.make_files()
        path = f"{root}/nope-{uuid.uuid4()}"
        for call in (files.read, files.open):
            error = expect_error(NotFound, lambda do=call: do(path))  # type: ignore[misc]
            assert isinstance(error, NotFound)
            assert (error.kind, error.name) == ("file", path)
        assert list(files.list(path)) == []
        assert files.status(path) is None

    def test_a_directory_is_not_a_file(self) -> None:
        """It cannot be read, and a file has no entries."""
        files, root = self.make_files()
        files.replace(f"{root}/d/x", b"1")
        for call in (files.read, files.open):
            error = expect_error(PaimonError, lambda do=call: do(f"{root}/d"))  # type: ignore[misc]
            assert isinstance(error, CorruptTable | NotFound)
        assert list(files.list(f"{root}/d/x")) == []

    def test_other_failures_are_storage_errors(self) -> None:
        """Storages may refuse a path below a file. They say so by a StorageError with the path."""
        files, root = self.make_files()
        files.replace(f"{root}/file", b"1")
        path = f"{root}/file/below"
        calls = (
            partial(files.replace, path, b"2"),
            partial(files.put_if_absent, path, b"2"),
            lambda: files.create(path).close(),
        )
        for call in calls:
            try:
                call()
            except StorageError as error:
                assert error.path == path
        assert files.read(f"{root}/file") == b"1"

    def test_read_has_a_limit(self) -> None:
        """A file of `max_bytes` bytes is read; a larger one is refused with its path, size and the limit."""
        files, root = self.make_files()
        for size in (0, 10, 11):
            files.replace(f"{root}/l/{size}", b"x" * size)
        assert files.read(f"{root}/l/0", 10) == b""
        assert files.read(f"{root}/l/10", 10) == b"x" * 10
        error = expect_error(CorruptTable, lambda: files.read(f"{root}/l/11", 10))
        assert isinstance(error, CorruptTable)
        assert error.path == f"{root}/l/11"
        assert "11 bytes" in error.reason
        assert "10 bytes" in error.reason

    def test_list_and_status(self) -> None:
        """Entries are sorted by name and have sizes; directories differ from files."""
        files, root = self.make_files()
        for name in ("d/b", "d/a", "d/c/inner", "d/k=v w/x", "d/ä#%25"):
            files.replace(f"{root}/{name}", name.encode())
        found = [s for s in files.list(f"{root}/d") if not s.name.startswith(".")]
        assert [(s.name, s.is_directory) for s in found] == [
            ("a", False),
            ("b", False),
            ("c", True),
            ("k=v w", True),
            ("ä#%25", False),
        ]
        assert [s.path for s in found] == [f"{root}/d/{s.name}" for s in found]
        assert [s.size for s in found] == [3, 3, 0, 0, len("d/ä#%25".encode())]
        status = files.status(f"{root}/d/b")
        assert status is not None
        assert (status.size, status.is_directory, status.path) == (3, False, f"{root}/d/b")
        directory = files.status(f"{root}/d/c")
        assert directory is not None
        assert directory.is_directory

    def test_names_with_a_common_prefix_are_different(self) -> None:
        """A call for ``d`` neither sees nor deletes ``dd`` and what is below it."""
        files, root = self.make_files()
        others = ["dd/x", "d-1/x", "d.x", "d d/x"]
        for name in ("d/x", *others):
            files.replace(f"{root}/p/{name}", b"1")
        assert [s.name for s in files.list(f"{root}/p/d")] == ["x"]
        assert files.status(f"{root}/p/d-") is None
        files.delete([f"{root}/p/d/x", f"{root}/p/d-"])
        files.delete([f"{root}/p/d"])
        assert files.status(f"{root}/p/d/x") is None
        for name in others:
            assert files.read(f"{root}/p/{name}") == b"1"

    def test_long_directories_are_listed_and_deleted(self) -> None:
        """No entry is lost where a storage lists in pages, and no file remains where it deletes in batches."""
        files, root = self.make_files()
        names = [f"data-{number:05}" for number in range(self.long_list)]
        for name in names:
            files.replace(f"{root}/long/{name}", b"1")
        assert [s.name for s in files.list(f"{root}/long")] == names
        files.delete([f"{root}/long/{name}" for name in names[1:]])
        assert [s.name for s in files.list(f"{root}/long")] == names[:1]

    def test_modified_times_are_epoch_milliseconds(self) -> None:
        """A file that is written later is not older. A listing gives the same time, or the storage gives none."""
        files, root = self.make_files()
        for name in ("a", "b"):
            files.replace(f"{root}/m/{name}", b"x")
        listed = [s.modified_millis for s in files.list(f"{root}/m")]
        found = [s.modified_millis for name in ("a", "b") if (s := files.status(f"{root}/m/{name}")) is not None]
        assert found == listed
        first, second = listed
        if first is not None and second is not None:
            assert isinstance(first, int)
            assert _YEAR_2001_MILLIS < first <= second < 10 * _YEAR_2001_MILLIS

    def test_delete_is_idempotent(self) -> None:
        """A missing file is no error; other files and directories that are not empty remain."""
        files, root = self.make_files()
        for name in "abc":
            files.replace(f"{root}/d/{name}", b"x")
        files.delete([f"{root}/d/a", f"{root}/d/missing", f"{root}/other/missing", f"{root}/d/b"])
        files.delete([f"{root}/d/a"])
        files.delete([])
        assert [s.name for s in files.list(f"{root}/d")] == ["c"]

    def test_delete_keeps_directories_with_content(self) -> None:
        """A directory is deleted only after the last of its entries, and a call for one with content is no error."""
        files, root = self.make_files()
        for name in ("d/x", "d/s/y"):
            files.replace(f"{root}/{name}", b"1")
        for _ in range(2):
            files.delete([f"{root}/d", f"{root}/d/s", f"{root}/none"])
        assert [s.name for s in files.list(f"{root}/d")] == ["s", "x"]
        assert files.read(f"{root}/d/s/y") == b"1"
        files.delete([f"{root}/d/s/y"])
        files.delete([f"{root}/d/s"])
        assert [s.name for s in files.list(f"{root}/d")] == ["x"]


def expect_error(kind: type[BaseException], call: Callable[[], object]) -> BaseException:
    """Call a function and return its error, which must have this type.

    Raises
    ------
    AssertionError
        The call raises no error, or another `PaimonError`.
    """
    try:
        call()
    except kind as error:
        return error
    except PaimonError as error:
        raise AssertionError(f"{kind.__name__} expected, not {error!r}") from error
    raise AssertionError(f"{kind.__name__} expected")


def _sink(output: OutputFile) -> pa.NativeFile:
    return pa.PythonFile(output, "w")


def _fail_while_writing(files: FileIO, path: str) -> None:
    with files.create(path) as output:
        output.write(b"half")
        raise ZeroDivisionError
