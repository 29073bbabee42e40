"""The public interface on real files: catalog, table, scan and results do what their signatures promise."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.case_lists import mark_products

import paimon
from paimon import col
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound

DDL = "id BIGINT NOT NULL, day STRING NOT NULL, amount DOUBLE, place ROW<city STRING, at ROW<x INT>>"
EMPTY = {"amount": None, "place": None}
ROWS = [
    {"id": 1, "day": "mon", "amount": 1.5, "place": {"city": "Rome", "at": {"x": 7}}},
    {"id": 2, "day": "mon", "amount": None, "place": {"city": None, "at": None}},
    {"id": 3, "day": "tue", "amount": -3.0, "place": None},
]


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog: paimon.Catalog) -> paimon.Table:
    return catalog.create_table(
        "shop.orders", DDL, primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": 2}
    )


def by_id(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


def ids(scan: paimon.Scan) -> list[int]:
    return sorted(scan.to_arrow()["id"].to_pylist())


class Exported:
    """Anything that offers an Arrow C stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


# Catalog.


def test_databases_are_created_listed_and_dropped(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "new")
    with pytest.raises(NotFound, match="warehouse"):
        catalog.databases()
    catalog.create_database("b")
    catalog.create_database("a")
    catalog.create_database("a", exist_ok=True)
    assert catalog.databases() == ["a", "b"]
    with pytest.raises(AlreadyExists, match="'a'"):
        catalog.create_database("a")
    catalog.create_table("a.t", "x INT")
    with pytest.raises(InvalidRequest, match=r"not empty \(number of tables: 1\)"):
        catalog.drop_database("a")
    catalog.drop_database("a", cascade=True)
    catalog.drop_database("a", missing_ok=True)
    assert catalog.databases() == ["b"]
    with pytest.raises(NotFound, match="Database 'a'"):
        catalog.drop_database("a")
    with pytest.raises(NotFound, match=r"Database 'bb'.*Did you mean 'b'"):
        catalog.tables("bb")


def test_tables_are_created_listed_renamed_and_dropped(catalog: paimon.Catalog) -> None:
    made = catalog.create_table("shop.t", "x INT", comment="about x")
    assert made.table_schema.comment == "about x"
    made.write({"x": [1]})
    with pytest.raises(AlreadyExists, match=r"shop\.t"):
        catalog.create_table("shop.t", "x INT")
    assert catalog.create_table("shop.t", "y INT", exist_ok=True).table_schema.names == ("x",)
    catalog.create_database("other")
    catalog.rename_table("shop.t", "other.u")
    assert (catalog.tables("shop"), catalog.tables("other")) == ([], ["u"])
    assert catalog.table("other.u").scan().to_arrow().to_pylist() == [{"x": 1}]
    catalog.create_table("shop.t", "x INT")
    with pytest.raises(AlreadyExists):
        catalog.rename_table("shop.t", "other.u")
    with pytest.raises(NotFound):
        catalog.rename_table("shop.nothing", "shop.t2")
    catalog.drop_table("other.u")
    catalog.drop_table("other.u", missing_ok=True)
    with pytest.raises(NotFound, match=r"other\.u"):
        catalog.drop_table("other.u")
    with pytest.raises(NotFound, match="Did you mean 't'"):
        catalog.table("shop.tt")


def test_catalog_defaults_go_into_new_tables(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path, **{"table-default.file.format": "orc"})
    catalog.create_database("d")
    assert catalog.create_table("d.t", "x INT").options["file.format"] == "orc"
    assert catalog.create_table("d.u", "x INT", options={"file.format": "avro"}).options["file.format"] == "avro"


def test_catalog_options_that_cannot_be_are_refused(tmp_path: Path) -> None:
    wrong = {
        "memry_budget": "Did you mean 'memory-budget'",
        "memory_budget": "memory-budget",
        "threads": "whole number",
    }
    for key, message in wrong.items():
        with pytest.raises(InvalidRequest, match=message):
            paimon.connect(tmp_path, **{key: "lots"})


