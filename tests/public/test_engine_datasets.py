"""Tables as datasets of pyarrow: each engine gets the rows of `scan().to_arrow()` under its own filter, from few files.

The engines that are installed are DuckDB, Polars and pyarrow. Each evaluates a filter twice: pushed down to the dataset
of a table, and over the rows of a whole scan.
"""

from __future__ import annotations

import datetime
import pickle
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial, reduce
from importlib.util import find_spec
from itertools import product
from operator import and_, or_
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import drawn_tables
from support.case_lists import mark_nightly, mark_products
from support.tables import create_table

import paimon
from paimon.datasets import arrow_datasets, polars_frames
from paimon.domain.errors import SnapshotExpired
from paimon.results import find_reads
from paimon.scan import ScanRows, condition_of

DUCKDB_FILTERS = [
    "id = 3", "id <> 3 AND number IS NULL", "NOT (id IN (1, 2) OR number > 0)", "flag", "tiny = -128", "small >= 5",
    "money > -1.05", "amount IN (0.001, 1)", "total < 0", "word = 'ä'", "word LIKE 'a%' OR word = ''", "code < 'b'",
    "label IS NOT NULL", "raw = '\\x00\\xFF'::BLOB", "day <= DATE '1969-12-31'", '"at" > TIMESTAMP \'1960-01-01\'',
    "zoned = TIMESTAMPTZ '2026-01-01 00:00:00+00'", "ratio = 0", "ratio < 1.5", "size = 0.0", "size <> 1.5",
    "NOT (size < 1.5)", "size = 'NaN'", "size > 1e300", "at_nanos = TIMESTAMP '2026-01-01'", "clock > TIME '01:00'",
    "upper(word) = 'A' AND id > 2", "part = 'p'", "part = '' AND id = 1",
]  # fmt: skip
F = pc.field
ARROW_FILTERS: list[pc.Expression] = [
    F("id") == 3, ~(F("id") > 2) & F("number").is_null(), F("id").isin([1, 5]), ~F("id").isin([1, None]), F("flag"),
    F("money") > Decimal("-1.050"), F("amount").isin([Decimal("0.001")]), F("word") == "ä", F("raw") == b"\x00\xff",
    F("day") < datetime.date(2026, 1, 1), F("at") == datetime.datetime(1960, 1, 1, 0, 0, 0, 1),
    F("zoned") >= datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), F("size") == 0.0, ~(F("size") > 1.5),
    F("ratio") > 0.1, F("size") != float("nan"), F("ratio") <= -0.0, F("ratio").is_null(nan_is_null=True),
    pc.utf8_upper(F("word")) == "A", (F("part") == "p") | (F("id") == 1), F(0) == 3, F("clock") > datetime.time(0, 30),
    F("at_nanos") < pa.scalar(1, pa.timestamp("ns")), pc.starts_with(F("label"), "x"), F("id") + 1 == F("number"),
]  # fmt: skip
P = pl.col
POLARS_FILTERS: list[pl.Expr] = [
    P("id") == 3, (P("id") != 3) & P("number").is_null(), P("id").is_in([1, 5]), P("money") > Decimal("-1.05"),
    P("word") == "ä", P("day") < datetime.date(2026, 1, 1), P("part") == "p", P("word").str.to_uppercase() == "A",
    P("zoned") >= datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), P("size") == 0.0, P("flag"),
]  # fmt: skip

LAZY_FILTERS: list[pl.Expr] = [
    *POLARS_FILTERS, P("size") > 1.5, ~(P("size") > 1.5), P("size") == float("nan"), P("size").is_nan(),
    P("ratio") > 0.1, P("ratio").is_in([0.0, float("nan")]), ~P("word").is_in(["a", None]),
    P("word").is_in(["a", None], nulls_equal=True),
    P("id").is_between(1, 3, closed="left"), P("raw") == b"\x00\xff", P("clock") > datetime.time(0, 30),
    P("at") == datetime.datetime(1960, 1, 1, 0, 0, 0, 1), P("word").str.starts_with("a"), P("number") != P("id"),
    P("flag").not_(), P("flag").eq_missing(None), P("total") < 0, P("size") < float("inf"), P("tiny") > 1.5,
]  # fmt: skip


