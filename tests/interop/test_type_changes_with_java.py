"""Both sides read the same values after the type of a column changed, from files of every format."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.java_paimon import JavaPaimon

import paimon

pytestmark = pytest.mark.interop

FORMATS = ("parquet", "orc", "avro")
CHANGES: dict[str, tuple[str, str, list[Any], list[Any]]] = {
    "decimal_scale": (
        "DECIMAL(10, 4)",
        "v TYPE DECIMAL(10, 2)",
        [Decimal("4.5678"), Decimal("-4.565"), Decimal("1.2345"), None],
        [Decimal("4.57"), Decimal("-4.57"), Decimal("1.23"), None],
    ),
    "row": (
        "ROW<a INT, r ROW<x DOUBLE, y ARRAY<INT>>>",
        "v TYPE STRING",
        [{"a": 1, "r": {"x": 1e10, "y": [1, None]}}, {"a": None, "r": None}, None],
        ["{1, {1.0E10, [1, null]}}", "{null, null}", None],
    ),
    "row_is_not_cut": ("ROW<a INT, b STRING>", "v TYPE CHAR(4)", [{"a": 1, "b": "x"}, None], ["{1, x}", None]),
    "map": (
        "MAP<STRING, ROW<a INT>>",
        "v TYPE STRING",
        [[("k", {"a": 7})], [("l", None)], [], None],
        ["{k -> {7}}", "{l -> null}", "{}", None],
    ),
    "map_is_not_cut": ("MAP<INT, INT>", "v TYPE VARCHAR(4)", [[(1, 2), (3, 4)]], ["{1 -> 2, 3 -> 4}"]),
    "array_is_not_cut": (
        "ARRAY<ROW<a INT>>",
        "v TYPE VARCHAR(4)",
        [[{"a": 1}, None], [], None],
        ["[{1}, null]", "[]", None],
    ),
    "field": ("ROW<i ROW<a INT>>", "v.i TYPE STRING", [{"i": {"a": 1}}, {"i": None}], [{"i": "{1}"}, {"i": None}]),
}  # fmt: skip


@pytest.mark.parametrize("file_format", FORMATS)
def test_both_read_the_same_values_after_a_type_change(java: JavaPaimon, tmp_path: Path, file_format: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    for name, (stored, change, values, expected) in CHANGES.items():
        table = catalog.create_table(f"d.{name}", f"k INT, v {stored}", options={"file.format": file_format})
        column = pa.array(values, table.arrow_schema.field("v").type)
        table.write(pa.table({"k": list(range(len(values))), "v": column}))
        table.alter(f"ALTER COLUMN {change}", allow_lossy=True)
        ours = catalog.table(f"d.{name}").scan().to_arrow().sort_by("k")["v"].to_pylist()
        assert ours == expected, name
        java_values = {row["k"]: row["v"] for row in java.read(tmp_path / "d.db" / name)}
        texts = [str(value) if isinstance(value, Decimal) else value for value in expected]
        assert [java_values[position] for position in range(len(values))] == texts, name