def test_keys_that_are_unique_within_a_partition_only_are_warned_of(catalog: paimon.Catalog) -> None:
    columns = "id INT NOT NULL, day STRING NOT NULL, hour INT NOT NULL"
    layout: dict[str, Any] = {"partition_keys": ["day", "hour"], "options": {"bucket": 2}}
    with pytest.warns(paimon.PaimonWarning, match=r"within a partition only.*Add 'hour' to the primary key") as caught:
        table = catalog.create_table("shop.t", columns, primary_keys=["id", "day"], **layout)
    assert caught[0].filename == __file__
    table.write([{"id": 1, "day": "a", "hour": 1}, {"id": 1, "day": "a", "hour": 2}])
    assert table.scan().count() == 2  # as in Java
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        catalog.create_table("shop.u", columns, primary_keys=["id", "day", "hour"], **layout)
        catalog.create_table("shop.v", columns, primary_keys=["id"], options={"bucket": 2})
        catalog.create_table("shop.w", columns, partition_keys=["day"])
        catalog.create_table("shop.t", columns, exist_ok=True)


def test_a_schema_may_be_arrow(catalog: paimon.Catalog) -> None:
    schema = pa.schema([pa.field("k", pa.int32(), nullable=False), ("when", pa.timestamp("us", "UTC"))])
    table = catalog.create_table("shop.arrow", schema, primary_keys=["k"], options={"bucket": 1})
    assert table.arrow_schema.names == ["k", "when"]
    assert table.arrow_schema.field("when").type == pa.timestamp("us", "UTC")
    assert not table.arrow_schema.field("k").nullable


def test_tables_open_by_path_and_by_name(catalog: paimon.Catalog, orders: paimon.Table) -> None:
    orders.write(ROWS)
    by_path = paimon.open_table(orders.location)
    assert isinstance(by_path, paimon.Table)
    assert by_path.name == catalog.table("shop.orders").name == "shop.orders"
    assert by_id(by_path.scan().to_arrow()) == ROWS


# Writing.

INPUTS: dict[str, Callable[[pa.Table], Any]] = {
    "arrow table": lambda t: t,
    "batch": lambda t: t.combine_chunks().to_batches()[0],
    "reader": lambda t: t.to_reader(1),
    "pandas": lambda t: t.to_pandas(),
    "polars": lambda t: pl.from_arrow(t),
    "dicts": lambda t: t.to_pylist(),
    "columns": lambda t: t.to_pydict(),
    "columns of arrow": lambda t: dict(zip(t.column_names, t.columns, strict=True)),
    "iterator of batches": lambda t: iter(t.to_batches(1)),
    "generator of dicts": lambda t: (row for row in t.to_pylist()),
    "list of tables": lambda t: [t.slice(0, 1), t.slice(1)],
    "c stream": Exported,
    "duckdb": lambda t: duckdb.from_arrow(t),
}


@pytest.mark.parametrize(("kind", "keys"), mark_products(sorted(INPUTS), [["id", "day"], []]))
def test_everything_tabular_can_be_written(catalog: paimon.Catalog, kind: str, keys: list[str]) -> None:
    options = {"bucket": 2} if keys else {}
    table = catalog.create_table("shop.t", DDL, primary_keys=keys, partition_keys=["day"], options=options)
    result = table.write(INPUTS[kind](pa.Table.from_pylist(ROWS, schema=table.arrow_schema)))
    assert (result.snapshot_ids, result.rows) == ((1,), 3)
    assert by_id(table.scan().to_arrow()) == ROWS


def test_non_tabular_data_is_refused(orders: paimon.Table) -> None:
    frames = [pd.DataFrame({"id": [1, "x"]}), pd.Series([1]), pl.Series([1]), pa.array([1]), pa.chunked_array([[1]])]
    for nonsense in (7, "rows", [1, 2], object(), [[1]], {"id": 1}, *frames):
        with pytest.raises(InvalidRequest):
            orders.write(nonsense)
    assert orders.snapshot() is None


def test_plain_values_are_converted_to_the_column_types_without_loss(catalog: paimon.Catalog) -> None:
    ddl = "i INT, d DECIMAL(10, 2), t TIMESTAMP(3), z TIMESTAMP_LTZ(6), day DATE, at TIME(3)"
    table = catalog.create_table("shop.typed", ddl)
    moment = datetime(2026, 1, 31, 10, 20, 30, 123000)
    row = {"i": 7, "d": Decimal("1.50"), "t": moment, "z": moment.replace(tzinfo=UTC), "day": moment.date()}
    row["at"] = moment.time()
    table.write([row])
    table.write([{"i": "7", "d": "1.50", "t": "2026-01-31 10:20:30.123", "day": "2026-01-31", "at": "10:20:30.123"}])
    first, second = table.scan().to_arrow().to_pylist()
    assert first == row
    assert second == row | {"z": None}
    micros = moment.replace(microsecond=1)
    for column, lossy in {"i": 1.5, "d": "1.234", "t": micros, "day": moment, "at": micros.time(), "z": "soon"}.items():
        with pytest.raises(InvalidRequest, match=f"'{column}'"):
            table.write([{column: lossy}])
    for data in ({"i": 1}, {"i": [1], "d": [1, 2]}, {"i": [1, "x"]}):
        with pytest.raises(InvalidRequest):
            table.write(data)
    assert len(table.snapshots()) == 2