def in_duckdb(rows: Any, condition: Any) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", rows)
        return connection.sql(f"SELECT * FROM rows WHERE {condition}").to_arrow_table()


def in_pyarrow(rows: Any, condition: Any) -> pa.Table:
    return (ds.dataset(rows) if isinstance(rows, pa.Table) else rows).to_table(filter=condition)


def in_fragments(rows: Any, condition: Any) -> pa.Table:
    if isinstance(rows, pa.Table):
        return in_pyarrow(rows, condition)
    parts = [part.to_table(filter=condition) for part in rows.get_fragments(filter=condition)]
    return pa.concat_tables(parts) if parts else rows.schema.empty_table()


def in_polars(rows: Any, condition: Any) -> pa.Table:
    frame = pl.scan_pyarrow_dataset(ds.dataset(rows) if isinstance(rows, pa.Table) else rows)
    return frame.filter(condition).collect().to_arrow()


def in_datafusion(rows: Any, condition: Any) -> pa.Table:
    import datafusion

    context = datafusion.SessionContext()
    context.register_dataset("data", ds.dataset(rows) if isinstance(rows, pa.Table) else rows)
    return context.sql(f"SELECT * FROM data WHERE {condition}").to_arrow_table()


def in_lazy_frame(rows: Any, condition: Any) -> pa.Table:
    frame = pl.from_arrow(rows) if isinstance(rows, pa.Table) else paimon.scan_polars(rows)
    return frame.lazy().filter(condition).collect().to_arrow()  # type: ignore[union-attr]


ENGINES: list[tuple[Callable[[Any, Any], pa.Table], list[Any]]] = [
    (in_duckdb, list(DUCKDB_FILTERS)), (in_pyarrow, list(ARROW_FILTERS)), (in_fragments, list(ARROW_FILTERS)),
    (in_polars, list(POLARS_FILTERS)), (in_lazy_frame, list(LAZY_FILTERS)),
]  # fmt: skip
if find_spec("datafusion"):
    texts = [
        "id = 3",
        "id <> 3 AND number IS NULL",
        "id IN (1, 5)",
        "part = 'p'",
        "word LIKE 'a%'",
        "size = 0.0",
        "flag",
    ]
    ENGINES.append((in_datafusion, texts))
CASES = [(engine, condition) for engine, conditions in ENGINES for condition in conditions]


def to_tuples(rows: Any) -> list[tuple[Any, ...]]:
    found = pl.from_arrow(rows) if isinstance(rows, pa.Table) else rows
    return found.rows()  # type: ignore[no-any-return]


