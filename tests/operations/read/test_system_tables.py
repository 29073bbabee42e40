"""System tables have the columns and rows of Java, and are opened by name and by path."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from datetime import date, datetime, time
from pathlib import Path

import pytest
from support.golden_system_tables import expected_tables, normalize_rows, render_rows
from support.golden_tables import golden_directory

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.types.arrow import fields_from_arrow
from paimon.operations.read.system.views import DATA_VIEWS
from paimon.scan import Scan
from paimon.system_table import SYSTEM_TABLES

HOME = golden_directory()
EXPECTED = expected_tables()
DAILY = ("agg_sum", "branches", "cl_input", "consumers", "dv_pk_writeonly_l0", "row_tracking", "statistics")
"""Tables that have rows in each system table."""


def list_cases(names: Collection[str]) -> list[object]:
    chosen = sorted(key for key in EXPECTED if key[1] in names)
    return [pytest.param(*key, marks=[] if key[0] in DAILY else pytest.mark.nightly) for key in chosen]


def open_system_table(path: Path | str, **options: object) -> paimon.SystemTable:
    table = paimon.open_table(path, options)
    assert isinstance(table, paimon.SystemTable)
    return table


@pytest.mark.parametrize(("case", "name"), list_cases(SYSTEM_TABLES))
def test_metadata_rows_equal_those_of_java(case: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paimon.operations.read.system.files._FILES_AT_ONCE", 2)
    monkeypatch.setattr("paimon.domain.manifest.file_texts_columnar._FEWEST_FILES", 1)
    rows = open_system_table(HOME / case / f"table${name}").scan().to_arrow()
    rendered = render_rows(rows, fields_from_arrow(rows.schema), HOME / case / "table")
    assert rendered == normalize_rows(EXPECTED[case, name])


@pytest.mark.parametrize(("case", "name"), list_cases(DATA_VIEWS))
def test_views_show_the_rows_that_java_shows(case: str, name: str) -> None:
    scan = open_system_table(HOME / case / f"table${name}").scan()
    assert isinstance(scan, Scan)
    assert render_rows(scan.to_arrow(), scan.fields, HOME / case / "table") == normalize_rows(EXPECTED[case, name])


def test_every_system_table_is_compared() -> None:
    later = {"file_indexes"}  # Java 1.4.2, which wrote what is compared, lacks it
    views = DATA_VIEWS.keys() - {"row_tracking"}  # not compared with Java; tests/public checks its rows
    assert {name for _, name in EXPECTED} >= SYSTEM_TABLES.keys() - later | views


@pytest.fixture
def keyed(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options={"bucket": 1, "write-only": True}
    )
    table.write([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    table.write([{"k": 2, "v": None, "op": "-D"}, {"k": 3, "v": "c", "op": "+U"}], kind_column="op")
    return table


def test_conditions_on_metadata_may_be_scalar_sql(keyed: paimon.Table) -> None:
    files = keyed.system_table("files")
    rows = files.scan(columns=["level"], where="record_count * 2 = 4 AND upper(file_format) = 'PARQUET'").to_arrow()
    assert rows.to_pylist() == [{"level": 0}, {"level": 0}]
    assert files.scan(where="length(file_path) < level").to_arrow().num_rows == 0
    assert keyed.system_table("tags").scan(where="length(tag_name) > 1").to_arrow().num_rows == 0
    with pytest.raises(InvalidRequest, match="is not a condition"):
        files.scan(where="record_count + 1").to_arrow()
    with pytest.raises(InvalidRequest, match="recordcount"):
        files.scan(where="abs(recordcount) = 1").to_arrow()


def test_keys_are_printed_as_stored(tmp_path: Path) -> None:
    """Java's own list: a DATE is a number of days, a TIME is a number of milliseconds, a TIMESTAMP has a T."""
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    columns = "d DATE NOT NULL, t TIME(3) NOT NULL, at TIMESTAMP(3) NOT NULL, n DECIMAL(30, 2) NOT NULL"
    table = catalog.create_table("db.t", columns, primary_keys=["d", "t", "at", "n"], options={"bucket": 1})
    row = {"d": date(2024, 11, 27), "t": time(0, 0, 2), "at": datetime(2500, 12, 6, 20, 28, 29), "n": "1.50"}
    table.write([row])
    for name in ("files", "file_key_ranges"):
        (row_of_file,) = table.system_table(name).scan().to_arrow().to_pylist()
        assert row_of_file["min_key"] == row_of_file["max_key"] == "[20054, 2000, 2500-12-06T20:28:29, 1.50]"


