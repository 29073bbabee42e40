"""The storage of the simulation, as each of its processes sees it.

Invariant: each operation is one step of the history. Other processes may run before it, and its fault takes effect
after it. On a local disk, a file is written under a hidden name and renamed at the end. A process that dies before
leaves the hidden part. A hint, which is not flushed, may be truncated. A power loss takes the files that were not
flushed, and those whose flush failed once, whatever later flushes return. On an object store, a put is complete or
absent, and an upload that is not completed is in no listing. A process that dies there leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random

from attrs import evolve

from paimon.adapters.files.output import BufferedOutput
from paimon.ports.files import FileStatus, OutputFile, PutOutcome
from paimon.testing.faulty_files import Fault, FaultPlan, FaultyFiles
from paimon.testing.memory_files import MemoryFiles


class TimedFiles(MemoryFiles):
    """Files in memory with modification times.

    The attribute `reused_paths` has the paths that were deleted and put again. `first_puts` has the snapshot files by
    path as they were put first, also those that were deleted, with the logical time of the put. `snapshot_puts` has all
    snapshot files that were put.

    Parameters
    ----------
    now_millis : callable
        Returns the time that a written file gets, in epoch milliseconds.
    has_part_files : bool
        Whether a file that is being written is visible under a hidden name, as on a local disk.
    logical_time : callable
        Returns the logical time of the history.
    """

    def __init__(self, now_millis: Callable[[], int], has_part_files: bool, logical_time: Callable[[], int]) -> None:
        super().__init__()
        self._logical_time = logical_time
        self._now_millis = now_millis
        self._modified_millis: dict[str, int] = {}
        self.reused_paths: set[str] = set()
        self.first_puts: dict[str, tuple[bytes, int]] = {}
        self.snapshot_puts: list[tuple[str, bytes, int]] = []
        self._has_part_files = has_part_files
        self._part_count = 0

    def create(self, path: str) -> BufferedOutput:
        """Create a file as the port defines it, with a hidden part if the storage has them."""
        return _PartOutput(self, path, self.next_part_path(path)) if self._has_part_files else super().create(path)

    def next_part_path(self, path: str) -> str:
        """Return a new hidden name in the directory of a path."""
        self._part_count += 1
        directory, _, name = path.rpartition("/")
        return f"{directory}/.{name}.{self._part_count}.part"

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file unless it exists, and note a path that was used before."""
        outcome = super().put_if_absent(path, data)
        if outcome is PutOutcome.CREATED:
            if path in self._modified_millis:
                self.reused_paths.add(path)
            elif "/snapshot/snapshot-" in path:
                self.first_puts[path] = data, self._logical_time()
            if "/snapshot/snapshot-" in path:
                self.snapshot_puts.append((path, data, self._logical_time()))
            self._modified_millis[path] = self._now_millis()
        return outcome

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, whether it exists or not."""
        super().replace(path, data)
        self._modified_millis[path] = self._now_millis()

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the entries of a directory by name, with their modification times."""
        return [self._add_time(status) for status in super().list(path)]

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path, with its modification time."""
        found = super().status(path)
        return None if found is None else self._add_time(found)

    def _add_time(self, status: FileStatus) -> FileStatus:
        return evolve(status, modified_millis=self._modified_millis.get(status.path))


class DiskFiles(TimedFiles):
    """A local disk that flushes on demand. A power loss may take `not_durable_paths`, although their put succeeded."""

    def __init__(self, now_millis: Callable[[], int], has_part_files: bool, logical_time: Callable[[], int]) -> None:
        super().__init__(now_millis, has_part_files, logical_time)
        self._unflushed: set[str] = set()
        self._lost: set[str] = set()
        self.not_durable_paths: set[str] = set()

    def create_deferred(self, path: str) -> BufferedOutput:
        """Create a file that a power loss takes until it is flushed."""
        return _PartOutput(self, path, self.next_part_path(path), self.replace_unflushed)

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """Create files, and flush them."""
        self.flush_and_create((), files)

    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        """Flush files with their directories, and create others."""
        for path in deferred:
            self._content(path)
        for path, data in files.items():
            self.replace(path, data)
        self._unflushed -= {*deferred}
        self._flush_directories({*deferred, *files})

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file unless it exists, and flush its directory."""
        outcome = super().put_if_absent(path, data)
        if outcome is PutOutcome.CREATED:
            self._flush_directories({path})
        return outcome

    def replace_unflushed(self, path: str, data: bytes) -> None:
        """Write a file without a flush."""
        self.replace(path, data)
        self._unflushed.add(path)

    def fail_flush(self, path: str) -> None:
        """Let the flush of a file fail: its bytes are lost, and later flushes do not find that out."""
        self._lost |= {path} & self._unflushed

    def lose_power(self, random: Random) -> None:
        """Remove or cut off the files that are not on disk."""
        for path in sorted((self._unflushed | self._lost) & self.contents.keys()):
            data = self.contents.pop(path)
            if random.random() < 0.5:
                self.contents[path] = data[: random.randrange(len(data) or 1)]

    def _flush_directories(self, paths: Collection[str]) -> None:
        directories = {path.rpartition("/")[0] for path in paths}
        self.not_durable_paths -= {path for path in self.not_durable_paths if path.rpartition("/")[0] in directories}