def to_rows(table: pa.Table) -> list[str]:
    """Return the rows in an order that does not depend on the order of reading; NaN equals itself."""
    return sorted(map(repr, table.to_pylist()))


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_engines_get_the_rows_of_a_scan(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    columns = ", ".join(f"{n} {k}" for n, k in (drawn_tables.COLUMNS | drawn_tables.NOT_SHARED).items())
    table = create_table(tmp_path_factory.mktemp("lake"), columns, **data.draw(drawn_tables.tables()))
    for rows in data.draw(st.lists(drawn_tables.batches(), max_size=3)):
        table.write(rows)
    for change in data.draw(st.lists(st.sampled_from(drawn_tables.CHANGES[:4]), max_size=2)):
        changed = change(table)
        table = changed if isinstance(changed, paimon.Table) else table
    whole, dataset = table.scan().to_arrow(), table.to_dataset()
    for engine, condition in data.draw(st.lists(st.sampled_from(CASES), min_size=6, max_size=12)):
        if "label" in str(condition) and "label" not in whole.schema.names:
            continue
        pushed, after = engine(table if engine is in_lazy_frame else dataset, condition), engine(whole, condition)
        assert to_rows(pushed) == to_rows(after), (engine.__name__, str(condition))
        assert pushed.schema.names == after.schema.names


LAYOUTS: dict[str, dict[str, Any]] = {
    "append with deletion vectors": {"options": {"deletion-vectors.enabled": True}},
    "data evolution": {"options": {"row-tracking.enabled": True, "data-evolution.enabled": True}},
    "dynamic buckets": {"primary_keys": ["id"]},
    "first-row": {"primary_keys": ["id"], "options": {"merge-engine": "first-row", "bucket": 1}},
    "aggregation": {
        "primary_keys": ["id"],
        "options": {"merge-engine": "aggregation", "fields.amount.aggregate-function": "sum", "bucket": 1},
    },
    "partial-update": {"primary_keys": ["id"], "options": {"merge-engine": "partial-update", "bucket": 1}},
    "postponed buckets": {"primary_keys": ["id"], "options": {"bucket": -2}},
    "write-only": {"primary_keys": ["id"], "options": {"write-only": True, "bucket": 1}},
}


@pytest.mark.parametrize(
    "layout",
    mark_nightly(LAYOUTS, always=["append with deletion vectors", "data evolution", "dynamic buckets", "aggregation"]),
)
def test_each_kind_of_table_is_a_dataset(tmp_path: Path, layout: str) -> None:
    table = create_table(tmp_path, "id BIGINT NOT NULL, amount INT, name STRING", **LAYOUTS[layout])
    table.write([{"id": i, "amount": i % 5, "name": str(i)} for i in range(20)])
    table.write([{"id": i, "amount": 1, "name": None} for i in range(0, 30, 3)])
    if layout not in ("first-row", "aggregation", "partial-update", "postponed buckets", "data evolution"):
        table.delete(where="id = 9")
    table = table.alter("ADD COLUMN more STRING").alter(
        "RENAME COLUMN amount TO total", "ALTER COLUMN total TYPE BIGINT"
    )
    table.write([{"id": 40, "total": 2**40, "name": "last", "more": "m"}])
    whole, dataset = table.scan().to_arrow(), table.to_dataset()
    conditions = [
        F("total") >= 2,
        F("total") == 1,
        F("more").is_null() & (F("id") > 5),
        F("name") == "last",
        ~F("id").isin([9]),
    ]
    for condition in conditions:
        for engine in (in_pyarrow, in_fragments):
            assert to_rows(engine(dataset, condition)) == to_rows(in_pyarrow(whole, condition)), str(condition)
    for text in ("total >= 2", "total = 1099511627776", "more IS NULL AND id > 5", "name LIKE 'l%'"):
        assert to_rows(in_duckdb(dataset, text)) == to_rows(in_duckdb(whole, text)), text


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> paimon.Table:
    """Three partitions with two buckets each; one bucket has two runs that overlap."""
    table = create_table(
        tmp_path_factory.mktemp("lake"),
        "id BIGINT NOT NULL, day INT NOT NULL, name STRING",
        primary_keys=["id", "day"],
        partition_keys=["day"],
        options={"bucket": 2},
    )
    table.write([{"id": i, "day": i % 3, "name": f"n{i}"} for i in range(60)])
    table.write([{"id": i, "day": 1, "name": "new"} for i in (1, 4)])
    return table


class CountedScan:
    """Counts the files of the plans that a dataset makes."""

    def __init__(self, scan: ScanRows, files: list[int]) -> None:
        self.scan, self.files = scan, files

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scan, name)

    def narrow(self, *arguments: Any) -> CountedScan:
        return CountedScan(self.scan.narrow(*arguments), self.files)

    def plan(self) -> Any:
        plan = self.scan.plan()
        self.files.append(sum(len(split.files) for split in plan.splits))
        return plan


@pytest.mark.parametrize(
    ("engine", "condition", "where"),
    [
        (in_duckdb, "day = 1 AND id = 7", "day = 1 AND id = 7"),
        (in_duckdb, "day = 2", "day = 2"),
        (in_pyarrow, (F("day") == 1) & (F("id") == 7) & (pc.utf8_length(F("name")) == 2), "day = 1 AND id = 7"),
        (in_polars, (P("day") == 1) & (P("id") == 7), "day = 1 AND id = 7"),
    ],
)
def test_files_read_are_those_of_our_plan(orders: paimon.Table, engine: Any, condition: Any, where: str) -> None:
    files: list[int] = []
    scan = orders.scan(where=where)
    assert to_rows(
        engine(arrow_datasets.TableDataset(CountedScan(ScanRows(orders.scan()), files)), condition)
    ) == to_rows(scan.to_arrow())
    assert set(files) == {sum(len(split.files) for split in scan.plan().splits)}
    assert max(files) < sum(len(split.files) for split in orders.scan().plan().splits)


