"""LocalOutputFile: a local file that is hidden until it is whole and durable.

Invariant: `close` flushes the bytes to disk, renames the file, and flushes the directory entry, in this order. A file
that need not be durable is only renamed. `abort` leaves no file.
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
    """See `paimon.ports.files.OutputFile`. It is also a file object for Arrow and others.

    Errors name `path`; `final` is the local path of the closed file. If `durable`, `close` flushes to disk.
    """

    def __init__(self, path: str, final: str, *, durable: bool = True) -> None:
        self._path = path
        self._final = final
        self._durable = durable
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
        with translate_os_errors(self._path, missing_is_error=True):
            try:
                yield
            except BaseException:
                self.abort()
                raise

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
    """Translate errors of the operating system in a block to NotFound or StorageError.

    With `missing_is_error`, a missing file is a StorageError, because the caller creates the file.
    """
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
        make_durable(directory)
        return temporary, open(temporary, "xb")


def make_durable(directory: str) -> None:
    """Create a directory and its missing parents, and flush the entry of each new one."""
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