class _PartOutput(BufferedOutput):
    """A file that is written under a hidden name; the hidden part contains the first bytes."""

    def __init__(
        self, files: MemoryFiles, path: str, part: str, publish: Callable[[str, bytes], None] | None = None
    ) -> None:
        super().__init__(path, publish or files.replace)
        self._files, self._part = files, part
        files.replace(part, b"")

    def write(self, data: bytes) -> int:
        """Append bytes."""
        if not self.tell():
            self._files.replace(self._part, bytes(memoryview(data))[:10])
        return super().write(data)

    def close(self) -> None:
        """Make the file visible and delete the hidden part."""
        super().close()
        self._files.delete([self._part])

    def abort(self) -> None:
        """Delete the hidden part."""
        super().abort()
        self._files.delete([self._part])


class ProcessFiles(FaultyFiles):
    """The view of one process, with what its death leaves; `random` decides where a write is cut off."""

    def __init__(self, inner: TimedFiles, plan: FaultPlan, random: Random) -> None:
        super().__init__(inner, plan)
        self._storage = inner
        self._random = random

    def _leave_torn_write(self, operation: str, path: str, data: bytes) -> None:
        if operation == "replace":
            if self._random.random() < 0.5:  # the new name was saved, but only a part of the bytes
                self._storage.replace(path, data[: self._random.randrange(len(data) or 1)])
            return
        part = self._storage.next_part_path(path)
        is_complete = self._random.random() < 0.5
        self._storage.replace(part, data if is_complete else data[: len(data) // 2])
        if is_complete:  # the file has its final name, and the hidden name was not deleted
            self._storage.put_if_absent(path, data)


class DiskProcessFiles(ProcessFiles):
    """The view of one process of a disk that flushes on demand. A flush that fails is done in part."""

    def __init__(self, inner: DiskFiles, plan: FaultPlan, random: Random) -> None:
        super().__init__(inner, plan, random)
        self._disk = inner

    def create_deferred(self, path: str) -> OutputFile:
        """Create a file; its `close` is an operation of its own."""
        return self._begin_file(path, self._disk.create_deferred)

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """Create files, and flush them."""
        self.flush_and_create((), files)

    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        """Flush files and create others, as one operation."""
        path = next(iter((*deferred, *files)), "")
        fault = self._fault_of("flush_and_create", path)
        if fault in (Fault.FAIL_BEFORE, Fault.DIE_BEFORE):
            for name in (name for name in files if self._random.random() < 0.5):
                self._disk.replace_unflushed(name, files[name])
            for name in (name for name in deferred if self._random.random() < 0.5):
                self._disk.fail_flush(name)
        self._apply_fault(fault, path, lambda: self._disk.flush_and_create(deferred, files))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file unless it exists; if its directory is not flushed, a power loss may take it."""
        outcome = super().put_if_absent(path, data)
        if outcome is PutOutcome.NOT_DURABLE:
            self._disk.not_durable_paths.add(path)
        return outcome