def test_a_dataset_keeps_its_snapshot_and_is_pickled(tmp_path: Path) -> None:
    table = create_table(tmp_path, "id BIGINT")
    table.write([{"id": 1}])
    dataset = table.to_dataset()
    table.write([{"id": 2}])
    copy = pickle.loads(pickle.dumps(dataset.filter(F("id") > 0)))
    assert dataset.to_table().to_pylist() == copy.to_table().to_pylist() == [{"id": 1}]
    assert table.to_dataset().count_rows() == 2
    assert [pickle.loads(pickle.dumps(f)).count_rows() for f in dataset.get_fragments()] == [1]


def test_a_dataset_of_a_table_without_rows_is_empty(tmp_path: Path) -> None:
    dataset = create_table(tmp_path, "id BIGINT, name STRING").to_dataset()
    assert dataset.to_table().num_rows == dataset.count_rows(filter=F("id") > 0) == 0
    assert list(dataset.get_fragments()) == [] and in_duckdb(dataset, "id = 1").schema.names == ["id", "name"]


def test_a_dataset_of_a_branch_has_its_rows(tmp_path: Path) -> None:
    table = create_table(tmp_path, "id BIGINT")
    table.write([{"id": 1}])
    table.branches.create("b")
    branch = paimon.connect(tmp_path).table("db.t$branch_b")
    assert isinstance(branch, paimon.Table)
    branch.write([{"id": 2}])
    assert in_duckdb(branch.to_dataset(), "id > 0").num_rows == table.to_dataset().count_rows() + branch.count() - 1


def test_a_dataset_has_the_methods_of_pyarrow(orders: paimon.Table) -> None:
    dataset, whole = orders.to_dataset(), ds.dataset(orders.to_arrow())
    assert isinstance(dataset, ds.Dataset) and dataset.schema == orders.schema
    assert dataset.count_rows() == 60 and dataset.count_rows(filter=F("id") < 5) == 5
    assert dataset.head(3).num_rows == 3 and dataset.head(0).num_rows == 0
    assert max(batch.num_rows for batch in dataset.to_batches(batch_size=4)) <= 4
    columns = {"next": F("id") + 1, "day": F("day")}
    assert to_rows(dataset.to_table(columns=columns)) == to_rows(whole.to_table(columns=columns))
    assert dataset.take([0, 1]).num_rows == 2 and dataset.sort_by("id").head(1)["id"].to_pylist() == [0]
    names = dataset.scanner(columns=["id", "name"], filter=F("day") == 1)
    assert names.projected_schema.names == ["id", "name"] and names.count_rows() == 20
    assert pa.table(names).num_rows == names.to_reader().read_all().num_rows == 20
    joined = dataset.join(pa.table({"id": [4], "more": ["x"]}), "id", join_type="inner")
    assert joined.to_table().to_pylist() == [{"id": 4, "day": 1, "name": "new", "more": "x"}]
    with pytest.raises(paimon.InvalidRequest, match="Column 'nam' does not exist"):
        dataset.scanner(columns=["nam"])


def test_code_of_pyarrow_that_passes_by_the_methods_is_refused(orders: paimon.Table) -> None:
    dataset = orders.to_dataset()
    with pytest.raises(paimon.Unsupported, match="reads the dataset of a table by itself"):
        ds.Scanner.from_dataset(dataset).to_table()
    with pytest.raises(paimon.Unsupported, match="another schema"):
        ds.dataset([dataset, dataset])
    with pytest.raises(paimon.Unsupported, match="another schema"):
        next(dataset.get_fragments()).scanner(pa.schema([]))


def test_scans_that_take_no_condition_are_filtered_afterwards(tmp_path: Path) -> None:
    options = {"fields.name.default-value": "none", "bucket": 1}
    table = create_table(tmp_path, "id BIGINT NOT NULL, name STRING", primary_keys=["id"], options=options)
    table.write([{"id": 1, "name": None}, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}])
    assert table.to_dataset().to_table(filter=F("name") == "none", columns=["id"]).to_pylist() == [{"id": 1}]
    limited = table.scan(limit=2).to_dataset()
    assert limited.count_rows(filter=F("id") > 0) == 2 and len(list(limited.get_fragments())) == 1
    binlog = table.system_table("binlog").to_dataset()
    assert in_duckdb(binlog, "rowkind = '+I' AND id[1] = 2").num_rows == 1


