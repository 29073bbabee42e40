"""-0.0 and 0.0 are equal in SQL statements, and two values in conditions of `Table`, as in Java's predicates."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_products

import paimon
from paimon import col

ROWS: list[dict[str, Any]] = [
    {"i": 1, "d": -0.0}, {"i": 2, "d": 0.0}, {"i": 3, "d": -1.0}, {"i": 4, "d": 2.0},
    {"i": 5, "d": math.nan}, {"i": 6, "d": None},
]  # fmt: skip
CONDITIONS: dict[str, tuple[list[int], list[int]]] = {
    "d = 0.0": ([1, 2], [2]),
    "d = -0.0": ([1, 2], [1]),
    "d <> 0": ([3, 4, 5], [1, 3, 4, 5]),
    "d < 0.0": ([3], [1, 3]),
    "d <= -0.0": ([1, 2, 3], [1, 3]),
    "d > -0.0": ([4, 5], [2, 4, 5]),
    "d >= 0": ([1, 2, 4, 5], [2, 4, 5]),
    "d IN (0.0, 7)": ([1, 2], [2]),
    "d NOT IN (0.0)": ([3, 4, 5], [1, 3, 4, 5]),
    "d BETWEEN 0.0 AND 1.0": ([1, 2], [2]),
    "NOT (d = 0.0 OR i = 3)": ([4, 5], [1, 4, 5]),
}
"""The rows that a SQL statement and a method of `Table` select."""
COMPUTED = {text: found for text, found in CONDITIONS.items() if "NOT (" not in text}


def make_tables(home: Path, kind: str, keys: tuple[str, ...], file_format: str = "parquet") -> list[paimon.Table]:
    """The same rows in one file, and each in a file of its own."""
    catalog = paimon.connect(home)
    catalog.create_database("d")
    options = {"file.format": file_format, "write-only": "true", **({"bucket": "1"} if keys else {})}
    tables = [
        catalog.create_table(f"d.{name}", f"i INT NOT NULL, d {kind}", primary_keys=list(keys), options=options)
        for name in ("one", "many")
    ]
    tables[0].write(ROWS)
    for row in ROWS:
        tables[1].write([row])
    return tables


def numbers(rows: Any) -> list[int]:
    return sorted(row["i"] for row in rows.to_arrow().to_pylist())


@pytest.mark.parametrize(("condition", "kind", "keys"), mark_products(CONDITIONS, ["DOUBLE", "FLOAT"], [(), ("i",)],
    always=["d = -0.0", "d <> 0", "d < 0.0", "d IN (0.0, 7)", "NOT (d = 0.0 OR i = 3)"]))  # fmt: skip
def test_every_statement_selects_the_same_rows(
    tmp_path: Path, condition: str, kind: str, keys: tuple[str, ...]
) -> None:
    in_sql, in_table = CONDITIONS[condition]
    catalog = paimon.connect(tmp_path)
    for table in make_tables(tmp_path, kind, keys):
        assert numbers(table.scan(where=condition)) == in_table
        assert numbers(catalog.sql(f"SELECT i FROM {table.name} WHERE {condition}")) == in_sql
        catalog.sql(f"DELETE FROM {table.name} WHERE {condition}")
        assert numbers(table.scan()) == [i for i in range(1, 7) if i not in in_sql]
        assert numbers(catalog.sql(f"SELECT i FROM {table.name} WHERE {condition}")) == []


@pytest.mark.parametrize(("condition", "file_format"), mark_products(COMPUTED, ["parquet", "orc", "avro"],
    always=["d = 0.0", "d > -0.0", "d NOT IN (0.0)", "d BETWEEN 0.0 AND 1.0"]))  # fmt: skip
def test_computed_conditions_have_the_order_of_plain_ones(tmp_path: Path, condition: str, file_format: str) -> None:
    in_sql, in_table = COMPUTED[condition]
    computed = condition.replace("d ", "d * 1 ", 1)
    catalog = paimon.connect(tmp_path)
    for table in make_tables(tmp_path, "DOUBLE", (), file_format):
        assert numbers(table.scan(where=computed)) == in_table
        assert numbers(catalog.sql(f"SELECT i FROM {table.name} WHERE {computed}")) == in_sql
        table.delete(where=computed)
        assert numbers(table.scan()) == [i for i in range(1, 7) if i not in in_table]


VALUES = [-0.0, 0.0, -1.0, 1.0, math.nan]
TERMS: dict[str, Callable[[float], float]] = {
    "{}": lambda d: d,
    "{} * 1": lambda d: d * 1.0,
    "{} + 0.0": lambda d: d + 0.0,
    "-{}": lambda d: -d,
    "abs({})": abs,
    "coalesce({}, 5.0)": lambda d: d,
    "CASE WHEN i >= 0 THEN {} END": lambda d: d,
}
"""Terms over a column, with what IEEE arithmetic, and so Java, computes."""
TESTS: dict[str, Callable[[float, float], bool]] = {
    "{} = {}": lambda a, b: compare(a, b) == 0,
    "{} <> {}": lambda a, b: compare(a, b) != 0,
    "{} < {}": lambda a, b: compare(a, b) < 0,
    "{} <= {}": lambda a, b: compare(a, b) <= 0,
    "{} > {}": lambda a, b: compare(a, b) > 0,
    "{} >= {}": lambda a, b: compare(a, b) >= 0,
    "{} IN ({}, 7.0)": lambda a, b: compare(a, b) == 0,
    "{} NOT IN ({}, 7.0)": lambda a, b: compare(a, b) != 0,
    "{} BETWEEN {} AND 1.0": lambda a, b: compare(a, b) >= 0 and compare(a, 1.0) <= 0,
    "{} NOT BETWEEN -1.0 AND {}": lambda a, b: compare(a, -1.0) < 0 or compare(a, b) > 0,
    "{} IS NOT DISTINCT FROM {}": lambda a, b: compare(a, b) == 0,
    "CASE {} WHEN {} THEN true ELSE false END": lambda a, b: compare(a, b) == 0,
    "nullif({}, {}) IS NULL": lambda a, b: compare(a, b) == 0,
}


def compare(left: float, right: float) -> int:
    """The row-wise rule: Java's `Double.compare`, in which -0.0 < 0.0, and NaN is the largest value."""

    def sort_key(value: float) -> tuple[bool, float, float]:
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1.0, value) * (value == 0.0))

    return (sort_key(left) > sort_key(right)) - (sort_key(left) < sort_key(right))


