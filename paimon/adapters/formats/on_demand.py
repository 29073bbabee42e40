"""The formats by their identifiers, each loaded when it is first used.

The libraries behind the formats take longer to import than most programs take to connect, and most programs use one of
them. Invariant: a format is the same object each time, and threads may ask for it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.manifest.records.columns import RecordColumns
from paimon.ports.formats import FormatIO, RecordIO


def _load_parquet(memory_bytes: int) -> FormatIO:
    from paimon.adapters.formats.parquet import ParquetFormat

    return ParquetFormat(memory_bytes)


def _load_orc(memory_bytes: int) -> FormatIO:
    from paimon.adapters.formats.orc import OrcFormat

    return OrcFormat(memory_bytes)


def _load_avro(memory_bytes: int) -> FormatIO:
    from paimon.adapters.formats.avro import AvroFormat

    return AvroFormat()


_LOADERS: Mapping[str, Callable[[int], FormatIO]] = {"parquet": _load_parquet, "orc": _load_orc, "avro": _load_avro}


@frozen(eq=False)
class FormatsOnDemand(Mapping[str, FormatIO]):
    """Parquet, ORC and Avro data files by identifier.

    Parameters
    ----------
    memory_bytes : int
        The memory budget that a format may use to read one file.
    """

    memory_bytes: int
    _loaded: dict[str, FormatIO] = field(factory=dict, init=False, repr=False)

    def __getitem__(self, identifier: str) -> FormatIO:
        found = self._loaded.get(identifier)
        return self._loaded.setdefault(identifier, _LOADERS[identifier](self.memory_bytes)) if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(_LOADERS)

    def __len__(self) -> int:
        return len(_LOADERS)


@frozen
class RecordsOnDemand:
    """See `paimon.ports.formats.RecordIO`; the Avro library is loaded with the first file."""

    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        """All records of a file."""
        return _records().read_records(data, path)

    def read_columns(
        self, files: Sequence[tuple[str, bytes]], kind: pa.StructType
    ) -> tuple[RecordColumns, Sequence[int]]:
        """The records of files as columns, and how many each file has."""
        return _records().read_columns(files, kind)

    def write_records(
        self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
    ) -> bytes:
        """The bytes of a file of these records."""
        return _records().write_records(records, schema, compression, format_name)


def _records() -> RecordIO:
    from paimon.adapters.formats.records import AvroRecordIO

    return AvroRecordIO()