def test_an_update_that_left_no_file_behind_is_an_update(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k INT")
    table.write([{"k": 1}])
    (created,) = table.system_table("files").scan().to_arrow()["creation_time"].to_pylist()
    table.write([{"k": 2}])
    table.delete(where="k = 2")
    for name in ("buckets", "partitions"):
        (found,) = table.system_table(name).scan().to_arrow().to_pylist()
        assert (found["record_count"], found["file_count"]) == (1, 1)
        assert found["last_update_time"] > created


@pytest.mark.parametrize("name", sorted(SYSTEM_TABLES.keys() | DATA_VIEWS.keys()))
def test_opens_by_name_and_by_path_and_on_an_empty_table(tmp_path: Path, name: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {"row-tracking.enabled": "true"} if name == "row_tracking" else {}
    catalog.create_table("db.t", "k INT NOT NULL, p STRING NOT NULL", partition_keys=["p"], options=options)
    by_name, by_path = catalog.open(f"db.t${name}"), open_system_table(tmp_path / "db.db" / f"t${name}")
    assert by_name.name == by_path.name == f"db.t${name}"
    rows = by_name.scan().to_arrow()
    assert rows.equals(by_path.scan().to_arrow())
    assert rows.num_rows == {"schemas": 1, "aggregation_fields": 2}.get(name, 0)
    assert rows.num_columns > 0


def test_the_audit_log_returns_retracts_and_filters_by_kind(keyed: paimon.Table) -> None:
    log = keyed.system_table("audit_log")
    kinds = {(r["k"], r["rowkind"]) for r in log.scan().to_arrow().to_pylist()}
    assert kinds == {(1, "+I"), (2, "-D"), (3, "+U")}
    assert log.scan(columns=["k"], where="rowkind = '-D' AND k > 1").to_arrow().to_pylist() == [{"k": 2}]
    assert log.scan(where="rowkind IN ('+U', '+I') OR k = 2", limit=2).count() == 2
    assert log.scan(snapshot=1).to_arrow()["rowkind"].to_pylist() == ["+I", "+I"]
    assert keyed.scan().to_arrow()["k"].to_pylist() == [1, 3]


def test_the_binlog_shows_columns_as_lists_and_updates_as_pairs(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {"bucket": 1, "changelog-producer": "input", "fields.v.default-value": "none"}
    table = catalog.create_table("db.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options=options)
    table.write([{"k": 1, "v": "a"}, {"k": 2, "v": None}])
    changed = [(1, "a", "-U"), (1, "b", "+U"), (2, None, "-D"), (3, "x", "-U"), (4, "y", "+U")]
    table.write([dict(zip(("k", "v", "op"), row, strict=True)) for row in changed], kind_column="op")
    log = table.system_table("binlog").scan()
    assert [tuple(row.values()) for row in log.to_arrow().to_pylist()] == [
        ("+U", [1], ["b"]),
        ("-D", [2], ["none"]),
        ("-U", [3], ["x"]),
        ("+U", [4], ["y"]),
    ]
    between = table.with_options({"incremental-between": "1,2"}).system_table("binlog")
    assert [tuple(row.values()) for row in between.scan().to_arrow().to_pylist()] == [
        ("+U", [1, 1], ["a", "b"]),
        ("-D", [2], ["none"]),
        ("-U", [3], ["x"]),
        ("+U", [4], ["y"]),
    ]
    only = between.scan(columns=["v"], where="rowkind <> '-D'", limit=1)
    assert only.to_arrow().to_pylist() == [{"v": ["a", "b"]}]
    with pytest.raises(InvalidRequest, match=r"audit_log"):
        between.scan(where="k = 1").to_arrow()


@pytest.mark.parametrize("engine", ["deduplicate", "aggregation"])
def test_the_audit_log_and_the_binlog_may_show_sequence_numbers(tmp_path: Path, engine: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {"bucket": 1, "table-read.sequence-number.enabled": "true", "merge-engine": engine, "write-only": "true"}
    table = catalog.create_table("db.t", "k INT NOT NULL, v INT", primary_keys=["k"], options=options)
    table.write([{"k": 1, "v": 1}, {"k": 2, "v": 2}])
    table.write([{"k": 3, "v": 3}, {"k": 1, "v": 4}])
    for _ in range(2):
        log = table.system_table("audit_log").scan()
        assert log.arrow_schema.names == ["rowkind", "_SEQUENCE_NUMBER", "k", "v"]
        rows = sorted(tuple(row.values()) for row in log.to_arrow().to_pylist())
        assert rows == [("+I", 1, 2, 2), ("+I", 2, 3, 3), ("+I", 3, 1, 4)]
        newest = table.system_table("audit_log").scan(columns=["k"], where="_SEQUENCE_NUMBER > 2").to_arrow()
        assert newest.to_pylist() == [{"k": 1}]
        binlog = table.system_table("binlog").scan(where="rowkind = '+I' AND _SEQUENCE_NUMBER < 2").to_arrow()
        assert binlog.to_pylist() == [{"rowkind": "+I", "_SEQUENCE_NUMBER": 1, "k": [2], "v": [2]}]
        assert table.scan().arrow_schema.names == ["k", "v"]
        table.compact(full=True)


def test_the_read_optimised_view_returns_only_compacted_rows(keyed: paimon.Table) -> None:
    assert keyed.system_table("ro").scan().count() == 0


def test_system_tables_take_columns_filters_limits_and_snapshots(keyed: paimon.Table) -> None:
    files = keyed.system_table("files")
    assert files.scan(columns=["record_count", "level"], where="deleteRowCount > 0").to_arrow().to_pylist() == [
        {"record_count": 2, "level": 0}
    ]
    assert files.scan(limit=1).count() == 1
    first = keyed.with_options({"scan.snapshot-id": 1}).system_table("files")
    assert first.scan().count() == 1
    with pytest.raises(InvalidRequest, match="'record_count'"):
        files.scan(columns=["record_counts"]).to_arrow()
    with pytest.raises(InvalidRequest, match="no time travel"):
        files.scan(snapshot=1)


def test_an_unknown_system_table_names_the_nearest(keyed: paimon.Table) -> None:
    with pytest.raises(InvalidRequest, match="Did you mean 'snapshots'"):
        paimon.open_table(f"{keyed.location}$snapshot")


def test_a_branch_has_system_tables_of_its_own() -> None:
    branch = open_system_table(HOME / "branches" / "table$branch_b1$snapshots").scan().to_arrow()
    assert branch.num_rows > 0
    assert open_system_table(HOME / "branches" / "table$snapshots", branch="b1").scan().to_arrow().equals(branch)
    main = open_system_table(HOME / "branches" / "table$snapshots").scan().to_arrow()
    assert not main.equals(branch)


def test_damaged_side_files_are_named(tmp_path: Path) -> None:
    table = tmp_path / "table"
    shutil.copytree(HOME / "consumers" / "table", table)
    consumer = next((table / "consumer").iterdir())
    consumer.write_text(json.dumps({"nextSnapshot": "soon"}))
    with pytest.raises(CorruptTable, match=consumer.name):
        open_system_table(f"{table}$consumers").scan().to_arrow()
    shutil.copytree(HOME / "statistics" / "table", tmp_path / "analysed")
    next((tmp_path / "analysed" / "statistics").iterdir()).unlink()
    with pytest.raises(CorruptTable, match="does not exist"):
        open_system_table(f"{tmp_path}/analysed$statistics").scan().to_arrow()
