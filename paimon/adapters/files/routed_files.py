"""RoutedFiles: a FileIO that finds the storage of each path by the beginning of the path.

Invariant: files below the location of the tables are in its own storage, and only there a file is put if absent or
replaced. The other storages have data files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

import pyarrow as pa

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


class RoutedFiles:
    """The files of several storages; `others` opens that of a prefix such as ``s3://b/`` on first use."""

    def __init__(self, own: FileIO, others: Mapping[str, Callable[[], FileIO]]) -> None:
        self._own = own
        self._others = dict(others)
        self._opened: dict[str, FileIO] = {}

    def _of(self, path: str) -> FileIO:
        whole = f"{path}/"  # the path of a bucket itself has no slash at its end
        for beginning, open_storage in self._others.items():
            if whole.startswith(beginning):
                return self._opened.get(beginning) or self._opened.setdefault(beginning, open_storage())
        return self._own

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        """Read a whole file."""
        return self._of(path).read(path, max_bytes)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""
        return self._of(path).open(path)

    def create(self, path: str) -> OutputFile:
        """Begin a file."""
        return self._of(path).create(path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file, unless it exists."""
        return self._of(path).put_if_absent(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Create a file, or replace its content."""
        self._of(path).replace(path, data)

    def list(self, path: str) -> Sequence[FileStatus]:
        """List a directory."""
        return self._of(path).list(path)

    def status(self, path: str) -> FileStatus | None:
        """Return what is at a path."""
        return self._of(path).status(path)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files and empty directories, those of each storage together."""
        groups: dict[int, tuple[FileIO, list[str]]] = {}
        for path in paths:
            files = self._of(path)
            groups.setdefault(id(files), (files, []))[1].append(path)
        for files, group in groups.values():
            files.delete(group)


class _RoutedDirectories(RoutedFiles):
    _own: Directories  # type: ignore[assignment]

    def make_directory(self, path: str) -> None:
        """Create a directory of the own storage."""
        self._own.make_directory(path)

    def move_directory(self, source: str, target: str) -> None:
        """Rename a directory of the own storage."""
        self._own.move_directory(source, target)

    def delete_directory(self, path: str) -> None:
        """Delete a directory of the own storage with its content."""
        self._own.delete_directory(path)


class _RoutedManyFiles(RoutedFiles):
    _own: ManyFiles  # type: ignore[assignment]

    def create_all(self, files: Mapping[str, bytes]) -> None:
        """Create several files of the own storage."""
        self._own.create_all(files)


class _RoutedDeferredFlush(RoutedFiles):
    def create_deferred(self, path: str) -> OutputFile:
        """Begin a file; those of other storages are durable after their `close`."""
        files = self._of(path)
        return cast(DeferredFlush, files).create_deferred(path) if files is self._own else files.create(path)

    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        """Flush files of the own storage, and create others there."""
        own = [path for path in deferred if self._of(path) is self._own]
        cast(DeferredFlush, self._own).flush_and_create(own, files)


def route_files(own: FileIO, others: Mapping[str, Callable[[], FileIO]]) -> FileIO:
    """Return the FileIO of a location with others by path prefix, and the optional methods of the first."""
    if not others:
        return own
    pairs = (
        (Directories, _RoutedDirectories),
        (ManyFiles, _RoutedManyFiles),
        (DeferredFlush, _RoutedDeferredFlush),
    )
    optional = [routed for port, routed in pairs if isinstance(own, port)]
    routed: FileIO = type("RoutedFiles", (*optional, RoutedFiles), {})(own, others)
    return routed
