"""Contract tests of the port FileSharing, for a format whose files another decoder may read.

An adapter that keeps the contract of `paimon.ports.formats.FileSharing` passes. Derive a class from
`FileSharingContract`, whose `make_format` returns the format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from paimon.domain.errors import CorruptTable
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.ports.formats import FileSharing, FormatIO, ShareRequest, WriteRequest
from paimon.ports.queries import SharedFile
from paimon.testing.contracts.files import expect_error
from paimon.testing.memory_files import MemoryFiles

_PATH = "/table/bucket-0/data-0"
_ROWS = 500
_DAMAGE = b"\xff" * 24
_FIELDS = (
    DataField(0, "n", dt.BigIntType()),
    DataField(1, "s", dt.VarCharType()),
    DataField(2, "same", dt.IntType()),
)


class FileSharingContract(ABC):
    """Derive a test class from this one and implement `make_format`."""

    @abstractmethod
    def make_format(self) -> FormatIO:
        """Return a format that also is a `FileSharing`."""

    def test_the_bytes_are_those_of_the_file(self) -> None:
        """Of any range; fewer only at the end. The source stays open."""
        whole = self._write_shareable()
        source = pa.BufferReader(whole)
        shared = self._share_bytes(source)
        assert shared is not None
        assert (shared.path, shared.size) == (_PATH, len(whole))
        for size, start in ((len(whole), 0), (10, 0), (8, len(whole) - 8), (100, len(whole) - 3), (7, 100)):
            assert shared.read_at(size, start) == whole[start : start + size]
        assert not source.closed and shared.checks_bytes >= 0

    def test_checked_pages_are_not_another_file(self) -> None:
        """A file that is shared with the checks of an earlier one has its own bytes, and its own damage."""
        whole = self._write_shareable()
        first = self._share_bytes(pa.BufferReader(whole))
        assert first is not None
        first.read_at(len(whole), 0)
        again = self._share_bytes(pa.BufferReader(whole), checks=first.checks)
        assert again is not None and again.read_at(len(whole), 0) == whole
        damaged = self._damage_page(whole)
        expect_error(CorruptTable, partial(self._read_shared, damaged, checks=first.checks))

    def test_a_damaged_page_is_never_returned(self) -> None:
        """Neither with the whole file nor with a part of the column."""
        damaged = self._damage_page(self._write_shareable())
        for size, start in ((len(damaged), 0), (16, 4)):
            error = expect_error(CorruptTable, partial(self._read_shared, damaged, size, start))
            assert isinstance(error, CorruptTable) and error.path == _PATH

    def test_a_cut_file_is_corrupt(self) -> None:
        """And so is one of another format."""
        whole = self._write_shareable()
        for data in (whole[:-1], whole[: len(whole) // 2], b"", b"no file of this format"):
            error = expect_error(CorruptTable, partial(self._share_bytes, pa.BufferReader(data)))
            assert isinstance(error, CorruptTable) and error.path == _PATH

    def test_another_number_of_rows_is_corrupt(self) -> None:
        """A decoder that trusts the file would return rows that the table does not have."""
        source = pa.BufferReader(self._write_shareable())
        expect_error(CorruptTable, partial(self._share_bytes, source, row_count=_ROWS + 1))

    def test_a_file_of_other_values_is_not_shared(self) -> None:
        """A column that is not constant, that is stored with another type, or that the file lacks."""
        whole = self._write_shareable()
        for constants in ({"same": 8}, {"n": 0}, {"same": 7, "n": 0}):
            assert self._share_bytes(pa.BufferReader(whole), constants=constants) is None
        for field in (
            DataField(0, "n", dt.IntType()),
            DataField(1, "s", dt.VarBinaryType()),
            DataField(9, "new", dt.IntType()),
        ):
            assert self._share_bytes(pa.BufferReader(whole), fields=(field,)) is None

    def _write_shareable(self) -> bytes:
        files = MemoryFiles()
        writer = self.make_format().writer(files.create(_PATH), WriteRequest(_PATH, _FIELDS))
        numbers = pa.array([n if n % 3 else None for n in range(_ROWS)], pa.int64())
        texts = pa.array([f"text {n * 7919 % 1000}" for n in range(_ROWS)])
        writer.write(pa.table({"n": numbers, "s": texts, "same": pa.array([7] * _ROWS, pa.int32())}))
        writer.close()
        return files.read(_PATH)

    def _damage_page(self, whole: bytes) -> bytes:
        """Overwrite the begin of the first page."""
        return whole[:4] + _DAMAGE + whole[4 + len(_DAMAGE) :]

    def _share_bytes(
        self, source: pa.NativeFile, fields: Sequence[DataField] = _FIELDS, row_count: int = _ROWS, **more: Any
    ) -> SharedFile | None:
        format_io = self.make_format()
        assert isinstance(format_io, FileSharing)
        return format_io.share(source, ShareRequest(_PATH, tuple(fields), row_count, **more))

    def _read_shared(self, data: bytes, size: int | None = None, start: int = 0, **more: Any) -> bytes:
        shared = self._share_bytes(pa.BufferReader(data), **more)
        assert shared is not None
        return shared.read_at(len(data) if size is None else size, start)
