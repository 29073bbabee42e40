"""FsspecFiles: any file system that fsspec knows, by URL, as a FileIO.

Law: a file is created if absent only by a primitive that the storage itself decides: an exclusive create, believed
after a trial on this very storage (put twice, the second must lose). A storage without one is refused, unless the
option `single-writer` says that nobody else writes. An error of a put is an unknown outcome. Source: `FileIO`,
`ObjectStore` commit rules.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any

import fsspec
import pyarrow as pa

from paimon.adapters.files.exclusive import prove_exclusive, refusal
from paimon.adapters.files.fsspec_output import BufferedOutputFile, StagedOutputFile
from paimon.adapters.files.fsspec_retry import RetryingFileSystem, is_lost_reply
from paimon.adapters.files.request_retry import RequestRetry
from paimon.adapters.files.store_options import STORES, request_policy, without_retries
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, PaimonError, StorageError, Unsupported
from paimon.domain.extras import missing_extra
from paimon.domain.secrets import redacted
from paimon.ports.files import WHOLE_BYTES, FileStatus, OutputFile, PutOutcome, check_whole

SINGLE_WRITER = "single-writer"
_EXCLUSIVE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Schemes whose clients hand an exclusive create on to the storage (an `exists` before a write would not do)."""
_MEMORY_LOCK = threading.Lock()
_LOCAL = frozenset({"file", "local"})
_DELETE_THREADS = 16
_TIME_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")