def test_system_tables_and_time_travel_are_datasets(orders: paimon.Table) -> None:
    assert in_duckdb(orders.system_table("snapshots").to_dataset(), "snapshot_id = 1").num_rows == 1
    assert in_duckdb(orders.system_table("audit_log").to_dataset(), "rowkind = '+I' AND id = 4").num_rows == 1
    old = orders.scan(snapshot=1, columns=["name"], where="id = 4").to_dataset()
    assert in_duckdb(old, "name IS NOT NULL").to_pylist() == [{"name": "n4"}]


def test_where_takes_expressions_of_pyarrow(orders: paimon.Table) -> None:
    scan = orders.scan(where=(F("id") == 7) & (pc.utf8_length(F("name")) == 2))
    assert scan.to_arrow()["id"].to_pylist() == [7]
    assert "prunes:  id = 7" in scan.explain()
    assert "prunes:  nothing" in orders.scan(where=pc.utf8_length(F("name")) == 2).explain()
    assert orders.count(where=(paimon.col("day") == 1) & condition_of(F("id") < 5)) == 2
    for wrong, message in [
        (F(0) == 1, "by position"),
        (F("nam") == "a", "'nam' does not exist"),
        (F("name") == 1, "cannot be computed"),
        (F("id") + 1, "is not a condition"),
    ]:
        with pytest.raises(paimon.InvalidRequest, match=message):
            orders.scan(where=wrong).to_arrow()


def test_a_table_is_an_arrow_stream(orders: paimon.Table, tmp_path: Path) -> None:
    assert pa.table(orders).num_rows == pa.RecordBatchReader.from_stream(orders.scan()).read_all().num_rows == 60
    copy = create_table(tmp_path, "id BIGINT, day INT, name STRING")
    assert copy.write(orders).rows == 60


def replace_table(table: paimon.Table, catalog: paimon.Catalog) -> None:
    """Create the table again, with as many snapshots."""
    options = {"primary_keys": table.primary_keys, "options": {"bucket": 1}} if table.primary_keys else {}
    catalog.drop_table("db.t")
    new = catalog.create_table("db.t", "id BIGINT NOT NULL, v INT", **options)
    for number in (7, 8):
        new.write([{"id": number, "v": number}])


def expire_snapshots(table: paimon.Table, catalog: paimon.Catalog) -> None:
    table.overwrite([{"id": 9, "v": 9}])
    table.compact(full=True)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)


def change_schema(table: paimon.Table, catalog: paimon.Catalog) -> None:
    table.alter("RENAME COLUMN v TO w").alter("ADD COLUMN v STRING").write([{"id": 3, "w": 3, "v": "x"}])


def attach_table(table: paimon.Table, catalog: paimon.Catalog) -> Callable[[], Any]:
    connection = duckdb.connect()
    paimon.attach_duckdb(connection, "lake", catalog)
    return lambda: connection.sql("SELECT * FROM lake.db.t").to_arrow_table()


def read_pickled(copy: bytes) -> pa.Table:
    return pickle.loads(copy).to_table()


STALE_SOURCES: dict[str, Callable[[paimon.Table, paimon.Catalog], Callable[[], Any]]] = {
    "lazy frame": lambda table, _: table.lazy().filter(P("v") < 5).collect,
    "dataset": lambda table, _: table.to_dataset().to_table,
    "fragments": lambda table, _: partial(in_fragments, table.to_dataset(), F("v") < 5),
    "pickled": lambda table, _: partial(read_pickled, pickle.dumps(table.to_dataset())),
    "duckdb": lambda table, _: partial(in_duckdb, table.to_dataset(), "v < 5"),
    "attached": attach_table,
}
CHANGES: dict[str, tuple[Callable[[paimon.Table, paimon.Catalog], object], type[paimon.PaimonError] | None, str]] = {
    "dropped": (lambda _, catalog: catalog.drop_table("db.t"), paimon.TableDropped, "If it was renamed, open it"),
    "replaced": (replace_table, paimon.TableReplaced, "Open the new table"),
    "expired": (expire_snapshots, SnapshotExpired, "Plan the scan again"),
    "altered": (change_schema, None, ""),
}


