"""Frames with encoded columns (Polars' Enum and Categorical, pandas' categories) at each door that takes a frame."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.case_lists import mark_products

import paimon

ENUM = pl.DataFrame({"i": [1, 2, 3], "c": ["b", None, "a"]}, schema={"i": pl.Int32, "c": pl.Enum(["a", "b", "q"])})
VIEWS = pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), pa.array(["a", "b"], pa.string_view()))
ARROW = pa.table({"i": pa.array([1, 2, 3], pa.int32()), "c": VIEWS})
ROWS = [{"i": 1, "c": "b"}, {"i": 2, "c": None}, {"i": 3, "c": "a"}]
INPUTS: dict[str, Callable[[], Any]] = {
    "enum": lambda: ENUM,
    "categorical": lambda: ENUM.with_columns(pl.col("c").cast(pl.String).cast(pl.Categorical)),
    "pandas": lambda: pd.DataFrame({"i": pd.Categorical([1, 2, 3]), "c": pd.Categorical(["b", None, "a"])}),
    "arrow": lambda: ARROW,
    "batch": lambda: ARROW.to_batches()[0],
    "reader": lambda: ARROW.to_reader(),
    "iterator": lambda: iter([ENUM]),
    "list": lambda: [ENUM],
    "columns of polars": lambda: {"i": ENUM["i"], "c": ENUM["c"]},
    "columns of pandas": lambda: {"i": [1, 2, 3], "c": pd.Categorical(["b", None, "a"])},
    "columns of arrow": lambda: {"i": [1, 2, 3], "c": VIEWS},
    "run ends": lambda: pa.table(
        {"i": ARROW["i"], "c": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), VIEWS)}
    ),
}


def make_table(catalog: paimon.Catalog, keyed: bool = True) -> paimon.Table:
    keys = ["i"] if keyed else []
    return catalog.create_table(
        "d.t", "i INT NOT NULL, c STRING", primary_keys=keys, options={"bucket": 1} if keyed else {}
    )


def rows(table: Any) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["i"])


@pytest.mark.parametrize(("name", "keyed"), mark_products(INPUTS, [True, False]))
def test_every_input_is_written(catalog: paimon.Catalog, name: str, keyed: bool) -> None:
    table = make_table(catalog, keyed)
    table.write(INPUTS[name]())
    assert rows(table) == ROWS


@pytest.mark.parametrize("name", ["enum", "categorical", "arrow"])
def test_overwrites_builders_and_merges(catalog: paimon.Catalog, name: str) -> None:
    table, data = make_table(catalog), INPUTS[name]()
    table.write([{"i": 9, "c": "z"}])
    table.overwrite(data)
    assert rows(table) == ROWS
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write(data)
        builder.new_commit().commit(writer.prepare_commit())
    assert rows(table) == ROWS
    table.write([{"i": 1, "c": "old"}])
    merge = table.merge(data, on="i").when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().updated == 3
    assert rows(table) == ROWS


def test_kinds_new_columns_and_partitions(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    kinds = pl.Series("k", ["+I", "+I", "-D"], dtype=pl.Enum(["+I", "-D"]))
    table.write(ENUM.with_columns(kinds), kind_column="k")
    assert rows(table) == ROWS[:2]
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    new = ARROW.append_column("e", VIEWS).append_column("h", pa.array([1.5, None, 0.5], pa.float16()))
    table.write(new.append_column("b", flags), merge_schema=True)
    newest = catalog.table("d.t")
    assert str(newest.arrow_schema.types) == str([pa.int32(), pa.string(), pa.string(), pa.float32(), pa.bool_()])
    assert rows(newest)[0] == {"i": 1, "c": "b", "e": "b", "h": 1.5, "b": True}
    by_category = catalog.create_table("d.p", "i INT, c STRING", partition_keys=["c"])
    by_category.write(ENUM)
    assert rows(by_category) == ROWS


def test_change_events(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    operations = pl.Series("op", ["I", "I", "I"], dtype=pl.Enum(["I", "D"]))
    paimon.cdc(ENUM.with_columns(operations), table, "columns")
    assert rows(table) == ROWS
    text = ['{"before": {"i": 1, "c": "b"}, "after": null, "op": "d"}']
    paimon.cdc(pl.DataFrame({"value": text}, schema={"value": pl.Categorical}), table, "debezium-json")
    assert rows(table) == ROWS[1:]


def test_sql_and_schemas_of_frames(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    catalog.sql("INSERT INTO d.t SELECT * FROM frame", frame=ENUM)
    assert rows(table) == ROWS
    assert catalog.sql("SELECT i FROM frame WHERE c = 'a'", frame=ENUM).to_arrow()["i"].to_pylist() == [3]
    merge = "MERGE INTO d.t USING frame ON t.i = frame.i WHEN MATCHED THEN UPDATE SET c = frame.c"
    catalog.sql(merge, frame=ENUM.with_columns(pl.lit("b").cast(pl.Enum(["b"])).alias("c")))
    assert {row["c"] for row in rows(table)} == {"b"}
    made = catalog.create_table("d.s", ARROW.append_column("b", pa.ExtensionArray.from_storage(
        pa.bool8(), pa.array([1, 0, None], pa.int8()))).schema)  # fmt: skip
    made.write(ARROW.append_column("b", pa.array([True, False, None])))
    assert made.arrow_schema.types == [pa.int32(), pa.string(), pa.bool_()]


def test_rows_that_are_updated_by_their_ids_or_keys(catalog: paimon.Catalog) -> None:
    options = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    table = catalog.create_table("d.e", "i INT, c STRING", options=options)
    table.write(ENUM)
    builder = table.new_batch_write_builder()
    by_id = pl.DataFrame({"_ROW_ID": [0, 2], "c": ["q", None]}, schema={"_ROW_ID": pl.Int64, "c": pl.Categorical})
    builder.new_commit().commit(builder.new_update().update_by_row_id(by_id))
    assert [row["c"] for row in rows(table)] == ["q", None, None]
    builder = table.new_batch_write_builder()
    builder.new_commit().commit(builder.new_update().upsert_by_keys(ENUM, ["i"]))
    assert rows(table) == ROWS


def test_nested_values(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.n", "c ARRAY<ROW<x STRING>>")
    data = {"c": [[{"x": "a"}, {"x": None}], []]}
    table.write(pl.DataFrame(data, schema={"c": pl.List(pl.Struct({"x": pl.Enum(["a"])}))}))
    assert table.scan().to_arrow()["c"].to_pylist() == data["c"]


@pytest.mark.parametrize("rows", [0, 1])
def test_a_lazy_frame_that_arrow_lacks_is_refused(catalog: paimon.Catalog, rows: int) -> None:
    frame = pl.LazyFrame({"k": [1] * rows}, schema={"k": pl.Int128})
    table = catalog.create_table("d.wide", "k BIGINT")
    for use in (table.write, lambda rows: catalog.create_table("d.other", rows)):
        with pytest.raises(paimon.InvalidRequest, match="is not a table"):
            use(frame)


def test_masked_values_of_numpy_are_null_and_a_scalar_is_no_column(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.masked", "i BIGINT, day DATE")
    days = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    table.write({"i": np.ma.masked_array([1, 2], [0, 1]), "day": np.ma.masked_array(days, [1, 0])})
    assert table.to_arrow().select(["i", "day"]).to_pydict() == {"i": [1, None], "day": [None, date(2026, 1, 2)]}
    priced = catalog.create_table("d.priced", "price DECIMAL(5, 2), day DATE, parts ARRAY<INT>")
    parts = np.ma.masked_array([[1, 2], [3, 4]], [[0, 1], [0, 0]])
    days = np.ma.masked_array(["2026-01-01", "unknown"], [0, 1])
    priced.write({"price": np.ma.masked_array([1.5, 2.5], [0, 1]), "day": days, "parts": parts})
    first = {"price": Decimal("1.50"), "day": date(2026, 1, 1), "parts": [1, None]}
    assert priced.to_arrow().to_pylist() == [first, {"price": None, "day": None, "parts": [3, 4]}]
    with pytest.raises(paimon.InvalidRequest, match="single ndarray"):
        table.write({"i": np.array(1)})


def test_masks_of_numpy_inside_lists_and_rows_hide_values(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.nested", "a ARRAY<INT>, r ROW<x ARRAY<DOUBLE>>, v DOUBLE, b BOOLEAN")
    numbers = np.ma.masked_array(np.array([1, 2], np.int32), [0, 1])
    fractions = np.ma.masked_array([0.5, 1.5], [0, 1])
    flags = list(np.ma.masked_array([True, True], [0, 1]))
    columns = {"a": [numbers, None], "r": [None, {"x": fractions}], "v": list(fractions), "b": flags}
    expected = [
        {"a": [1, None], "r": None, "v": 0.5, "b": True},
        {"a": None, "r": {"x": [0.5, None]}, "v": None, "b": None},
    ]
    table.write(columns)
    assert table.to_arrow().to_pylist() == expected
    frame = pd.DataFrame({"a": columns["a"], "r": columns["r"], "v": fractions, "b": [True, None]})
    table.overwrite(frame)
    assert table.to_arrow().to_pylist() == expected
    inferred = catalog.create_table("d.inferred", "i INT")
    inferred.write({"i": [1, 2], "a": columns["a"]}, merge_schema=True)
    assert catalog.table("d.inferred").to_arrow()["a"].to_pylist() == [[1, None], None]


class FrameOfCaller(pl.DataFrame):
    """A subclass, which other modules define."""


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"a": pl.Series([object()])}),
        FrameOfCaller({"a": pl.Series([object()])}),
        pl.LazyFrame({"a": pl.Series([object()])}),
        pd.DataFrame({"a": pd.period_range("2020-01", periods=1, freq="M")}),
    ],
)
def test_values_that_arrow_cannot_state_are_refused(catalog: paimon.Catalog, frame: Any) -> None:
    """Polars exports the addresses of Python objects, and pandas the numbers of periods without their length."""
    with pytest.raises(paimon.InvalidRequest, match=r"[Cc]onvert"):
        catalog.create_table("d.t", frame)
    table = catalog.create_table("d.t", "a BYTES")
    with pytest.raises(paimon.InvalidRequest, match=r"[Cc]onvert"):
        table.write(frame)


def test_frames_of_a_table_with_nested_columns_are_written_back(catalog: paimon.Catalog) -> None:
    """Lists with nulls have NaN in frames of pandas."""
    nested = "m MAP<STRING, INT>, r ROW<m MAP<STRING, STRING>>, self ARRAY<INT>, d ARRAY<ROW<x ARRAY<DOUBLE>>>"
    table = catalog.create_table("d.nested", f"i INT NOT NULL, {nested}")
    full = {"m": {"a": 1}, "r": {"m": {"b": "c"}}, "self": [1, None], "d": [{"x": [None, 0.5]}]}
    table.write([{"i": 1, **full}, {"i": 2, **dict.fromkeys(full)}])
    stored = rows(table)
    frame = table.to_pandas()
    table.overwrite(frame)
    assert rows(table) == stored
    assert frame["m"].notna().tolist() == [True, False]  # the caller's frame is unchanged
