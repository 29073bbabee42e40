"""Contract tests of the ports Directories, ManyFiles and DeferredFlush: the optional methods of a FileIO.

An adapter that keeps the contracts of `paimon.ports.files` passes. Derive a class from `DirectoriesContract`,
`ManyFilesContract` or `DeferredFlushContract`, whose `make_files` returns a new adapter and an empty root.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

from paimon.domain.errors import AlreadyExists, NotFound, StorageError
from paimon.ports.files import DeferredFlush, Directories, FileIO, ManyFiles
from paimon.testing.contracts.files import expect_error
from paimon.testing.contracts.races import run_together, run_watched

_NAMES = [f"part-{number}" for number in range(6)]
_ROUNDS = 5


class DirectoriesContract(ABC):
    """Derive a test class from this one and implement `make_files`."""

    @abstractmethod
    def make_files(self) -> tuple[FileIO, str]:
        """Return a new FileIO with directories, and the path of an empty directory, which need not exist."""

    def test_a_made_directory_exists(self) -> None:
        """With its parents. A second call changes nothing, and a file of the name is refused."""
        files, directories, root = self._make()
        directories.make_directory(f"{root}/a/b")
        status = files.status(f"{root}/a/b")
        assert status is not None and status.is_directory
        files.replace(f"{root}/a/b/x", b"1")
        directories.make_directory(f"{root}/a/b")
        assert files.read(f"{root}/a/b/x") == b"1"
        expect_error(StorageError, lambda: directories.make_directory(f"{root}/a/b/x"))

    def test_an_empty_directory_can_be_deleted(self) -> None:
        """By `delete`, also one whose name begins that of another directory."""
        files, directories, root = self._make()
        for name in ("a", "aa"):
            directories.make_directory(f"{root}/{name}")
        files.delete([f"{root}/a"])
        assert [s.name for s in files.list(root)] == ["aa"]

    def test_a_moved_directory_has_its_content(self) -> None:
        """The source is gone. Missing parents of the target are created, and neighbours of the source stay."""
        files, directories, root = self._make()
        for name in ("t/x", "t/s/y", "tt/x"):
            files.replace(f"{root}/{name}", name.encode())
        directories.move_directory(f"{root}/t", f"{root}/new/parent/t")
        assert files.status(f"{root}/t") is None
        assert files.read(f"{root}/new/parent/t/x") == b"t/x"
        assert files.read(f"{root}/new/parent/t/s/y") == b"t/s/y"
        assert files.read(f"{root}/tt/x") == b"tt/x"

    def test_a_refused_move_changes_nothing(self) -> None:
        """Something exists at the target, even an empty directory; or there is no source."""
        files, directories, root = self._make()
        files.replace(f"{root}/t/x", b"1")
        files.replace(f"{root}/full/y", b"2")
        files.replace(f"{root}/file", b"3")
        directories.make_directory(f"{root}/empty")
        for target in ("full", "file", "empty"):
            expect_error(AlreadyExists, partial(directories.move_directory, f"{root}/t", f"{root}/{target}"))
        expect_error(NotFound, lambda: directories.move_directory(f"{root}/none", f"{root}/else"))
        assert [s.name for s in files.list(root)] == ["empty", "file", "full", "t"]
        assert [s.name for s in files.list(f"{root}/full")] == ["y"]
        assert files.read(f"{root}/t/x") == b"1"

    def test_a_move_is_one_step(self) -> None:
        """Once a reader sees one file at the target, all are there, and none is at the source."""
        files, directories, root = self._make()
        for name in _NAMES:
            files.replace(f"{root}/t/{name}", b"1")

        def is_moved_whole(name: str) -> bool:
            """Return whether all files have moved, if this one has."""
            if files.status(f"{root}/u/{name}") is None:
                return True
            there = [files.status(f"{root}/u/{other}") for other in _NAMES]
            return None not in there and all(files.status(f"{root}/t/{other}") is None for other in _NAMES)

        def is_one_step() -> bool:
            """Look for the first and the last file."""
            return all(is_moved_whole(name) for name in (_NAMES[0], _NAMES[-1]))

        assert run_watched(lambda: directories.move_directory(f"{root}/t", f"{root}/u"), is_one_step)

    def test_one_of_concurrent_moves_succeeds(self) -> None:
        """The other gets AlreadyExists, and its directory stays where it is."""
        files, directories, root = self._make()
        for number in range(_ROUNDS):
            place = f"{root}/{number}"
            for name in ("a", "b"):
                files.replace(f"{place}/{name}/{name}", b"1")
            moved = run_together([partial(_can_move, directories, f"{place}/{n}", f"{place}/target") for n in "ab"])
            assert sorted(moved) == [False, True]
            winner, loser = ("a", "b") if moved[0] else ("b", "a")
            assert [s.name for s in files.list(f"{place}/target")] == [winner]
            assert files.read(f"{place}/{loser}/{loser}") == b"1"

    def test_a_deleted_directory_is_gone_with_its_content(self) -> None:
        """Other directories stay. A second call is no error."""
        files, directories, root = self._make()
        for name in ("t/x", "t/s/y", "tt/x", "t.x"):
            files.replace(f"{root}/{name}", b"1")
        for _ in range(2):
            directories.delete_directory(f"{root}/t")
        assert [s.name for s in files.list(root)] == ["t.x", "tt"]
        assert files.read(f"{root}/tt/x") == b"1"

    def _make(self) -> tuple[FileIO, Directories, str]:
        files, root = self.make_files()
        assert isinstance(files, Directories)
        return files, files, root


def _can_move(directories: Directories, source: str, target: str) -> bool:
    try:
        directories.move_directory(source, target)
    except AlreadyExists:
        return False
    return True


class ManyFilesContract(ABC):
    """Derive a test class from this one and implement `make_files`."""

    @abstractmethod
    def make_files(self) -> tuple[FileIO, str]:
        """Return a new FileIO that creates many files, and the path of an empty directory, which need not exist."""

    def test_all_files_are_created(self) -> None:
        """With their content and missing parents; nothing else is there. No file at all is no error."""
        files, root = self.make_files()
        assert isinstance(files, ManyFiles)
        contents = {f"{root}/{n % 3}/{n}": str(n).encode() * n for n in range(20)}
        files.create_all(contents)
        files.create_all({})
        assert {path: files.read(path) for path in contents} == contents
        listed = [s.path for n in range(3) for s in files.list(f"{root}/{n}")]
        assert sorted(listed) == sorted(contents)

    def test_an_existing_file_is_replaced(self) -> None:
        """As by the `close` of `create`."""
        files, root = self.make_files()
        assert isinstance(files, ManyFiles)
        files.replace(f"{root}/a", b"old")
        files.create_all({f"{root}/a": b"new", f"{root}/b": b"2"})
        assert (files.read(f"{root}/a"), files.read(f"{root}/b")) == (b"new", b"2")

    def test_each_file_is_whole(self) -> None:
        """A reader sees all bytes of a file or no file."""
        files, root = self.make_files()
        assert isinstance(files, ManyFiles)
        contents = {f"{root}/{name}": name.encode() * 1_000 for name in _NAMES}
        many = files

        def are_whole() -> bool:
            """Return whether each listed file has its size."""
            listed = [s for s in files.list(root) if not s.name.startswith(".")]
            return all(s.size == len(contents[s.path]) for s in listed)

        assert run_watched(lambda: many.create_all(contents), are_whole)


class DeferredFlushContract:
    """Derive a test class from this one and implement `make_files`."""

    def make_files(self) -> tuple[FileIO, str]:
        """Return a new FileIO that defers flushes, and the path of an empty directory, which need not exist.

        Raises
        ------
        NotImplementedError
            The derived class does not implement it.
        """
        raise NotImplementedError

    def test_a_deferred_file_is_a_new_file(self) -> None:
        """It is visible whole after its `close`, with its missing parents; after `abort` nothing remains."""
        files, root = self.make_files()
        assert isinstance(files, DeferredFlush)
        with files.create_deferred(f"{root}/a/x") as file:
            file.write(b"1")
            assert files.status(f"{root}/a/x") is None
            file.write(b"2")
        assert files.read(f"{root}/a/x") == b"12"
        files.create_deferred(f"{root}/a/y").abort()
        assert [s.name for s in files.list(f"{root}/a")] == ["x"]

    def test_deferred_files_are_flushed_with_new_ones(self) -> None:
        """The new ones are created, a file may be flushed twice, and a deferred file that is gone is NotFound."""
        files, root = self.make_files()
        assert isinstance(files, DeferredFlush)
        many = files
        files.create_deferred(f"{root}/x").close()
        for _ in range(2):
            files.flush_and_create([f"{root}/x"], {f"{root}/{name}": name.encode() for name in _NAMES})
        files.flush_and_create([f"{root}/x"], {})
        assert [files.read(f"{root}/{name}") for name in ("x", *_NAMES)] == [b"", *(n.encode() for n in _NAMES)]
        expect_error(NotFound, lambda: many.flush_and_create([f"{root}/gone"], {}))