@pytest.mark.parametrize(("source", "change", "keyed"), mark_products(STALE_SOURCES, CHANGES, [True, False]))
def test_a_source_has_the_rows_of_its_snapshot_or_ends_with_the_way_out(
    tmp_path: Path, source: str, change: str, keyed: bool
) -> None:
    options: dict[str, Any] = {"primary_keys": ["id"], "options": {"bucket": 1}} if keyed else {}
    table, catalog = create_table(tmp_path, "id BIGINT NOT NULL, v INT", **options), paimon.connect(tmp_path)
    for number in (1, 2):
        table.write([{"id": number, "v": number}])
    read = STALE_SOURCES[source](table, catalog)
    act, error, hint = CHANGES[change]
    act(table, catalog)
    if error is None:
        assert sorted(to_tuples(read())) == [(1, 1), (2, 2)]
        return
    # DuckDB has errors of its own, which contain the name and the text of ours
    with pytest.raises((error, duckdb.Error), match=hint) as raised:
        read()
    assert error.__name__ in f"{type(raised.value).__name__} {raised.value}"


class WritingScan:
    """Writes a row before each plan of a query."""

    def __init__(self, scan: ScanRows, table: paimon.Table) -> None:
        self.scan, self.table = scan, table

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scan, name)

    def narrow(self, *arguments: Any) -> ScanRows:
        self.table.write([{"id": 1_000 + self.table.count(), "v": 1}])
        return self.scan.narrow(*arguments)


