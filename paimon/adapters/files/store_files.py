"""StoreFiles: S3-compatible stores, Google's and Azure's, as a FileIO, through obstore.

Law: a file is created if absent by the store's own conditional put, believed after a trial on this very store (put
twice, the second must lose). A put that is answered by "exists" may be our own, of which the acknowledgement got lost:
the caller compares identities. Secrets stay in the client: nothing else shows them. Source: `ObjectStore` commit rules.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any

import obstore
import pyarrow as pa
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import from_url

from paimon.adapters.files.exclusive import prove_exclusive
from paimon.adapters.files.store_options import client_config, retries
from paimon.adapters.files.store_streams import PART_BYTES, PARTS_AT_ONCE, TAIL_BYTES, StoreInput, StoreOutput
from paimon.domain.errors import InvalidRequest, NotFound, PaimonError, StorageError
from paimon.domain.secrets import redacted
from paimon.ports.files import FileStatus, OutputFile, PutOutcome, check_whole

_DELETED_AT_ONCE = 1000
_PUT_AT_ONCE = 8
_REFUSALS = (PermissionDeniedError, UnauthenticatedError, NotSupportedError, PermissionError, NotImplementedError)
_CREDENTIALS = "give credentials by the environment of this process, its machine's role, or the storage options"


class StoreFiles:
    """Paths are URLs of one bucket or container.

    Parameters
    ----------
    location : str
        A URL; its scheme and host choose the store.
    storage : mapping
        Options of the store (see `store_options`).
    single_writer : bool
        Nobody else writes: a store without a conditional put will do.
    """

    def __init__(self, location: str, storage: Mapping[str, object], single_writer: bool = False) -> None:
        scheme, _, rest = location.partition("://")
        self._root = f"{scheme}://{rest.partition('/')[0]}"
        config: Any = client_config(scheme, storage)
        plain = any(str(v).startswith("http://") for k, v in config.items() if k in ("endpoint", "base_url"))
        again: Any = retries(storage)
        self._secrets = dict(storage)
        try:
            client: Any = {"allow_http": plain}
            self._store: Any = from_url(self._root, client_options=client, retry_config=again, **config)
        except (BaseError, ValueError, TypeError) as error:
            reason = redacted(_first_line(error), storage)
            raise InvalidRequest(f"{self._root} cannot be opened: {reason}", subject=self._root) from None
        self._single_writer = single_writer
        self._trusted = False

    def __repr__(self) -> str:
        return f"StoreFiles({self._root!r})"

    def __reduce__(self) -> str:
        raise InvalidRequest(f"the client of {self._root} does not travel", hint="send the table or the catalog itself")

    def read(self, path: str) -> bytes:
        """The whole file."""
        with self._errors(path):
            answer = obstore.get(self._store, self._key(path))
            check_whole(path, int(answer.meta["size"]))  # the body is still on its way
            return bytes(answer.bytes())

    def open(self, path: str) -> pa.NativeFile:
        """The file as a seekable Arrow file; ranges go to the store as they are asked for."""
        key = self._key(path)
        with self._errors(path):
            size, tail = self._end_of(key)

        def fetch(start: int, length: int) -> bytes:
            with self._errors(path):
                return bytes(obstore.get_range(self._store, key, start=start, length=length))

        return pa.PythonFile(StoreInput(fetch, size, tail), mode="r")

    def create(self, path: str) -> OutputFile:
        """A new file, visible at its `close`."""
        key = self._key(path)
        errors = partial(self._errors, path, missing_is_error=True)
        with errors():
            writer = obstore.open_writer(self._store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        return StoreOutput(writer, errors, partial(self._landed, key))

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """New files, put side by side: they cost the time of one."""
        if len(files) <= 1:
            for path, data in files.items():
                self.replace(path, data)
            return
        with ThreadPoolExecutor(min(len(files), _PUT_AT_ONCE), thread_name_prefix="paimon-put") as pool:
            list(pool.map(self.replace, files.keys(), files.values()))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file with this content unless it is there."""
        if self._single_writer:
            return self._put_alone(path, data)
        if not self._trusted:
            prove_exclusive(path, self._put_new, self.read, self.delete)
            self._trusted = True
        return self._put_new(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Create the file or replace its content."""
        with self._errors(path, missing_is_error=True):
            obstore.put(self._store, self._key(path), data, use_multipart=False)

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory by name; none where it is missing."""
        key = self._key(path)
        with self._errors(path):
            found = obstore.list_with_delimiter(self._store, key)
        directories = [FileStatus(self._url(p), 0, True) for p in found["common_prefixes"]]
        files = [self._status(meta) for meta in found["objects"] if meta["path"].strip("/") != key]
        return sorted((*directories, *files), key=lambda s: s.name)

    def status(self, path: str) -> FileStatus | None:
        """What is at the path, None where nothing is; a directory is what has something below it."""
        key = self._key(path)
        with self._errors(path):
            try:
                return self._status(obstore.head(self._store, key))
            except FileNotFoundError:
                below = next(iter(obstore.list(self._store, key + "/", chunk_size=1)), [])
                return FileStatus(path, 0, True) if below else None

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files; what is missing is no error. (Directories go with their last file.)"""
        keys = [self._key(path) for path in paths]
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            with self._errors(paths[start]), contextlib.suppress(FileNotFoundError):
                obstore.delete(self._store, keys[start : start + _DELETED_AT_ONCE])

    def _key(self, path: str) -> str:
        if not path.startswith(self._root + "/") and path != self._root:
            raise StorageError(path, f"does not lie in {self._root}")
        return path.removeprefix(self._root).strip("/")

    def _url(self, key: str) -> str:
        return f"{self._root}/{key.strip('/')}"

    def _status(self, meta: Mapping[str, Any]) -> FileStatus:
        modified = meta["last_modified"]
        millis = int(modified.timestamp() * 1000) if isinstance(modified, datetime) else None
        return FileStatus(self._url(meta["path"]), int(meta["size"]), False, millis)

    def _end_of(self, key: str) -> tuple[int, bytes]:
        """Size and last bytes; in one request where the store knows suffix ranges and the file is not empty."""
        try:
            answer = obstore.get(self._store, key, options={"range": {"suffix": TAIL_BYTES}})
            return int(answer.meta["size"]), bytes(answer.bytes())
        except FileNotFoundError:
            raise
        except BaseError:
            return int(obstore.head(self._store, key)["size"]), b""

    def _landed(self, key: str, size: int) -> bool:
        try:
            return int(obstore.head(self._store, key)["size"]) == size
        except (BaseError, OSError):
            return False

    def _put_new(self, path: str, data: bytes) -> PutOutcome:
        try:
            obstore.put(self._store, self._key(path), data, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError, FileExistsError):
            return PutOutcome.EXISTS
        except _REFUSALS as error:
            raise self._storage_error(path, error) from None
        except (BaseError, OSError):  # whatever it was, the bytes may have arrived
            return PutOutcome.UNKNOWN
        return PutOutcome.CREATED

    def _put_alone(self, path: str, data: bytes) -> PutOutcome:
        """Nobody else writes, or a lock is held: looking first will do, on stores that overwrite as well."""
        if self.status(path) is not None:
            return PutOutcome.EXISTS
        try:
            obstore.put(self._store, self._key(path), data, use_multipart=False)
        except _REFUSALS as error:
            raise self._storage_error(path, error) from None
        except (BaseError, OSError):
            return PutOutcome.UNKNOWN
        return PutOutcome.CREATED

    @contextlib.contextmanager
    def _errors(self, path: str, *, missing_is_error: bool = False) -> Iterator[None]:
        """Turn the client's errors into NotFound or StorageError, without secrets and without their inner story."""
        try:
            yield
        except PaimonError:
            raise
        except FileNotFoundError as error:
            if missing_is_error:
                raise self._storage_error(path, error) from None
            raise NotFound("file", path) from None
        except (BaseError, OSError, ValueError) as error:
            raise self._storage_error(path, error) from None

    def _storage_error(self, path: str, error: Exception) -> StorageError:
        hint = _CREDENTIALS if isinstance(error, _REFUSALS) else None
        return StorageError(path, redacted(_first_line(error), self._secrets), hint=hint)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
