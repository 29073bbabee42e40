"""FileIO: the port for a file system or an object store.

Paths are absolute: a local path, or a URL whose scheme the adapter knows. Suite: `paimon.testing.contracts.files`.

Invariant: a file becomes visible whole or not at all, and `put_if_absent` never changes an existing file. Source:
`FileIO`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Protocol, runtime_checkable

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import CorruptTable

WHOLE_BYTES = 256 * 1024 * 1024
"""The default size limit of a file that is read as a whole. A sparse file can claim any size at no cost."""


def check_whole(path: str, size: int, max_bytes: int) -> None:
    """Check that a file is not larger than its kind may be.

    Parameters
    ----------
    path : str
        The path that the error names.
    size : int
        The size of the file in bytes, or the number of bytes that were read so far.
    max_bytes : int
        The limit in bytes.

    Raises
    ------
    CorruptTable
        The file is larger.
    """
    if size > max_bytes:
        raise CorruptTable(path, f"has {size} bytes or more, and the limit of such a file is {max_bytes} bytes")


class PutOutcome(Enum):
    """The outcome of one `put_if_absent`."""

    CREATED = "created"
    """The file is visible and durable."""
    EXISTS = "exists"
    """A file of this name exists. It may be this one, if the reply of an earlier request was lost."""
    UNKNOWN = "unknown"
    """The storage did not confirm. The caller reads the path to find out."""
    NOT_DURABLE = "not durable"
    """The file is visible and complete, but a flush failed: a power loss may take it.

    A storage that reports this has `DeferredFlush`, with which a snapshot is flushed before it is acknowledged.
    """


@frozen
class FileStatus:
    """One entry of a directory.

    Parameters
    ----------
    path : str
        The full path, in the form in which the caller gave the directory.
    size : int
        Bytes; 0 for a directory. `list` and `status` agree.
    is_directory : bool
        Whether the entry is a directory. An object store has a directory where objects lie below the path.
    modified_millis : int, optional
        When the entry was last written, in milliseconds since 1970-01-01 00:00 UTC, by the clock of the storage and
        not by that of this machine. `list` and `status` agree. None if the storage gives no time.
    """

    path: str
    size: int
    is_directory: bool
    modified_millis: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]


class RangeInput(ABC):
    """A file of which ranges are read, as a seekable input: what `pyarrow.PythonFile` needs of a remote file.

    A subclass defines `read_at`, which does not move the position.

    Parameters
    ----------
    size : int
        The size of the file in bytes.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0
        self.closed = False

    @abstractmethod
    def read_at(self, size: int, start: int) -> bytes:
        """Return the `size` bytes at the offset `start`, all of which are within the file."""

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, or all that remain; fewer only at the end."""
        left = max(0, self._size - self._position)
        length = left if size is None or size < 0 else min(size, left)
        start, self._position = self._position, self._position + length
        return self.read_at(length, start) if length else b""

    def close(self) -> None:
        """Close the input."""
        self.closed = True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move the position from the beginning (0), where it is (1), or the end (2), and return it."""
        self._position = max(0, (0, self._position, self._size)[whence] + offset)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._size


class OutputFile(Protocol):
    """A file during writing: a binary, write-only stream for Arrow and pyorc. One thread uses it.

    A `with` block that ends well closes the file. A block that ends with an exception aborts it.
    """

    def write(self, data: bytes) -> int:
        """Append bytes.

        Parameters
        ----------
        data : bytes
            Bytes, or any object with the buffer protocol.

        Returns
        -------
        int
            The number of bytes, which are all of them.

        Raises
        ------
        StorageError
            The storage failed. The caller aborts the file.
        """

    def tell(self) -> int:
        """Return the position.

        Returns
        -------
        int
            The number of bytes written so far.
        """

    def flush(self) -> None:
        """Hand buffered bytes to the storage, where the adapter can. Nothing becomes visible or durable.

        Raises
        ------
        StorageError
            The storage failed. The caller aborts the file.
        """

    def close(self) -> None:
        """Make the file visible in one step, with all its bytes. Further calls do nothing.

        On local disk the call returns after the bytes and the directory entry are durable. A file with the same name is
        replaced.

        Raises
        ------
        StorageError
            The storage failed. The file may be visible and whole, but never in part.
        """

    def abort(self) -> None:
        """Discard the file. No file remains, and further calls do nothing. The call never raises a StorageError.

        An older file of the same name stays. After `close`, the call does nothing.
        """

    @property
    def closed(self) -> bool:
        """Whether `close` or `abort` was called."""

    def __enter__(self) -> OutputFile:
        """Return this file."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, or abort it if the block raised an error. The error is not suppressed."""


