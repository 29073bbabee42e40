"""Adapters of others, whose errors reach callers as errors of this library that name the adapter.

Invariant: an error of this library passes unchanged. The optional methods of a port are there if the adapter has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import SEEK_END, SEEK_SET, RawIOBase
from typing import cast

import pyarrow as pa
from attrs import field, frozen

from paimon.adapters.call_proxy import CallProxy
from paimon.adapters.files.output import Output
from paimon.adapters.files.put_if_absent import prove_exclusive
from paimon.domain.errors import CorruptTable, PaimonError, StorageError
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataField
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
from paimon.ports.formats import (
    FileContent,
    FileInspection,
    FileSharing,
    FormatIO,
    FormatWriter,
    ReadRequest,
    ShareRequest,
    WriteRequest,
    WrittenFile,
)
from paimon.ports.queries import QueryEngine, SharedFile


@contextmanager
def translate_errors(build: Callable[[str], PaimonError], keep_cause: bool = True) -> Iterator[None]:
    """Raise what `build` returns for an error that code of others raises in a block; it gets the text of the error.

    Without `keep_cause`, nothing shows the original error, whose text may contain a secret.
    """
    try:
        yield
    except PaimonError:
        raise
    except Exception as error:
        raise build(f"raised {type(error).__name__}: {error}") from (error if keep_cause else None)


def _translate(
    adapter: object, path: str, kind: type[StorageError] | type[CorruptTable] = StorageError
) -> AbstractContextManager[None]:
    return translate_errors(lambda text: kind(path, f"{type(adapter).__name__} {text}"))


def guard_files(files: FileIO, *, single_writer: bool = False) -> FileIO:
    """Return a storage whose errors are translated. With `single_writer`, it may overwrite in `put_if_absent`."""
    guards = ((Directories, _Directories), (ManyFiles, _ManyFiles), (DeferredFlush, _DeferredFlush))
    optional = [guard for port, guard in guards if isinstance(files, port)]
    guarded: FileIO = type("GuardedFiles", (*optional, _Files), {})(files, single_writer)
    return guarded


@frozen(eq=False, slots=False)
class _Files:
    inner: FileIO
    single_writer: bool
    # holds one element after a trial showed that the storage does not overwrite files that exist
    _proofs: list[bool] = field(factory=list, init=False, repr=False)

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        with _translate(self.inner, path):
            return self.inner.read(path, max_bytes)

    def open(self, path: str) -> pa.NativeFile:
        with _translate(self.inner, path):
            opened = self.inner.open(path)
        if type(opened) in _PLAIN_FILES:
            return opened
        return pa.PythonFile(_OpenFile(opened, self.inner, path), mode="r")

    def create(self, path: str) -> OutputFile:
        with _translate(self.inner, path):
            return _Output(self.inner.create(path), self.inner, path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        if not self._proofs and not self.single_writer:
            prove_exclusive(path, self._put, self.read, self.delete, self._describe_overwriting(path))
            self._proofs.append(True)
        return self._put(path, data)

    def _put(self, path: str, data: bytes) -> PutOutcome:
        with _translate(self.inner, path):
            outcome: object = self.inner.put_if_absent(path, data)
        if not isinstance(outcome, PutOutcome):
            name = type(self.inner).__name__
            raise StorageError(path, f"{name}.put_if_absent returned {outcome!r}, which is not a PutOutcome")
        return outcome

    def _describe_overwriting(self, path: str) -> StorageError:
        name = type(self.inner).__name__
        promise = "of put_if_absent, FileIO promises that 'an existing file never changes'"
        return StorageError(path, f"{name} overwrites existing files, as a trial showed; {promise}", hint=_CONTRACT)

    def replace(self, path: str, data: bytes) -> None:
        with _translate(self.inner, path):
            self.inner.replace(path, data)

    def list(self, path: str) -> Sequence[FileStatus]:
        with _translate(self.inner, path):
            found = tuple(self.inner.list(path))
            names = [status.name for status in found]
            is_listed = all(isinstance(status.size, int) and status.size >= 0 for status in found)
        if is_listed and names == sorted(names):
            return found
        promise = "all entries in ascending order of their names, and their sizes in bytes"
        name = type(self.inner).__name__
        raise StorageError(path, f"{name}.list returned entries without order or size; FileIO promises {promise}",
                           hint=_CONTRACT)  # fmt: skip

    def status(self, path: str) -> FileStatus | None:
        with _translate(self.inner, path):
            return self.inner.status(path)

    def delete(self, paths: Sequence[str]) -> None:
        with _translate(self.inner, paths[0] if paths else ""):
            self.inner.delete(paths)


_CONTRACT = "run paimon.testing.contracts.FileIOContract on the adapter"
_PLAIN_FILES = (pa.BufferReader, pa.MemoryMappedFile)
"""Files of Arrow that read memory, whose reads do not fail."""


class _OpenFile(RawIOBase):
    """A file that `open` of a storage returned, as `pyarrow.PythonFile` reads it."""

    def __init__(self, inner: pa.NativeFile, files: FileIO, path: str) -> None:
        self._inner, self._files, self._path = inner, files, path

    def read(self, size: int = -1) -> bytes:
        with _translate(self._files, self._path):
            return cast(bytes, self._inner.read(None if size < 0 else size))

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        with _translate(self._files, self._path):
            return cast(int, self._inner.seek(offset, whence))

    def tell(self) -> int:
        with _translate(self._files, self._path):
            return cast(int, self._inner.tell())

    def size(self) -> int:
        """Return the size of the file, which Arrow asks for."""
        at = self.tell()
        size = self.seek(0, SEEK_END)
        self.seek(at)
        return size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            super().close()
            with _translate(self._files, self._path):
                self._inner.close()


class _Output(Output):
    def __init__(self, inner: OutputFile, files: FileIO, path: str) -> None:
        self._inner, self._files, self._path = inner, files, path

    def write(self, data: bytes) -> int:
        with _translate(self._files, self._path):
            return self._inner.write(data)

    def tell(self) -> int:
        with _translate(self._files, self._path):
            return self._inner.tell()

    def flush(self) -> None:
        with _translate(self._files, self._path):
            self._inner.flush()

    def close(self) -> None:
        with _translate(self._files, self._path):
            self._inner.close()

    def abort(self) -> None:
        with _translate(self._files, self._path):
            self._inner.abort()

    @property
    def closed(self) -> bool:
        return self._inner.closed


class _Directories(_Files):
    inner: Directories  # type: ignore[assignment]

    def make_directory(self, path: str) -> None:
        with _translate(self.inner, path):
            self.inner.make_directory(path)

    def move_directory(self, source: str, target: str) -> None:
        with _translate(self.inner, source):
            self.inner.move_directory(source, target)

    def delete_directory(self, path: str) -> None:
        with _translate(self.inner, path):
            self.inner.delete_directory(path)


class _ManyFiles(_Files):
    inner: ManyFiles  # type: ignore[assignment]

    def create_all(self, files: Mapping[str, bytes]) -> None:
        with _translate(self.inner, next(iter(files), "")):
            self.inner.create_all(files)


class _DeferredFlush(_Files):
    inner: DeferredFlush  # type: ignore[assignment]

    def create_deferred(self, path: str) -> OutputFile:
        with _translate(self.inner, path):
            return _Output(self.inner.create_deferred(path), cast(FileIO, self.inner), path)

    def flush_and_create(self, deferred: Collection[str], files: Mapping[str, bytes]) -> None:
        with _translate(self.inner, next(iter((*deferred, *files)), "")):
            self.inner.flush_and_create(deferred, files)


def guard_catalog_store(store: CatalogStore) -> CatalogStore:
    """Return a catalog whose errors are translated."""
    return cast(CatalogStore, _Guarded(store, "catalog"))


def guard_queries(engine: QueryEngine) -> QueryEngine:
    """Return a query engine whose errors are translated, except those of the rows of a result."""
    return cast(QueryEngine, _Guarded(engine, "SQL query"))


@frozen(eq=False, slots=False)
class _Guarded(CallProxy):
    """An adapter, each method of which translates its errors; `what` stands for the path in them."""

    what: str

    def _surround(self, name: str) -> AbstractContextManager[object]:
        return _translate(self.inner, self.what)


def guard_format(format_io: FormatIO) -> FormatIO:
    """Return a format whose errors are translated: those of reads to CorruptTable, those of writes to StorageError."""
    pairs = ((FileSharing, _Sharing), (FileInspection, _Inspection))
    optional = [guard for port, guard in pairs if isinstance(format_io, port)]
    guarded: FormatIO = type("GuardedFormat", (*optional, _Format), {})(format_io)
    return guarded


@frozen(eq=False, slots=False)
class _Format:
    inner: FormatIO

    @property
    def identifier(self) -> str:
        return self.inner.identifier

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        with _translate(self.inner, request.path, CorruptTable):
            yield from self.inner.read(source, request)

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        with _translate(self.inner, request.path):
            return _Writer(self.inner.writer(sink, request), request.path)


class _Sharing(_Format):
    inner: FileSharing  # type: ignore[assignment]

    def share(self, source: pa.NativeFile, request: ShareRequest) -> SharedFile | None:
        with _translate(self.inner, request.path, CorruptTable):
            return self.inner.share(source, request)


class _Inspection(_Format):
    inner: FileInspection  # type: ignore[assignment]

    def inspect(self, source: pa.NativeFile, path: str) -> FileContent:
        with _translate(self.inner, path, CorruptTable):
            return self.inner.inspect(source, path)

    def read_statistics(self, source: pa.NativeFile, path: str, fields: Sequence[DataField]) -> Sequence[ColumnStats]:
        with _translate(self.inner, path, CorruptTable):
            return self.inner.read_statistics(source, path, fields)


@frozen(eq=False)
class _Writer:
    inner: FormatWriter
    path: str

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        with _translate(self.inner, self.path):
            self.inner.write(batch)

    def estimated_bytes(self) -> int:
        with _translate(self.inner, self.path):
            return self.inner.estimated_bytes()

    def held_bytes(self) -> int:
        with _translate(self.inner, self.path):
            return self.inner.held_bytes()

    def flush(self) -> None:
        with _translate(self.inner, self.path):
            self.inner.flush()

    def close(self) -> WrittenFile:
        with _translate(self.inner, self.path):
            return self.inner.close()

    def abort(self) -> None:
        with _translate(self.inner, self.path):
            self.inner.abort()
