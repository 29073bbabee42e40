"""MemoryFiles: a FileIO that is a dictionary, for tests and simulations.

Invariant: it fulfils the contract of the port exactly. A file is complete or absent, and one of several concurrent
`put_if_absent` calls creates the file.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa

from paimon.adapters.files.output import BufferedOutput
from paimon.domain.errors import NotFound
from paimon.ports.files import WHOLE_BYTES, FileStatus, PutOutcome, check_whole


class MemoryFiles:
    """A FileIO in memory; `contents` maps each path to the bytes of the file."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Return the bytes of a file; a file with more than `max_bytes` is refused."""
        found = self._content(path)
        check_whole(path, len(found), max_bytes)
        return found

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for reading, with seek."""
        return pa.BufferReader(self._content(path))

    def create(self, path: str) -> BufferedOutput:
        """Create a file that becomes visible when it is closed."""
        return BufferedOutput(path, self.replace)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file unless it exists."""
        with self._lock:
            if path in self.contents:
                return PutOutcome.EXISTS
            self.contents[path] = data
            return PutOutcome.CREATED

    def replace(self, path: str, data: bytes) -> None:
        """Write the file, whether it exists or not."""
        with self._lock:
            self.contents[path] = data

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the entries of a directory by name."""
        prefix = path.rstrip("/") + "/"
        with self._lock:
            below = {p.removeprefix(prefix): len(data) for p, data in self.contents.items() if p.startswith(prefix)}
        names = {rest.split("/", 1)[0]: "/" in rest for rest in below}
        return [
            FileStatus(prefix + name, 0 if is_directory else below[name], is_directory)
            for name, is_directory in sorted(names.items())
        ]

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path, or None."""
        with self._lock:
            if path in self.contents:
                return FileStatus(path, len(self.contents[path]), False)
            is_directory = any(p.startswith(path.rstrip("/") + "/") for p in self.contents)
        return FileStatus(path, 0, True) if is_directory else None

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files; a missing file is no error."""
        with self._lock:
            for path in paths:
                self.contents.pop(path, None)

    def _content(self, path: str) -> bytes:
        with self._lock:
            found = self.contents.get(path)
        if found is None:
            raise NotFound("file", path)
        return found
