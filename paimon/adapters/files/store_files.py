"""StoreFiles: S3-compatible stores, Google's and Azure's, as a FileIO, through obstore.

Law: a file is created if absent by the store's own conditional put, believed after a trial on this very store (put
twice, the second must lose). A put that is answered by "exists" may be our own, of which the acknowledgement got lost:
the caller compares identities. Secrets stay in the client: nothing else shows them. Source: `ObjectStore` commit rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import from_url

from paimon.adapters.files.exclusive import prove_exclusive
from paimon.adapters.files.store_options import client_config, request_policy, retries
from paimon.adapters.files.store_requests import REFUSALS, StoreRequests, first_line, is_cut_reply
from paimon.adapters.files.store_streams import PART_BYTES, PARTS_AT_ONCE, TAIL_BYTES, StoreInput, StoreOutput
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.secrets import redacted
from paimon.ports.files import WHOLE_BYTES, FileStatus, OutputFile, PutOutcome, check_whole

_DELETED_AT_ONCE = 1000
_PUT_AT_ONCE = 8


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
        try:
            client: Any = {"allow_http": plain}
            store: Any = from_url(self._root, client_options=client, retry_config=again, **config)
        except (BaseError, ValueError, TypeError) as error:
            reason = redacted(first_line(error), storage)
            raise InvalidRequest(f"{self._root} cannot be opened: {reason}", subject=self._root) from None
        self._requests = StoreRequests(store, request_policy(storage), dict(storage))
        self._single_writer = single_writer
        self._trusted = False

    def __repr__(self) -> str:
        return f"StoreFiles({self._root!r})"

    def __reduce__(self) -> str:
        raise InvalidRequest(f"the client of {self._root} does not travel", hint="send the table or the catalog itself")

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """The whole file."""
        key = self._key(path)

        def get(store: Any) -> bytes:
            answer = obstore.get(store, key)
            check_whole(path, int(answer.meta["size"]), max_bytes)  # the body is still on its way
            return bytes(answer.bytes())

        return self._requests.send(path, get)

    def open(self, path: str) -> pa.NativeFile:
        """The file as a seekable Arrow file; ranges go to the store as they are asked for."""
        key = self._key(path)
        size, tail = self._end_of(path)

        def fetch(start: int, length: int) -> bytes:
            return self._requests.send(
                path, lambda store: bytes(obstore.get_range(store, key, start=start, length=length))
            )

        return pa.PythonFile(StoreInput(fetch, size, tail), mode="r")

    def create(self, path: str) -> OutputFile:
        """A new file, visible at its `close`."""
        key = self._key(path)
        errors = partial(self._requests.translate_errors, path, missing_is_error=True)

        def start(data: bytes) -> Any:
            def begin(store: Any) -> Any:
                writer = obstore.open_writer(store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
                writer.write(data)  # more than a part: begins the upload
                return writer

            return self._requests.try_send(begin)

        return StoreOutput(partial(self.replace, path), start, errors, partial(self._landed, key))

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
        self._requests.send(path, partial(self._put, path, data), missing_is_error=True)

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory by name; none where it is missing."""
        key = self._key(path)
        found: Any = self._requests.send(path, lambda store: obstore.list_with_delimiter(store, key))
        directories = [FileStatus(self._url(p), 0, True) for p in found["common_prefixes"]]
        files = [self._status(meta) for meta in found["objects"] if meta["path"].strip("/") != key]
        return sorted((*directories, *files), key=lambda s: s.name)

    def status(self, path: str) -> FileStatus | None:
        """What is at the path, None where nothing is; a directory is what has something below it."""
        key = self._key(path)
        with self._requests.translate_errors(path):
            try:
                return self._status(self._head(key))
            except FileNotFoundError:
                below = self._requests.try_send(lambda s: next(iter(obstore.list(s, key + "/", chunk_size=1)), []))
                return FileStatus(path, 0, True) if below else None

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files; what is missing is no error. (Directories go with their last file.)"""
        keys = [self._key(path) for path in paths]
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            with self._requests.translate_errors(paths[start]):
                self._delete(keys[start : start + _DELETED_AT_ONCE])

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

    def _head(self, key: str) -> Any:
        return self._requests.try_send(lambda store: obstore.head(store, key))

    def _put(self, path: str, data: bytes, store: Any, **options: Any) -> None:
        obstore.put(store, self._key(path), data, use_multipart=False, **options)

    def _delete(self, keys: Sequence[str]) -> None:
        """Delete all; a store that has no batched delete stops at the first missing one, so then one by one."""
        try:
            self._requests.try_send(lambda store: obstore.delete(store, keys))
        except FileNotFoundError:
            for key in keys if len(keys) > 1 else ():
                self._delete([key])

    def _end_of(self, path: str) -> tuple[int, bytes]:
        """Size and last bytes; in one request where the store knows suffix ranges and the file is not empty."""
        key = self._key(path)

        def get_tail(store: Any) -> tuple[int, bytes]:
            answer = obstore.get(store, key, options={"range": {"suffix": TAIL_BYTES}})
            return int(answer.meta["size"]), bytes(answer.bytes())

        with self._requests.translate_errors(path):
            try:
                return self._requests.try_send(get_tail)
            except BaseError as error:
                if isinstance(error, FileNotFoundError) or is_cut_reply(error):
                    raise
                return int(self._head(key)["size"]), b""

    def _landed(self, key: str, size: int) -> bool:
        try:
            return int(self._head(key)["size"]) == size
        except (BaseError, OSError):
            return False

    def _put_new(self, path: str, data: bytes) -> PutOutcome:
        return self._try_put(path, partial(self._put, path, data, mode="create"))

    def _put_alone(self, path: str, data: bytes) -> PutOutcome:
        """Nobody else writes, or a lock is held: looking first will do, on stores that overwrite as well."""
        if self.status(path) is not None:
            return PutOutcome.EXISTS
        return self._try_put(path, partial(self._put, path, data))

    def _try_put(self, path: str, put: Callable[[Any], None]) -> PutOutcome:
        try:
            self._requests.try_send(put)
        except (AlreadyExistsError, PreconditionError, FileExistsError):
            return PutOutcome.EXISTS
        except REFUSALS as error:
            raise self._requests.storage_error(path, error) from None
        except (BaseError, OSError):  # whatever it was, the bytes may have arrived
            return PutOutcome.UNKNOWN
        return PutOutcome.CREATED
