"""LocalFiles: the local disk as a FileIO.

Law: a file is written under a hidden temporary name in its own directory, flushed to the disk, and only then given
its name; a directory entry is flushed too before the call returns. Only `replace`, for hints, flushes nothing.
`put_if_absent` gives the name with a hard link, which the kernel refuses where the name is taken: a check followed by a
rename would replace silently. Symbolic links lead nowhere beyond the fence. Source: `LocalFileIO`, `AtomicFsOutput`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from paimon.adapters.files.fence import Fence
from paimon.adapters.files.local_output import (
    LocalOutputFile,
    make_durable,
    open_temporary,
    storage_errors,
    sync_directory,
)
from paimon.adapters.files.regular import open_arrow, open_regular
from paimon.domain.errors import AlreadyExists, StorageError
from paimon.ports.files import WHOLE_BYTES, FileStatus, OutputFile, PutOutcome, check_whole

_FLUSHED_AT_ONCE = 8
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
_NO_FENCE = Fence()


class LocalFiles:
    """Absolute local paths, or ``file:`` URLs.

    Parameters
    ----------
    mapped_bytes : int
        Files up to this size are memory-mapped; of larger ones what was read would count as memory of the process.
    fence : Fence
        The roots that links may not leave.
    """

    def __init__(self, mapped_bytes: int = 16 * 1024 * 1024, fence: Fence = _NO_FENCE) -> None:
        self._mapped_bytes = mapped_bytes
        self._fence = fence

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """The whole file: as many bytes as it has when it is opened."""
        with storage_errors(path), open_regular(self._inside(path), path) as file:
            size = os.fstat(file.fileno()).st_size
            check_whole(path, size, max_bytes)
            return file.read(size)

    def open(self, path: str) -> pa.NativeFile:
        """The file, mapped if it is small: reading copies nothing, and a map stays valid, because no file changes."""
        with storage_errors(path), open_regular(self._inside(path), path) as file:
            size = os.fstat(file.fileno()).st_size
            return open_arrow(file, mapped=size <= self._mapped_bytes) if size else pa.BufferReader(b"")

    def create(self, path: str) -> OutputFile:
        """A new file, visible at its `close`."""
        with storage_errors(path, missing_is_error=True):
            return LocalOutputFile(path, self._place(path))

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """New files: flushed side by side, which a disk does in little more than the time of one, then named.

        Each directory is flushed once, at the end.
        """
        outputs: list[LocalOutputFile] = []
        try:
            for path, data in files.items():
                with storage_errors(path, missing_is_error=True):
                    outputs.append(LocalOutputFile(path, self._place(path)))
                outputs[-1].write(data)
            _harden(outputs)
            for output in outputs:
                output.give_name()
        except BaseException:
            for output in outputs:
                output.abort()
            raise
        for directory, path in {output.directory: path for output, path in zip(outputs, files, strict=True)}.items():
            with storage_errors(path, missing_is_error=True):
                sync_directory(directory)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file with this content unless it is there; a StorageError means that nothing was created."""
        with storage_errors(path, missing_is_error=True):
            final = self._place(path)
            if os.path.lexists(final):
                return PutOutcome.EXISTS
            temporary = _written_temporary(final, data)
            try:
                return _link(temporary, final, path)
            finally:
                _unlink(temporary)

    def replace(self, path: str, data: bytes) -> None:
        """Create the file or replace its content, in one step; a crash may lose it."""
        with (
            storage_errors(path, missing_is_error=True),
            LocalOutputFile(path, self._place(path), durable=False) as file,
        ):
            file.write(data)

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory by name; none where it is missing."""
        with storage_errors(path):
            try:
                with os.scandir(self._inside(path)) as entries:
                    found = [s for e in entries if (s := self._entry_status(e, path)) is not None]
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(found, key=lambda s: s.name)

    def status(self, path: str) -> FileStatus | None:
        """What is at the path, None where nothing is."""
        with storage_errors(path):
            try:
                stat = os.stat(self._inside(path))
            except (FileNotFoundError, NotADirectoryError):
                return None
        return _status(path, stat, os.path.isdir(local_path(path)))

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files, and directories that are empty; what is missing is no error."""
        for path in paths:
            with storage_errors(path):
                name = self._place(path)
                if os.path.isdir(name) and not os.path.islink(name):
                    _remove_if_empty(name)
                else:
                    _unlink(name)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        with storage_errors(path, missing_is_error=True):
            make_durable(self._inside(path))

    def move_directory(self, source: str, target: str) -> None:
        """Rename a directory in one step; AlreadyExists where the target is."""
        old, new = self._place(source), self._place(target)
        if os.path.lexists(new):
            raise AlreadyExists("directory", target)
        with storage_errors(source):
            make_durable(os.path.dirname(new))
            os.rename(old, new)
            sync_directory(os.path.dirname(new))

    def delete_directory(self, path: str) -> None:
        """Remove a directory with all that it holds; links are removed, not followed."""
        with storage_errors(path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._place(path))

    def _inside(self, path: str) -> str:
        return self._fence.inside(local_path(path), path)

    def _place(self, path: str) -> str:
        return self._fence.place(local_path(path), path)

    def _entry_status(self, entry: os.DirEntry[str], directory: str) -> FileStatus | None:
        path = f"{directory.rstrip('/')}/{entry.name}"
        try:
            if entry.is_symlink() and self._fence.leaves(local_path(path)):  # a name, with nothing behind it
                return _status(path, entry.stat(follow_symlinks=False), False)
            return _status(path, entry.stat(), entry.is_dir())
        except FileNotFoundError:  # deleted meanwhile
            return None


def _harden(outputs: Sequence[LocalOutputFile]) -> None:
    if len(outputs) <= 1:
        for output in outputs:
            output.harden()
        return
    with ThreadPoolExecutor(min(len(outputs), _FLUSHED_AT_ONCE), thread_name_prefix="paimon-flush") as pool:
        for done in [pool.submit(output.harden) for output in outputs]:
            done.result()


def local_path(path: str) -> str:
    """The path without the scheme ``file:``."""
    return "/" + path[5:].lstrip("/") if path.startswith("file:") else path


def _written_temporary(final: str, data: bytes) -> str:
    temporary, file = open_temporary(final)
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        _unlink(temporary)
        raise
    return temporary


def _link(temporary: str, final: str, path: str) -> PutOutcome:
    try:
        os.link(temporary, final)
    except FileExistsError:
        return PutOutcome.EXISTS
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise StorageError(
                path, "this file system has no hard links, so creating a file if absent is not safe here",
                hint="keep the table on a file system with hard links",
            ) from error
        raise
    try:
        sync_directory(os.path.dirname(final))
    except OSError:  # the name is given, but nobody can say whether it would survive a crash
        return PutOutcome.UNKNOWN
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
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _status(path: str, stat: os.stat_result, is_directory: bool) -> FileStatus:
    return FileStatus(path, 0 if is_directory else stat.st_size, is_directory, stat.st_mtime_ns // 1_000_000)
