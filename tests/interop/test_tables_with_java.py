"""Each side reads what the other writes, and both continue each other's tables, for every type and format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.canonical_rows import render, rows_of, types_of
from support.case_lists import mark_nightly, mark_products
from support.java_paimon import JavaPaimon, canonical
from support.tables import create_table

import paimon
from paimon.domain.json_text import dump_json
from paimon.domain.row.values import to_array
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.type_text import type_to_json

pytestmark = pytest.mark.interop

FORMATS = ("parquet", "orc", "avro")
SECOND = 1_000_000_000
NOW = 1_706_745_599 * SECOND
# Java's ORC reads timestamps of the last second before 1970 one second too late, also its own: so 1.x before.
BEFORE_1970 = -SECOND

TYPES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False, None],
    "TINYINT": [-128, 127, None],
    "SMALLINT": [-32768, 32767, None],
    "INT": [-(2**31), 2**31 - 1, None],
    "BIGINT": [-(2**63), 2**63 - 1, None],
    "FLOAT": [1.5, float("inf"), None],
    "DOUBLE": [-0.1, float("nan"), None],
    "DECIMAL(9, 2)": [Decimal("-1234567.89"), Decimal("0.00"), None],
    "DECIMAL(18, 3)": [Decimal("123456789012345.678"), Decimal("-0.001"), None],
    "DECIMAL(38, 10)": [Decimal("-1234567890123456789012345678.0123456789"), Decimal("1.0000000000"), None],
    "CHAR(3)": ["abc", "äöü", None],
    "VARCHAR(10)": ["x", "", None],
    "STRING": ["long enough to be cut in statistics", "日本語 \U0001f600", None],
    "BINARY(3)": [b"\x00\x01\xff", b"abc", None],
    "VARBINARY(5)": [b"", b"\xff" * 5, None],
    "BYTES": [b"\x00", b"bytes", None],
    "DATE": [0, -719_162, None],
    "TIME(3)": [0, 86_399_999, None],
    "TIMESTAMP(0)": [NOW, -SECOND, None],
    "TIMESTAMP(3)": [NOW + 123_000_000, BEFORE_1970 - 1_000_000, None],
    "TIMESTAMP(6)": [NOW + 123_456_000, BEFORE_1970 - 1_000, None],
    "TIMESTAMP(9)": [NOW + 123_456_789, BEFORE_1970 - 1, None],
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": [NOW + 123_000_000, 0, None],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [NOW + 123_456_000, 0, None],
    "ARRAY<INT>": [[1, None, 3], [], None],
    "MAP<STRING, BIGINT>": [[("a", 1), ("b", None)], [], None],
    "MULTISET<STRING>": [[("a", 2)], [], None],
    "ROW<x INT, y STRING>": [(1, "y"), (None, None), None],
    "ARRAY<ROW<x INT, y ARRAY<STRING>>>": [[(1, ["a", None])], [None], None],
}
NOT_IN = {"avro": {"TIMESTAMP(9)"}}
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {"options": {"bucket": "-1"}},
    "bucketed": {"options": {"bucket": "2", "bucket-key": "id"}},
    "keyed": {"primary_keys": ["id"], "options": {"bucket": "2"}},
    "partitioned": {"primary_keys": ["p", "id"], "partition_keys": ["p"], "options": {"bucket": "1"}},
}


class Data:
    """A table with all types of a format, as Arrow for us and as JSON for Java."""

    def __init__(self, file_format: str) -> None:
        kinds = [kind for kind in TYPES if kind not in NOT_IN.get(file_format, ())]
        columns = ["id BIGINT NOT NULL", "p STRING NOT NULL", *(f"c{i} {kind}" for i, kind in enumerate(kinds))]
        self.ddl = ", ".join(columns)
        self.fields: Sequence[DataField] = parse_columns(self.ddl)
        self.values: list[list[Any]] = [[1, 2, 3], ["a", "b", "a"], *(TYPES[kind] for kind in kinds)]

    @property
    def arrow(self) -> pa.Table:
        arrays = [to_array(v, f.type) for v, f in zip(self.values, self.fields, strict=True)]
        return pa.table(arrays, names=[f.name for f in self.fields])

    @property
    def rows(self) -> list[Any]:
        columns = [[render(v, f.type) for v in values] for values, f in zip(self.values, self.fields, strict=True)]
        return canonical(
            json.loads(json.dumps(dict(zip([f.name for f in self.fields], row, strict=True))))
            for row in zip(*columns, strict=True)
        )

    @property
    def java_types(self) -> dict[str, Any]:
        return {f.name: type_to_json(f.type) for f in self.fields}


def read_rows(directory: Path) -> list[Any]:
    """The rows that we read."""
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    return canonical(json.loads(line) for line in rows_of(table.scan().to_arrow(), types_of(table.table_schema.fields)))


def create_table_and_path(tmp_path: Path, ddl: str, **layout: Any) -> tuple[paimon.Table, Path]:
    return create_table(tmp_path, ddl, "d.t", **layout), tmp_path / "d.db" / "t"


def with_format(layout: dict[str, Any], file_format: str) -> dict[str, Any]:
    return {**layout, "options": {**layout["options"], "file.format": file_format}}


@pytest.mark.parametrize(("layout", "file_format"), mark_products(LAYOUTS, FORMATS))
def test_java_reads_our_tables(java: JavaPaimon, tmp_path: Path, layout: str, file_format: str) -> None:
    data = Data(file_format)
    table, directory = create_table_and_path(tmp_path, data.ddl, **with_format(LAYOUTS[layout], file_format))
    table.write(data.arrow)
    assert java.read(directory) == data.rows
    assert read_rows(directory) == data.rows


@pytest.mark.parametrize(("layout", "file_format"), mark_products(LAYOUTS, FORMATS))
def test_we_read_javas_tables(java: JavaPaimon, tmp_path: Path, layout: str, file_format: str) -> None:
    data = Data(file_format)
    directory = tmp_path / "t"
    java.create(directory, data.java_types, **with_format(LAYOUTS[layout], file_format))
    java.write(directory, data.rows)
    assert read_rows(directory) == data.rows


@pytest.mark.parametrize("file_format", mark_nightly(FORMATS, always=["orc"]))
def test_both_write_one_primary_key_table_alternately(java: JavaPaimon, tmp_path: Path, file_format: str) -> None:
    layout = with_format(LAYOUTS["partitioned"], file_format)
    table, directory = create_table_and_path(tmp_path, "id BIGINT NOT NULL, p STRING NOT NULL, v STRING", **layout)
    expected: dict[tuple[str, int], Any] = {}
    for step in range(1, 7):
        rows = [{"id": i, "p": "ab"[i % 2], "v": f"{step}-{i}"} for i in range(step % 3, 4)]
        kinds = ["-D" if row["id"] == step % 4 else "+I" for row in rows]
        if step % 2:
            table.write([{**row, "op": kind} for row, kind in zip(rows, kinds, strict=True)], kind_column="op")
        else:
            marked = [{**row, "_ROW_KIND": kind} for row, kind in zip(rows, kinds, strict=True)]
            java.write(directory, marked, identifier=step, compact=step == 4)
        for row, kind in zip(rows, kinds, strict=True):
            expected.pop((row["p"], row["id"]), None)
            if kind == "+I":
                expected[row["p"], row["id"]] = row
        assert read_rows(directory) == canonical(expected.values()), f"ours after step {step}"
        assert java.read(directory) == canonical(expected.values()), f"Java after step {step}"


def test_both_write_one_append_table_alternately(java: JavaPaimon, tmp_path: Path) -> None:
    table, directory = create_table_and_path(tmp_path, "id BIGINT, p STRING, v STRING", partition_keys=["p"])
    expected = []
    for step in range(1, 6):
        rows = [{"id": step, "p": p, "v": None} for p in ("x", "y z", "ü/%", None, "")]
        if step % 2:
            table.write(rows)
        else:
            java.write(directory, rows, identifier=step)
        expected += rows
        assert read_rows(directory) == canonical(expected)
        assert java.read(directory) == canonical(expected)


def test_white_space_partitions_are_in_the_same_directories(java: JavaPaimon, tmp_path: Path) -> None:
    """Partition values of white space, of look-alikes and of control characters, written by both sides."""
    table, directory = create_table_and_path(tmp_path, "id BIGINT, p STRING", partition_keys=["p"])
    codes = [0x7F, 0x85, 0xA0, 0x1680, 0x2003, 0x2007, 0x200B, 0x2028, 0x202F, 0x205F, 0x3000, 0xFEFF]
    values = [*map(chr, range(0x21)), *map(chr, codes), "\u3000 \t", "\u3000x", "", None]
    rows = [{"id": i, "p": p} for i, p in enumerate(values)]
    table.write(rows)
    before = {path.name for path in directory.glob("p=*")}
    java.write(directory, rows)
    assert {path.name for path in directory.glob("p=*")} == before
    assert read_rows(directory) == java.read(directory) == canonical([*rows, *rows])


def test_both_overwrite_alternately(java: JavaPaimon, tmp_path: Path) -> None:
    ddl = "id BIGINT NOT NULL, p STRING NOT NULL"
    table, directory = create_table_and_path(tmp_path, ddl, **LAYOUTS["partitioned"])
    table.write([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])
    java.write(directory, [{"id": 3, "p": "a"}], overwrite={"p": "a"})
    table.overwrite([{"id": 4, "p": "b"}])
    left = [{"id": 3, "p": "a"}, {"id": 4, "p": "b"}]
    assert java.read(directory) == read_rows(directory) == canonical(left)
    table.overwrite([{"id": 5, "p": "c"}], partition={})
    assert java.read(directory) == read_rows(directory) == [{"id": 5, "p": "c"}]


def test_both_give_nested_fields_the_same_ids(java: JavaPaimon, tmp_path: Path) -> None:
    ddl = "a INT, b ROW<x INT, y ROW<z STRING, w ARRAY<ROW<v INT>>>>, c MAP<STRING, ROW<u ROW<t INT>>>, d INT"
    types = {f.name: type_to_json(f.type) for f in parse_columns(ddl)}
    java.create(tmp_path / "theirs", types, options={"bucket": "-1"})
    _, ours = create_table_and_path(tmp_path, ddl, options={"bucket": "-1"})
    first, second = (json.loads((path / "schema" / "schema-0").read_text()) for path in (tmp_path / "theirs", ours))
    assert first["fields"] == second["fields"]
    assert first["highestFieldId"] == second["highestFieldId"] == 10


def test_java_reads_our_statistics(java: JavaPaimon, tmp_path: Path) -> None:
    nested = ("ARRAY", "MAP", "MULTISET", "ROW", "VARIANT", "BLOB")
    names = [name for name in TYPES if not name.startswith(nested)]
    table = create_table(tmp_path, ", ".join(f"c{i} {name}" for i, name in enumerate(names)))
    pairs = zip(names, table.table_schema.fields, strict=True)
    table.write(pa.table({f.name: to_array(TYPES[name], f.type) for name, f in pairs}))
    stored = table.analyze().statistics

    assert java.statistics(Path(table.location)).encode() == dump_json(stored.to_json())
    counts = {(c.null_count, c.distinct_count) for c in stored.columns.values()}
    assert counts == {(1, 2)}
    assert java.snapshot(Path(table.location))["commitKind"] == "ANALYZE"
    java.write(Path(table.location), [])
    assert len(table.scan().to_arrow()) == 3