def test_an_empty_write_makes_no_snapshot(orders: paimon.Table) -> None:
    for empty in ([], orders.arrow_schema.empty_table(), iter(())):
        assert orders.write(empty).snapshot_ids == ()
    assert orders.snapshot() is None


def test_row_kinds_are_read_from_a_column(orders: paimon.Table) -> None:
    orders.write(ROWS)
    changes = [
        {"op": "-D", "id": 1, "day": "mon"},
        {"op": "+U", "id": 2, "day": "mon", "amount": 9.0},
        {"op": "+I", "id": 4, "day": "wed", "amount": 4.0, "place": None},
    ]
    orders.write(changes, kind_column="op")
    assert {r["id"]: r["amount"] for r in orders.scan().to_arrow().to_pylist()} == {2: 9.0, 3: -3.0, 4: 4.0}
    with pytest.raises(InvalidRequest, match="'insert'"):
        orders.write([{"op": "insert", "id": 1, "day": "mon"}], kind_column="op")
    with pytest.raises(InvalidRequest, match="op"):
        orders.write([{"id": 1, "day": "mon"}], kind_column="op")


def test_the_same_commit_is_committed_once(orders: paimon.Table) -> None:
    first = orders.write(ROWS[:1], commit_user="me", identifier=1, properties={"job": "a"}, watermark=50)
    again = orders.write(ROWS[1:], commit_user="me", identifier=1)
    assert len(list(Path(orders.location).rglob("*.parquet"))) == first.files, "files of a second try are removed"
    other = orders.write(ROWS[1:], commit_user="me", identifier=2, watermark=10)
    assert (first.snapshot_ids, again.snapshot_ids, other.snapshot_ids) == ((1,), (), (2,))
    snapshots = orders.snapshots()
    assert snapshots[0].properties["job"] == "a"
    assert [s.watermark for s in snapshots] == [50, 50]


def test_no_commit_is_passed_over_in_silence(orders: paimon.Table) -> None:
    orders.write(ROWS[:1], commit_user="me")
    orders.write(ROWS[1:2], commit_user="me", identifier=5)
    assert len(orders.snapshots()) == 2, "a batch commit of the same user has no identifier"
    with pytest.raises(InvalidRequest, match="identifier 3 of user 'me' must be larger than 5"):
        orders.write(ROWS[2:], commit_user="me", identifier=3)
    stream = orders.new_stream_write_builder("me")
    assert stream.new_commit().filter_committed([3, 5, 6]) == [6]
    assert stream.new_commit().commit(3, []).already_committed


def test_overwrite_replaces_what_it_names(orders: paimon.Table) -> None:
    orders.write(ROWS)
    orders.overwrite([{"id": 7, "day": "mon", **EMPTY}])
    assert ids(orders.scan()) == [3, 7]
    orders.overwrite([{"id": 8, "day": "tue", **EMPTY}], {"day": "tue"})
    assert ids(orders.scan()) == [7, 8]
    orders.overwrite([], {"day": "tue"})
    assert ids(orders.scan()) == [7]
    orders.overwrite([{"id": 9, "day": "wed", **EMPTY}], {})
    assert ids(orders.scan()) == [9]
    files = set(Path(orders.location).rglob("data-*"))
    with pytest.raises(InvalidRequest):
        orders.overwrite([{"id": 1, "day": "mon", **EMPTY}], {"day": "tue"})
    with pytest.raises(InvalidRequest, match="days"):
        orders.overwrite([{"id": 1, "day": "mon", **EMPTY}], {"days": "tue"})
    assert set(Path(orders.location).rglob("data-*")) == files, "refused commits leave nothing"
    static = orders.with_options({"dynamic-partition-overwrite": False})
    static.overwrite([{"id": 10, "day": "mon", **EMPTY}])
    assert ids(orders.scan()) == [10]