class FsspecFiles:
    """Paths are URLs of one scheme.

    Parameters
    ----------
    location : str
        A URL; its scheme and host choose the file system.
    storage : mapping
        What fsspec's file system takes, `single-writer` (true where no two writers ever meet), and the limits of
        retries (see `store_options.retries`).
    """

    def __init__(self, location: str, storage: Mapping[str, object] | None = None) -> None:
        options = dict(storage or {})
        self._single_writer = str(options.pop(SINGLE_WRITER, "false")).lower() == "true"
        self._scheme = location.partition("://")[0]
        retry = RequestRetry(request_policy(options), is_lost_reply)
        options = without_retries(options)
        try:
            self._fs: Any = RetryingFileSystem(fsspec.core.url_to_fs(location, **options)[0], retry)
        except ImportError as error:
            if self._scheme in STORES:
                raise missing_extra(f"a location {self._scheme}://", "obstore") from error
            raise Unsupported(f"file system {self._scheme!r}", hint=str(error)) from error
        except (ValueError, TypeError) as error:
            reason = redacted(str(error), options)
            hint = "check the scheme of the URL and the storage options that its file system takes"
            raise InvalidRequest(f"{location!r} cannot be opened: {reason}", subject=location, hint=hint) from None
        self._told = options
        self._in_memory = self._scheme == "memory"
        self._trusted = False

    def __repr__(self) -> str:
        return f"FsspecFiles({self._scheme}://)"

    def __reduce__(self) -> str:
        raise InvalidRequest(f"the client of {self._scheme}:// does not travel", hint="send the table or the catalog")

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """The whole file."""
        with self._errors(path):
            self._check_regular(path)
            data = self._start_of(self._key(path), max_bytes + 1)
            check_whole(path, len(data), max_bytes)
            return data

    def open(self, path: str) -> pa.NativeFile:
        """The file as a seekable Arrow file; ranges go to the storage as they are asked for."""
        with self._errors(path):
            if self._in_memory:  # its open file would be shared by all readers, position included
                return pa.BufferReader(self._fs.cat_file(self._key(path)))
            return pa.PythonFile(self._fs.open_input(self._key(path)), mode="r")

    def create(self, path: str) -> OutputFile:
        """A new file, visible at its `close`."""
        with self._errors(path, missing_is_error=True):
            if self._in_memory:
                return BufferedOutputFile(lambda data: self.replace(path, data))
            self._make_parent(path)
            staged = self._fs.open(self._key(path), "wb", autocommit=False)
        return StagedOutputFile(staged, partial(self._errors, path, missing_is_error=True))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file with this content unless it is there."""
        self._check_exclusive(path)
        with self._errors(path, missing_is_error=True):
            self._make_parent(path)
        return self._put_new(self._key(path), path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Create the file or replace its content."""
        with self._errors(path, missing_is_error=True):
            self._make_parent(path)
            with self._memory_lock():
                self._fs.pipe_file(self._key(path), data)

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory by name; none where it is missing."""
        key = self._key(path)
        with self._errors(path):
            self._fs.invalidate_cache(key)
            try:
                entries = self._fs.ls(key, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
        found = [_status(path.rstrip("/") + "/" + _name(e["name"]), e) for e in entries if _is_below(e, key)]
        return sorted(found, key=lambda s: s.name)

    def status(self, path: str) -> FileStatus | None:
        """What is at the path, None where nothing is."""
        with self._errors(path):
            self._fs.invalidate_cache(self._key(path))
            try:
                return _status(path, self._fs.info(self._key(path)))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files, and directories that are empty; what is missing is no error."""
        if len(paths) <= 1 or self._in_memory:
            for path in paths:
                self._delete(path)
            return
        with ThreadPoolExecutor(_DELETE_THREADS, thread_name_prefix="paimon-delete") as pool:
            list(pool.map(self._delete, paths))

    def _key(self, path: str) -> str:
        scheme, separator, _ = path.partition("://")
        if not separator or scheme != self._scheme:
            raise StorageError(path, f"is not a URL of {self._scheme}://")
        return str(self._fs._strip_protocol(path))

    def _check_regular(self, path: str) -> None:
        """Check on a local disk that reading cannot wait for ever, as it does for a FIFO."""
        if self._scheme in _LOCAL and self._fs.exists(self._key(path)) and not self._fs.isfile(self._key(path)):
            raise CorruptTable(path, "is not a regular file")

    def _start_of(self, key: str, size: int) -> bytes:
        """The first bytes, in one request: a range, of which stores that are asked for it send what there is."""
        try:
            return bytes(self._fs.cat_file(key, start=0, end=size))
        except FileNotFoundError:
            raise
        except Exception:  # clients have errors of their own for a range of an empty file
            if self._fs.info(key).get("size") != 0:
                raise
            return b""

    def _make_parent(self, path: str) -> None:
        """Only where directories are real; a store would take this for the wish to make a bucket."""
        if self._scheme in ("file", "local", "hdfs", "sftp", "ssh", "smb"):
            self._fs.makedirs(self._key(path).rpartition("/")[0], exist_ok=True)

    def _memory_lock(self) -> contextlib.AbstractContextManager[object]:
        return _MEMORY_LOCK if self._in_memory else contextlib.nullcontext()

    def _check_exclusive(self, path: str) -> None:
        if self._trusted or self._in_memory or self._single_writer:
            return
        if self._scheme not in _EXCLUSIVE:
            raise refusal(path, self._scheme)
        prove_exclusive(path, lambda trial, data: self._put_new(self._key(trial), trial, data), self.read, self.delete)
        self._trusted = True

    def _put_new(self, key: str, path: str, data: bytes) -> PutOutcome:
        try:
            with self._memory_lock():
                if self._single_writer:
                    self._fs.invalidate_cache()  # under a lock others write too
                if (self._in_memory or self._single_writer) and self._fs.exists(key):
                    return PutOutcome.EXISTS
                if self._in_memory or (self._single_writer and self._scheme not in _EXCLUSIVE):
                    self._fs.unrepeated.pipe_file(key, data)
                else:
                    self._fs.unrepeated.pipe_file(key, data, mode="create")
        except FileExistsError:
            return PutOutcome.EXISTS
        except (PermissionError, NotImplementedError, TypeError) as error:
            raise self._storage_error(path, error) from None
        except Exception:  # clients have errors of their own; whatever it was, the bytes may have arrived
            return PutOutcome.UNKNOWN
        return PutOutcome.CREATED

    def _delete(self, path: str) -> None:
        key = self._key(path)
        with self._errors(path):
            try:
                self._fs.rm_file(key)
            except (FileNotFoundError, IsADirectoryError, PermissionError, KeyError):
                if self._fs.isdir(key) and not self._fs.ls(key, detail=False):
                    self._fs.rmdir(key)
                elif self._fs.isfile(key):
                    raise

    @contextlib.contextmanager
    def _errors(self, path: str, *, missing_is_error: bool = False) -> Iterator[None]:
        """Turn every error of a client into NotFound or StorageError, without secrets and without its inner story."""
        try:
            yield
        except PaimonError:
            raise
        except Exception as error:  # the border to clients of many makes
            if isinstance(error, FileNotFoundError) and not missing_is_error:
                raise NotFound("file", path) from None
            raise self._storage_error(path, error) from None

    def _storage_error(self, path: str, error: Exception) -> StorageError:
        return StorageError(path, redacted(str(error) or type(error).__name__, self._told))


def _name(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _is_below(entry: Mapping[str, Any], key: str) -> bool:
    """Stores list a directory's own marker, and a file as its own listing."""
    return str(entry["name"]).strip("/") != key.strip("/")


def _status(path: str, entry: Mapping[str, Any]) -> FileStatus:
    is_directory = entry.get("type") == "directory"
    return FileStatus(path, 0 if is_directory else int(entry.get("size") or 0), is_directory, _modified_millis(entry))


def _modified_millis(entry: Mapping[str, Any]) -> int | None:
    told = next((entry[k] for k in _TIME_KEYS if entry.get(k) is not None), None)
    if isinstance(told, str):
        with contextlib.suppress(ValueError):
            told = datetime.fromisoformat(told.replace("Z", "+00:00"))
    if isinstance(told, datetime):
        return int(told.timestamp() * 1000)
    return int(told * 1000) if isinstance(told, int | float) else None
