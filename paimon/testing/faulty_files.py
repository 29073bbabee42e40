"""FaultyFiles: a FileIO in which a plan decides which operation has which fault.

Invariant: these faults also occur on real storage. An operation fails before or after it took effect. A reply is lost.
A client retries by itself and then reports that its own file exists. A process dies and does nothing afterwards, not
even cleaning up.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TypeVar

import pyarrow as pa

from paimon.adapters.files.output import Output
from paimon.domain.errors import StorageError
from paimon.ports.files import WHOLE_BYTES, FileIO, FileStatus, OutputFile, PutOutcome

T = TypeVar("T")


class Fault(Enum):
    """The fault of one operation; the value describes it in the trace of a simulation."""

    FAIL_BEFORE = "fails without effect"
    FAIL_AFTER = "takes effect, then fails"
    REPLY_UNKNOWN = "takes effect, and put_if_absent returns UNKNOWN"
    REPLY_EXISTS = "takes effect, and put_if_absent returns EXISTS"
    REPLY_NOT_DURABLE = "takes effect, and put_if_absent returns NOT_DURABLE"
    DIE_BEFORE = "the process dies before it"
    DIE_AFTER = "the process dies after it"
    TORN_WRITE = "the process dies during it"


class ProcessDied(BaseException):
    """The simulated process died; only a test or the simulation catches this."""


FaultPlan = Callable[[str, str], Fault | None]
"""Returns the fault of the next operation, or None, for the name of the operation and its path."""


def plan_numbered_faults(faults: Mapping[int, Fault]) -> FaultPlan:
    """Return the plan in which the n-th operation (from 0) has the fault with the key n."""
    count = iter(range(2**62))
    return lambda operation, path: faults.get(next(count))


def draw_faults(seed: int, operations: int, rate: float, kinds: Sequence[Fault] = tuple(Fault)) -> dict[int, Fault]:
    """Draw random faults for `plan_numbered_faults`.

    Parameters
    ----------
    seed : int
        The same seed gives the same faults.
    operations : int
        The number of operations that may have a fault.
    rate : float
        The probability that an operation has a fault.
    kinds : sequence of Fault
        The faults to choose from.

    Returns
    -------
    dict
        Faults by operation number, from 0.
    """
    chance = random.Random(seed)
    return {n: chance.choice(kinds) for n in range(operations) if chance.random() < rate}


class FaultyFiles:
    """A FileIO that calls `plan` before each operation of another FileIO and applies the fault.

    Parameters
    ----------
    inner : FileIO
        The storage.
    plan : callable
        Returns the fault of each operation.
    """

    def __init__(self, inner: FileIO, plan: FaultPlan) -> None:
        self._inner = inner
        self._next_fault = plan
        self._is_dead = False

    def _fault_of(self, operation: str, path: str) -> Fault | None:
        if self._is_dead:
            raise ProcessDied
        fault = self._next_fault(operation, path)
        if self._is_dead:  # of a power loss while it waited
            raise ProcessDied
        return fault

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Return the bytes of a file."""
        return self._run_operation("read", path, lambda: self._inner.read(path, max_bytes))

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for reading; reads from it have no faults."""
        return self._run_operation("open", path, lambda: self._inner.open(path))

    def create(self, path: str) -> OutputFile:
        """Create a file; its `close` is an operation of its own."""
        return self._begin_file(path, self._inner.create)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file unless it exists; a fault may replace the outcome."""
        fault = self._fault_of("put_if_absent", path)
        if fault is Fault.TORN_WRITE:
            self._leave_torn_write("put_if_absent", path, data)
        outcome = self._apply_fault(fault, path, lambda: self._inner.put_if_absent(path, data))
        if fault is Fault.REPLY_NOT_DURABLE and outcome is PutOutcome.CREATED:
            return PutOutcome.NOT_DURABLE
        if fault is Fault.REPLY_UNKNOWN:
            return PutOutcome.UNKNOWN
        return PutOutcome.EXISTS if fault is Fault.REPLY_EXISTS else outcome

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, whether it exists or not."""
        fault = self._fault_of("replace", path)
        if fault is Fault.TORN_WRITE:
            self._leave_torn_write("replace", path, data)
        self._apply_fault(fault, path, lambda: self._inner.replace(path, data))

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the entries of a directory."""
        return self._run_operation("list", path, lambda: self._inner.list(path))

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path."""
        return self._run_operation("status", path, lambda: self._inner.status(path))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files, as one operation with one fault."""
        self._run_operation("delete", paths[0] if paths else "", lambda: self._inner.delete(paths))

    @property
    def is_dead(self) -> bool:
        """Whether the simulated process died."""
        return self._is_dead

    def kill(self) -> None:
        """Let the process die at its next operation."""
        self._is_dead = True

    def _leave_torn_write(self, operation: str, path: str, data: bytes) -> None:
        """Leave what a write leaves if its process dies during it: nothing, unless a subclass overrides this."""

    def _begin_file(self, path: str, create: Callable[[str], OutputFile]) -> OutputFile:
        return self._run_operation("create", path, lambda: _FaultyOutput(self, create(path), path))

    def _run_operation(self, operation: str, path: str, operation_call: Callable[[], T]) -> T:
        return self._apply_fault(self._fault_of(operation, path), path, operation_call)

    def _apply_fault(self, fault: Fault | None, path: str, operation_call: Callable[[], T]) -> T:
        if fault in (Fault.DIE_BEFORE, Fault.TORN_WRITE):
            self._is_dead = True
            raise ProcessDied
        if fault is Fault.FAIL_BEFORE:
            raise StorageError(path, "simulated failure")
        result = operation_call()
        if fault is Fault.DIE_AFTER:
            self._is_dead = True
            raise ProcessDied
        if fault is Fault.FAIL_AFTER:
            raise StorageError(path, "simulated failure after the operation took effect")
        return result


class _FaultyOutput(Output):
    """A file whose `close` may fail; a dead process does not abort it."""

    def __init__(self, files: FaultyFiles, inner: OutputFile, path: str) -> None:
        self._files, self._inner, self._path = files, inner, path

    def write(self, data: bytes) -> int:
        """Append bytes; this has no faults."""
        return self._inner.write(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._inner.tell()

    def flush(self) -> None:
        """Flush the file; this has no faults."""
        self._inner.flush()

    def close(self) -> None:
        """Close the file, with the next fault of the plan."""
        if not self._inner.closed:
            self._files._run_operation("close", self._path, self._inner.close)

    def abort(self) -> None:
        """Discard the file, unless the process is dead."""
        if not self._files.is_dead:
            self._inner.abort()

    @property
    def closed(self) -> bool:
        return self._inner.closed
