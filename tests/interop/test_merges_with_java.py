"""Merge engines: Java reads our flushed files as we do, and we read Java's as it does, commit by commit.

A generator with a fixed seed draws the histories: few keys, so that rows are merged, and every row kind that the engine
accepts. Both sides also compact, and read each other's result.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.canonical_rows import rows_of, types_of
from support.case_lists import mark_nightly
from support.java_paimon import JavaPaimon, canonical

import paimon
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.type_text import format_type, type_to_json

pytestmark = pytest.mark.interop

KEY = "k INT NOT NULL"
NUMBERS = f"{KEY}, a INT, b BIGINT, c DOUBLE, d DECIMAL(9, 2)"
GROUPS = f"{KEY}, a INT, b BIGINT, g INT, c DOUBLE, d DECIMAL(9, 2), h INT, i INT, f STRING"
IN_GROUPS = {"merge-engine": "partial-update", "fields.g.sequence-group": "a,b", "fields.h,i.sequence-group": "c,d"}
ADDS, ALL = ("+I", "+I", "+U"), ("+I", "+I", "+U", "-U", "-D")


def aggregate_options(*functions: str, **more: str) -> dict[str, str]:
    """Aggregation of a, b, c, d by these functions."""
    chosen = {f"fields.{c}.aggregate-function": f for c, f in zip("abcd", functions, strict=False)}
    return {"merge-engine": "aggregation", **chosen, **more}


LARGE = f"{KEY}, a TINYINT, b DECIMAL(4, 2), c DECIMAL(9, 0), d DECIMAL(10, 2), e DECIMAL(18, 2), f DECIMAL(19, 2)"
LARGE = f"{LARGE}, g DECIMAL(38, 2)"


def overflow_options(function: str, file_format: str) -> dict[str, str]:
    """Aggregation of a to g by one function, over values whose results leave their types."""
    return {
        "merge-engine": "aggregation", "file.format": file_format,
        **{f"fields.{c}.aggregate-function": function for c in "abcdefg"},
    }  # fmt: skip


CASES: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "deduplicate": (NUMBERS, {}, ALL),
    "two sequence fields": (NUMBERS, {"sequence.field": "a,c"}, ALL),
    "ignored deletes": (NUMBERS, {"ignore-delete": "true"}, ALL),
    "ignored update-befores": (NUMBERS, {"ignore-update-before": "true"}, ALL),
    "partial update": (NUMBERS, {"merge-engine": "partial-update"}, ADDS),
    "partial update with a sequence": (NUMBERS, {"merge-engine": "partial-update", "sequence.field": "a"}, ADDS),
    "partial update that ignores deletes": (NUMBERS, {"merge-engine": "partial-update", "ignore-delete": "true"}, ALL),
    "partial update that removes": (
        NUMBERS, {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}, ALL,
    ),
    "groups": (GROUPS, IN_GROUPS, ALL),
    "groups that remove": (GROUPS, IN_GROUPS | {"partial-update.remove-record-on-sequence-group": "h"}, ALL),
    "groups with sums": (GROUPS, IN_GROUPS | {f"fields.{c}.aggregate-function": "sum" for c in "abcd"}, ALL),
    "groups with picks": (GROUPS, IN_GROUPS | {
        "fields.a.aggregate-function": "first_value", "fields.b.aggregate-function": "last_non_null_value",
        "fields.c.aggregate-function": "max", "fields.d.aggregate-function": "first_non_null_value",
    }, ADDS),
    "groups with picks taken back": (GROUPS, IN_GROUPS | {
        "fields.a.aggregate-function": "last_value", "fields.b.aggregate-function": "last_non_null_value",
        "fields.c.aggregate-function": "product", "fields.d.aggregate-function": "sum",
        "fields.f.aggregate-function": "last_non_null_value",
    }, ALL),
    "sums": (NUMBERS, aggregate_options("sum", "sum", "sum", "sum"), ALL),
    "products": (NUMBERS, aggregate_options("product", "product", "product", "product"), ADDS),
    "products taken back": (NUMBERS, aggregate_options("sum", "sum", "product", "sum"), ALL),
    "extremes": (NUMBERS, aggregate_options("max", "min", "max", "min"), ADDS),
    "last values": (
        NUMBERS, aggregate_options("last_value", "last_non_null_value", "last_value", "last_non_null_value"), ALL,
    ),
    "first values": (
        NUMBERS, aggregate_options("first_value", "first_non_null_value", "first_value", "first_non_null_value"), ADDS,
    ),
    "retracts ignored": (NUMBERS, aggregate_options("max", "first_value", "sum", "min", **{
        f"fields.{c}.ignore-retract": "true" for c in "abcd"
    }), ALL),
    "sums that a delete ends": (NUMBERS, aggregate_options("sum", "max", "sum", "last_value", **{
        "aggregation.remove-record-on-delete": "true", "fields.b.ignore-retract": "false",
    }), ("+I", "+U", "-D")),
    "sums by a sequence": (NUMBERS, aggregate_options("sum", "last_value", "max", **{"sequence.field": "d"}), ADDS),
    "texts": (f"{KEY}, s STRING, t STRING, x BOOLEAN, y BOOLEAN", {
        "merge-engine": "aggregation", "fields.s.aggregate-function": "listagg",
        "fields.t.aggregate-function": "listagg", "fields.t.distinct": "true", "fields.t.list-agg-delimiter": ";",
        "fields.x.aggregate-function": "bool_and", "fields.y.aggregate-function": "bool_or",
    }, ADDS),
    "a default function": (NUMBERS, {
        "merge-engine": "aggregation", "fields.default-aggregate-function": "sum", "fields.b.aggregate-function": "max",
    }, ADDS),
    **{
        f"{function} beyond the type in {name}": (LARGE, overflow_options(function, name), kinds)
        for name in ("parquet", "orc", "avro") for function, kinds in (("sum", ALL), ("product", ADDS))
    },
}  # fmt: skip
"""DDL, options, and the row kinds that come."""

VALUES: Mapping[str, list[Any]] = {
    "INT": [None, -2, 0, 1, 3, 7], "BIGINT": [None, -5, 0, 2, 4], "DOUBLE": [None, -1.5, 0.5, 1.0, 4.25],
    "DECIMAL(9, 2)": [None, "-1.50", "0.25", "1.00", "3.33"], "STRING": [None, "", "x", "y", "x;y"],
    "BOOLEAN": [None, True, False], "TINYINT": [None, -128, 1, 100, 127],
    "DECIMAL(4, 2)": [None, "99.99", "-99.99", "0.01"], "DECIMAL(9, 0)": [None, "999999999", "-999999999", "1"],
    "DECIMAL(10, 2)": [None, "99999999.99", "-99999999.99", "0.15"],
    "DECIMAL(18, 2)": [None, "9999999999999999.99", "-9999999999999999.99", "0.15"],
    "DECIMAL(19, 2)": [None, "99999999999999999.99", "-99999999999999999.99", "0.01"],
    "DECIMAL(38, 2)": [None, "9" * 36 + ".99", "-" + "9" * 36 + ".99", "0.01"],
}  # fmt: skip


def history(ddl: str, kinds: Sequence[str], seed: str) -> list[list[dict[str, Any]]]:
    """Some commits of rows."""
    chance = random.Random(seed)
    values = {f.name: VALUES[format_type(f.type)] for f in parse_columns(ddl) if f.name != "k"}

    def row() -> dict[str, Any]:
        drawn = {name: chance.choice(known) for name, known in values.items()}
        return {"k": chance.randrange(6), **drawn, "_ROW_KIND": chance.choice(kinds)}

    return [[row() for _ in range(chance.randrange(1, 12))] for _ in range(6)]


def read_rows(table: paimon.Table) -> list[Any]:
    fields = table.table_schema.fields
    return canonical(json.loads(line) for line in rows_of(table.scan().to_arrow(), types_of(fields)))


@pytest.mark.parametrize("case", mark_nightly(CASES, always=["two sequence fields", "groups with sums",
    "partial update that removes", "sums", "texts", "product beyond the type in orc"]))  # fmt: skip
def test_both_merge_alike(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    ddl, options, kinds = CASES[case]
    options = {"bucket": "1", "write-only": "true", **options}
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", ddl, primary_keys=["k"], options=options)
    ours_at, theirs_at = tmp_path / "d.db" / "t", tmp_path / "theirs"
    types = {f.name: type_to_json(f.type) for f in parse_columns(ddl)}
    java.create(theirs_at, types, primary_keys=["k"], options=options)
    theirs = paimon.open_table(theirs_at)
    assert isinstance(theirs, paimon.Table)
    for number, rows in enumerate(history(ddl, kinds, case), 1):
        table.write(rows, kind_column="_ROW_KIND")
        java.write(theirs_at, rows, identifier=number)
        if number % 3 == 0:
            expected = java.read(ours_at)
            assert read_rows(table) == expected, f"our commit {number}"
            assert read_rows(theirs) == java.read(theirs_at) == expected, f"Java's commit {number}"
    table.compact(full=True)
    java.write(theirs_at, [], identifier=100, compact=True, options={"write-only": "false"})
    assert read_rows(table) == java.read(ours_at)
    assert read_rows(theirs) == java.read(theirs_at)
    assert read_rows(table) == read_rows(theirs)


@pytest.mark.parametrize("seed", mark_nightly(range(3), always=[0]))
@pytest.mark.parametrize("engine", ["deduplicate", "aggregation"])
def test_both_read_nans_in_sequences_alike(java: JavaPaimon, tmp_path: Path, engine: str, seed: int) -> None:
    """A NaN equals everything, so the order of sorted runs decides. Java's compaction spills some of nine runs."""
    options = {"bucket": "1", "write-only": "true", "merge-engine": engine, "sequence.field": "s"}
    options |= {"fields.v.aggregate-function": "last_value"} if engine == "aggregation" else {}
    chance = random.Random(seed)
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", f"{KEY}, s DOUBLE, v INT", primary_keys=["k"], options=options)
    values = [float("nan"), float("nan"), -0.0, 0.0, 1.0, 2.0, float("inf"), float("-inf"), None]
    for number in range(8):
        keys = chance.sample(range(12), chance.randrange(3, 12))
        table.write([{"k": k, "s": chance.choice(values), "v": number} for k in keys])
        assert read_rows(table) == java.read(tmp_path / "d.db" / "t"), f"after commit {number}"
    theirs_at = tmp_path / "theirs"
    shutil.copytree(tmp_path / "d.db" / "t", theirs_at)
    table.compact(full=True)
    java.write(theirs_at, [], identifier=100, compact=True, options={"write-only": "false"})
    assert read_rows(table) == java.read(theirs_at)


