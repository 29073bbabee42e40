"""The formats of data files by name, and the codec of manifests, each loaded when it is first used.

Importing the libraries behind the formats takes longer than most programs take to connect, and most programs use one
format. Invariant: a format is the same object each time, also when threads request it concurrently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.manifest.record_columns import RecordColumns
from paimon.ports.cache import ObjectCache
from paimon.ports.formats import FormatIO, RecordIO


def _load_parquet(memory_bytes: int, footers: ObjectCache | None) -> FormatIO:
    from paimon.adapters.formats.parquet import ParquetFormat

    return ParquetFormat(memory_bytes, footers)


def _load_orc(memory_bytes: int, footers: ObjectCache | None) -> FormatIO:
    from paimon.adapters.formats.orc import OrcFormat

    return OrcFormat(memory_bytes)


def _load_avro(memory_bytes: int, footers: ObjectCache | None) -> FormatIO:
    from paimon.adapters.formats.avro import AvroFormat

    return AvroFormat()


def _load_blob(memory_bytes: int, footers: ObjectCache | None) -> FormatIO:
    from paimon.adapters.formats.blob import BlobFormat

    return BlobFormat()


_LOADERS: Mapping[str, Callable[[int, ObjectCache | None], FormatIO]] = {
    "parquet": _load_parquet,
    "orc": _load_orc,
    "avro": _load_avro,
    "blob": _load_blob,
}


@frozen(eq=False)
class FormatsOnDemand(Mapping[str, FormatIO]):
    """Parquet, ORC and Avro data files, and the files of BLOB columns, by format name."""

    # memory budget that a format may use to read one file
    memory_bytes: int
    # keeps footers of data files for later reads
    footers: ObjectCache | None = None
    # formats of the embedder, which replace those of the same name
    own: Mapping[str, FormatIO] = field(factory=dict)
    # formats of installed packages, which are looked for if there is no other format of a name
    installed: Mapping[str, FormatIO] = field(factory=dict)
    _loaded: dict[str, FormatIO] = field(factory=dict, init=False, repr=False)

    def __getitem__(self, format_name: str) -> FormatIO:
        if format_name in self.own:
            return self.own[format_name]
        if format_name not in _LOADERS:
            return self.installed[format_name]
        found = self._loaded.get(format_name)
        if found is None:
            found = self._loaded.setdefault(format_name, _LOADERS[format_name](self.memory_bytes, self.footers))
        return found

    def __contains__(self, format_name: object) -> bool:
        return format_name in self.own or format_name in _LOADERS or format_name in self.installed

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.own, *_LOADERS, *self.installed)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@frozen
class RecordsOnDemand:
    """`paimon.ports.formats.RecordIO`, whose Avro library is loaded with the first file."""

    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        """Read all records of a file."""
        return _record_io().read_records(data, path)

    def read_columns(
        self, files: Sequence[tuple[str, bytes]], kind: pa.StructType
    ) -> tuple[RecordColumns, Sequence[int]]:
        """Read the records of files as columns, and the number of records of each file."""
        return _record_io().read_columns(files, kind)

    def select_blocks(self, data: bytes, path: str, values: Collection[bytes]) -> tuple[bytes, int]:
        """Leave out blocks without any of these values, and return the number of their records."""
        return _record_io().select_blocks(data, path, values)

    def write_records(
        self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
    ) -> bytes:
        """Encode records as a file; see `paimon.ports.formats.RecordIO.write_records`."""
        return _record_io().write_records(records, schema, compression, format_name)


def _record_io() -> RecordIO:
    from paimon.adapters.formats.records import AvroRecordIO

    return AvroRecordIO()
