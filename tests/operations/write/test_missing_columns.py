"""A write whose rows all lack a column never replaces stored values by null unseen, at each door that writes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import paimon
from paimon.cli.main import main
from paimon.compat.catalog import CatalogFactory
from paimon.domain.errors import InvalidRequest

DDL = "id INT NOT NULL, v STRING, w INT DEFAULT 7, n INT"
FULL = [{"id": 1, "v": "a", "w": 1, "n": 1}]
LACKING = [{"id": 1, "n": 2}]
NULL = [{"id": 1, "v": None, "w": 7, "n": 2}]
REFUSED = r"No row for table 'd\.t' has the column 'v', whose stored values would become null\."


def make_table(catalog: paimon.Catalog, **options: Any) -> paimon.Table:
    table = catalog.create_table("d.t", DDL, primary_keys=["id"], options={"bucket": 1, **options})
    table.write(FULL)
    return table


def rows(table: paimon.Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def write_by_builder(table: paimon.Table, data: Any, missing_columns: str | None = None, **_: Any) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write(data, missing_columns=missing_columns)
        builder.new_commit().commit(writer.prepare_commit())


def write_by_stream(table: paimon.Table, data: Any, missing_columns: str | None = None) -> None:
    builder = table.new_stream_write_builder("u")
    with builder.new_write() as writer:
        writer.write_arrow(pa.Table.from_pylist(data), missing_columns=missing_columns)
        builder.new_commit().commit(1, writer.prepare_commit(1))


DOORS: dict[str, Callable[..., Any]] = {
    "write": lambda table, data, **given: table.write(data, **given),
    "merge_schema": lambda table, data, **given: table.write(data, merge_schema=True, **given),
    "overwrite": lambda table, data, **given: table.overwrite(data, **given),
    "builder": write_by_builder,
    "stream": write_by_stream,
}
INPUTS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: LACKING,
    "columns": lambda: {"id": [1], "n": [2]},
    "arrow": lambda: pa.Table.from_pylist(LACKING),
    "batch": lambda: pa.RecordBatch.from_pylist(LACKING),
    "reader": lambda: pa.Table.from_pylist(LACKING).to_reader(),
    "pandas": lambda: pd.DataFrame(LACKING),
    "polars": lambda: pl.DataFrame(LACKING),
    "iterator": lambda: iter([pa.Table.from_pylist(LACKING), pa.Table.from_pylist(LACKING)]),
    "list of frames": lambda: [pl.DataFrame(LACKING), pd.DataFrame(LACKING)],
    "generator of dicts": lambda: (row for row in LACKING),
}


@pytest.mark.parametrize("door", DOORS)
def test_rows_without_a_column_are_refused_unless_the_caller_allows_null(catalog: paimon.Catalog, door: str) -> None:
    table = make_table(catalog)
    with pytest.raises(InvalidRequest, match=REFUSED):
        DOORS[door](table, LACKING)
    assert rows(table) == FULL
    DOORS[door](table, LACKING, missing_columns="null")
    assert rows(table) == NULL


@pytest.mark.parametrize("door", DOORS)
def test_the_option_of_the_table_allows_null(catalog: paimon.Catalog, door: str) -> None:
    table = make_table(catalog, **{"write.missing-columns": "null"})
    with pytest.raises(InvalidRequest, match=REFUSED):
        DOORS[door](table, LACKING, missing_columns="error")
    DOORS[door](pickle.loads(pickle.dumps(table)), LACKING)
    assert rows(table) == NULL
    with pytest.raises(InvalidRequest, match="'missing_columns' is 'none'"):
        DOORS[door](table, LACKING, missing_columns="none")


@pytest.mark.parametrize("kind", INPUTS)
def test_every_input_is_refused(catalog: paimon.Catalog, kind: str) -> None:
    table = make_table(catalog)
    for door in ("write", "builder"):
        with pytest.raises(InvalidRequest, match=REFUSED):
            DOORS[door](table, INPUTS[kind]())
    assert rows(table) == FULL


@pytest.mark.parametrize("options", [{"bucket": -1}, {"bucket": -2}, {"deletion-vectors.enabled": True}])
def test_every_bucket_mode_refuses(catalog: paimon.Catalog, options: dict[str, Any]) -> None:
    table = catalog.create_table("d.t", DDL, primary_keys=["id"], options={"bucket": 1} | options)
    with pytest.raises(InvalidRequest, match=REFUSED):
        table.write(LACKING)
    across = catalog.create_table("d.u", DDL, primary_keys=["id"], partition_keys=["n"])
    with pytest.raises(InvalidRequest, match="'v'"):
        across.write(LACKING)


def test_several_columns_are_named_and_other_errors_come_first(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    with pytest.raises(InvalidRequest, match="has the columns 'v', 'n', whose"):
        table.write([{"id": 1}])
    with pytest.raises(InvalidRequest, match="did you mean 'v'"):
        table.write([{"id": 1, "V": "b", "n": 1}])
    with pytest.raises(InvalidRequest, match="NOT NULL needs a value"):
        table.write([{"n": 1}])


def test_a_column_that_one_row_has_is_given(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    table.write([{"id": 1, "n": 2}, {"id": 2, "v": "b"}])
    assert [row["v"] for row in rows(table)] == [None, "b"]
    lacking, full = pa.Table.from_pylist(LACKING), pa.Table.from_pylist([{"id": 3, "v": "c", "n": 1}])
    for data in (iter([lacking, lacking, full]), [lacking, full], [full, lacking]):
        table.write(data)
    assert [row["v"] for row in rows(table)] == [None, "b", "c"]


def test_deletes_need_the_key_alone(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    with pytest.raises(InvalidRequest, match="'v', 'n'"):
        table.write([{"id": 1, "k": "-D"}, {"id": 2, "k": "+I"}], kind_column="k")
    table.write([{"id": 1, "k": "-D"}], kind_column="k")
    assert rows(table) == []
    options = {"bucket": 1, "rowkind.field": "k"}
    by_field = catalog.create_table("d.f", "id INT NOT NULL, v INT, k STRING", primary_keys=["id"], options=options)
    by_field.write([{"id": 1, "v": 1, "k": "+I"}])
    with pytest.raises(InvalidRequest, match="'v'"):
        by_field.write([{"id": 1, "k": "+U"}])
    by_field.write([{"id": 1, "k": "-D"}])
    assert rows(by_field) == []


def test_columns_that_are_newer_than_the_handle_may_be_missing(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    newer = table.add_column("x", "INT")
    table.write(FULL)
    table.write([{**FULL[0], "y": 5}], merge_schema=True)
    assert rows(catalog.table("d.t")) == [{**FULL[0], "x": None, "y": 5}]
    with pytest.raises(InvalidRequest, match="'x'"):
        newer.write(FULL)
    newer.rename_column("v", "u")
    with pytest.raises(InvalidRequest, match="'u'"):
        table.write([{"id": 1, "n": 1, "x": 1}], merge_schema=True)


@pytest.mark.parametrize(
    "options",
    [{"merge-engine": "partial-update"}, {"merge-engine": "aggregation"}, {"merge-engine": "first-row"}, None],
)
def test_other_tables_take_rows_without_columns(catalog: paimon.Catalog, options: dict[str, Any] | None) -> None:
    keys = {"primary_keys": ["id"], "options": {"bucket": 1, **options}} if options else {}
    table = catalog.create_table("d.t", "id INT NOT NULL, v STRING, n INT", **keys)  # type: ignore[arg-type]
    for row in ({"id": 1, "v": "a", "n": 1}, {"id": 1, "n": 2}):
        table.write([row])
    by_engine = {"partial-update": [("a", 2)], "aggregation": [("a", 2)], "first-row": [("a", 1)]}
    expected = [("a", 1), (None, 2)] if options is None else by_engine[options["merge-engine"]]
    assert [(row["v"], row["n"]) for row in rows(table)] == expected


def test_a_writer_refuses_to_commit_a_part_of_a_refused_call(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        with pytest.raises(InvalidRequest, match=REFUSED):
            writer.write(LACKING)  # no row was accepted: the writer goes on
        writer.write([{"id": 2, "v": "b", "n": 2}])
        builder.new_commit().commit(writer.prepare_commit())
    assert [row["id"] for row in rows(table)] == [1, 2]
    parts: Iterator[pa.Table] = iter([pa.Table.from_pylist(LACKING)] * 2)
    with builder.new_write() as writer:
        with pytest.raises(InvalidRequest, match=REFUSED):
            writer.write(parts)
        with pytest.raises(InvalidRequest, match="accepted a part of rows"):
            writer.prepare_commit()
        writer.abort()
        assert writer.prepare_commit() == []


def test_sql_gives_columns_that_insert_leaves_out_their_default_or_null(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    catalog.sql("INSERT INTO d.t (id, n) VALUES (1, 2)")
    assert rows(table) == NULL
    table.write(FULL)
    catalog.sql("INSERT OVERWRITE d.t (id, n) VALUES (1, 2)")
    assert rows(table) == NULL


def test_the_command_refuses_and_has_an_option(catalog: paimon.Catalog, tmp_path: Path, capsys: Any) -> None:
    table = make_table(catalog)
    (tmp_path / "rows.csv").write_text("id,n\n1,2\n")
    command = ["write", table.location, str(tmp_path / "rows.csv")]
    assert main(command) != 0
    assert "has the column 'v'" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) != 0
    assert main([*command, "--missing-columns", "null", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1
    assert rows(table) == NULL


def test_change_events_are_whole_rows_and_frames_of_changes_name_their_columns(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    paimon.cdc(['{"before": null, "after": {"id": 1, "n": 2}, "op": "c"}'], table, "debezium-json")
    assert rows(table) == NULL
    table.write(FULL)
    frame = pa.table({"op": ["I"], "id": [1], "n": [2]})
    with pytest.raises(InvalidRequest, match=REFUSED):
        paimon.cdc(frame, table, "columns")
    paimon.cdc(pa.table({"op": ["D"], "id": [1]}), table, "columns")
    assert rows(table) == []
    paimon.cdc([frame, pa.table({"op": ["I"], "id": [2], "v": ["b"], "n": [2]})], table, "columns")
    paimon.cdc(frame, table.with_options({"write.missing-columns": "null"}), "columns")
    assert [row["v"] for row in rows(table)] == [None, "b"]


def test_pypaimon_names_the_columns_that_it_writes(tmp_path: Path, catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    builder = CatalogFactory.create({"warehouse": str(tmp_path)}).get_table("d.t").new_batch_write_builder()
    writer = builder.new_write().with_write_type(["id", "n"])
    writer.write_arrow(pa.table({"id": pa.array([1], pa.int32()), "n": pa.array([2], pa.int32())}))
    builder.new_commit().commit(writer.prepare_commit())
    assert rows(table) == NULL
