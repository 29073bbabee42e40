"""FileIO: what the library asks of a file system or an object store.

Contract (suite: `paimon.testing.contracts.files`)
--------------------------------------------------
* Paths are absolute: a local path, or a URL whose scheme the adapter knows.
* A file becomes visible whole or not at all: `create` shows it at `close`, `put_if_absent` and `replace` in one
  step.
* `put_if_absent` is the one compare-and-swap: of all callers that race for one path at most one gets CREATED, and
  an existing file is never changed. UNKNOWN means: the storage did not tell; the caller reads the path to find out.
* On local disk CREATED and the close of `create` return only after the bytes and the directory entry are durable.
  `replace` is for hints, which may be lost or wrong after a crash: it flushes nothing.
* `read`, `open` raise NotFound("file", path) for a missing file, and CorruptTable for what is not a regular file; every
  other failure is a StorageError naming the path.
* `read` is for metadata: a file of more than `max_bytes` is a CorruptTable, before more than that is in memory.
* `list` of a missing directory is empty; its order is by name; hidden temporary files may appear and start with
  ".".
* `delete` is idempotent and batched; missing files are no error. A directory is removed only when it is empty.
* A StorageError of `put_if_absent` means that nothing was created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Protocol, runtime_checkable

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import CorruptTable

WHOLE_BYTES = 256 * 1024 * 1024
"""Most bytes of a file that is read as a whole; one with a hole costs its maker nothing."""


def check_whole(path: str, size: int, max_bytes: int) -> None:
    """Check that a file has no more bytes than its kind may have.

    Parameters
    ----------
    path : str
        What the error names.
    size : int
        The bytes of the file, or at least as many as were seen.
    max_bytes : int
        The limit.

    Raises
    ------
    CorruptTable
        The file is larger.
    """
    if size > max_bytes:
        reason = f"has {size} bytes or more, and the limit of such a file is {max_bytes} bytes"
        raise CorruptTable(path, reason)


class PutOutcome(Enum):
    """What became of `put_if_absent`."""

    CREATED = "created"
    EXISTS = "exists"
    UNKNOWN = "unknown"


@frozen
class FileStatus:
    """One directory entry; `modified_millis` is epoch milliseconds, None where the storage does not tell."""

    path: str
    size: int
    is_directory: bool
    modified_millis: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]


class OutputFile(Protocol):
    """A file being written: a binary, write-only stream that Arrow and pyorc can write to.

    `close` makes it visible; `abort` (or leaving a `with` block by an exception) leaves nothing.
    """

    def write(self, data: bytes) -> int: ...
    def tell(self) -> int: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> OutputFile: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class FileIO(Protocol):
    """See the module's contract."""

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes: ...
    def open(self, path: str) -> pa.NativeFile: ...
    def create(self, path: str) -> OutputFile: ...
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome: ...
    def replace(self, path: str, data: bytes) -> None: ...
    def list(self, path: str) -> Sequence[FileStatus]: ...
    def status(self, path: str) -> FileStatus | None: ...
    def delete(self, paths: Sequence[str]) -> None: ...


@runtime_checkable
class Directories(Protocol):
    """What a FileIO may offer besides, where the storage has directories: catalogs make, move and drop them.

    `move_directory` raises AlreadyExists where the target is; `delete_directory` is idempotent.
    """

    def make_directory(self, path: str) -> None: ...
    def move_directory(self, source: str, target: str) -> None: ...
    def delete_directory(self, path: str) -> None: ...


@runtime_checkable
class ManyFiles(Protocol):
    """What a FileIO may offer besides: several small files at once, by path, which cost less than one after the other.

    Each becomes visible whole or not at all; all are as durable as after the close of `create` when the call returns.
    Where it raises, some of them may be there.
    """

    def create_all(self, files: Mapping[str, bytes]) -> None: ...