def test_joins_and_unions_next_to_a_writer_have_the_rows_of_one_snapshot(tmp_path: Path) -> None:
    table = create_table(tmp_path, "id BIGINT NOT NULL, v INT", primary_keys=["id"], options={"bucket": 1})
    table.write([{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    rows: Any = WritingScan(ScanRows(table.scan()), table)
    rows.plan()
    dataset, frame = arrow_datasets.TableDataset(rows), polars_frames.scan_rows(rows)
    with duckdb.connect() as connection:
        connection.register("rows", dataset)
        for query in (
            "SELECT a.id FROM rows a FULL JOIN rows b USING (id)", "SELECT id FROM rows UNION SELECT id FROM rows",
            "SELECT id FROM rows WHERE id IN (SELECT id FROM rows WHERE v > 0) OR id > (SELECT max(id) FROM rows)",
        ):  # fmt: skip
            assert sorted(connection.sql(query).fetchall()) == [(1,), (2,)], query
    assert frame.join(frame, on="id", how="full").collect().height == 2
    assert pl.concat([frame, frame.filter(P("v") > 0)]).collect()["id"].to_list().count(1) == 2
    assert table.count() > 8


def test_a_table_that_replaces_its_own_rows_reads_them_of_one_snapshot(tmp_path: Path) -> None:
    table = create_table(tmp_path, "id BIGINT")
    table.write([{"id": 1}])
    assert len(find_reads(table).reads) == 1
    old = table.to_dataset()
    table.overwrite(table)
    assert table.count() == 1
    assert [read.state.snapshot_id for read in find_reads(old).reads if read.state is not None] == [1]


def test_a_lazy_frame_reads_what_its_query_needs(orders: paimon.Table) -> None:
    frame = orders.lazy()
    query = frame.filter((P("day") == 1) & (P("id") == 7) & (P("name").str.len_chars() == 2)).select("name")
    assert query.collect().to_dicts() == [{"name": "n7"}]
    assert frame.head(3).collect().height == 3 and frame.head(0).collect().height == 0
    assert frame.select(pl.len()).collect().item() == 60 and frame.filter(pl.lit(True)).collect().height == 60
    assert frame.head(5).filter(P("id") >= 0).collect().height == 5
    assert frame.join(frame, on="id").collect().height == 60
    assert orders.scan(limit=4).lazy().filter(P("id") >= 0).collect().height == 4
    assert paimon.scan_polars(orders.location).collect().height == 60
    assert orders.system_table("snapshots").lazy().filter(P("snapshot_id") == 1).collect().height == 1
    with pytest.raises(paimon.InvalidRequest, match="A dict is not a table"):
        paimon.scan_polars({})  # type: ignore[arg-type]


def test_a_lazy_frame_keeps_its_snapshot(tmp_path: Path) -> None:
    table = create_table(tmp_path, "id BIGINT")
    table.write([{"id": 1}])
    frame = table.lazy()
    table.write([{"id": 2}])
    assert frame.collect().height == 1


def test_where_takes_expressions_of_polars(orders: paimon.Table) -> None:
    scan = orders.scan(where=(P("id") == 7) & (P("name").str.len_chars() == 2))
    assert scan.to_arrow()["id"].to_pylist() == [7] and "prunes:  id = 7" in scan.explain()
    assert orders.count(where=~P("day").is_in([0, 1])) == 20
    for wrong, message in [
        (P("id") > P("id").mean(), "not computed from one row"),
        (P("id").shift(1) > 1, "not computed from one row"),
        (pl.nth(0) > 1, "does not name its columns"),
        (pl.all() > 1, "does not name its columns"),
        (P("nam") > 1, "'nam' does not exist"),
        (P("name") > 1, "cannot be computed"),
    ]:
        with pytest.raises(paimon.InvalidRequest, match=message):
            orders.scan(where=wrong).to_arrow()  # type: ignore[arg-type]


def test_a_long_chain_of_polars_prunes_and_keeps_its_meaning(orders: paimon.Table) -> None:
    chain = reduce(or_, [P("id") == number for number in range(7, 500)])
    condition = chain & (P("day") == 1) & ~(P("name").is_null() | (P("id") == 9) | (P("id") == 10))
    scan = orders.scan(where=condition)
    assert "id >= 7 AND" in scan.explain() or "id = 7 OR" in scan.explain()
    rows = pl.from_arrow(orders.scan().to_arrow())
    assert isinstance(rows, pl.DataFrame)
    assert to_rows(scan.to_arrow()) == to_rows(rows.filter(condition).to_arrow())
    for parts in product([P("id") == 7, P("name") == "none"], repeat=3):
        condition = reduce(or_, [reduce(and_, (*parts, P("day") == 1)), *parts[1:], P("id") == 8])
        assert orders.count(where=condition) == rows.filter(condition).height


def test_a_python_function_that_cannot_be_stored_is_refused(
    orders: paimon.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(paimon.InvalidRequest, match="cannot be stored"):
        orders.count(where=P("id").map_batches(lambda ids: ids > 1, return_dtype=pl.Boolean))  # type: ignore[arg-type]


def test_lazy_sources_are_written(orders: paimon.Table, tmp_path: Path) -> None:
    copy = create_table(tmp_path, "id BIGINT NOT NULL, day INT, name STRING", primary_keys=["id"])
    with duckdb.connect() as connection:
        rows = orders.to_dataset()  # noqa: F841  (DuckDB reads it by name)
        sources = [
            orders.lazy().filter(P("day") == 1),
            orders.to_dataset().filter(F("day") == 1),
            ds.dataset(orders.scan(where="day = 1").to_arrow()),
            connection.sql("SELECT * FROM rows WHERE day = 1"),
        ]
        for source in sources:
            assert copy.write(source).rows == 20
            assert copy.overwrite(source).rows == 20
    merged = copy.merge(orders.lazy().filter(P("id") == 1), on="id").when_matched_update_all().execute()
    assert merged.updated == 1 and copy.count() == 20
    assert copy.write(orders.lazy().filter(P("id") < 0)).rows == 0


def test_a_table_takes_the_columns_of_a_frame(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    rows = pa.table({"id": [1], "name": pa.array(["a"]).dictionary_encode()})
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT 1::BIGINT AS id, 'a' AS name")
        sources = [rows, rows.to_batches()[0], ds.dataset(rows), frame, frame.lazy(), frame.to_pandas(), relation]
        for number, source in enumerate(sources):
            table = catalog.create_table(f"db.t{number}", source, primary_keys=["id"])
            assert table.schema.equals(pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())]))
            assert table.count() == 0 and table.write(source).rows == 1
    assert catalog.create_table("db.copy", table).schema.names == ["id", "name"]
    assert catalog.create_table("db.part", table.scan(columns=["name"])).schema.names == ["name"]
    for wrong in (3, {"id": 1}, None):
        with pytest.raises(paimon.InvalidRequest, match="is not a schema"):
            catalog.create_table("db.wrong", wrong)
