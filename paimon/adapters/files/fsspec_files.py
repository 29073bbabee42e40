"""FsspecFiles: a FileIO for every file system that fsspec knows, by URL, its output files and its retries.

Invariant: a file is created if absent only by an exclusive create of the storage. The first use proves it with two puts
on this storage, of which the second must fail. A storage without it is refused, unless the option `single-writer` says
that no other process writes. A put that fails has an unknown outcome.
Source: `FileIO`.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import fsspec
import pyarrow as pa

from paimon.adapters.files.output import Output
from paimon.adapters.files.put_if_absent import no_exclusive_create_error, prove_exclusive
from paimon.adapters.files.request_retry import RequestRetry
from paimon.adapters.files.store_options import SINGLE_WRITER, STORES, request_policy, slow_millis, without_retries
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, PaimonError, StorageError, Unsupported
from paimon.domain.extras import missing_extra
from paimon.domain.secrets import redact_secrets
from paimon.ports.files import WHOLE_BYTES, FileStatus, OutputFile, PutOutcome, check_whole

_LOST = (ConnectionError, TimeoutError, http.client.HTTPException)
_LOST_BY_NAME = frozenset({
    "ClientConnectionError", "ClientPayloadError",  # aiohttp
    "HTTPClientError", "ResponseStreamingError",  # botocore
    "ServiceRequestError", "ServiceResponseError",  # azure.core
    "ChunkedEncodingError", "ProtocolError",  # requests, urllib3
    "IncompleteReadError", "FSTimeoutError",
})  # fmt: skip


class RetryingFileSystem:
    """A file system of fsspec whose method calls are retried, so they must be safe to call twice.

    The result of `open` for writing is not wrapped. `unrepeated` is the file system itself, for a call whose lost reply
    the caller resolves.
    """

    def __init__(self, inner: Any, retry: RequestRetry) -> None:
        self.unrepeated = inner
        self._retry = retry

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.unrepeated, name)
        if name.startswith("_") or not callable(found):
            return found

        def call(*values: Any, **named: Any) -> Any:
            """Call the method; its first argument is a path, or a list of paths."""
            path = values[0] if values and isinstance(values[0], str) else name
            return self._retry.send(lambda: found(*values, **named), path)

        return call

    def open_input(self, path: str) -> RetryingInput:
        """Open a file for reading."""
        return RetryingInput(self.open(path, mode="rb"), self._retry, path)


class RetryingInput(io.RawIOBase):
    """A seekable input that repeats a failed read from the same position."""

    def __init__(self, inner: Any, retry: RequestRetry, path: str) -> None:
        self._inner = inner
        self._retry = retry
        self._path = path

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer only at the end."""
        start = self._inner.tell()

        def read_again() -> bytes:
            """Read from the position at which the first attempt began."""
            self._inner.seek(start)
            return bytes(self._inner.read(size))

        return self._retry.send(read_again, self._path)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, and return the position."""
        return int(self._retry.send(lambda: self._inner.seek(offset, whence), self._path))

    def tell(self) -> int:
        """Return the position."""
        return int(self._inner.tell())

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._inner.close()
        super().close()


def is_lost_reply(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, means that a reply did not arrive whole."""
    return any(
        isinstance(e, _LOST) or not _LOST_BY_NAME.isdisjoint(kind.__name__ for kind in type(e).__mro__)
        for e in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


_EXCLUSIVE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Schemes whose clients use an exclusive create of the storage. A check before the write would not be safe."""
_MEMORY_LOCK = threading.Lock()
_LOCAL = frozenset({"file", "local"})
_DELETE_THREADS = 16
_TIME_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")


class FsspecFiles:
    """Files of one file system. Paths are URLs of one scheme.

    The scheme and host of `location` select the file system. `storage` has the options of fsspec's file system, the
    limits of retries (see `store_options.retry_config`), and `single-writer`: two writers never run at the same time.
    """

    def __init__(self, location: str, storage: Mapping[str, object] | None = None) -> None:
        options = dict(storage or {})
        self._single_writer = str(options.pop(SINGLE_WRITER, "false")).lower() == "true"
        self._scheme = location.partition("://")[0]
        retry = RequestRetry(request_policy(options), is_lost_reply, slow_millis(options))
        options = without_retries(options)
        self._connect: Callable[[], Any] = lambda: RetryingFileSystem(
            fsspec.core.url_to_fs(location, **options)[0], retry
        )
        self._process = os.getpid()
        try:
            self._connected: Any = self._connect()
        except ImportError as error:
            if self._scheme in STORES:
                raise missing_extra(f"a location {self._scheme}://", "obstore") from error
            raise Unsupported(f"file system {self._scheme!r}", hint=str(error)) from error
        except (ValueError, TypeError) as error:
            hint = "check the scheme of the URL and its storage options, or install the package that offers the storage"
            raise InvalidRequest(
                f"Location {location!r} cannot be opened: {redact_secrets(str(error), options)}",
                subject=location,
                hint=hint,
            ) from None
        self._options = options
        self._in_memory = self._scheme == "memory"
        self._is_exclusive_proved = False

    @property
    def _fs(self) -> Any:
        """The file system; a forked child connects again, because the threads of the parent's do not exist there."""
        if self._process != os.getpid():
            self._connected, self._process = self._connect(), os.getpid()
        return self._connected

    def __repr__(self) -> str:
        return f"FsspecFiles({self._scheme}://)"

    def __reduce__(self) -> str:
        raise InvalidRequest(f"Client of {self._scheme}:// cannot be pickled", hint="pickle the table or the catalog")

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Read a whole file in one request."""
        with self._translate_errors(path):
            self._check_regular(path)
            data = self._read_start(path, self._key(path), max_bytes + 1)
            check_whole(path, len(data), max_bytes)
            return data

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access. Each access is a request for a range."""
        with self._translate_errors(path):
            if self._in_memory:  # all readers of an open file would share its position
                return pa.BufferReader(self._fs.cat_file(self._key(path)))
            return pa.PythonFile(self._fs.open_input(self._key(path)), mode="r")

    def create(self, path: str) -> OutputFile:
        """Begin a file that is visible after its `close`."""
        with self._translate_errors(path, missing_is_error=True):
            if self._in_memory:
                return BufferedOutputFile(lambda data: self.replace(path, data))
            self._make_parent(path)
            staged = self._fs.open(self._key(path), "wb", autocommit=False)
        return StagedOutputFile(staged, partial(self._translate_errors, path, missing_is_error=True))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file, unless it exists. The first call proves that the storage can do so."""
        self._check_exclusive(path)
        with self._translate_errors(path, missing_is_error=True):
            self._make_parent(path)
        return self._put_new(self._key(path), path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Create a file, or replace its content."""
        with self._translate_errors(path, missing_is_error=True):
            self._make_parent(path)
            with self._memory_lock():
                self._fs.pipe_file(self._key(path), data)

    def list(self, path: str) -> Sequence[FileStatus]:
        """List a directory in the order of names; empty if it does not exist."""
        key = self._key(path)
        with self._translate_errors(path):
            self._fs.invalidate_cache(key)
            try:
                entries = self._fs.ls(key, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
        found = [_status(path.rstrip("/") + "/" + _name(e["name"]), e) for e in entries if _is_below(e, key)]
        return sorted(found, key=lambda s: s.name)

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path, or None."""
        with self._translate_errors(path):
            self._fs.invalidate_cache(self._key(path))
            try:
                return _status(path, self._fs.info(self._key(path)))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files and empty directories, several at the same time. Missing ones are ignored."""
        if len(paths) <= 1 or self._in_memory:
            for path in paths:
                self._delete(path)
            return
        with ThreadPoolExecutor(_DELETE_THREADS, thread_name_prefix="paimon-delete") as pool:
            list(pool.map(self._delete, paths))

    def _key(self, path: str) -> str:
        """Return the path in the form of the file system; StorageError for a URL of another scheme."""
        scheme, separator, _ = path.partition("://")
        if not separator or scheme != self._scheme:
            raise StorageError(path, f"the path is not a URL of {self._scheme}://")
        return str(self._fs._strip_protocol(path))

    def _check_regular(self, path: str) -> None:
        """Refuse special files on a local disk, because a read of a FIFO would block."""
        if self._scheme in _LOCAL and self._fs.exists(self._key(path)) and not self._fs.isfile(self._key(path)):
            raise CorruptTable(path, "is not a regular file")

    def _read_start(self, path: str, key: str, size: int) -> bytes:
        """Read the first bytes in one request. Stores send the whole file if it is shorter."""
        try:
            with self._translate_errors(path):
                return bytes(self._fs.cat_file(key, start=0, end=size))
        except StorageError:  # clients raise their own errors for a range of an empty file
            if self._fs.info(key).get("size") != 0:
                raise
            return b""

    def _make_parent(self, path: str) -> None:
        """Create the parent directory where directories exist. A store would create a bucket."""
        if self._scheme in ("file", "local", "hdfs", "sftp", "ssh", "smb"):
            self._fs.makedirs(self._key(path).rpartition("/")[0], exist_ok=True)

    def _memory_lock(self) -> contextlib.AbstractContextManager[object]:
        return _MEMORY_LOCK if self._in_memory else contextlib.nullcontext()

    def _check_exclusive(self, path: str) -> None:
        """Prove once that the storage has an exclusive create, or raise StorageError."""
        if self._is_exclusive_proved or self._in_memory or self._single_writer:
            return
        if self._scheme not in _EXCLUSIVE:
            raise no_exclusive_create_error(path, self._scheme)
        prove_exclusive(path, lambda trial, data: self._put_new(self._key(trial), trial, data), self.read, self.delete)
        self._is_exclusive_proved = True

    def _put_new(self, key: str, path: str, data: bytes) -> PutOutcome:
        try:
            with self._translate_errors(path, missing_is_error=True):
                try:
                    return self._create(key, data)
                except FileExistsError:
                    return PutOutcome.EXISTS
                except (PermissionError, NotImplementedError, TypeError) as error:
                    refusal = self._storage_error(path, error)
        except PaimonError:  # after any other error of the client the bytes may have arrived
            return PutOutcome.UNKNOWN
        raise refusal

    def _create(self, key: str, data: bytes) -> PutOutcome:
        with self._memory_lock():
            if self._single_writer:
                self._fs.invalidate_cache()  # other processes may have written under the lock
            if (self._in_memory or self._single_writer) and self._fs.exists(key):
                return PutOutcome.EXISTS
            if self._in_memory or (self._single_writer and self._scheme not in _EXCLUSIVE):
                self._fs.unrepeated.pipe_file(key, data)
            else:
                self._fs.unrepeated.pipe_file(key, data, mode="create")
        return PutOutcome.CREATED

    def _delete(self, path: str) -> None:
        key = self._key(path)
        with self._translate_errors(path):
            try:
                self._fs.rm_file(key)
            except (FileNotFoundError, IsADirectoryError, PermissionError, KeyError):
                if self._fs.isdir(key) and not self._fs.ls(key, detail=False):
                    self._fs.rmdir(key)
                elif self._fs.isfile(key):
                    raise

    @contextlib.contextmanager
    def _translate_errors(self, path: str, *, missing_is_error: bool = False) -> Iterator[None]:
        """Translate errors of a client to NotFound or StorageError, without secrets and causes."""
        try:
            yield
        except PaimonError:
            raise
        except Exception as error:  # the border to third-party clients
            if isinstance(error, FileNotFoundError) and not missing_is_error:
                raise NotFound("file", path) from None
            raise self._storage_error(path, error) from None

    def _storage_error(self, path: str, error: Exception) -> StorageError:
        return StorageError(path, redact_secrets(str(error) or type(error).__name__, self._options))


def _name(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _is_below(entry: Mapping[str, Any], key: str) -> bool:
    """Return whether an entry lies below a key. Stores also list the marker of the directory itself."""
    return str(entry["name"]).strip("/") != key.strip("/")


def _status(path: str, entry: Mapping[str, Any]) -> FileStatus:
    is_directory = entry.get("type") == "directory"
    return FileStatus(path, 0 if is_directory else int(entry.get("size") or 0), is_directory, _modified_millis(entry))


def _modified_millis(entry: Mapping[str, Any]) -> int | None:
    modified = next((entry[k] for k in _TIME_KEYS if entry.get(k) is not None), None)
    if isinstance(modified, str):
        with contextlib.suppress(ValueError):
            modified = datetime.fromisoformat(modified.replace("Z", "+00:00"))
    if isinstance(modified, datetime):
        return int((modified if modified.tzinfo else modified.replace(tzinfo=UTC)).timestamp() * 1000)
    if modified is None:
        return entry.get("modificationTime")  # WebHDFS, in milliseconds
    return int(modified * 1000) if isinstance(modified, int | float) else None


# Output files that are written through fsspec.
#
# Invariant: nothing is visible before `close`, a closed file is whole, and `abort` leaves no file.


class BufferedOutputFile(Output):
    """An output file in memory. `put` creates the file with all its bytes at `close`."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._buffer = io.BytesIO()
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes, and return their number."""
        return self._buffer.write(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._buffer.tell()

    def close(self) -> None:
        """Put the file. Further calls do nothing."""
        if not self.closed:
            self.closed = True
            self._put(self._buffer.getvalue())

    def abort(self) -> None:
        """Discard the bytes."""
        self.closed = True


class StagedOutputFile(Output):
    """An upload of fsspec, committed at `close`; `guard` translates errors of the client."""

    def __init__(self, file: Any, guard: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._file = file
        self._guard = guard
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes, and return their number."""
        with self._guard():
            self._file.write(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._size

    def close(self) -> None:
        """Finish the upload. Further calls do nothing."""
        if self.closed:
            return
        self.closed = True
        with self._guard():
            self._file.close()
            self._file.commit()

    def abort(self) -> None:
        """Discard the upload."""
        self.closed = True
        with contextlib.suppress(PaimonError), self._guard():  # an upload that cannot be discarded was never visible
            self._file.close()
            self._file.discard()
