"""LocalFiles: a FileIO for the local disk. It writes hidden files first, and opens regular files only.

Invariant: a file is written under a hidden temporary name in its directory, flushed to disk, and then renamed; the
directory entry is flushed before the call returns. `create_all`, for new names that no file refers to yet, renames
first, so that it waits for the disk once; `create_deferred` leaves the flush of small files to `flush_and_create`. Only
`replace`, for hints that a power loss may take, flushes nothing.
`put_if_absent` creates the name with a hard link, which fails if the name exists; a check before a rename
could replace a file. Symbolic links do not lead out of the allowed roots.
Source: `LocalFileIO`, `AtomicFsOutput`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from operator import attrgetter
from typing import BinaryIO

import pyarrow as pa

from paimon.adapters.files.allowed_roots import AllowedRoots
from paimon.adapters.files.output import Output
from paimon.domain.errors import AlreadyExists, CorruptTable, NotFound, PaimonError, StorageError
from paimon.domain.undo import undo_on_failure
from paimon.ports.files import WHOLE_BYTES, FileStatus, OutputFile, PutOutcome, check_whole

_FLUSH_THREADS = 8
_DEFERRED_BYTES = 1024 * 1024
"""Larger files are flushed when they are closed, so that no commit waits for them while it has the lock."""
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_ALL_ALLOWED = AllowedRoots()


class LocalFiles:
    """Files of the local disk. Paths are absolute, or ``file:`` URLs.

    Files of at most `mapped_bytes` are memory-mapped. Read pages of larger ones would count as memory of the process.
    Symbolic links may not leave `allowed_roots`.
    """

    def __init__(self, mapped_bytes: int = 16 * 1024 * 1024, allowed_roots: AllowedRoots = _ALL_ALLOWED) -> None:
        self._mapped_bytes = mapped_bytes
        self._allowed_roots = allowed_roots

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Read as many bytes as the file has when it is opened."""
        with translate_os_errors(path), open_regular(self._check_target(path), path) as file:
            size = os.fstat(file.fileno()).st_size
            check_whole(path, size, max_bytes)
            return file.read(size)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file, memory-mapped if it is small. A map stays valid because no file changes."""
        with translate_os_errors(path), open_regular(self._check_target(path), path) as file:
            size = os.fstat(file.fileno()).st_size
            return open_arrow(file, mapped=size <= self._mapped_bytes) if size else pa.BufferReader(b"")

    def create(self, path: str) -> OutputFile:
        """Begin a file that is visible after its `close`."""
        with translate_os_errors(path, missing_is_error=True):
            return LocalOutputFile(path, self._check_parent(path))

    def create_deferred(self, path: str) -> OutputFile:
        """Begin a file that its `close` flushes only if it is large."""
        with translate_os_errors(path, missing_is_error=True):
            return LocalOutputFile(path, self._check_parent(path), deferred_bytes=_DEFERRED_BYTES)

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """Create several files."""
        self.flush_and_create((), files)

    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        """Flush files, and create others. After an error, files that were not renamed by then are removed.

        They are renamed, then files and directories are flushed concurrently, which takes little longer than one flush.
        """
        outputs: list[LocalOutputFile] = []
        with undo_on_failure(lambda: _abort_all(outputs)):
            for path, data in files.items():
                with translate_os_errors(path, missing_is_error=True):
                    outputs.append(LocalOutputFile(path, self._check_parent(path)))
                outputs[-1].write(data)
            for output in outputs:
                output.flush()
            for output in outputs:
                output.publish()
            closed = {path: self._check_target(path) for path in deferred}
            directories = {os.path.dirname(name): path for path, name in closed.items()}
            directories |= {output.directory: path for output, path in zip(outputs, files, strict=True)}
            _run_concurrently(
                [partial(_sync_file, name, path) for path, name in closed.items()]
                + [output.flush_to_disk for output in outputs]
                + [partial(_sync_directory_of, directory, path) for directory, path in directories.items()]
            )

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a durable file, unless it exists."""
        with translate_os_errors(path, missing_is_error=True):
            final = self._check_parent(path)
            if os.path.lexists(final):
                return PutOutcome.EXISTS
            temporary = _write_temporary(final, data)
            try:
                return _link(temporary, final, path)
            finally:
                _unlink(temporary)

    def replace(self, path: str, data: bytes) -> None:
        """Create a file, or replace its content in one step. A crash may lose it."""
        with (
            translate_os_errors(path, missing_is_error=True),
            LocalOutputFile(path, self._check_parent(path), durable=False) as file,
        ):
            file.write(data)

    def list(self, path: str) -> Sequence[FileStatus]:
        """List a directory in the order of names; empty if it does not exist."""
        with translate_os_errors(path):
            try:
                with os.scandir(self._check_target(path)) as entries:
                    ordered = sorted(entries, key=attrgetter("name"))
                return [s for e in ordered if (s := self._entry_status(e, path)) is not None]
            except (FileNotFoundError, NotADirectoryError):
                return []

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path, or None."""
        with translate_os_errors(path):
            try:
                found = os.stat(self._check_target(path))
            except (FileNotFoundError, NotADirectoryError):
                return None
        return _status(path, found, os.path.isdir(local_path(path)))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files and empty directories. Missing ones are ignored."""
        for path in paths:
            with translate_os_errors(path):
                name = self._check_parent(path)
                if os.path.isdir(name) and not os.path.islink(name):
                    _remove_if_empty(name)
                else:
                    _unlink(name)

    def make_directory(self, path: str) -> None:
        """Create a directory and its missing parents."""
        with translate_os_errors(path, missing_is_error=True):
            make_directory_durably(self._check_target(path))

    def move_directory(self, source: str, target: str) -> None:
        """Rename a directory in one step. Anything at the target is AlreadyExists."""
        old, new = self._check_parent(source), self._check_parent(target)
        if os.path.lexists(new):
            raise AlreadyExists("directory", target)
        with translate_os_errors(source):
            make_directory_durably(os.path.dirname(new))
            try:
                os.rename(old, new)
            except OSError as error:  # another process created the target after the check
                if error.errno not in _NOT_EMPTY:
                    raise
                raise AlreadyExists("directory", target) from error
            sync_directory(os.path.dirname(new))

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all its content. Links are deleted, not followed."""
        with translate_os_errors(path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._check_parent(path))

    def _check_target(self, path: str) -> str:
        """Return the local path of a file or directory to use: links are followed."""
        return self._allowed_roots.check_target(local_path(path), path)

    def _check_parent(self, path: str) -> str:
        """Return the local path of a file to create or delete: only links of its directory are followed."""
        return self._allowed_roots.check_parent(local_path(path), path)

    def _entry_status(self, entry: os.DirEntry[str], directory: str) -> FileStatus | None:
        path = f"{directory.rstrip('/')}/{entry.name}"
        try:
            # Only the name of such a link is listed, not its target.
            if entry.is_symlink() and self._allowed_roots.is_outside(local_path(path)):
                return _status(path, entry.stat(follow_symlinks=False), False)
            return _status(path, entry.stat(), entry.is_dir())
        except FileNotFoundError:  # another process deleted it
            return None


def _run_concurrently(flushes: Sequence[Callable[[], None]]) -> None:
    """Call all functions, the last one in this thread. After all ended, raise one of their errors with the others.

    A StorageError goes first, also before an interrupt: the caller, or another thread whose files are flushed here,
    would flush the files again and succeed, although their bytes are lost.
    """
    running: list[Future[None]] = []
    errors: list[BaseException] = []
    try:
        with contextlib.suppress(RuntimeError):
            running += (_flush_threads(os.getpid()).submit(flush) for flush in flushes[:-1])
        for flush in flushes[len(running) :]:
            try:
                flush()
            except PaimonError as error:
                errors.append(error)
        wait(running)
    except KeyboardInterrupt as interrupt:
        errors.insert(0, interrupt)
    finally:
        wait(running)
    errors += (failure for done in running if (failure := done.exception()) is not None)
    errors.sort(key=lambda error: not isinstance(error, StorageError))
    for other in errors[1:]:
        errors[0].add_note(str(other) or type(other).__name__)
    if errors:
        raise errors[0]


@cache
def _flush_threads(process: int) -> ThreadPoolExecutor:
    """Return the threads that flush files; they stay, and a forked child gets its own by `process`."""
    return ThreadPoolExecutor(_FLUSH_THREADS, thread_name_prefix="paimon-flush")


def _sync_file(name: str, path: str) -> None:
    """Flush a closed file; a new descriptor reports an error of an earlier write-back, too."""
    with translate_os_errors(path), open_regular(name, path) as file:
        os.fsync(file.fileno())


def _sync_directory_of(directory: str, path: str) -> None:
    with translate_os_errors(path, missing_is_error=True):
        sync_directory(directory)


def local_path(path: str) -> str:
    """Return a path without the scheme ``file:``."""
    return "/" + path[5:].lstrip("/") if path.startswith("file:") else path


def _abort_all(outputs: Iterable[LocalOutputFile]) -> None:
    for output in outputs:
        output.abort()


def _write_temporary(final: str, data: bytes) -> str:
    """Write and flush a hidden file, and return its path."""
    temporary, file = open_temporary(final)
    with undo_on_failure(lambda: _unlink(temporary)), file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _link(temporary: str, final: str, path: str) -> PutOutcome:
    try:
        os.link(temporary, final)
    except FileExistsError:
        return PutOutcome.EXISTS
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise StorageError(
                path,
                "the file system has no hard links, so a file cannot be created safely if it is absent",
                hint="move the table to a file system with hard links",
            ) from error
        raise
    try:
        sync_directory(os.path.dirname(final))
    except OSError:  # the file is visible
        return PutOutcome.NOT_DURABLE
    return PutOutcome.CREATED


def _unlink(name: str) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(name)


def _remove_if_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in _NOT_EMPTY:
            raise


def _status(path: str, found: os.stat_result, is_directory: bool) -> FileStatus:
    return FileStatus(path, 0 if is_directory else found.st_size, is_directory, found.st_mtime_ns // 1_000_000)


# LocalOutputFile: a local file that is hidden until it is whole and durable.
#
# Invariant: `close` flushes the bytes to disk, renames the file, and flushes the directory entry, in this order. A file
# that need not be durable, or is flushed later, is only renamed. `abort` leaves no file.


class LocalOutputFile(Output):
    """See `paimon.ports.files.OutputFile`. It is also a file object for Arrow and others.

    Errors name `path`; `final` is the local path of the closed file. If `durable`, `close` flushes to disk, but not a
    file of at most `deferred_bytes`.
    """

    def __init__(self, path: str, final: str, *, durable: bool = True, deferred_bytes: int = -1) -> None:
        self._path = path
        self._final = final
        self._durable = durable
        self._deferred_bytes = deferred_bytes
        self._temporary, self._file = open_temporary(final)

    def write(self, data: bytes) -> int:
        """Append bytes of any buffer, and return their number."""
        with translate_os_errors(self._path, missing_is_error=True):
            return self._file.write(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._file.tell()

    def flush(self) -> None:
        """Hand buffered bytes to the system. Nothing becomes visible."""
        with translate_os_errors(self._path, missing_is_error=True):
            self._file.flush()

    def close(self) -> None:
        """Make the file durable, then visible. Further calls do nothing."""
        if not self._file.closed:
            self._durable = self._durable and self._file.tell() > self._deferred_bytes
            self.flush_to_disk()
            self.publish()
            if self._durable:
                with translate_os_errors(self._path, missing_is_error=True):
                    sync_directory(self.directory)

    @property
    def directory(self) -> str:
        """The local directory of the file."""
        return os.path.dirname(self._final)

    def flush_to_disk(self) -> None:
        """Flush the bytes to disk: the first step of `close`."""
        with self._abort_on_error():
            self._file.flush()
            if self._durable:
                os.fsync(self._file.fileno())
            self._file.close()

    def publish(self) -> None:
        """Rename the file: the second step of `close`. The caller then flushes the directory."""
        with self._abort_on_error():
            os.replace(self._temporary, self._final)

    @contextlib.contextmanager
    def _abort_on_error(self) -> Iterator[None]:
        """Abort the file if a block fails."""
        with translate_os_errors(self._path, missing_is_error=True), undo_on_failure(self.abort):
            yield

    def abort(self) -> None:
        """Delete the hidden file."""
        if not self._file.closed:
            with contextlib.suppress(OSError):  # bytes that cannot be flushed are discarded anyway
                self._file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)

    @property
    def closed(self) -> bool:
        """Whether `close` or `abort` was called."""
        return self._file.closed


@contextlib.contextmanager
def translate_os_errors(path: str, *, missing_is_error: bool = False) -> Iterator[None]:
    """Translate OSError to NotFound or StorageError; with `missing_is_error`, to StorageError only."""
    try:
        yield
    except PaimonError:
        raise
    except ValueError as error:  # a NUL, or text that the file system cannot encode
        raise StorageError(path, str(error), hint="give a path that the file system accepts") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not missing_is_error:
            raise NotFound("file", path) from error
        raise StorageError(path, error.strerror or str(error)) from error


def open_temporary(final: str) -> tuple[str, BinaryIO]:
    """Create a hidden file in the directory of `final`, and return its path and the open file."""
    directory, name = os.path.split(final)
    temporary = os.path.join(directory, f".{name}.{uuid.uuid4()}.tmp")
    try:
        return temporary, open(temporary, "xb")
    except FileNotFoundError:
        make_directory_durably(directory)
        return temporary, open(temporary, "xb")


def make_directory_durably(directory: str) -> None:
    """Create a directory and its missing parents, and flush the entry of each new one."""
    missing = []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for name in reversed(missing):
        try:
            os.mkdir(name)
        except FileExistsError:
            if not os.path.isdir(name):
                raise
        sync_directory(os.path.dirname(name))


def sync_directory(directory: str) -> None:
    """Flush a directory's entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Open regular local files for reading, and refuse a FIFO, a device, a socket or a directory, which can block.
