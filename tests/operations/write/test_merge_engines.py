"""The documentation's examples of merge engines on real files: write, read, compact and read again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon.domain.errors import InvalidRequest

Row = Sequence[Any]
ORDERS = "k INT NOT NULL, name STRING, subs ARRAY<ROW<id BIGINT, product STRING, price BIGINT>>"


class Shop:
    """One table, one commit a row."""

    def __init__(self, home: Path, columns: str, options: dict[str, str]) -> None:
        catalog = paimon.connect(home)
        catalog.create_database("d", exist_ok=True)
        self.table = catalog.create_table("d.t", columns, primary_keys=["k"], options={"bucket": "1"} | options)
        self.names = [f.split()[0] for f in columns.split(", ")] if "<" not in columns else ["k", "name", "subs"]

    def insert(self, *rows: Row, kind: str = "+I") -> None:
        data = [dict(zip(self.names, row, strict=True)) | {"op": kind} for row in rows]
        self.table.write(data, kind_column="op")

    def rows(self, columns: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
        found = self.table.scan(columns=list(columns) if columns else None).to_arrow().to_pylist()
        return [tuple(row.values()) for row in found]

    def compact_and_read(self) -> list[tuple[Any, ...]]:
        self.table.compact(full=True)
        return self.rows()


GROUPS = {
    "merge-engine": "partial-update",
    "write-only": "true",
    "fields.g_1.sequence-group": "a,b",
    "fields.g_2.sequence-group": "c,d",
}


def test_partial_update(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "k INT NOT NULL, price DOUBLE, sales INT, title STRING", {"merge-engine": "partial-update"})
    shop.insert((1, 23.0, 10, None))
    shop.insert((1, None, None, "This is a book"))
    shop.insert((1, 25.2, None, None))
    assert shop.rows() == shop.compact_and_read() == [(1, 25.2, 10, "This is a book")]


def test_sequence_groups(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "k INT NOT NULL, a INT, b INT, g_1 INT, c INT, d INT, g_2 INT", GROUPS)
    shop.insert((1, 1, 1, 1, 1, 1, 1))
    shop.insert((1, 2, 2, 2, 2, 2, None))
    assert shop.rows() == [(1, 2, 2, 2, 1, 1, 1)]
    shop.insert((1, 3, 3, 1, 3, 3, 3))
    assert shop.rows() == [(1, 2, 2, 2, 3, 3, 3)]
    assert shop.rows(["b"]) == [(2,)]
    assert shop.rows(["d"]) == [(3,)]
    assert shop.table.scan(where="d = 3 AND a = 2").count() == 1
    assert shop.compact_and_read() == [(1, 2, 2, 2, 3, 3, 3)]


def test_sequence_groups_take_retracts(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "k INT NOT NULL, a INT, b INT, g_1 INT, c INT, d INT, g_2 INT", GROUPS)
    shop.insert((1, 1, 1, 1, 1, 1, 1))
    shop.insert((1, 9, 9, 2, 9, 9, None), kind="-D")
    assert shop.rows() == shop.compact_and_read() == [(1, None, None, 2, 1, 1, 1)]


def test_a_group_may_remove_the_row(tmp_path: Path) -> None:
    removing = GROUPS | {"partial-update.remove-record-on-sequence-group": "g_2"}
    shop = Shop(tmp_path, "k INT NOT NULL, a INT, b INT, g_1 INT, c INT, d INT, g_2 INT", removing)
    shop.insert((1, 1, 1, 1, 1, 1, 1), (2, 1, 1, 1, 1, 1, 1))
    shop.insert((1, None, None, None, None, None, 2), (2, None, None, 5, None, None, 0), kind="-D")
    assert shop.rows() == [(2, None, None, 5, 1, 1, 1)]
    assert shop.rows(["a"]) == [(None,)]
    shop.insert((1, 7, 7, 1, None, None, None))
    # As in Java, later rows merge into the delete record itself: its own g_2 stays.
    assert shop.rows() == [(1, 7, 7, 1, None, None, 2), (2, None, None, 5, 1, 1, 1)]
    assert shop.compact_and_read() == [(1, 7, 7, 1, None, None, 2), (2, None, None, 5, 1, 1, 1)]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_later_rows_merge_with_a_delete_that_removes_the_row(tmp_path: Path, engine: str) -> None:
    options = {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true", "write-only": "true"}
    options |= {"fields.a.aggregate-function": "sum"} if engine == "aggregation" else {}
    shop = Shop(tmp_path, "k INT NOT NULL, a INT, b INT", options)
    shop.insert((1, 1, 2))
    shop.insert((1, 1, 2), kind="-D")
    assert shop.rows() == []
    log = shop.table.system_table("audit_log").scan().to_arrow().to_pylist()
    assert log == [{"rowkind": "-D", "k": 1, "a": 1, "b": 2}]
    shop.insert((1, 7, None))
    assert shop.rows() == shop.compact_and_read() == [(1, 8 if engine == "aggregation" else 7, 2)]


def test_aggregates_inside_groups(tmp_path: Path) -> None:
    shop = Shop(
        tmp_path,
        "k INT NOT NULL, a INT, b INT, c INT, d INT",
        {
            "merge-engine": "partial-update",
            "write-only": "true",
            "fields.a.sequence-group": "b",
            "fields.b.aggregate-function": "first_value",
            "fields.c.sequence-group": "d",
            "fields.d.aggregate-function": "sum",
        },
    )
    for row in [(1, 1, 1, None, None), (1, None, None, 1, 1), (1, 2, 2, None, None), (1, None, None, 2, 2)]:
        shop.insert(row)
    assert shop.rows() == shop.compact_and_read() == [(1, 2, 1, 2, 3)]


def test_default_values(tmp_path: Path) -> None:
    plain = Shop(tmp_path, "k INT NOT NULL, a INT, b INT, c INT", {"merge-engine": "partial-update"})
    with_default = Shop(
        tmp_path / "shown",
        "k INT NOT NULL, a INT, b INT, c INT",
        {
            "merge-engine": "partial-update",
            "fields.b.default-value": "0",
            "write-only": "true",
        },
    )
    for shop, b in ((plain, None), (with_default, 0)):
        shop.insert((1, 1, None, None))
        shop.insert((1, None, None, 1))
        assert shop.rows() == shop.compact_and_read() == [(1, 1, b, 1)]
    table = with_default.table
    assert table.scan(where="b = 0").count() == table.scan(where="b IS NOT NULL").count() == 1
    assert table.scan(where="NOT b > 0 AND k = 1", columns=["c", "b"]).to_arrow().to_pylist() == [{"c": 1, "b": 0}]
    assert table.scan(where="b IS NULL").count() == table.scan(where="b < 0 OR b > 0").count() == 0
    changes = table.changes(where="b = 0").to_arrow().to_pylist()
    assert [(row["_snapshot_id"], row["a"], row["b"]) for row in changes] == [(1, 1, 0), (2, None, 0)]
    with_default.insert((1, None, 7, None))
    assert with_default.rows() == [(1, 1, 7, 1)]
    assert table.with_options({"fields.b.default-value": "5"}).scan(snapshot=1).to_arrow()["b"].to_pylist() == [5]


def test_filters_prune_files_by_the_default_value(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "k INT NOT NULL, v INT", {"fields.v.default-value": "7", "write-only": "true"})
    shop.insert((1, None), (2, 3))
    shop.insert((3, 50), (4, 60))
    assert [step.after for step in shop.table.scan(where="v = 7").plan().steps][-1] == 1
    assert shop.table.scan(where="v = 7", columns=["k"]).to_arrow()["k"].to_pylist() == [1]
    assert shop.table.scan(where="v > 40", columns=["k"]).to_arrow()["k"].to_pylist() == [3, 4]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("fields.k.default-value", "0", "primary-key column"),
        ("fields.v.default-value", "x", "not a valid INT"),
        ("fields.a.default-value", "[1]", "ARRAY"),
        ("fields.w.default-value", "0", "w"),
    ],
)
def test_defaults_that_cannot_be(tmp_path: Path, option: str, value: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as caught:
        Shop(tmp_path, "k INT NOT NULL, v INT, a ARRAY<INT>", {option: value})
    assert caught.value.subject == option


PADDED = {"merge-engine": "deduplicate", "sequence.field": "ts", "write-only": "true"}


@pytest.mark.parametrize(
    "padding", ["row-kind-flag", "second-to-micro,row-kind-flag", "millis-to-micro, row-kind-flag"]
)
@pytest.mark.parametrize("together", [True, False])
def test_an_add_precedes_a_retract_of_equal_sequence(tmp_path: Path, padding: str, together: bool) -> None:
    shop = Shop(tmp_path, "k INT NOT NULL, v STRING, ts TIMESTAMP(0)", PADDED | {"sequence.auto-padding": padding})
    late = [
        {"k": 1, "v": "new", "ts": "2026-01-01 00:00:05", "op": "+U"},
        {"k": 1, "v": "old", "ts": "2026-01-01 00:00:05", "op": "-U"},
        {"k": 2, "v": "old", "ts": "2026-01-01 00:00:05", "op": "+I"},
        {"k": 2, "v": "gone", "ts": "2026-01-01 00:00:06", "op": "-D"},
    ]
    for rows in [late] if together else [[row] for row in late]:
        shop.table.write(rows, kind_column="op")
    assert [row[:2] for row in shop.rows()] == [row[:2] for row in shop.compact_and_read()] == [(1, "new")]


@pytest.mark.parametrize("padding", ["second-to-micro", "millis-to-micro", None])
def test_sequence_padding_orders_equal_values_by_arrival_order(tmp_path: Path, padding: str | None) -> None:
    options = PADDED | ({} if padding is None else {"sequence.auto-padding": padding})
    shop = Shop(tmp_path, "k INT NOT NULL, v STRING, ts BIGINT", options)
    shop.insert((1, "b", 5), (1, "a", 4), (2, "x", 7))
    shop.insert((1, "c", 5))
    shop.insert((2, "x", 7), kind="-D")
    assert shop.rows() == shop.compact_and_read() == [(1, "c", 5)]


def test_an_unknown_padding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="second-to-micro"):
        Shop(tmp_path, "k INT NOT NULL, ts INT", PADDED | {"sequence.auto-padding": "second-to-nano"})


def test_aggregation(tmp_path: Path) -> None:
    shop = Shop(
        tmp_path,
        "k BIGINT NOT NULL, price DOUBLE, sales BIGINT",
        {
            "merge-engine": "aggregation",
            "write-only": "true",
            "fields.price.aggregate-function": "max",
            "fields.sales.aggregate-function": "sum",
        },
    )
    shop.insert((1, 23.0, 15))
    shop.insert((1, 30.2, 20))
    assert shop.rows() == shop.compact_and_read() == [(1, 30.2, 35)]


def test_nested_update(tmp_path: Path) -> None:
    shop = Shop(
        tmp_path,
        ORDERS,
        {
            "merge-engine": "aggregation",
            "write-only": "true",
            "fields.subs.aggregate-function": "nested-update",
            "fields.subs.nested-key": "id",
        },
    )
    shop.insert((1, "Ann", None), (2, "Bob", None))
    shop.insert((1, None, [{"id": 1, "product": "pen", "price": 3}]))
    shop.insert((1, None, [{"id": 2, "product": "ink", "price": 9}]))
    shop.insert((1, None, [{"id": 1, "product": "pen", "price": 4}]))
    first, second = shop.rows()
    subs = sorted(first[2], key=lambda sub: int(sub["id"]))
    assert first[:2] == (1, "Ann") and second == (2, "Bob", None)
    assert subs == [{"id": 1, "product": "pen", "price": 4}, {"id": 2, "product": "ink", "price": 9}]
    assert shop.compact_and_read() == [first, second]


@pytest.mark.parametrize("buffer", ["256 mb", "1 kb"])
def test_a_flush_and_a_read_merge_alike(tmp_path: Path, buffer: str) -> None:
    options = {
        "merge-engine": "aggregation",
        "write-only": "true",
        "fields.s.aggregate-function": "sum",
        "fields.l.aggregate-function": "listagg",
        "write-buffer-size": buffer,
    }
    shop = Shop(tmp_path, "k INT NOT NULL, s BIGINT, l STRING", options)
    rows = [(i % 7, i, chr(97 + i % 26)) for i in range(300)]
    shop.insert(*rows[:200])
    shop.insert(*rows[200:])
    wanted = [
        (k, sum(s for key, s, _ in rows if key == k), ",".join(text for key, _, text in rows if key == k))
        for k in range(7)
    ]
    assert sorted(shop.rows()) == sorted(shop.compact_and_read()) == wanted


def test_functions_refuse_other_types_and_retracts(tmp_path: Path) -> None:
    shop = Shop(
        tmp_path,
        "k INT NOT NULL, s INT",
        {
            "merge-engine": "aggregation",
            "fields.s.aggregate-function": "max",
        },
    )
    shop.insert((1, 1))
    with pytest.raises(InvalidRequest, match="ignore-retract"):
        shop.table.write([{"k": 1, "s": 1, "op": "+I"}, {"k": 1, "s": 1, "op": "-D"}], kind_column="op")
    with pytest.raises(InvalidRequest, match="bool_and"):
        Shop(
            tmp_path / "other",
            "k INT NOT NULL, s INT",
            {
                "merge-engine": "aggregation",
                "fields.s.aggregate-function": "bool_and",
            },
        ).insert((1, 1))


def test_partition_columns_are_neither_aggregated_nor_retracted(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {
        "bucket": "1",
        "write-only": "true",
        "merge-engine": "aggregation",
        "fields.s.aggregate-function": "sum",
        "fields.default-aggregate-function": "sum",
    }
    table = catalog.create_table(
        "db.t", "p STRING NOT NULL, k INT NOT NULL, s INT", primary_keys=["p", "k"], partition_keys=["p"],
        options=options,
    )  # fmt: skip
    for value in (5, 7):
        rows = [{"p": "a", "k": 1, "s": value, "op": "+I"}, {"p": "a", "k": 1, "s": 2, "op": "-U"}]
        table.write(rows, kind_column="op")
    assert table.scan(where="p = 'a'").to_arrow().to_pylist() == [{"p": "a", "k": 1, "s": 8}]
    table.compact(full=True)
    assert table.scan(where="p = 'a'").to_arrow().to_pylist() == [{"p": "a", "k": 1, "s": 8}]