def test_overwrite_of_a_table_without_partitions_replaces_all(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("shop.flat", "id INT")
    table.write({"id": [1, 2]})
    table.overwrite({"id": [3]})
    assert ids(table.scan()) == [3]
    table.overwrite([], {})
    assert ids(table.scan()) == []


# Reading.


def test_time_travel(orders: paimon.Table) -> None:
    orders.write(ROWS[:1])
    between = orders.snapshots()[0].time_millis
    orders.write(ROWS[1:])
    shutil.copy(
        Path(orders.location, "snapshot", "snapshot-1"), _make_directory(Path(orders.location, "tag")) / "tag-first"
    )
    assert ids(orders.scan()) == [1, 2, 3]
    moment = datetime.fromtimestamp(between / 1000, UTC)
    for travel in ({"snapshot": 1}, {"tag": "first"}, {"timestamp": between}, {"timestamp": moment}):
        assert ids(orders.scan(**travel)) == [1]  # type: ignore[arg-type]
    assert list(orders.tags) == ["first"]
    assert ids(orders.with_options({"scan.tag-name": "first"}).scan()) == [1]
    assert ids(orders.with_options({"scan.snapshot-id": 1}).scan()) == [1]
    with pytest.raises(NotFound, match="Available are 1 to 2"):
        orders.scan(snapshot=3).to_arrow()
    with pytest.raises(NotFound, match="Did you mean 'first'"):
        orders.scan(tag="frist").to_arrow()
    with pytest.raises(NotFound, match="Snapshot at or before"):
        orders.scan(timestamp="1999-01-01").to_arrow()
    with pytest.raises(InvalidRequest, match="More than one kind"):
        orders.scan(snapshot=1, tag="first").to_arrow()


def _make_directory(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return directory


def test_branches_are_read_and_written_separately(catalog: paimon.Catalog, orders: paimon.Table) -> None:
    orders.write(ROWS[:1])
    branch = Path(orders.location, "branch", "branch-dev")
    for name in ("schema", "snapshot"):
        shutil.copytree(Path(orders.location, name), branch / name)
    dev = catalog.table("shop.orders$branch_dev")
    dev.write(ROWS[1:])
    assert ids(dev.scan()) == [1, 2, 3]
    assert ids(orders.scan()) == [1]
    assert "branch dev" in repr(dev)
    for same in (
        paimon.open_table(orders.location, {"branch": "dev"}),
        catalog.table("shop.orders", {"branch": "dev"}),
    ):
        assert isinstance(same, paimon.Table)
        assert ids(same.scan()) == [1, 2, 3]
    with pytest.raises(NotFound, match="'nope'"):
        catalog.table("shop.orders$branch_nope")


def test_projection_takes_columns_in_order_and_nested_ones(orders: paimon.Table) -> None:
    orders.write(ROWS)
    rows = orders.scan(columns=["place.at.x", "id", "place.city"]).to_arrow()
    assert rows.column_names == ["place.at.x", "id", "place.city"]
    assert sorted(rows.to_pylist(), key=lambda r: r["id"]) == [
        {"place.at.x": 7, "id": 1, "place.city": "Rome"},
        {"place.at.x": None, "id": 2, "place.city": None},
        {"place.at.x": None, "id": 3, "place.city": None},
    ]
    with pytest.raises(InvalidRequest, match="Did you mean 'amount'"):
        orders.scan(columns=["amuont"]).to_arrow()
    with pytest.raises(InvalidRequest, match=r"place\.town|town"):
        orders.scan(columns=["place.town"]).to_arrow()
    with pytest.raises(InvalidRequest, match="not a list of names"):
        orders.scan(columns="id")


def test_arguments_of_other_types_are_converted_or_refused(catalog: paimon.Catalog, orders: paimon.Table) -> None:
    orders.write([{"id": 1, "day": "a"}], missing_columns="null")
    snapshots = orders.system_table("snapshots")
    for read in (orders.scan, snapshots.scan, orders.changes):
        assert (
            read(columns=iter(["snapshot_id" if read == snapshots.scan else "id"])).to_arrow().column_names[-1][-2:]
            == "id"
        )
    assert orders.changes(after="0", through="1").to_arrow().num_rows == 1  # type: ignore[arg-type]
    for refused in (
        lambda: orders.changes(after="x"),  # type: ignore[arg-type]
        lambda: orders.scan(timestamp=pd.NaT).count(),
        lambda: orders.scan(columns=[]).to_duckdb(),
        lambda: catalog.sql(None),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidRequest):
            refused()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("amount > 1", [1]),
        (col("amount") > 1, [1]),
        ("amount IS NULL", [2]),
        ((col("day") == "mon") & ~col("amount").is_null(), [1]),
        ("day = 'mon' AND NOT id = 1", [2]),
        (col("id").isin([1, 3]), [1, 3]),
        ("id BETWEEN 2 AND 3 OR amount = 1.5", [1, 2, 3]),
        ("place.city LIKE 'R%'", [1]),
        (col("place.at.x") == 7, [1]),
        ("day <> 'mon'", [3]),
    ],
    ids=str,
)
def test_predicates_as_text_and_as_expressions(orders: paimon.Table, where: Any, expected: list[int]) -> None:
    orders.write(ROWS)
    scan = orders.scan(columns=["id"], where=where)
    assert ids(scan) == expected
    assert scan.count() == len(expected)