BUFFERED: dict[str, tuple[str, Any, str, int]] = {
    "floats wholly": ("INT", 7, "s", 60),
    "floats behind a flag": ("BOOLEAN", True, "s", 60),
    "floats by two bytes": ("BIGINT", 7, "s", 12),
    "floats behind a text": ("STRING", "text", "s", 12),
    "floats behind a float": ("INT", 7, "r,s", 12),
}
"""The type of the first key column, a value, the sequence, and how many rows come: Java's sort of more than 12, where
sort keys do not order floats, depends on all of them."""


@pytest.mark.parametrize("case", mark_nightly(BUFFERED, always=["floats wholly", "floats behind a text"]))
def test_both_flush_nans_in_sequences_alike(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    """Which of the rows of one flush wins: sort keys order floats wholly, as far as they reach."""
    kind, key, sequence, count = BUFFERED[case]
    options = {"bucket": "1", "write-only": "true", "sequence.field": sequence}
    chance = random.Random(case)
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    ddl = f"k {kind} NOT NULL, n INT NOT NULL, r FLOAT, s DOUBLE, v INT"
    table = catalog.create_table("d.t", ddl, primary_keys=["k", "n"], options=options)
    types = {f.name: type_to_json(f.type) for f in parse_columns(ddl)}
    java.create(tmp_path / "theirs", types, primary_keys=["k", "n"], options=options)
    values = [float("nan"), float("nan"), -0.0, 0.0, 1.0, -1e308, float("-inf"), None]
    values += [] if case == "floats by two bytes" else [float("inf"), 1e308]
    for step in range(1, 9):
        rows: list[dict[str, Any]] = [
            {"k": key, "n": step * 100 + chance.randrange(3), "r": chance.choice(values[:5]),
             "s": chance.choice(values), "v": v}
            for v in range(count)
        ]  # fmt: skip
        table.write(rows)
        java.write(
            tmp_path / "theirs", [{c: _to_json_number(v) for c, v in row.items()} for row in rows], identifier=step
        )
    assert java.read(tmp_path / "d.db" / "t") == java.read(tmp_path / "theirs")


def test_both_order_groups_by_floats_alike(java: JavaPaimon, tmp_path: Path) -> None:
    """A NaN in the sequence of a group is ordered, and so are the later rows. The two zeros are equal."""
    options = {"bucket": "1", "write-only": "true", "merge-engine": "partial-update", "fields.g,h.sequence-group": "a"}
    chance = random.Random(7)
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    ddl = f"{KEY}, g DOUBLE, h INT, a INT"
    table = catalog.create_table("d.t", ddl, primary_keys=["k"], options=options)
    types = {f.name: type_to_json(f.type) for f in parse_columns(ddl)}
    java.create(tmp_path / "theirs", types, primary_keys=["k"], options=options)
    values = [math.nan, math.nan, -0.0, 0.0, 1.0, math.inf, -math.inf, None]
    for step in range(1, 5):
        rows: list[dict[str, Any]] = [
            {"k": k, "g": chance.choice(values), "h": chance.randrange(3), "a": 100 * step + i, "_ROW_KIND": kind}
            for i, (k, kind) in enumerate(zip(chance.choices(range(12), k=30), chance.choices(ALL, k=30), strict=True))
        ]
        table.write(rows, kind_column="_ROW_KIND")
        java.write(
            tmp_path / "theirs", [{c: _to_json_number(v) for c, v in row.items()} for row in rows], identifier=step
        )
    expected = java.read(tmp_path / "theirs")
    assert read_rows(table) == java.read(tmp_path / "d.db" / "t") == expected
    table.compact(full=True)
    assert read_rows(table) == java.read(tmp_path / "d.db" / "t") == expected


def _to_json_number(value: Any) -> Any:
    """JSON cannot represent these numbers."""
    return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN" if value != value else value)


def test_both_drop_expired_rows(java: JavaPaimon, tmp_path: Path) -> None:
    options = {
        "bucket": "1", "write-only": "true", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum",
        "record-level.time-field": "t", "record-level.expire-time": "1 d",
    }  # fmt: skip
    now = int(time.time())
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", f"{KEY}, v INT, t BIGINT", primary_keys=["k"], options=options)
    times = [None, now - 90_000, now, (now - 90_000) * 1000, now * 1000]
    for start in range(3):
        table.write([{"k": k, "v": k + start, "t": times[(k + start) % 5]} for k in range(9)])
    theirs_at = tmp_path / "theirs"
    shutil.copytree(tmp_path / "d.db" / "t", theirs_at)
    before = read_rows(table)
    assert java.read(theirs_at) == before
    table.compact(full=True)
    java.write(theirs_at, [], identifier=100, compact=True, options={"write-only": "false"})
    assert read_rows(table) == java.read(theirs_at) == java.read(tmp_path / "d.db" / "t") != before
