"""Wrong codecs of manifests, and wrong ways to share a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve

from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.formats.records import AvroRecordIO
from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY
from paimon.ports.formats import ShareRequest
from paimon.testing import contracts
from support.contract_mistakes.planting import plant

RECORDS = contracts.RecordIOContract


@plant(RECORDS, "test_written_records_are_read", "The whole file, with the records in their order.")
class WriteInOrderOfNames(AvroRecordIO):
    def write_records(self, records: Iterable[Mapping[str, Any]], *more: Any) -> bytes:
        return super().write_records(sorted(records, key=lambda record: str(record.get("_FILE_NAME"))), *more)


@plant(RECORDS, "test_written_records_are_read", "One dict per record in file order")
class ReadFirstBlock(AvroRecordIO):
    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        return super().read_records(data, path)[:256]


@plant(RECORDS, "test_written_records_are_read", "Values are those that were written: a time is its number.")
class ReadTimesInSeconds(AvroRecordIO):
    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        found = super().read_records(data, path)
        for record in found:
            if (record.get("_FILE") or {}).get("_CREATION_TIME"):
                record["_FILE"]["_CREATION_TIME"] //= 1_000
        return found


@plant(RECORDS, "test_columns_have_the_records_of_all_files", "The records of all files, in the order of the files.")
class ColumnsOfReversedFiles(AvroRecordIO):
    def read_columns(self, files: Sequence[tuple[str, bytes]], kind: pa.StructType) -> Any:
        columns, counts = super().read_columns(files[::-1], kind)
        return columns, counts[::-1]


@plant(RECORDS, "test_columns_have_the_records_of_all_files", "The number of records of each file.")
class CountsOfFullFiles(AvroRecordIO):
    def read_columns(self, files: Sequence[tuple[str, bytes]], kind: pa.StructType) -> Any:
        columns, counts = super().read_columns(files, kind)
        return columns, [count for count in counts if count]


@plant(RECORDS, "test_records_with_a_value_remain", "a file of an unknown version is noticed")
class OnlyBlocksWithValues(AvroRecordIO):
    def select_blocks(self, data: bytes, path: str, values: Collection[bytes]) -> tuple[bytes, int]:
        records = self.read_records(data, path)
        found = [record for record in records if record["_PARTITION"] in values]
        return self.write_records(found, MANIFEST_ENTRY, "zstd", "avro"), len(records) - len(found)


@plant(RECORDS, "test_records_with_a_value_remain", "The number of records that were left out.")
class UncountedBlocks(AvroRecordIO):
    def select_blocks(self, data: bytes, path: str, values: Collection[bytes]) -> tuple[bytes, int]:
        return super().select_blocks(data, path, values)[0], 0


@plant(RECORDS, "test_a_column_that_the_file_lacks_is_null", "A column that a file lacks is null.")
class ColumnsOfTheFile(AvroRecordIO):
    def read_columns(self, files: Sequence[tuple[str, bytes]], kind: pa.StructType) -> Any:
        known = set(self.read_records(files[0][1], files[0][0])[0])
        return super().read_columns(files, pa.struct([field for field in kind if field.name in known]))


@plant(RECORDS, "test_damaged_files_are_corrupt", "never an error of a third-party library")
class RawErrorsOfRecords(AvroRecordIO):
    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        try:
            return super().read_records(data, path)
        except CorruptTable as error:
            raise ValueError(str(error)) from error


@plant(RECORDS, "test_damaged_files_are_corrupt", "raises CorruptTable with its path")
class DamageIsTheEnd(AvroRecordIO):
    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        try:
            return super().read_records(data, path)
        except CorruptTable:
            return []


@plant(RECORDS, "test_a_small_file_cannot_fill_the_memory", "small hostile file cannot fill the memory")
class UnlimitedRecords(AvroRecordIO):
    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        try:
            return super().read_records(data, path)
        except CorruptTable as error:
            if "decompresses" in error.reason:
                return [{}]
            raise


@plant(RECORDS, "test_unknown_formats_and_codecs_are_refused", "The format or the compression is not known.")
class AvroForAll(AvroRecordIO):
    def write_records(self, records: Any, schema: Any, compression: str, format_name: str) -> bytes:
        known = format_name if format_name in ("avro", "parquet", "orc") else "avro"
        return super().write_records(records, schema, compression, known)


SHARING = contracts.FileSharingContract


class _Unchecked:
    """The bytes of a file without a check."""

    checks = None
    checks_bytes = 0

    def __init__(self, source: pa.NativeFile, path: str) -> None:
        self._source, self.path, self.size = source, path, source.size()

    def read_at(self, size: int, start: int) -> bytes:
        return bytes(self._source.read_at(size, start))


@plant(
    SHARING,
    "test_a_damaged_page_is_never_returned",
    "The bytes of the requested columns are checked when they are read",
)
class ShareUnchecked(ParquetFormat):
    def share(self, source: pa.NativeFile, request: ShareRequest) -> Any:
        return super().share(source, request) and _Unchecked(source, request.path)


@plant(SHARING, "test_another_number_of_rows_is_corrupt", "The file is damaged, or has another number of rows.")
class ShareAnyRows(ParquetFormat):
    def share(self, source: pa.NativeFile, request: ShareRequest) -> Any:
        return super().share(source, evolve(request, row_count=500))


@plant(SHARING, "test_a_file_of_other_values_is_not_shared", "or the file does not prove the constants")
class ShareWithoutConstants(ParquetFormat):
    def share(self, source: pa.NativeFile, request: ShareRequest) -> Any:
        return super().share(source, evolve(request, constants={}))


@plant(SHARING, "test_a_file_of_other_values_is_not_shared", "a column has another stored type or is missing")
class ShareWithoutFields(ParquetFormat):
    def share(self, source: pa.NativeFile, request: ShareRequest) -> Any:
        return super().share(source, evolve(request, fields=()))


@plant(SHARING, "test_the_bytes_are_those_of_the_file", "The result reads it, and the caller does not close it.")
class ShareOfAClosedSource(ParquetFormat):
    def share(self, source: pa.NativeFile, request: ShareRequest) -> Any:
        with source:
            return super().share(source, request)


@plant(SHARING, "test_a_cut_file_is_corrupt", "The file is damaged, or has another number of rows.")
class ShareNoDamage(ParquetFormat):
    def share(self, source: pa.NativeFile, request: ShareRequest) -> Any:
        try:
            return super().share(source, request)
        except CorruptTable:
            return None
