"""File indexes have the bytes that Java writes for the same rows, and golden reads do not depend on them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.canonical_rows import rows_of, types_of
from support.golden_input import parse_input
from support.golden_tables import golden_directory, golden_reads

import paimon
from paimon.domain.index.build_indexes import IndexBuilder
from paimon.domain.index.container import decode_head, encode_container
from paimon.domain.schema.declared_indexes import declare_indexes
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import type_from_json
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.testing.conformance.golden import rows_to_arrow

VECTORS = Path(__file__).resolve().parents[1] / "data" / "file_indexes.tar.xz"
"""The `.index` file of a table with all types and kinds that Java 1.4.2 wrote, with the schema and the rows."""
CASES = sorted(path.parent.name for path in golden_directory().glob("idx_*/case.json"))


def build(fields: tuple[DataField, ...], options: dict[str, str], rows: pa.Table) -> bytes:
    builder = IndexBuilder(declare_indexes(fields, options), fields)
    for start in range(0, rows.num_rows, 37):
        builder.add(rows.slice(start, 37))
    return encode_container(builder.close())


def read_vectors() -> tuple[dict[str, Any], list[dict[str, Any]], bytes]:
    with tarfile.open(fileobj=io.BytesIO(VECTORS.read_bytes())) as archive:
        schema, rows, data = (
            archive.extractfile(name).read()  # type: ignore[union-attr]
            for name in ("schema.json", "rows.jsonl", "java.index")
        )
    return json.loads(schema), parse_input(rows.decode()), data


def test_indexes_of_all_types_have_the_bytes_of_java() -> None:
    schema, rows, java = read_vectors()
    fields = tuple(
        DataField(i, f["name"], type_from_json(f["type"], f["name"])) for i, f in enumerate(schema["fields"])
    )
    ours = build(fields, schema["options"], rows_to_arrow(rows, fields))
    by_index = {(e.column, e.kind): e.cut(ours, "ours") for e in decode_head(ours, "ours")}
    assert by_index == {(e.column, e.kind): e.cut(java, "java") for e in decode_head(java, "java")}
    assert ours == java


@pytest.mark.parametrize("case", CASES)
def test_indexes_of_golden_tables_have_the_bytes_of_java(case: str) -> None:
    table = paimon.open_table(golden_directory() / case / "table")
    fields, options = table.table_schema.fields, dict(table.table_schema.options)
    scan = table.scan()
    files = [(Bucket.of(scan.context, split), file) for split in scan.plan().splits for file in split.files]
    for bucket, file in files:
        rows = pa.Table.from_batches(read_data_file(bucket, file, fields))
        java = file.embedded_index or Path(f"{bucket.path_of(file)}.index").read_bytes()
        assert build(fields, options, rows) == java
    assert files


@pytest.mark.parametrize("case", CASES)
def test_golden_reads_without_indexes_return_the_same_rows(case: str) -> None:
    filtered = [r for r in golden_reads(golden_directory()) if r.case == case and "where" in r.arguments]
    for read in filtered:
        table = paimon.open_table(read.table, {"file-index.read.enabled": "false"})
        scan = table.scan(**{k: v for k, v in read.arguments.items() if k != "options"})
        assert rows_of(scan.to_arrow(), types_of(scan.fields)) == read.rows(), read.name
    assert filtered or case == "idx_bloom_map"
