"""A local file being written: hidden until it is whole and durable.

Law: `close` flushes the bytes to the disk, gives the name, and flushes the directory entry, in that order (where the
file need not be durable, it only gives the name); `abort` leaves nothing.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from typing import BinaryIO

from paimon.adapters.files.output import Output
from paimon.domain.errors import NotFound, PaimonError, StorageError


class LocalOutputFile(Output):
    """See `paimon.ports.files.OutputFile`; also a file object as far as Arrow and others need one.

    `path` is what errors name, `final` the place on this disk.
    """

    def __init__(self, path: str, final: str, *, durable: bool = True) -> None:
        self._path = path
        self._final = final
        self._durable = durable
        self._temporary, self._file = open_temporary(final)

    def write(self, data: bytes) -> int:
        """Append bytes (any buffer)."""
        with storage_errors(self._path, missing_is_error=True):
            return self._file.write(data)

    def tell(self) -> int:
        """Bytes written."""
        return self._file.tell()

    def flush(self) -> None:
        """Hand buffered bytes to the system; nothing becomes visible."""
        with storage_errors(self._path, missing_is_error=True):
            self._file.flush()

    def close(self) -> None:
        """Make the file visible, and durable before."""
        if not self._file.closed:
            self.harden()
            self.give_name()
            if self._durable:
                with storage_errors(self._path, missing_is_error=True):
                    sync_directory(self.directory)

    @property
    def directory(self) -> str:
        """Where the file lies."""
        return os.path.dirname(self._final)

    def harden(self) -> None:
        """Flush the bytes to the disk; the first step of `close`."""
        with self._aborted_on_failure():
            self._file.flush()
            if self._durable:
                os.fsync(self._file.fileno())
            self._file.close()

    def give_name(self) -> None:
        """Make the file visible; the second step, after which its directory is to be flushed."""
        with self._aborted_on_failure():
            os.replace(self._temporary, self._final)

    @contextlib.contextmanager
    def _aborted_on_failure(self) -> Iterator[None]:
        with storage_errors(self._path, missing_is_error=True):
            try:
                yield
            except BaseException:
                self.abort()
                raise

    def abort(self) -> None:
        """Leave nothing."""
        if not self._file.closed:
            with contextlib.suppress(OSError):  # bytes that cannot be flushed are not wanted any more
                self._file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)

    @property
    def closed(self) -> bool:
        """Whether `close` or `abort` was called."""
        return self._file.closed


@contextlib.contextmanager
def storage_errors(path: str, *, missing_is_error: bool = False) -> Iterator[None]:
    """Turn the system's errors into NotFound and StorageError; with `missing_is_error` into StorageError only."""
    try:
        yield
    except PaimonError:
        raise
    except ValueError as error:  # a NUL, or text that the file system cannot encode
        raise StorageError(path, str(error), hint="give a path that the file system can hold") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not missing_is_error:
            raise NotFound("file", path) from error
        raise StorageError(path, error.strerror or str(error)) from error


def open_temporary(final: str) -> tuple[str, BinaryIO]:
    """A fresh hidden file beside `final`, and its name; parent directories are made."""
    directory, name = os.path.split(final)
    temporary = os.path.join(directory, f".{name}.{uuid.uuid4()}.tmp")
    try:
        return temporary, open(temporary, "xb")
    except FileNotFoundError:
        make_durable(directory)
        return temporary, open(temporary, "xb")


def make_durable(directory: str) -> None:
    """Make a directory and its missing parents, and flush the entry of each new one."""
    missing = []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for name in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(name)
        sync_directory(os.path.dirname(name))


def sync_directory(directory: str) -> None:
    """Flush a directory's entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
