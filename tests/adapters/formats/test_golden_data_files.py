"""Avro and ORC files of Java are read by their schema, and rewritten with the same types on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from attrs import frozen
from support.golden_tables import golden_directory

from paimon.adapters.formats.avro import AvroFormat
from paimon.adapters.formats.orc import OrcFormat
from paimon.adapters.formats.records import AvroRecordIO
from paimon.domain.schema.table_schema import TableSchema, schema_from_json
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND, to_key_field
from paimon.ports.formats import FormatIO, ReadRequest, WriteRequest, WrittenFile
from paimon.testing.memory_files import MemoryFiles

FORMATS: dict[str, FormatIO] = {"avro": AvroFormat(), "orc": OrcFormat()}
HOME = golden_directory()
PATH = "/table/bucket-0/data-0"


@frozen(eq=False)
class GoldenFile:
    path: Path
    rows: int
    fields: tuple[DataField, ...]


def fields_of(schema: TableSchema) -> tuple[DataField, ...]:
    if not schema.primary_keys:
        return schema.fields
    by_name = {f.name: f for f in schema.fields}
    keys = tuple(to_key_field(by_name[name]) for name in schema.trimmed_primary_keys)
    return (*keys, SEQUENCE_NUMBER, VALUE_KIND, *schema.fields)


def entries_of(table: Path) -> dict[str, dict[str, Any]]:
    manifests = [p for p in table.glob("manifest/manifest-*") if "list" not in p.name]
    records = [r for p in manifests for r in AvroRecordIO().read_records(p.read_bytes(), str(p))]
    return {r["_FILE"]["_FILE_NAME"]: r["_FILE"] for r in records}


def golden_files(identifier: str) -> Iterator[GoldenFile]:
    for table in sorted({p.parents[0] for p in HOME.glob("*/table/manifest")}):
        files = sorted(table.rglob(f"*.{identifier}"))
        entries = entries_of(table) if files else {}
        for path in files:
            entry = entries[path.name]
            schema = next(iter(table.rglob(f"schema-{entry['_SCHEMA_ID']}")))
            fields = fields_of(schema_from_json(schema.read_bytes(), str(schema)))
            yield GoldenFile(path, entry["_ROW_COUNT"], fields)


def read(format_io: FormatIO, source: pa.NativeFile, fields: tuple[DataField, ...]) -> pa.Table:
    table = pa.Table.from_batches(list(format_io.read(source, ReadRequest(PATH, fields))))
    table.validate(full=True)
    return table


def write_file(format_io: FormatIO, table: pa.Table, fields: tuple[DataField, ...]) -> tuple[bytes, WrittenFile]:
    files = MemoryFiles()
    writer = format_io.writer(files.create(PATH), WriteRequest(PATH, fields))
    writer.write(table)
    written_file = writer.close()
    return files.read(PATH), written_file


@pytest.mark.parametrize("identifier", FORMATS)
def test_every_file_is_read_and_rewritten(identifier: str) -> None:
    count = 0
    for file in golden_files(identifier):
        table = read(FORMATS[identifier], pa.memory_map(str(file.path)), file.fields)
        assert table.num_rows == file.rows, file.path
        data, written_file = write_file(FORMATS[identifier], table, file.fields)
        assert (written_file.size_bytes, written_file.row_count) == (len(data), file.rows)
        again = read(FORMATS[identifier], pa.BufferReader(data), file.fields)
        assert repr(again.to_pylist()) == repr(table.to_pylist()), file.path
        count += 1
    assert count > 50


def attributes(schema: Any) -> list[tuple[str, dict[str, str]]]:
    """Kind and attributes of a type and all within, as an independent reader sees them."""
    inner = list(schema.fields.values()) if hasattr(schema, "fields") else []
    inner += [part for name in ("type", "key", "value") if hasattr(part := getattr(schema, name, None), "attributes")]
    return [(str(schema), dict(schema.attributes)), *(a for part in inner for a in attributes(part))]


def test_orc_types_and_attributes_are_javas() -> None:
    seen = set()
    for file in golden_files("orc"):
        theirs = attributes(pyorc.Reader(file.path.open("rb")).schema)
        if file.fields in seen or not any(found for _, found in theirs):
            continue  # releases before 1.0 wrote no attributes
        seen.add(file.fields)
        table = read(FORMATS["orc"], pa.memory_map(str(file.path)), file.fields)
        data, _ = write_file(FORMATS["orc"], table, file.fields)
        ours = attributes(pyorc.Reader(pa.BufferReader(data)).schema)
        assert ours == theirs, file.path
    assert len(seen) > 5