#
# Invariant: the kind is read from the open descriptor, and the reader uses that descriptor. Another process that
# replaces the file between the check and the read changes nothing.


_HINT = "remove it, and restore the file from a backup"
_CANNOT_BE_OPENED = {errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}
"""The errors of opening a socket, or a device without a driver."""
_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def open_regular(name: str, path: str) -> BinaryIO:
    """Open a regular file for reading; another kind is CorruptTable for `path`. OSError is not translated."""
    try:
        # O_NONBLOCK: without it, the open of a FIFO that has no writer does not return.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno in _CANNOT_BE_OPENED:
            raise _not_regular(path, os.stat(name).st_mode) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _not_regular(path, mode)
    return open(descriptor, "rb")


def open_arrow(file: BinaryIO, *, mapped: bool) -> pa.NativeFile:
    """Open a descriptor as an Arrow file with its own position, which stays open when `file` is closed."""
    name = f"{_DESCRIPTORS}/{file.fileno()}"
    try:
        return pa.memory_map(name) if mapped else pa.OSFile(name)
    except FileNotFoundError:  # a container without /proc
        return pa.PythonFile(open(os.dup(file.fileno()), "rb"), mode="r")


def _not_regular(path: str, mode: int) -> CorruptTable:
    kind = _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")
    return CorruptTable(path, f"is {kind}, not a regular file", hint=_HINT)
