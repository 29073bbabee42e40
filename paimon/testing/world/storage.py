"""The storage of the simulated world, as each of its processes sees it.

Law: each operation is a step of the schedule, before which others may run and after which its fault strikes. On a local
disk a file is written under a hidden name and gets its own at the end: whoever dies before leaves the hidden part, and
a hint, which nobody flushes, may be found cut short. On an object store a put is there whole or not at all, and the
parts of an upload that was never completed are in no listing: whoever dies leaves nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from attrs import evolve

from paimon.ports.files import FileStatus, PutOutcome
from paimon.testing.faulty_files import FaultPlan, FaultyFiles
from paimon.testing.memory_files import MemoryFiles, MemoryOutput


class TimedFiles(MemoryFiles):
    """Files that know when they were last written; `put_again` holds the paths that were freed and put once more."""

    def __init__(self, now_millis: Callable[[], int], leaves_parts: bool) -> None:
        super().__init__()
        self._now_millis = now_millis
        self._written: dict[str, int] = {}
        self.put_again: set[str] = set()
        self._leaves_parts = leaves_parts
        self._parts = 0

    def create(self, path: str) -> MemoryOutput:
        """See the port."""
        return _PartOutput(self, path, self.part_of(path)) if self._leaves_parts else super().create(path)

    def part_of(self, path: str) -> str:
        """A hidden name beside a path."""
        self._parts += 1
        directory, _, name = path.rpartition("/")
        return f"{directory}/.{name}.{self._parts}.part"

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See the port."""
        outcome = super().put_if_absent(path, data)
        if outcome is PutOutcome.CREATED:
            if path in self._written:
                self.put_again.add(path)
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


class _PartOutput(MemoryOutput):
    """A file that is written under a hidden name; the part holds what came first."""

    def __init__(self, files: MemoryFiles, path: str, part: str) -> None:
        super().__init__(files, path)
        self._part = part
        files.replace(part, b"")

    def write(self, data: bytes) -> int:
        if not self.tell():
            self._files.replace(self._part, bytes(memoryview(data))[:10])
        return super().write(data)

    def close(self) -> None:
        super().close()
        self._files.delete([self._part])

    def abort(self) -> None:
        super().abort()
        self._files.delete([self._part])


class ProcessFiles(FaultyFiles):
    """One process's view, with what its death leaves; `chance` decides where a write is torn."""

    def __init__(self, inner: TimedFiles, plan: FaultPlan, chance: random.Random) -> None:
        super().__init__(inner, plan)
        self._storage = inner
        self._chance = chance

    def _torn(self, operation: str, path: str, data: bytes) -> None:
        if operation == "replace":
            if self._chance.random() < 0.5:  # the new name survived, and not all of the bytes
                self._storage.replace(path, data[: self._chance.randrange(len(data))])
            return
        part = self._storage.part_of(path)
        whole = self._chance.random() < 0.5
        self._storage.replace(part, data if whole else data[: len(data) // 2])
        if whole:  # the file has its name, and the hidden one too
            self._storage.put_if_absent(path, data)
