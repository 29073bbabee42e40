"""Tokens and deadlines that stop long calls, and the storage that asks for them.

Invariant: reads and lists are checked, and so is the begin of a new file. Puts, replacements and deletions are not:
they publish, or clean up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self, cast

import pyarrow as pa
from attrs import frozen

from paimon.adapters.call_proxy import CallProxy
from paimon.domain.errors import Cancelled, DeadlineExceeded, InvalidRequest
from paimon.ports.cancellation import (
    Stopped,
    activate_token,
    begin_change,
    check_stop,
    copy_task_context,
    deactivate_token,
    find_stopped,
    has_token,
    shielded,
)
from paimon.ports.catalogs import CatalogStore
from paimon.ports.files import (
    WHOLE_BYTES,
    DeferredFlush,
    Directories,
    FileIO,
    FileStatus,
    ManyFiles,
    OutputFile,
    PutOutcome,
)

_CATALOG_READS = ("databases", "database_properties", "tables", "has_table", "table_location")
_SLICE_SECONDS = 0.05
"""How long a wait lasts at most before the next check."""


class CancelToken:
    """Stops the calls of the library in its ``with`` blocks, from another thread or after a time.

    A stopped call raises `Cancelled` or `DeadlineExceeded` at the end of the block. The table is whole: an attempt to
    commit that has begun is finished first, and what was prepared for another commit is deleted. A write whose rows are
    published returns as usual.

    Parameters
    ----------
    seconds : float, optional
        The time from now after which the calls stop. None: only `cancel` stops them.

    Examples
    --------
    >>> import paimon
    >>> token = paimon.CancelToken()
    >>> token.cancel()
    >>> with token:
    ...     paimon.open_table("memory://lake/shop.db/orders")
    Traceback (most recent call last):
        ...
    paimon.domain.errors.Cancelled: The call was cancelled. The table is whole; repeat the call to do its work.
    """

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None and not (isinstance(seconds, int | float) and seconds >= 0):
            hint = "pass a number of seconds from 0"
            raise InvalidRequest(f"Deadline {seconds!r} is not a time", subject="seconds", hint=hint)
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._is_cancelled = threading.Event()

    def cancel(self) -> None:
        """Stop the calls in all blocks of this token, now and later; any thread may call it."""
        self._is_cancelled.set()

    def is_stopped(self) -> bool:
        """Return whether `cancel` was called, or the time is over.

        Returns
        -------
        bool
            Once True, it stays True.
        """
        return self._is_cancelled.is_set() or (self._end is not None and time.monotonic() >= self._end)

    def __enter__(self) -> Self:
        activate_token(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        deactivate_token(self)
        if isinstance(error, Stopped) and error.token is self:
            reason = (
                Cancelled() if self._seconds is None or self._is_cancelled.is_set() else DeadlineExceeded(self._seconds)
            )
            raise reason.with_traceback(traceback) from None


def deadline(seconds: float) -> CancelToken:
    """Return a token that stops the calls in its ``with`` block after a time, which begins now.

    Parameters
    ----------
    seconds : float
        The time in seconds.

    Returns
    -------
    CancelToken
        The token; its `cancel` stops the calls earlier.

    Examples
    --------
    >>> import paimon
    >>> catalog = paimon.connect("memory://deadline")
    >>> catalog.create_database("shop")
    >>> with paimon.deadline(seconds=60):
    ...     print(catalog.list_databases())
    ['shop']
    """
    return CancelToken(seconds)


def sleep(seconds: float) -> None:
    """Wait, or raise Stopped as soon as a token of this context is stopped."""
    end = time.monotonic() + max(0.0, seconds)
    if not has_token():
        time.sleep(max(0.0, seconds))
        return
    check_stop()
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _SLICE_SECONDS))
        check_stop()


class CallOnStop:
    """A block that calls `interrupt` in another thread once a token of its context is stopped, until it ends.

    If the interrupt made the block fail, it raises Stopped. A block that cleans up is not interrupted.
    """

    def __init__(self, interrupt: Callable[[], object]) -> None:
        self._interrupt = interrupt
        self._context = copy_task_context()
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> None:
        if self._context.run(has_token):
            run = self._context.copy().run
            self._watcher = threading.Thread(target=run, args=(self._watch,), name="paimon-stop", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        """Look for a stop; what just begins may not notice the first interrupt."""
        while not self._ended.wait(_SLICE_SECONDS):
            if find_stopped() is not None:
                self._interrupt()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()
        token = self._context.run(find_stopped)
        if token is not None and isinstance(error, Exception | KeyboardInterrupt):
            raise Stopped(token) from None


def stoppable_files(files: FileIO) -> FileIO:
    """Return a storage whose reads, lists and new files are checked."""
    kinds = ((Directories, _Directories), (ManyFiles, _ManyFiles), (DeferredFlush, _DeferredFlush))
    optional = [kind for port, kind in kinds if isinstance(files, port)]
    checked: FileIO = type("StoppableFiles", (*optional, _Files), {})(files)
    return checked


@frozen(eq=False, slots=False)
class _Files:
    inner: FileIO

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        check_stop()
        return self.inner.read(path, max_bytes)

    def open(self, path: str) -> pa.NativeFile:
        check_stop()
        return self.inner.open(path)

    def create(self, path: str) -> OutputFile:
        check_stop()
        begin_change()
        return self.inner.create(path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        with shielded():
            return self.inner.put_if_absent(path, data)

    def replace(self, path: str, data: bytes) -> None:
        with shielded():
            self.inner.replace(path, data)

    def list(self, path: str) -> Sequence[FileStatus]:
        check_stop()
        return self.inner.list(path)

    def status(self, path: str) -> FileStatus | None:
        check_stop()
        return self.inner.status(path)

    def delete(self, paths: Sequence[str]) -> None:
        with shielded():
            self.inner.delete(paths)


class _Directories(_Files):
    inner: Directories  # type: ignore[assignment]

    def make_directory(self, path: str) -> None:
        begin_change()
        self.inner.make_directory(path)

    def move_directory(self, source: str, target: str) -> None:
        with shielded():
            self.inner.move_directory(source, target)

    def delete_directory(self, path: str) -> None:
        with shielded():
            self.inner.delete_directory(path)


class _ManyFiles(_Files):
    inner: ManyFiles  # type: ignore[assignment]

    def create_all(self, files: Mapping[str, bytes]) -> None:
        with shielded():
            self.inner.create_all(files)


class _DeferredFlush(_Files):
    inner: DeferredFlush  # type: ignore[assignment]

    def create_deferred(self, path: str) -> OutputFile:
        check_stop()
        begin_change()
        return self.inner.create_deferred(path)

    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        with shielded():
            self.inner.flush_and_create(deferred, files)


def stoppable_store(store: CatalogStore) -> CatalogStore:
    """Return a catalog that is checked before each call; a call that changes something is finished once it begins."""
    return cast(CatalogStore, _Store(store))


class _Store(CallProxy):
    def _surround(self, name: str) -> AbstractContextManager[object]:
        check_stop()
        return nullcontext() if name in _CATALOG_READS else shielded()