class FileIO(Protocol):
    """A storage. All methods are safe to call from several threads.

    A call that returned is visible to every later call of any process. Every failure that a method does not list below
    is a StorageError with the path.
    """

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Read a whole metadata file.

        Parameters
        ----------
        path : str
            The file.
        max_bytes : int
            The size limit. No more than this is held in memory.

        Returns
        -------
        bytes
            The content at one moment.

        Raises
        ------
        NotFound
            There is no such file. Its fields are `kind` ``"file"`` and `name`, the path.
        CorruptTable
            The file has more than `max_bytes` bytes, or is not a regular file.
        StorageError
            The storage failed.
        """

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access.

        Parameters
        ----------
        path : str
            A file whose content does not change.

        Returns
        -------
        pyarrow.NativeFile
            A seekable file, which the caller closes. It may read from the storage with each access; then a failure of
            the storage is raised by the access.

        Raises
        ------
        NotFound
            There is no such file. Its fields are `kind` ``"file"`` and `name`, the path.
        CorruptTable
            The path is not a regular file.
        StorageError
            The storage failed.
        """

    def create(self, path: str) -> OutputFile:
        """Begin a new file, and create missing parent directories.

        Nothing is visible at `path` before the file is closed, which replaces a file of this name. Most names are
        unique.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        OutputFile
            A stream, which the caller closes or aborts.

        Raises
        ------
        StorageError
            The storage refused.
        """

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file with this content, unless a file of this name exists.

        This is the only compare-and-swap of the library. The call is atomic: of several concurrent callers at most one
        gets CREATED, and an existing file never changes. The call is not idempotent: a repetition returns EXISTS.

        Parameters
        ----------
        path : str
            The file. Missing parent directories are created.
        data : bytes
            The whole content.

        Returns
        -------
        PutOutcome
            CREATED only after the file is visible, and on local disk durable.

        Raises
        ------
        StorageError
            The storage refused, or has no safe way to create a file if it is absent. Nothing was created.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Create a file, or replace its content. For hints that may be lost.

        The call is atomic: a reader sees the old or the new content. It is idempotent. It flushes nothing, so after a
        crash of the machine the file may be lost or old.

        Parameters
        ----------
        path : str
            The file. Missing parent directories are created.
        data : bytes
            The whole new content.

        Raises
        ------
        StorageError
            The storage failed. The file has the old or the new content.
        """

    def list(self, path: str) -> Sequence[FileStatus]:
        """List the entries of a directory, not those of its subdirectories.

        The listing is not atomic: files that appear or disappear during the call may be missing. Temporary files, whose
        names start with ``.``, may be listed.

        Parameters
        ----------
        path : str
            The directory.

        Returns
        -------
        sequence of FileStatus
            All entries, however many there are, in ascending order of their names. Empty if there is no such directory.

        Raises
        ------
        StorageError
            The storage failed.
        """

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path.

        Parameters
        ----------
        path : str
            A file or a directory.

        Returns
        -------
        FileStatus or None
            None if there is nothing at this path.

        Raises
        ------
        StorageError
            The storage failed.
        """

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files and empty directories.

        The call is idempotent: missing files are not an error, and a directory with content stays. Entries whose names
        begin with a deleted name stay, too. The order of the deletions is not defined, and the call is not atomic.

        Parameters
        ----------
        paths : sequence of str
            Any number of paths, which the adapter may delete in batches.

        Raises
        ------
        StorageError
            The storage failed. Some of the files may be deleted.
        """


@runtime_checkable
class Directories(Protocol):
    """Optional methods of a FileIO whose storage has directories. Catalogs use them.

    Suite: `paimon.testing.contracts.directories`.
    """

    def make_directory(self, path: str) -> None:
        """Create a directory with its missing parents. The call is idempotent.

        Parameters
        ----------
        path : str
            The directory. It is durable when the call returns.

        Raises
        ------
        StorageError
            The storage refused, or a file has this name.
        """

    def move_directory(self, source: str, target: str) -> None:
        """Rename a directory with all its content in one step. A reader sees all of it at one of the two places.

        Parameters
        ----------
        source : str
            The existing directory.
        target : str
            The new path. Missing parents are created.

        Raises
        ------
        AlreadyExists
            Something exists at the target, also an empty directory or that of a concurrent call. Nothing changed.
        NotFound
            There is no such source directory.
        StorageError
            The storage failed.
        """

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all its content. The call is idempotent, but not atomic.

        Parameters
        ----------
        path : str
            The directory. Symbolic links in it are deleted, not followed.

        Raises
        ------
        StorageError
            The storage failed. A part of the content may be deleted.
        """


@runtime_checkable
class ManyFiles(Protocol):
    """An optional method of a FileIO that can create several small files faster together than one after the other.

    Suite: `paimon.testing.contracts.directories`.
    """

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """Create several files.

        Each file becomes visible whole or not at all, in no particular order. When the call returns, all files are as
        durable as after the `close` of `create`. Missing parents are created, and files of the same names are replaced.
        A power loss during the call may leave a file with a part of its bytes, so nothing refers to the names before.

        Parameters
        ----------
        files : mapping of str to bytes
            The content of each file by its path.

        Raises
        ------
        StorageError
            The storage failed. Some of the files may be visible.
        """


@runtime_checkable
class DeferredFlush(Protocol):
    """Optional methods of a FileIO that waits for the disk: several files are flushed with one wait.

    Suite: `paimon.testing.contracts.directories`.
    """

    def create_deferred(self, path: str) -> OutputFile:
        """Begin a new file as `create` does, which its `close` need not make durable.

        A power loss may leave the file with a part of its bytes until `flush_and_create` returns. So nothing refers to
        its name before.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        OutputFile
            A stream, which the caller closes or aborts.

        Raises
        ------
        StorageError
            The storage refused.
        """

    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        """Make closed files durable, and create others as `ManyFiles.create_all` does, with one wait for the disk.

        When the call returns, all files are as durable as after the `close` of `create`. A file may be flushed again.

        Parameters
        ----------
        deferred : collection of str
            Files that exist.
        files : mapping of str to bytes
            The content of each file to create by its path.

        Raises
        ------
        NotFound
            A deferred file does not exist. Some of the others may be visible.
        StorageError
            The storage failed. Some of the files may be visible.
        """
