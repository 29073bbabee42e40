"""StoreFiles: a FileIO for S3-compatible stores, Google Cloud Storage and Azure, through obstore.

`StoreOutput` and `StoreInput` are its files during writing and reading. `StoreRequests` sends the requests to obstore
with one retry policy, and translates its errors. The client retries failed connections, status 5xx and cut bodies of
found objects, but not cut bodies of listings, batched deletes, "not found", "precondition failed" and new multipart
uploads. `StoreRequests` retries them within the same limits.

Invariant: a file is created if absent by the conditional put of the store. The first use proves it with two puts on
this store, of which the second must fail. A put that returns "exists" may be this one, if an earlier reply was lost;
the caller compares identities. Secrets stay in the client and in `StoreRequests`, which removes them from errors.
Source: obstore 0.12 (object_store), measured by `tests/adapters/files/test_store_files.py`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import obstore
import pyarrow as pa
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import from_url

from paimon.adapters.files.output import Output
from paimon.adapters.files.put_if_absent import prove_exclusive
from paimon.adapters.files.request_retry import RequestRetry
from paimon.adapters.files.store_options import client_config, request_policy, retry_config, slow_millis
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.errors import InvalidRequest, NotFound, PaimonError, StorageError, Unsupported
from paimon.domain.secrets import redact_secrets
from paimon.ports.files import WHOLE_BYTES, FileStatus, OutputFile, PutOutcome, RangeInput, check_whole

T = TypeVar("T")

REFUSALS = (PermissionDeniedError, UnauthenticatedError, NotSupportedError, PermissionError, NotImplementedError)
"""Errors of a store that refuses the request."""
_CREDENTIALS = "pass credentials in the environment, by the role of the machine, or as storage options"
_processes: dict[str, int] = {}
"""The process that sent the first request."""
_CUT_REPLY = re.compile(r"HTTP error|invalid \w+ response", re.IGNORECASE)
"""The text of a client error without a whole reply. Errors with a status of the store have another text."""
_RETRIES = re.compile(r"after (\d+) retries, max_retries: (\d+)")


class StoreRequests:
    """Sends requests to one store; the values of `secrets`, the storage options, are removed from errors."""

    def __init__(self, store: Any, policy: RetryPolicy, slow_millis: int, secrets: Mapping[str, object]) -> None:
        self._store = store
        self._retry = RequestRetry(policy, is_retryable, slow_millis)
        self._secrets = secrets

    def send(self, path: str, request: Callable[[Any], T], *, missing_is_error: bool = False) -> T:
        """Send a request until its reply is whole, and translate its errors (missing: NotFound or StorageError)."""
        with self.translate_errors(path, missing_is_error=missing_is_error):
            return self.try_send(path, request)

    def try_send(self, path: str, request: Callable[[Any], T]) -> T:
        """Send a request that is safe to repeat until its reply is whole; errors are not translated."""
        _check_process()
        return self._retry.send(lambda: request(self._store), path)

    @contextlib.contextmanager
    def translate_errors(self, path: str, *, missing_is_error: bool = False) -> Iterator[None]:
        """Translate errors of the client, without secrets; with `missing_is_error`, NotFound becomes StorageError."""
        try:
            yield
        except PaimonError:
            raise
        except FileNotFoundError as error:
            if missing_is_error:
                raise self.storage_error(path, error) from None
            raise NotFound("file", path) from None
        except (BaseError, OSError, ValueError) as error:
            raise self.storage_error(path, error) from None

    def storage_error(self, path: str, error: Exception) -> StorageError:
        """Return an error of the client as a StorageError."""
        hint = _CREDENTIALS if isinstance(error, REFUSALS) else None
        return StorageError(path, redact_secrets(first_line(error), self._secrets), hint=hint)


def _check_process() -> None:
    """Refuse requests in a forked child: obstore has one runtime for the process, whose threads do not exist there."""
    first = _processes.setdefault("first", os.getpid())
    if first != os.getpid():
        raise Unsupported(
            "requests to an object store in a forked process, after its parent sent some",
            hint="start processes with 'spawn': multiprocessing.set_start_method('spawn')",
        )


def is_cut_reply(error: Exception) -> bool:
    """Return whether no whole reply arrived, so that the error says nothing about the object."""
    return isinstance(error, GenericError) and _CUT_REPLY.search(first_line(error)) is not None


def is_retryable(error: Exception) -> bool:
    """Return whether no whole reply arrived, and the client has retries left."""
    if not is_cut_reply(error):
        return False
    spent = _RETRIES.search(first_line(error))
    return spent is None or int(spent[1]) < int(spent[2])


def first_line(error: Exception) -> str:
    """Return the first line of the text of an error, or its class."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


_DELETE_BATCH = 1000
_PUT_THREADS = 8