@pytest.mark.parametrize(
    ("term", "kind"), mark_products(TERMS, ["DOUBLE", "FLOAT"], always=["{}", "{} + 0.0", "-{}", "coalesce({}, 5.0)"])
)
def test_computed_floats_compare_as_java_does(tmp_path: Path, term: str, kind: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", f"i INT, d {kind}, e {kind}")
    pairs = [(d, e) for d in VALUES for e in VALUES]
    table.write([{"i": i, "d": d, "e": e} for i, (d, e) in enumerate(pairs)])
    sides: dict[str, Callable[[float], float]] = {"0.0": lambda _: 0.0, "-0.0": lambda _: -0.0, "e": lambda e: e}
    for test, holds in TESTS.items():
        for side, value in sides.items():
            text = test.format(term.format("d"), side)
            found = [i for i, (d, e) in enumerate(pairs) if holds(TERMS[term](d), value(e))]
            assert numbers(table.scan(where=text)) == found, text
            if test.count("{}") == 2 and test[3] in "=<>":
                text = test.format(side, term.format("d"))
                found = [i for i, (d, e) in enumerate(pairs) if holds(value(e), TERMS[term](d))]
                assert numbers(table.scan(where=text)) == found, text


@pytest.mark.parametrize("condition", ["d = 0.0", "d * 1 = 0.0", "d IN (SELECT CAST(0.0 AS DOUBLE))"])
def test_update_changes_the_rows_that_select_shows(tmp_path: Path, condition: str) -> None:
    catalog = paimon.connect(tmp_path)
    for table in make_tables(tmp_path, "DOUBLE", ("i",)):
        catalog.sql(f"UPDATE {table.name} SET d = 9.0 WHERE {condition}")
        assert numbers(table.scan(where="d = 9.0")) == [1, 2]


def test_merge_matches_and_selects_as_a_query(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    for table in make_tables(tmp_path, "DOUBLE", ()):
        catalog.sql(
            f"MERGE INTO {table.name} AS t USING (SELECT CAST(0.0 AS DOUBLE) AS d) AS s ON t.d = s.d "
            "WHEN MATCHED AND t.d >= 0.0 THEN UPDATE SET i = t.i + 10"
        )
        assert numbers(table.scan()) == [3, 4, 5, 6, 11, 12]


def test_merge_of_a_table_keeps_two_zeros(tmp_path: Path) -> None:
    for table in make_tables(tmp_path, "DOUBLE", ()):
        merge = table.merge([{"d": 0.0}], on="target.d = source.d")
        merge.when_matched_delete(condition="target.d * 1 = 0.0").execute()
        assert numbers(table.scan()) == [1, 3, 4, 5, 6]


def test_predicates_of_python_keep_two_zeros(tmp_path: Path) -> None:
    for table in make_tables(tmp_path, "DOUBLE", ()):
        assert numbers(table.scan(where=col("d") == 0.0)) == [2]
        assert numbers(table.scan(where=col("d") < 0.0)) == [1, 3]


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_floating_keys_are_found_under_both_zeros(tmp_path: Path, kind: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "4", "primary-key.allow-floating": "true"}
    table = catalog.create_table("d.t", f"d {kind} NOT NULL, i INT", primary_keys=["d"], options=options)
    table.write([{"d": -0.0, "i": 1}, {"d": 0.0, "i": 2}, {"d": 1.0, "i": 3}])
    assert numbers(table.scan(where="d = 0.0")) == [2]
    assert numbers(catalog.sql("SELECT i FROM d.t WHERE d = 0.0")) == [1, 2]
    catalog.sql("DELETE FROM d.t WHERE d = 0.0")
    assert numbers(table.scan()) == [3]


def test_values_of_other_types_compare_as_before(tmp_path: Path) -> None:
    """A condition with a floating column may also compare texts, times, lists and decimals."""
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "i INT, d DOUBLE, s STRING, t DATE, e DECIMAL(5, 2)")
    table.write([{"i": 1, "d": -0.0, "s": "-x", "t": "2026-01-01", "e": "-1.50"}, {"i": 2, "d": 1.0, "s": "y"}])
    for where in (
        "upper(s) = '-X' AND d * 1 < 0.0", "s || d = '-x-0.0'", "t + 1 > DATE '2026-01-01' AND d <= d",
        "e * 2 = -3.00 AND d = d * 1", "coalesce(s, 'z') < 'a' AND abs(d) < 1", "[d * 1, 1.0] IS NOT NULL AND i = 1",
        "CASE WHEN d * 1 = 0.0 THEN 0 ELSE 1 END = 1 AND i + d < 2",
    ):  # fmt: skip
        assert numbers(table.scan(where=where)) == [1], where
