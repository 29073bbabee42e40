"""The storage of the simulated world, as each of its processes sees it.

Law: each operation is a step of the schedule, before which others may run and after which its fault strikes. A process
that dies while it writes a file on a local disk leaves a hidden part of it behind; on an object store it leaves
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from paimon.ports.files import FileStatus, OutputFile, PutOutcome
from paimon.testing.faulty_files import FaultPlan, FaultyFiles, ProcessDied
from paimon.testing.memory_files import MemoryFiles


class TimedFiles(MemoryFiles):
    """Files that know when they were last written."""

    def __init__(self, now_millis: Callable[[], int]) -> None:
        super().__init__()
        self._now_millis = now_millis
        self._written: dict[str, int] = {}

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See the port."""
        outcome = super().put_if_absent(path, data)
        if outcome is PutOutcome.CREATED:
            self._written[path] = self._now_millis()
        return outcome

    def replace(self, path: str, data: bytes) -> None:
        """See the port."""
        super().replace(path, data)
        self._written[path] = self._now_millis()

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory by name, with their times."""
        return [self._timed(status) for status in super().list(path)]

    def status(self, path: str) -> FileStatus | None:
        """What is at a path, with its time."""
        found = super().status(path)
        return None if found is None else self._timed(found)

    def _timed(self, status: FileStatus) -> FileStatus:
        return evolve(status, modified_millis=self._written.get(status.path))


class ProcessFiles(FaultyFiles):
    """One process's view; on a local disk a death tears the file that was being written."""

    def __init__(self, inner: MemoryFiles, plan: FaultPlan, leaves_parts: bool) -> None:
        super().__init__(inner, plan)
        self._memory = inner
        self._leaves_parts = leaves_parts

    def create(self, path: str) -> OutputFile:
        """See the port."""
        output = super().create(path)
        return _Torn(output, self._memory, path) if self._leaves_parts else output


class _Torn:
    """Leaves a hidden part where the process dies at the close."""

    def __init__(self, inner: OutputFile, memory: MemoryFiles, path: str) -> None:
        self._inner, self._memory, self._path = inner, memory, path
        self._first = b""

    def write(self, data: bytes) -> int:
        self._first = self._first or bytes(memoryview(data))[:10]
        return self._inner.write(data)

    def tell(self) -> int:
        return self._inner.tell()

    def flush(self) -> None:
        self._inner.flush()

    def close(self) -> None:
        try:
            self._inner.close()
        except ProcessDied:
            directory, _, name = self._path.rpartition("/")
            if self._path not in self._memory.contents:
                self._memory.replace(f"{directory}/.{name}.part", self._first)
            raise

    def abort(self) -> None:
        self._inner.abort()

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def __enter__(self) -> _Torn:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

