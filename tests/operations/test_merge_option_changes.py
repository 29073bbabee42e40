"""Options that change how stored rows are merged: refused while rows are not merged, through every door."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_products

import paimon
from paimon.cli.main import main
from paimon.domain.errors import InvalidRequest

COLUMNS = "a INT NOT NULL, b INT, s INT"
CHANGES: dict[str, tuple[dict[str, str], str, str]] = {
    "vectors": ({"deletion-vectors.modifiable": "true"}, "deletion-vectors.enabled", "true"),
    "sequence": ({}, "sequence.field", "s"),
    "order": ({"sequence.field": "s"}, "sequence.field.sort-order", "descending"),
    "producer": ({}, "changelog-producer", "lookup"),
    "deletes": ({}, "ignore-delete", "true"),
    "update-befores": ({}, "ignore-update-before", "true"),
    "function": ({"merge-engine": "aggregation"}, "fields.b.aggregate-function", "sum"),
    "default function": ({"merge-engine": "aggregation"}, "fields.default-aggregate-function", "sum"),
    "retracts": ({"merge-engine": "aggregation"}, "fields.b.ignore-retract", "true"),
    "group": ({"merge-engine": "partial-update"}, "fields.s.sequence-group", "b"),
}
"""The options of a table, and the option that changes."""
DOORS: dict[str, Callable[[paimon.Catalog, paimon.Table, str, str], Any]] = {
    "method": lambda c, t, k, v: t.set_options({k: v}),
    "alter": lambda c, t, k, v: t.alter(paimon.SetOption(k, v)),
    "sql": lambda c, t, k, v: c.sql(f"ALTER TABLE d.t SET ('{k}' = '{v}')"),
}


def make_table(
    home: Path, primary_keys: tuple[str, ...] = ("a",), **options: str
) -> tuple[paimon.Catalog, paimon.Table]:
    catalog = paimon.connect(home)
    catalog.create_database("d", exist_ok=True)
    given = {"bucket": "1" if primary_keys else "-1", **options}
    return catalog, catalog.create_table("d.t", COLUMNS, primary_keys=list(primary_keys), options=given)


def read(table: paimon.Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize(("change", "door"), mark_products(CHANGES, DOORS))
def test_rows_are_merged_before_options_of_the_merge_change(tmp_path: Path, change: str, door: str) -> None:
    options, key, value = CHANGES[change]
    catalog, table = make_table(tmp_path, **options)
    table.write([{"a": 1, "b": 1, "s": 3}, {"a": 2, "b": 2, "s": 1}])
    table.write([{"a": 1, "b": 5, "s": 2}])
    before = read(table)
    with pytest.raises(InvalidRequest, match=key) as refused:
        DOORS[door](catalog, table, key, value)
    assert refused.value.hint is not None and "CALL sys.compact('d.t')" in refused.value.hint
    assert catalog.table("d.t").table_schema == table.table_schema
    catalog.sql("CALL sys.compact('d.t')")
    DOORS[door](catalog, table, key, value)
    assert read(catalog.table("d.t")) == before


@pytest.mark.parametrize("change", CHANGES)
def test_options_of_the_merge_change_freely_without_rows(tmp_path: Path, change: str) -> None:
    options, key, value = CHANGES[change]
    _, table = make_table(tmp_path, **options)
    assert table.set_options({key: value}).table_schema.options[key] == value


@pytest.mark.parametrize("producer", ["none", "lookup", "input"])
def test_deletion_vectors_are_switched_on_and_off(tmp_path: Path, producer: str) -> None:
    options = {"deletion-vectors.modifiable": "true", "changelog-producer": producer}
    catalog, table = make_table(tmp_path, **options)
    table.write([{"a": a, "b": 10 * a, "s": 0} for a in (1, 2, 3)])
    for b in range(11, 16):
        table.write([{"a": 1, "b": b, "s": 0}])
    table.compact(full=True)
    before = read(table)
    switched = catalog.table("d.t").set_options({"deletion-vectors.enabled": True})
    assert read(switched) == before
    switched.write([{"a": 2, "b": 21, "s": 0}])
    marked = read(switched)
    with pytest.raises(InvalidRequest, match=r"deletion-vectors\.enabled"):
        catalog.sql("ALTER TABLE d.t RESET ('deletion-vectors.enabled')")
    catalog.sql("CALL sys.compact('d.t')")
    catalog.sql("ALTER TABLE d.t RESET ('deletion-vectors.enabled')")
    again = catalog.table("d.t")
    assert read(again) == marked and [row["b"] for row in marked] == [15, 21, 30]
    again.write([{"a": 3, "b": 31, "s": 0}])
    again.compact(full=True)
    assert [row["b"] for row in read(again)] == [15, 21, 31]


def test_rows_that_are_marked_as_deleted_do_not_come_back(tmp_path: Path) -> None:
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}
    _, table = make_table(tmp_path, (), **options)
    table.write([{"a": a, "b": a, "s": a} for a in range(3)])
    table.delete(where="a = 1")
    with pytest.raises(InvalidRequest, match=r"deletion-vectors\.enabled"):
        table.set_options({"deletion-vectors.enabled": False})
    table.compact(full=True)
    assert [row["a"] for row in read(table.set_options({"deletion-vectors.enabled": False}))] == [0, 2]


def test_rows_of_level_0_do_not_disappear(tmp_path: Path) -> None:
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true", "write-only": "true"}
    catalog, table = make_table(tmp_path, **options)
    table.write([{"a": 1, "b": 1, "s": 1}])
    with pytest.raises(InvalidRequest, match="merge-on-read"):
        catalog.sql("ALTER TABLE d.t SET ('deletion-vectors.merge-on-read' = 'false')")
    assert read(table.with_options({"deletion-vectors.merge-on-read": False})) == []


DYNAMIC = {
    "merge-engine": "first-row", "sequence.field": "s", "ignore-delete": "true", "changelog-producer": "lookup",
    "deletion-vectors.enabled": "true", "force-lookup": "true", "fields.b.aggregate-function": "sum",
}  # fmt: skip


@pytest.mark.parametrize("key", DYNAMIC)
def test_one_handle_does_not_merge_stored_rows_in_another_way(tmp_path: Path, key: str) -> None:
    catalog, table = make_table(tmp_path)
    for b in range(2):
        table.write([{"a": 1, "b": b, "s": -b}])
    value = DYNAMIC[key]
    handles: list[Callable[[], Any]] = [
        lambda: table.with_options({key: value}),
        lambda: paimon.open_table(table.location, options={key: value}),
        lambda: catalog.sql(f"SELECT * FROM d.t /*+ OPTIONS('{key}' = '{value}') */").to_arrow(),
    ]
    for opened in handles:
        with pytest.raises(InvalidRequest, match=key.replace(".", r"\.")):
            opened()
    assert read(table.with_options({"merge-engine": "deduplicate", "changelog-producer": "none"})) == read(table)


def test_one_handle_does_not_drop_an_option_of_the_merge(tmp_path: Path) -> None:
    _, table = make_table(tmp_path, **{"sequence.field": "s"})
    with pytest.raises(InvalidRequest, match=r"sequence\.field"):
        table.with_options({"sequence.field": None})


def test_the_terminal_refuses_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, table = make_table(tmp_path)
    for b in range(2):
        table.write([{"a": 1, "b": b, "s": -b}])
    assert main(["alter", table.location, "--set", "sequence.field=s"]) != 0
    assert "sequence.field" in capsys.readouterr().err


def test_the_name_of_null_partitions_is_fixed_by_their_directories(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "p STRING, a INT", partition_keys=["p"])
    table.set_options({"partition.default-name": "nothing"}).write([{"p": None, "a": 1}])
    table = catalog.table("d.t")
    for changed in (table.set_options, table.with_options):
        with pytest.raises(InvalidRequest, match=r"partition\.default-name"):
            changed({"partition.default-name": "other"})
    assert read(catalog.table("d.t")) == [{"p": None, "a": 1}]