class StoreFiles:
    """Files of one bucket or container. Paths are URLs.

    The scheme and host of `location` select the bucket; `storage` has the options of `store_options`. `single_writer`
    means that no other process writes, so that a store without a conditional put is safe.
    """

    def __init__(self, location: str, storage: Mapping[str, object], single_writer: bool = False) -> None:
        scheme, _, rest = location.partition("://")
        self._root = f"{scheme}://{rest.partition('/')[0]}"
        config: Any = client_config(scheme, storage)
        plain = any(str(v).startswith("http://") for k, v in config.items() if k in ("endpoint", "base_url"))
        retries: Any = retry_config(storage)
        try:
            client: Any = {"allow_http": plain}
            store: Any = from_url(self._root, client_options=client, retry_config=retries, **config)
        except (BaseError, ValueError, TypeError) as error:
            reason = redact_secrets(first_line(error), storage)
            raise InvalidRequest(f"Location {self._root!r} cannot be opened: {reason}", subject=self._root) from None
        self._requests = StoreRequests(store, request_policy(storage), slow_millis(storage), dict(storage))
        self._single_writer = single_writer
        self._is_exclusive_proved = False

    def __repr__(self) -> str:
        return f"StoreFiles({self._root!r})"

    def __reduce__(self) -> str:
        raise InvalidRequest(f"Client of {self._root} cannot be pickled", hint="pickle the table or the catalog")

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Read a whole file in one request."""
        key = self._key(path)

        def get(store: Any) -> bytes:
            """Check the size before the body arrives, then read the body."""
            reply = obstore.get(store, key)
            check_whole(path, int(reply.meta["size"]), max_bytes)
            return bytes(reply.bytes())

        return self._requests.send(path, get)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access. Each access is a request for a range."""
        key = self._key(path)
        size, tail = self._read_end(path)

        def fetch(start: int, length: int) -> bytes:
            """Read a range of the object."""
            return self._requests.send(
                path, lambda store: bytes(obstore.get_range(store, key, start=start, length=length))
            )

        return pa.PythonFile(StoreInput(fetch, size, tail), mode="r")

    def create(self, path: str) -> OutputFile:
        """Begin a file that is visible after its `close`."""
        key = self._key(path)
        errors = partial(self._requests.translate_errors, path, missing_is_error=True)

        def start(data: bytes) -> Any:
            """Begin an upload in parts."""

            def begin(store: Any) -> Any:
                """Send the first part, whose size is above the buffer of the client."""
                writer = obstore.open_writer(store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
                writer.write(data)
                return writer

            return self._requests.try_send(path, begin)

        return StoreOutput(partial(self.replace, path), start, errors, partial(self._has_arrived, key))

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """Create several files at the same time."""
        if len(files) <= 1:
            for path, data in files.items():
                self.replace(path, data)
            return
        with ThreadPoolExecutor(min(len(files), _PUT_THREADS), thread_name_prefix="paimon-put") as pool:
            list(pool.map(self.replace, files.keys(), files.values()))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file, unless it exists. The first call proves that the store can do so."""
        if self._single_writer:
            return self._put_single_writer(path, data)
        if not self._is_exclusive_proved:
            prove_exclusive(path, self._put_new, self.read, self.delete)
            self._is_exclusive_proved = True
        return self._put_new(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Create a file, or replace its content."""
        self._requests.send(path, partial(self._put, path, data), missing_is_error=True)

    def list(self, path: str) -> Sequence[FileStatus]:
        """List a directory in the order of names; empty if no object lies below it."""
        key = self._key(path)
        found: Any = self._requests.send(path, lambda store: obstore.list_with_delimiter(store, key))
        directories = [FileStatus(self._url(p), 0, True) for p in found["common_prefixes"]]
        files = [self._status(meta) for meta in found["objects"] if meta["path"].strip("/") != key]
        return sorted((*directories, *files), key=lambda s: s.name)

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path, or None. A directory is a path with an object below it."""
        key = self._key(path)
        with self._requests.translate_errors(path):
            try:
                return self._status(self._head(key))
            except FileNotFoundError:
                below = self._requests.try_send(
                    path, lambda s: next(iter(obstore.list(s, key + "/", chunk_size=1)), [])
                )
                return FileStatus(path, 0, True) if below else None

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files. Missing ones are ignored. A directory disappears with its last file."""
        keys = [self._key(path) for path in paths]
        for start in range(0, len(keys), _DELETE_BATCH):
            with self._requests.translate_errors(paths[start]):
                self._delete(keys[start : start + _DELETE_BATCH])

    def _key(self, path: str) -> str:
        """Return the key of an object; StorageError for a URL of another bucket."""
        if not path.startswith(self._root + "/") and path != self._root:
            raise StorageError(path, f"the path does not lie in {self._root}")
        return path.removeprefix(self._root).strip("/")

    def _url(self, key: str) -> str:
        return f"{self._root}/{key.strip('/')}"

    def _status(self, meta: Mapping[str, Any]) -> FileStatus:
        modified = meta["last_modified"]
        millis = int(modified.timestamp() * 1000) if isinstance(modified, datetime) else None
        return FileStatus(self._url(meta["path"]), int(meta["size"]), False, millis)

    def _head(self, key: str) -> Any:
        return self._requests.try_send(self._url(key), lambda store: obstore.head(store, key))

    def _put(self, path: str, data: bytes, store: Any, **options: Any) -> None:
        obstore.put(store, self._key(path), data, use_multipart=False, **options)

    def _delete(self, keys: Sequence[str]) -> None:
        """Delete all keys. Some stores stop at the first missing one; then delete one by one."""
        try:
            self._requests.try_send(self._url(keys[0]), lambda store: obstore.delete(store, keys))
        except FileNotFoundError:
            for key in keys if len(keys) > 1 else ():
                self._delete([key])

    def _read_end(self, path: str) -> tuple[int, bytes]:
        """Return an object's size and last bytes; one request suffices if the store knows suffix ranges."""
        key = self._key(path)

        def get_tail(store: Any) -> tuple[int, bytes]:
            """Read the last bytes and the size in one request."""
            reply = obstore.get(store, key, options={"range": {"suffix": TAIL_BYTES}})
            return int(reply.meta["size"]), bytes(reply.bytes())

        with self._requests.translate_errors(path):
            try:
                return self._requests.try_send(path, get_tail)
            except BaseError as error:
                if isinstance(error, FileNotFoundError) or is_cut_reply(error):
                    raise
                return int(self._head(key)["size"]), b""

    def _has_arrived(self, key: str, size: int) -> bool:
        """Return whether the object exists with this size."""
        try:
            return int(self._head(key)["size"]) == size
        except (BaseError, OSError):
            return False

    def _put_new(self, path: str, data: bytes) -> PutOutcome:
        return self._try_put(path, partial(self._put, path, data, mode="create"))

    def _put_single_writer(self, path: str, data: bytes) -> PutOutcome:
        """Check, then put, for stores that always overwrite. No other process writes, or the caller holds a lock."""
        if self.status(path) is not None:
            return PutOutcome.EXISTS
        return self._try_put(path, partial(self._put, path, data))

    def _try_put(self, path: str, put: Callable[[Any], None]) -> PutOutcome:
        try:
            self._requests.try_send(path, put)
        except (AlreadyExistsError, PreconditionError, FileExistsError):
            return PutOutcome.EXISTS
        except REFUSALS as error:
            raise self._requests.storage_error(path, error) from None
        except (BaseError, OSError):  # after any other error the bytes may have arrived
            return PutOutcome.UNKNOWN
        return PutOutcome.CREATED


# StoreOutput and StoreInput: files of an object store during writing and reading.
#
# Invariant: nothing is visible before `close`, whatever was uploaded. Reads are requests for ranges; the last range of
# a file is read together with its size.


PART_BYTES = 8 * 1024 * 1024
"""The size of a part of an upload. `PARTS_AT_ONCE` parts are in memory at the same time."""
PARTS_AT_ONCE = 2
TAIL_BYTES = 64 * 1024
"""The number of last bytes that are read with the size of a file. Most footers are smaller."""


class StoreOutput(Output):
    """A file during writing: one put if it fits into a part, otherwise an upload in parts.

    `put` creates the whole object. `start` begins an upload with its first bytes, more than `PART_BYTES`, and
    returns its writer. `guard` translates errors of the client. `has_arrived` returns whether an object of this size
    exists.
    """

    def __init__(
        self,
        put: Callable[[bytes], None],
        start: Callable[[bytes], Any],
        guard: Callable[[], Any],
        has_arrived: Callable[[int], bool],
    ) -> None:
        self._put = put
        self._start = start
        self._guard = guard
        self._has_arrived = has_arrived
        self._buffer = bytearray()
        self._writer: Any = None
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes of any buffer, and return their number."""
        view = memoryview(data).cast("B")  # the client refuses the signed bytes of Arrow's buffers
        self._size += view.nbytes
        with self._guard():
            if self._writer is not None:
                self._writer.write(view)
            elif self._size <= PART_BYTES:
                self._buffer += view
            else:
                missing = PART_BYTES + 1 - len(self._buffer)
                self._writer = self._start(bytes(self._buffer) + view[:missing])
                self._buffer = bytearray()
                self._writer.write(view[missing:])
        return view.nbytes

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._size

    def close(self) -> None:
        """Finish the upload. If the reply was lost, the size of the object decides."""
        if self.closed:
            return
        self.closed = True
        if self._writer is None:
            data, self._buffer = bytes(self._buffer), bytearray()
            self._put(data)
            return
        with self._guard():
            try:
                self._writer.close()
            except (BaseError, OSError):  # the store refuses to finish an upload again after a lost reply
                if not self._has_arrived(self._size):
                    raise

    def abort(self) -> None:
        """Leave the upload unfinished. The rules of the store delete its parts."""
        self.closed = True
        self._writer = None
        self._buffer = bytearray()


class StoreInput(RangeInput):
    """A seekable input. `fetch` takes the start and length of a range; `tail` has the last bytes, possibly none."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, tail: bytes) -> None:
        super().__init__(size)
        self._fetch = fetch
        self._tail = tail
        self._tail_start = size - len(tail)

    def read_at(self, size: int, start: int) -> bytes:
        """Return a range of the object."""
        in_tail = start - self._tail_start
        return self._tail[in_tail : in_tail + size] if in_tail >= 0 else self._fetch(start, size)