def test_limits(orders: paimon.Table) -> None:
    orders.write(ROWS)
    assert [orders.scan(limit=n).count() for n in (0, 1, 2, 3, 9)] == [0, 1, 2, 3, 3]
    with pytest.raises(InvalidRequest, match="negative"):
        orders.scan(limit=-1)


def test_results_in_every_form(orders: paimon.Table) -> None:
    orders.write(ROWS)
    scan = orders.scan(columns=["id", "amount"], where="amount < 5")
    wanted = [{"id": 1, "amount": 1.5}, {"id": 3, "amount": -3.0}]
    assert by_id(scan.to_arrow()) == wanted
    assert by_id(scan.to_batches().read_all()) == wanted
    assert scan.to_pandas().sort_values("id").to_dict("records") == wanted
    assert scan.to_polars().sort("id").to_dicts() == wanted
    with duckdb.connect() as connection:
        assert scan.to_duckdb(connection).order("id").fetchall() == [(1, 1.5), (3, -3.0)]
    assert by_id(pa.table(scan)) == wanted
    assert pl.DataFrame(scan).sort("id").to_dicts() == wanted
    assert scan.count() == 2


def test_a_scan_is_pinned_when_it_is_first_planned(orders: paimon.Table) -> None:
    orders.write(ROWS[:1])
    early, late = orders.scan(), orders.scan()
    assert early.count() == 1
    orders.write(ROWS[1:])
    assert (early.count(), late.count()) == (1, 3)


def test_explain_and_reprs_are_worth_reading(catalog: paimon.Catalog, orders: paimon.Table) -> None:
    orders.write(ROWS)
    text = orders.scan(columns=["id"], where="day = 'mon'").explain()
    assert "snapshot 1" in text
    assert "day = 'mon'" in text
    assert "partitions: 2 -> 1" in text
    assert "reads 1 file," in text
    assert "primary key (id, day)" in repr(orders)
    assert "lake" in repr(catalog)
    assert "id" in repr(orders.scan(columns=["id"]))
    assert "<td>amount</td>" in orders._repr_html_()


def test_an_empty_table_returns_no_rows(orders: paimon.Table) -> None:
    assert orders.snapshot() is None
    assert orders.snapshots() == []
    rows = orders.scan(columns=["id"], where="amount > 1").to_arrow()
    assert (rows.num_rows, rows.schema.names) == (0, ["id"])
    assert orders.scan().to_pandas().empty
    assert orders.scan().plan().splits == ()
    assert "snapshot none" in orders.scan().explain()


def test_dynamic_options_hold_for_one_handle(orders: paimon.Table) -> None:
    changed = orders.with_options({"file.format": "avro", "write-only": True})
    assert changed.options["write-only"] == "true"
    changed.write(ROWS)
    formats = changed.system_table("files").scan(columns=["file_format"]).to_arrow()["file_format"].unique().to_pylist()
    assert formats == ["avro"]
    assert "file.format" not in orders.options
    assert by_id(orders.scan().to_arrow()) == ROWS
    with pytest.raises(InvalidRequest, match="Did you mean"):
        orders.with_options({"file.formt": "avro"})
    assert orders.with_options({"branch": "main"}).definition.branch == "main"
    with pytest.raises(InvalidRequest, match="'branch' cannot change for one handle"):
        orders.with_options({"branch": "dev"})


