"""MemoryFiles: a FileIO that is a dictionary, for tests and simulations.

Law: it keeps the port's contract to the letter (whole files or none, one winner of `put_if_absent`), so whatever goes
wrong above it is not its fault.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from io import BytesIO
from types import TracebackType

import pyarrow as pa

from paimon.domain.errors import NotFound
from paimon.ports.files import WHOLE_BYTES, FileStatus, PutOutcome, check_whole


class MemoryFiles:
    """See `paimon.ports.files.FileIO`; `contents` holds the bytes by path."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """The bytes of a file."""
        found = self._content(path)
        check_whole(path, len(found), max_bytes)
        return found

    def open(self, path: str) -> pa.NativeFile:
        """A seekable reader."""
        return pa.BufferReader(self._content(path))

    def create(self, path: str) -> MemoryOutput:
        """A file that shows at `close`."""
        return MemoryOutput(self, path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file unless it exists."""
        with self._lock:
            if path in self.contents:
                return PutOutcome.EXISTS
            self.contents[path] = data
            return PutOutcome.CREATED

    def replace(self, path: str, data: bytes) -> None:
        """Write the file, new or not."""
        with self._lock:
            self.contents[path] = data

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory by name."""
        prefix = path.rstrip("/") + "/"
        with self._lock:
            below = {p.removeprefix(prefix): len(data) for p, data in self.contents.items() if p.startswith(prefix)}
        names = {rest.split("/", 1)[0]: "/" in rest for rest in below}
        return [
            FileStatus(prefix + name, 0 if is_directory else below[name], is_directory)
            for name, is_directory in sorted(names.items())
        ]

    def status(self, path: str) -> FileStatus | None:
        """What is at a path."""
        with self._lock:
            if path in self.contents:
                return FileStatus(path, len(self.contents[path]), False)
            is_directory = any(p.startswith(path.rstrip("/") + "/") for p in self.contents)
        return FileStatus(path, 0, True) if is_directory else None

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files."""
        with self._lock:
            for path in paths:
                self.contents.pop(path, None)

    def _content(self, path: str) -> bytes:
        with self._lock:
            found = self.contents.get(path)
        if found is None:
            raise NotFound("file", path)
        return found


class MemoryOutput:
    """See `paimon.ports.files.OutputFile`."""

    def __init__(self, files: MemoryFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._buffer = BytesIO()

    def write(self, data: bytes) -> int:
        """Append bytes."""
        return self._buffer.write(data)

    def tell(self) -> int:
        """Bytes written."""
        return self._buffer.tell()

    def flush(self) -> None:
        """Nothing becomes visible."""

    def close(self) -> None:
        """Show the file."""
        if not self._buffer.closed:
            self._files.replace(self._path, self._buffer.getvalue())
            self._buffer.close()

    def abort(self) -> None:
        """Leave nothing."""
        self._buffer.close()

    @property
    def closed(self) -> bool:
        """Whether `close` or `abort` was called."""
        return self._buffer.closed

    def __enter__(self) -> MemoryOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
