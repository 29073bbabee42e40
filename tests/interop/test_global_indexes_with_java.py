"""Global indexes with Java: each side reads the files of the other, and both write the same bytes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.java_paimon import JavaPaimon

import paimon
from paimon.domain.index.btree_reader import BtreeFile
from paimon.domain.manifest.entries import IndexManifestEntry
from paimon.operations.metadata.manifests import read_index_manifest
from paimon.operations.read.global_indexes import open_index

pytestmark = pytest.mark.interop

ROWS = 600
COLUMNS = {
    "id": "INT", "a": "INT", "s": "STRING", "b": "BIGINT", "f": "DOUBLE", "fl": "FLOAT", "m": "DECIMAL(10,2)",
    "l": "DECIMAL(30,3)", "d": "DATE", "t3": "TIMESTAMP(3)", "t6": "TIMESTAMP(6)", "t9": "TIMESTAMP(9)",
    "si": "SMALLINT", "bo": "BOOLEAN", "z": "TIMESTAMP_LTZ(6)",
}  # fmt: skip
REPEATED = {"a", "s", "f", "bo"}
"""Columns with equal values, whose row ids Java writes in any order."""
CONDITIONS = (
    "a = 5", "a IN (1, 2, 90)", "a < -60", "s = 'k000020ä'", "s LIKE 'k0000%'", "s IS NULL", "b > 390000000000000",
    "f = 0.0", "f > 55", "fl <= -49.5", "m = 5.25", "l >= 4900000000000000000000", "d < DATE '2019-07-05'",
    "t3 = TIMESTAMP '1970-01-01 02:46:40'", "t6 > TIMESTAMP '1970-01-05 14:30:00'",
    "t9 > TIMESTAMP '1970-01-05 14:30:00'", "si BETWEEN 5 AND 9", "bo = TRUE AND a = 3",
    "z < TIMESTAMP '2000-12-31 23:59:59.999820'", "a = 5 OR s IS NULL",
)  # fmt: skip
SMALL = {"btree-index.block-size": "1 kb", "btree-index.records-per-range": "200"}


def make_row(number: int) -> dict[str, Any]:
    x, start = (number * 7919) % ROWS - 200, dt.datetime(1970, 1, 1)
    return {
        "id": number, "a": x // 3, "s": None if number % 11 == 0 else f"k{x // 2:06d}ä", "b": x * 10**12,
        "f": [x / 7, float("nan"), -0.0, 0.0, float("-inf")][number % 5], "fl": x / 4, "m": Decimal(x) / 4,
        "l": Decimal(x * 10**20) / 8, "d": dt.date(2020, 1, 1) + dt.timedelta(days=x),
        "t3": start + dt.timedelta(milliseconds=x * 10**7), "t6": start + dt.timedelta(microseconds=x * 10**9 + x),
        "t9": start + dt.timedelta(microseconds=x * 10**9 + x), "si": x, "bo": x % 2 == 0,
        "z": dt.datetime(2001, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=x),
    }  # fmt: skip


def create(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    table = catalog.create_table("d.t", columns, options=options)
    table.write([make_row(number) for number in range(ROWS)])
    return table


def list_files(table: paimon.Table) -> dict[str, list[tuple[IndexManifestEntry, bytes, BtreeFile]]]:
    """Return the index files by column, those with the smallest keys first."""
    snapshot = table.snapshot()
    assert snapshot is not None and snapshot.index_manifest is not None
    columns = {field.id: field for field in table.table_schema.fields}
    found: dict[str, list[tuple[IndexManifestEntry, bytes, BtreeFile]]] = {}
    for entry in read_index_manifest(table.context, snapshot.index_manifest):
        assert entry.global_index is not None
        data = Path(table.location, "index", entry.file_name).read_bytes()
        column = columns[entry.global_index.index_field_id]
        file = open_index(column, entry, lambda at, size, data=data: data[at : at + size])  # type: ignore[misc]
        found.setdefault(column.name, []).append((entry, data, file))
    return {name: sorted(files, key=lambda f: next(f[2].read_all())[0]) for name, files in found.items()}


def check_answers(table: paimon.Table) -> None:
    plain = table.with_options({"global-index.enabled": "false"})
    for where in CONDITIONS:
        scan = table.scan(columns=["id"], where=where)
        found, expected = scan.to_arrow(), plain.scan(columns=["id"], where=where).to_arrow()
        assert sorted(found["id"].to_pylist()) == sorted(expected["id"].to_pylist()) != [], where
        assert "global index btree" in scan.plan().explain()


def test_both_sides_write_the_same_files(java: JavaPaimon, tmp_path: Path) -> None:
    table = create(tmp_path)
    for column in list(COLUMNS)[1:]:
        assert java.build_global_index(Path(table.location), column, SMALL) == 3
    check_answers(table)
    theirs = list_files(table)
    ours_table = table.with_options(SMALL | {"btree-index.records-per-range": "240"})  # Java adds a fifth
    for column in list(COLUMNS)[1:]:
        assert ours_table.maintain.drop_global_index(column).files == 3
        assert ours_table.maintain.create_global_index(column).rows == ROWS
    ours = list_files(table)
    for name, files in theirs.items():
        for (entry, data, _), (own_entry, own_data, _) in zip(files, ours[name], strict=True):
            assert own_entry.row_count == entry.row_count
            if name not in REPEATED:
                assert (own_data, own_entry.file_size) == (data, entry.file_size), name
                assert entry.global_index is not None and own_entry.global_index is not None
                own_meta, meta = own_entry.global_index.index_meta or b"", entry.global_index.index_meta or b""
                assert own_meta[: len(meta)] == meta
        keys = [[(k, sorted(i.tolist())) for f in side for k, i in f[2].read_all()] for side in (files, ours[name])]
        assert merge_keys(keys[0]) == merge_keys(keys[1]), name
    check_answers(table)


def merge_keys(found: list[tuple[Any, list[int]]]) -> dict[Any, list[int]]:
    """Return the row ids by key; the rows of a key may be in two files."""
    rows: dict[Any, list[int]] = {}
    for key, ids in found:
        rows[key] = sorted([*rows.get(key, []), *ids])
    return rows


def test_java_reads_with_our_index(java: JavaPaimon, tmp_path: Path) -> None:
    table, rows = create(tmp_path), [make_row(number) for number in range(ROWS)]
    directory = Path(table.location)
    for column in ("a", "s"):
        table.with_options(SMALL).maintain.create_global_index(column)
    assert java.select_by_index(directory, 1, "=", 5) == [r["id"] for r in rows if r["a"] == 5]
    assert java.select_by_index(directory, 1, ">=", 100) == sorted(r["id"] for r in rows if r["a"] >= 100)
    expected = sorted(r["id"] for r in rows if r["s"] is not None and r["s"] < "k000010")
    assert java.select_by_index(directory, 2, "<", "k000010") == expected
    assert java.select_by_index(directory, 2, "null") == sorted(r["id"] for r in rows if r["s"] is None)
    table.maintain.drop_global_index("a")
    assert len(java.select_by_index(directory, 1, "=", 5)) == ROWS


def test_rows_that_java_does_not_find_are_found(java: JavaPaimon, tmp_path: Path) -> None:
    """Java 1.4.2 leaves out rows that were appended after the index was built."""
    table = create(tmp_path)
    java.build_global_index(Path(table.location), "a", SMALL)
    java.build_global_index(Path(table.location), "s", SMALL | {"btree-index.compression": "zstd"})
    java.build_global_index(Path(table.location), "si", SMALL | {"btree-index.compression": "lz4"})
    for where in ("s LIKE 'k00000%'", "si < 10"):
        assert "global index btree" in table.scan(where=where).plan().explain()
        plain = table.with_options({"global-index.enabled": "false"}).scan(columns=["id"], where=where)
        assert table.scan(columns=["id"], where=where).to_arrow() == plain.to_arrow()
    table.write([{**make_row(7), "id": ROWS, "a": 5}])
    assert ROWS not in java.select_by_index(Path(table.location), 1, "=", 5)
    assert ROWS in table.scan(where="a = 5").to_arrow()["id"].to_pylist()
    table.maintain.create_global_index("a")
    assert ROWS in java.select_by_index(Path(table.location), 1, "=", 5)