def test_dynamic_options_can_be_removed_and_unknown_ones_allowed(orders: paimon.Table) -> None:
    changed = orders.with_options({"write-only": True}).with_options({"write-only": None, "target-file-size": "1 mb"})
    assert "write-only" not in changed.options
    assert changed.options["target-file-size"] == "1 mb"
    allowed = orders.with_options({"other-engine.option": 1}, allow_unknown_options=True)
    assert allowed.options["other-engine.option"] == "1"


# Travel.


def test_tables_and_scans_survive_pickling(orders: paimon.Table) -> None:
    orders.write(ROWS)
    copy = pickle.loads(pickle.dumps(orders))
    assert copy.name == orders.name
    assert by_id(copy.scan().to_arrow()) == ROWS
    copy.write([{"id": 4, "day": "wed", **EMPTY}])
    assert ids(orders.scan()) == [1, 2, 3, 4]


def test_the_builders_plan_read_write_and_commit_separately(orders: paimon.Table) -> None:
    builder = pickle.loads(pickle.dumps(orders.new_batch_write_builder("job")))
    messages = []
    for part in (ROWS[:2], ROWS[2:]):
        with builder.new_write() as write:
            write.write(part)
            messages += pickle.loads(pickle.dumps(write.prepare_commit()))
    assert orders.snapshot() is None
    assert builder.new_commit().commit(messages).snapshot_ids == (1,)
    reading = orders.new_read_builder().with_filter("id > 1").with_filter(col("day") == "mon")
    reading = reading.with_projection(["id"]).with_limit(5)
    splits = pickle.loads(pickle.dumps(reading.new_scan().plan().splits()))
    read = pickle.loads(pickle.dumps(reading.new_read()))
    assert read.to_arrow(splits).to_pylist() == [{"id": 2}]
    assert list(read.to_pandas(splits)["id"]) == [2]
    assert read.to_arrow_batch_reader(splits).read_all().num_rows == 1
    few = orders.new_read_builder().with_limit(1)
    several = few.new_scan().plan().splits()
    assert len(several) > 1 and few.new_read().to_arrow(several).num_rows == 1


def test_aborted_writes_leave_no_files(orders: paimon.Table) -> None:
    def read_then_fail() -> Iterator[pa.Table]:
        yield pa.Table.from_pylist(ROWS, schema=orders.arrow_schema)
        raise RuntimeError("source failed")

    with pytest.raises(RuntimeError, match="source failed"):
        orders.write(read_then_fail())
    assert orders.snapshot() is None
    builder = orders.new_batch_write_builder()
    with builder.new_write() as write:
        write.write(ROWS)
        messages = write.prepare_commit()
    builder.new_commit().abort(messages)
    assert not [p for p in Path(orders.location).rglob("data-*") if p.is_file()]


def test_streams_commit_under_rising_identifiers(orders: paimon.Table) -> None:
    builder = orders.new_stream_write_builder("stream")
    commit = builder.new_commit()
    with builder.new_write() as write:
        for identifier, row in enumerate(ROWS):
            write.write([row])
            commit.commit(identifier, write.prepare_commit())
        commit.commit(3, write.prepare_commit())
    assert ids(orders.scan()) == [1, 2, 3]
    assert [s.commit_identifier for s in orders.snapshots()] == [0, 1, 2, 3]
    assert commit.filter_committed([2, 3, 4, 5]) == [4, 5]
    with pytest.raises(InvalidRequest, match="out of range"):
        commit.commit(-1, [])


def test_batch_overwrite_through_the_program_api(orders: paimon.Table) -> None:
    orders.write(ROWS)
    builder = orders.new_batch_write_builder().overwrite({"day": "mon"})
    with builder.new_write() as write:
        write.write_pandas(pd.DataFrame({"id": [5], "day": ["mon"]}), missing_columns="null")
        builder.new_commit().commit(write.prepare_commit())
    assert ids(orders.scan()) == [3, 5]


def test_memory_file_systems_serve_as_well() -> None:
    catalog = paimon.connect("memory://facade-lake")
    catalog.create_database("d", exist_ok=True)
    table = catalog.create_table("d.t", "k INT NOT NULL", primary_keys=["k"], options={"bucket": 1})
    table.write({"k": [2, 1]})
    table.write({"k": [2, 3]})
    assert paimon.open_table("memory://facade-lake/d.db/t").scan().to_arrow()["k"].to_pylist() == [1, 2, 3]
    catalog.drop_database("d", cascade=True)
    assert catalog.databases() == []
