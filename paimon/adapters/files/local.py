"""LocalFiles: a FileIO for the local disk.

Invariant: a file is written under a hidden temporary name in its directory, flushed to disk, and then renamed; the
directory entry is flushed before the call returns. Only `replace`, for hints, flushes nothing. `put_if_absent` creates
the name with a hard link, which fails if the name exists; a check before a rename could replace a file. Symbolic links
do not lead out of the allowed roots. Source: `LocalFileIO`, `AtomicFsOutput`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from paimon.adapters.files.allowed_roots import AllowedRoots
from paimon.adapters.files.local_output import (
    LocalOutputFile,
    make_durable,
    open_temporary,
    sync_directory,
    translate_os_errors,
)
from paimon.adapters.files.regular_files import open_arrow, open_regular
from paimon.domain.errors import AlreadyExists, StorageError
from paimon.ports.files import WHOLE_BYTES, FileStatus, OutputFile, PutOutcome, check_whole

_FLUSH_THREADS = 8
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
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

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """Create several files. After an error, files that were not renamed by then are removed.

        They are flushed concurrently, which takes little longer than one flush. Then they are renamed, and each
        directory is flushed once.
        """
        outputs: list[LocalOutputFile] = []
        try:
            for path, data in files.items():
                with translate_os_errors(path, missing_is_error=True):
                    outputs.append(LocalOutputFile(path, self._check_parent(path)))
                outputs[-1].write(data)
            _flush_to_disk(outputs)
            for output in outputs:
                output.publish()
        except BaseException:
            for output in outputs:
                output.abort()
            raise
        for directory, path in {output.directory: path for output, path in zip(outputs, files, strict=True)}.items():
            with translate_os_errors(path, missing_is_error=True):
                sync_directory(directory)

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
                    found = [s for e in entries if (s := self._entry_status(e, path)) is not None]
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(found, key=lambda s: s.name)

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path, or None."""
        with translate_os_errors(path):
            try:
                stat = os.stat(self._check_target(path))
            except (FileNotFoundError, NotADirectoryError):
                return None
        return _status(path, stat, os.path.isdir(local_path(path)))

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
            make_durable(self._check_target(path))

    def move_directory(self, source: str, target: str) -> None:
        """Rename a directory in one step. Anything at the target is AlreadyExists."""
        old, new = self._check_parent(source), self._check_parent(target)
        if os.path.lexists(new):
            raise AlreadyExists("directory", target)
        with translate_os_errors(source):
            make_durable(os.path.dirname(new))
            os.rename(old, new)
            sync_directory(os.path.dirname(new))

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all its content. Links are deleted, not followed."""
        with translate_os_errors(path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._check_parent(path))

    def _check_target(self, path: str) -> str:
        return self._allowed_roots.check_target(local_path(path), path)

    def _check_parent(self, path: str) -> str:
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


def _flush_to_disk(outputs: Sequence[LocalOutputFile]) -> None:
    if len(outputs) <= 1:
        for output in outputs:
            output.flush_to_disk()
        return
    with ThreadPoolExecutor(min(len(outputs), _FLUSH_THREADS), thread_name_prefix="paimon-flush") as pool:
        for done in [pool.submit(output.flush_to_disk) for output in outputs]:
            done.result()


def local_path(path: str) -> str:
    """Return a path without the scheme ``file:``."""
    return "/" + path[5:].lstrip("/") if path.startswith("file:") else path


def _write_temporary(final: str, data: bytes) -> str:
    """Write and flush a hidden file, and return its path."""
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
                path,
                "the file system has no hard links, so a file cannot be created safely if it is absent",
                hint="move the table to a file system with hard links",
            ) from error
        raise
    try:
        sync_directory(os.path.dirname(final))
    except OSError:  # the file is visible, but may not survive a crash
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
