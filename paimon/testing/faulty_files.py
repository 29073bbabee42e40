"""FaultyFiles: a FileIO that fails where a plan says so.

Law: faults are those that real storage has: an operation that fails before or after it took effect, an acknowledgement
that is lost, a client that tried again by itself and then says "exists" of its own file, a process that dies
(and does nothing any more, not even clean up).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import TypeVar

import pyarrow as pa

from paimon.domain.errors import StorageError
from paimon.ports.files import WHOLE_BYTES, FileIO, FileStatus, OutputFile, PutOutcome

T = TypeVar("T")


class Fault(Enum):
    """What goes wrong with one operation."""

    FAILS = "fails, nothing happened"
    FAILS_AFTER = "took effect, then failed"
    TELLS_NOTHING = "put_if_absent took effect, answers UNKNOWN"
    SAYS_EXISTS = "put_if_absent took effect, answers EXISTS"
    DIES = "the process dies before it"
    DIES_AFTER = "the process dies after it"
    TEARS = "the process dies in the midst of it"


class ProcessDied(BaseException):
    """The simulated process is gone; nobody may catch this but the simulation."""


FaultPlan = Callable[[str, str], Fault | None]
"""The fault of the next operation, given its name and path."""


def numbered(faults: Mapping[int, Fault]) -> FaultPlan:
    """The plan by which the n-th operation (from 0) has the fault of number n."""
    count = iter(range(2**62))
    return lambda operation, path: faults.get(next(count))


def drawn_faults(
    seed: int, operations: int, rate: float, kinds: Sequence[Fault] = tuple(Fault)
) -> dict[int, Fault]:
    """Faults for `numbered`: each of the first `operations` operations has one with probability `rate`."""
    chance = random.Random(seed)
    return {n: chance.choice(kinds) for n in range(operations) if chance.random() < rate}


class FaultyFiles:
    """Wraps a FileIO; asks `plan` before each operation."""

    def __init__(self, inner: FileIO, plan: FaultPlan) -> None:
        self._inner = inner
        self._ask = plan
        self._dead = False

    def _plan(self, operation: str, path: str) -> Fault | None:
        if self._dead:
            raise ProcessDied
        return self._ask(operation, path)

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """See the port."""
        return self._do("read", path, lambda: self._inner.read(path, max_bytes))

    def open(self, path: str) -> pa.NativeFile:
        """See the port."""
        return self._do("open", path, lambda: self._inner.open(path))

    def create(self, path: str) -> OutputFile:
        """See the port; the file's `close` is an operation of its own."""
        return self._do("create", path, lambda: _FaultyOutput(self, self._inner.create(path), path))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See the port."""
        fault = self._plan("put_if_absent", path)
        if fault is Fault.TEARS:
            self._torn("put_if_absent", path, data)
        outcome = self._struck(fault, path, lambda: self._inner.put_if_absent(path, data))
        if fault is Fault.TELLS_NOTHING:
            return PutOutcome.UNKNOWN
        return PutOutcome.EXISTS if fault is Fault.SAYS_EXISTS else outcome

    def replace(self, path: str, data: bytes) -> None:
        """See the port."""
        fault = self._plan("replace", path)
        if fault is Fault.TEARS:
            self._torn("replace", path, data)
        self._struck(fault, path, lambda: self._inner.replace(path, data))

    def list(self, path: str) -> Sequence[FileStatus]:
        """See the port."""
        return self._do("list", path, lambda: self._inner.list(path))

    def status(self, path: str) -> FileStatus | None:
        """See the port."""
        return self._do("status", path, lambda: self._inner.status(path))

    def delete(self, paths: Sequence[str]) -> None:
        """See the port."""
        self._do("delete", paths[0] if paths else "", lambda: self._inner.delete(paths))

    @property
    def dead(self) -> bool:
        """Whether the simulated process is gone."""
        return self._dead

    def _torn(self, operation: str, path: str, data: bytes) -> None:
        """What a write leaves whose process dies in the midst of it: nothing, unless a storage knows better."""

    def _do(self, operation: str, path: str, act: Callable[[], T]) -> T:
        return self._struck(self._plan(operation, path), path, act)

    def _struck(self, fault: Fault | None, path: str, act: Callable[[], T]) -> T:
        if fault in (Fault.DIES, Fault.TEARS):
            self._dead = True
            raise ProcessDied
        if fault is Fault.FAILS:
            raise StorageError(path, "simulated failure")
        answer = act()
        if fault is Fault.DIES_AFTER:
            self._dead = True
            raise ProcessDied
        if fault is Fault.FAILS_AFTER:
            raise StorageError(path, "simulated failure after the fact")
        return answer


class _FaultyOutput:
    """A file whose `close` may fail; a dead process does not even abort."""

    def __init__(self, files: FaultyFiles, inner: OutputFile, path: str) -> None:
        self._files, self._inner, self._path = files, inner, path

    def write(self, data: bytes) -> int:
        return self._inner.write(data)

    def tell(self) -> int:
        return self._inner.tell()

    def flush(self) -> None:
        self._inner.flush()

    def close(self) -> None:
        if not self._inner.closed:
            self._files._do("close", self._path, self._inner.close)

    def abort(self) -> None:
        if not self._files.dead:
            self._inner.abort()

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def __enter__(self) -> _FaultyOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
