"""Contract tests of the port RecordIO, with records of manifests, manifest lists and index manifests.

An adapter that keeps the contract of `paimon.ports.formats.RecordIO` passes. Derive a class from `RecordIOContract`,
whose `make_records` returns the adapter.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from paimon.domain.errors import CorruptTable, InvalidRequest, PaimonError, Unsupported
from paimon.domain.manifest.avro_schema import INDEX_MANIFEST_ENTRY, MANIFEST_ENTRY, MANIFEST_LIST
from paimon.domain.manifest.entry_columns import arrow_of
from paimon.ports.formats import RecordIO
from paimon.testing.contracts.files import expect_error
from paimon.testing.contracts.races import run_together

PATH = "/t/manifest/manifest-7"
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "manifest": MANIFEST_ENTRY,
    "manifest list": MANIFEST_LIST,
    "index manifest": INDEX_MANIFEST_ENTRY,
}
FORMATS = ("avro", "parquet", "orc")
_MANY = 600
_SEED = 7
_DAMAGES = 60
_ZEROS_BYTES = 64 << 20


class RecordIOContract(ABC):
    """The tests of the port. A subclass implements `make_records`."""

    @abstractmethod
    def make_records(self) -> RecordIO:
        """Return the adapter."""

    def test_written_records_are_read(self) -> None:
        """In their order, of each format, with and without compression; also a file without records."""
        codec = self.make_records()
        for schema in SCHEMAS.values():
            records = make_records(schema, _MANY)
            for format_name, compression, count in zip(FORMATS, ("none", "zstd", "zstd"), (_MANY, 40, 40), strict=True):
                data = codec.write_records(records[:count], schema, compression, format_name)
                assert list(codec.read_records(data, PATH)) == records[:count]
            for compression in ("none", "zstd"):
                assert list(codec.read_records(codec.write_records([], schema, compression, "avro"), PATH)) == []

    def test_columns_have_the_records_of_all_files(self) -> None:
        """In the order of the files, which may differ in format and size; the counts are those of the files."""
        codec = self.make_records()
        for schema in SCHEMAS.values():
            records = make_records(schema, _MANY + 50)
            cuts = [records[:5], [], records[5:_MANY], records[_MANY : _MANY + 40], records[_MANY + 40 :]]
            formats = ("avro", "avro", "avro", "parquet", "avro")
            files = [
                (f"{PATH}{n}", codec.write_records(cut, schema, "zstd", name))
                for n, (cut, name) in enumerate(zip(cuts, formats, strict=True))
            ]
            columns, counts = codec.read_columns(files, arrow_of(schema))
            assert list(counts) == [len(cut) for cut in cuts]
            assert len(columns) == len(records)
            assert columns.take(np.arange(len(records))).to_pylist() == records
            few = np.array([0, 4, 5, _MANY - 1, _MANY, len(records) - 1])
            assert columns.take(few).to_pylist() == [records[row] for row in few]
            for name in ("_VERSION", "_FILE_NAME", "_PARTITION"):
                if name in records[0]:
                    assert columns.column(name).to_pylist() == [record[name] for record in records]

    def test_nested_columns_are_found_by_their_names(self) -> None:
        """Numbers are int64, whatever their width in the file."""
        codec = self.make_records()
        records = make_records(MANIFEST_ENTRY, _MANY)
        data = codec.write_records(records, MANIFEST_ENTRY, "zstd", "avro")
        columns, _ = codec.read_columns([(PATH, data)], arrow_of(MANIFEST_ENTRY))
        for name in ("_LEVEL", "_FILE_SIZE", "_CREATION_TIME", "_FILE_SOURCE", "_MIN_KEY", "_EXTRA_FILES"):
            found = columns.column("_FILE", name)
            assert found.to_pylist() == [record["_FILE"][name] for record in records]
            assert not pa.types.is_integer(found.type) or found.type == pa.int64()

    def test_records_with_a_value_remain(self) -> None:
        """In their order, with the first one of the file; the others are counted."""
        codec = self.make_records()
        for format_name, count in zip(FORMATS, (_MANY, 10, 10), strict=True):
            records = make_records(MANIFEST_ENTRY, count)
            data = codec.write_records(records, MANIFEST_ENTRY, "zstd", format_name)
            found, left_out = codec.select_blocks(data, PATH, [records[-1]["_PARTITION"]])
            remaining = _read_as_columns(codec, found, PATH)
            assert len(remaining) + left_out == count
            assert [remaining[0], remaining[-1]] == [records[0], records[-1]]
            assert remaining == [record for record in records if record in remaining]

    def test_a_column_that_the_file_lacks_is_null(self) -> None:
        """And one that is not requested is ignored."""
        codec = self.make_records()
        records = make_records(MANIFEST_LIST, _MANY)
        data = codec.write_records(records, MANIFEST_LIST, "zstd", "avro")
        kind = pa.struct([("_FILE_NAME", pa.string()), ("_OF_TOMORROW", pa.int64())])
        columns, _ = codec.read_columns([(PATH, data)], kind)
        assert columns.column("_FILE_NAME").to_pylist() == [record["_FILE_NAME"] for record in records]
        assert columns.column("_OF_TOMORROW").null_count == _MANY

    def test_damaged_files_are_corrupt(self) -> None:
        """A cut file is corrupt, or ends between two blocks; a changed one raises no other type than PaimonError."""
        codec = self.make_records()
        records = make_records(MANIFEST_ENTRY, 30)
        places = random.Random(_SEED)
        for format_name in FORMATS:
            whole = codec.write_records(records, MANIFEST_ENTRY, "zstd", format_name)
            for _ in range(_DAMAGES):
                at = places.randrange(len(whole))
                for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
                    self._check_damaged(codec, data, records, is_cut=len(data) == at)
        for data in (b"", b"no magic", b'{"version": 3}'):
            error = expect_error(CorruptTable, partial(codec.read_records, data, PATH))
            assert isinstance(error, CorruptTable) and error.path == PATH

    def _check_damaged(self, codec: RecordIO, data: bytes, records: Sequence[Any], is_cut: bool) -> None:
        for read in (codec.read_records, partial(_read_as_columns, codec)):
            try:
                found = read(data, PATH)
            except CorruptTable as error:
                assert error.path == PATH
            except PaimonError:
                assert not is_cut
            else:
                assert not is_cut or (list(found) == records[: len(found)] and len(found) < len(records))

    def test_a_small_file_cannot_fill_the_memory(self) -> None:
        """64 MiB of zeros, which a codec makes small, are refused."""
        codec = self.make_records()
        bomb = {**make_records(MANIFEST_ENTRY, 1)[0], "_PARTITION": bytes(_ZEROS_BYTES)}
        data = codec.write_records([bomb], MANIFEST_ENTRY, "zstd", "avro")
        for read in (codec.read_records, partial(_read_as_columns, codec)):
            expect_error(CorruptTable, partial(read, data, PATH))

    def test_unknown_formats_and_codecs_are_refused(self) -> None:
        """Nothing else is written instead."""
        codec = self.make_records()
        for compression, format_name in (("zstd", "json"), ("no such codec", "avro")):
            write = partial(codec.write_records, [], MANIFEST_LIST, compression, format_name)
            error = expect_error(PaimonError, write)
            assert isinstance(error, InvalidRequest | Unsupported)

    def test_threads_share_the_adapter(self) -> None:
        """Each reads what it wrote."""
        codec = self.make_records()

        def write_and_read(count: int) -> bool:
            """Return whether the records are the same."""
            records = make_records(MANIFEST_LIST, count)
            return (
                list(codec.read_records(codec.write_records(records, MANIFEST_LIST, "zstd", "avro"), PATH)) == records
            )

        assert all(run_together([partial(write_and_read, count) for count in (10, 20, 30)]))


def make_records(schema: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Make records of an Avro schema.

    Parameters
    ----------
    schema : mapping
        A record of numbers, strings, bytes, arrays, nested records, and unions with null.
    count : int
        How many.

    Returns
    -------
    list of dict
        Different records; each third value that may be null is.
    """
    return [_make_value(schema, number) for number in range(count)]


def _make_value(kind: Any, number: int) -> Any:
    if isinstance(kind, list):
        return None if number % 3 == 1 else _make_value(kind[1], number)
    if isinstance(kind, Mapping) and kind["type"] == "record":
        fields = enumerate(kind["fields"])
        return {field["name"]: _make_value(field["type"], number + place) for place, field in fields}
    if isinstance(kind, Mapping) and kind["type"] == "array":
        return [_make_value(kind["items"], number + place) for place in range(number % 3)]
    plain = kind["type"] if isinstance(kind, Mapping) else kind
    values = {
        "int": number % 100 - 3,
        "long": (number - 5) << 33,
        "string": f"text-{number} ä",
        "bytes": b"\0k%d" % number,
    }
    return values[plain]


def _read_as_columns(codec: RecordIO, data: bytes, path: str) -> list[Any]:
    columns, counts = codec.read_columns([(path, data)], arrow_of(MANIFEST_ENTRY))
    assert list(counts) == [len(columns)]
    found: list[Any] = columns.take(np.arange(len(columns))).to_pylist()
    return found
