"""CREATE OR REPLACE TABLE, ALTER DATABASE and sys.max_pt."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import paimon
from paimon.domain.errors import InvalidRequest, NotFound, StorageError, TableReplaced, Unsupported


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    catalog.sql("CREATE TABLE db.t (id INT, pt STRING) PARTITIONED BY (pt)")
    catalog.sql("INSERT INTO db.t VALUES (1, 'a'), (2, 'b')")
    return catalog


def names(catalog: paimon.Catalog) -> list[str]:
    return sorted(path.name for path in (Path(catalog.warehouse) / "db.db").iterdir())


def test_a_table_is_replaced_with_its_rows_and_keys(catalog: paimon.Catalog) -> None:
    before = catalog.table("db.t")
    catalog.sql("CREATE OR REPLACE TABLE db.t (k BIGINT NOT NULL, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '1')")
    after = catalog.table("db.t")
    assert (after.columns, after.primary_keys, after.snapshots()) == (["k"], ("k",), [])
    assert names(catalog) == ["t"]
    after.write([{"k": 5}])
    assert catalog.table("db.t").scan().to_arrow().to_pylist() == [{"k": 5}]
    with pytest.raises(TableReplaced):
        before.write([{"id": 3, "pt": "a"}])


def test_a_query_may_read_the_table_that_it_replaces(catalog: paimon.Catalog) -> None:
    catalog.sql("CREATE OR REPLACE TABLE db.t AS SELECT id * 10 AS id, pt FROM db.t WHERE pt = 'b'")
    assert catalog.table("db.t").scan().to_arrow().to_pylist() == [{"id": 20, "pt": "b"}]
    catalog.sql("CREATE OR REPLACE TABLE db.new AS SELECT 1 AS one")
    catalog.sql("CREATE OR REPLACE TABLE db.new LIKE db.t")
    assert catalog.table("db.new").columns == ["id", "pt"]
    assert names(catalog) == ["new", "t"]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE OR REPLACE TABLE db.t AS SELECT CAST('x' AS INT) AS id FROM db.t", Exception),
        ("CREATE OR REPLACE TABLE db.t (id INT) WITH ('bucket' = 'x')", InvalidRequest),
        ("CREATE OR REPLACE TABLE db.t AS SELECT missing FROM db.t", InvalidRequest),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS db.t (id INT)", InvalidRequest),
    ],
)
def test_a_replacement_that_fails_keeps_the_table(
    catalog: paimon.Catalog, statement: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        catalog.sql(statement)
    assert catalog.table("db.t").scan().count() == 2
    assert names(catalog) == ["t"]


def test_a_second_move_that_fails_restores_the_table(catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    files = type(catalog.engine.files)
    move = files.move_directory

    def fail_once(self: object, source: str, target: str) -> None:
        if source.endswith(".new"):
            raise OSError("planted")
        move(self, source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "move_directory", fail_once)
    with pytest.raises(OSError, match="planted"):
        catalog.sql("CREATE OR REPLACE TABLE db.t (k INT)")
    assert catalog.table("db.t").scan().count() == 2 and names(catalog) == ["t"]


def test_a_failed_restoration_names_the_place_of_the_table(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = type(catalog.engine.files)
    move = files.move_directory

    def fail_after_first(self: object, source: str, target: str) -> None:
        if not target.endswith(".replaced"):
            raise StorageError(source, "planted")
        move(self, source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "move_directory", fail_after_first)
    with pytest.raises(StorageError, match=r"\.replaced.*has the replaced table; move it back"):
        catalog.sql("CREATE OR REPLACE TABLE db.t (k INT)")


def test_an_old_table_that_cannot_be_deleted_is_no_failure(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, path: str) -> None:
        raise StorageError(path, "planted")

    monkeypatch.setattr(type(catalog.engine.files), "delete_directory", refuse)
    assert catalog.create_table("db.t", "k INT", replace=True).columns == ["k"]
    assert catalog.tables("db") == ["t"]
    with pytest.raises(InvalidRequest, match="'exist_ok' and 'replace'"):
        catalog.create_table("db.t", "k INT", replace=True, exist_ok=True)


def test_a_storage_without_directories_refuses() -> None:
    catalog = paimon.connect("memory://replaced")
    catalog.create_database("db")
    catalog.sql("CREATE OR REPLACE TABLE db.t (id INT)")
    with pytest.raises(Unsupported, match="moved with their directory"):
        catalog.sql("CREATE OR REPLACE TABLE db.t (k INT)")
    assert catalog.table("db.t").columns == ["id"]


def test_a_jdbc_catalog_stores_properties(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "lake", metastore="jdbc")
    catalog.create_database("db")
    catalog.sql("CREATE TABLE db.t (id INT)")
    with pytest.raises(Unsupported, match="moved with their directory"):
        catalog.sql("CREATE OR REPLACE TABLE db.t AS SELECT 7 AS k")
    catalog.sql("ALTER DATABASE db SET DBPROPERTIES ('owner' = 'ann', 'stage' = 'raw')")
    catalog.sql("ALTER SCHEMA db UNSET PROPERTIES ('stage')")
    found = catalog.database_properties("db")
    assert found["owner"] == "ann" and "stage" not in found


def test_properties_need_a_catalog_that_stores_them(catalog: paimon.Catalog) -> None:
    with pytest.raises(Unsupported, match="properties of databases"):
        catalog.sql("ALTER DATABASE db SET PROPERTIES ('owner' = 'ann')")
    with pytest.raises(NotFound):
        catalog.sql("ALTER DATABASE none SET ('owner' = 'ann')")
    with pytest.raises(InvalidRequest, match="SET"):
        catalog.sql("ALTER DATABASE db RENAME TO other")


def test_the_largest_partition_is_a_constant_of_a_query(catalog: paimon.Catalog) -> None:
    assert catalog.sql("SELECT sys.max_pt('db.t') AS p").to_arrow().to_pylist() == [{"p": "b"}]
    rows = catalog.sql("SELECT id FROM db.t WHERE pt = paimon.sys.max_pt('db.t')")
    assert rows.to_arrow().to_pylist() == [{"id": 2}]
    plan = "\n".join(
        catalog.sql("EXPLAIN SELECT id FROM db.t WHERE pt = sys.MAX_PT('db.t')").to_arrow()["plan"].to_pylist()
    )
    assert "pt = 'b'" in plan
    catalog.sql("INSERT INTO db.t VALUES (3, 'c'), (4, NULL)")
    assert catalog.sql("SELECT sys.max_pt('db.t') AS p").to_arrow().to_pylist() == [{"p": "c"}]
    catalog.table("db.t").drop_partitions({"pt": "c"})
    assert catalog.sql("SELECT sys.max_pt('db.t') AS p").to_arrow().to_pylist() == [{"p": "b"}]


@pytest.mark.parametrize("values", [(1.0, float("nan")), (float("nan"), 1.0)])
def test_nan_is_the_largest_partition(catalog: paimon.Catalog, values: tuple[float, float]) -> None:
    table = catalog.create_table("db.floats", "id INT, p DOUBLE", partition_keys=["p"])
    table.write([{"id": 1, "p": value} for value in values])
    (row,) = catalog.sql("SELECT sys.max_pt('db.floats') AS p").to_arrow().to_pylist()
    assert row["p"] != row["p"]


def test_the_largest_partition_has_the_type_of_its_column(catalog: paimon.Catalog) -> None:
    catalog.sql("CREATE TABLE db.d (id INT, day DATE, n INT) PARTITIONED BY (day, n)")
    catalog.sql("INSERT INTO db.d VALUES (1, DATE '2026-01-09', 3), (2, DATE '2026-01-10', 1)")
    found = catalog.sql("SELECT sys.max_pt('db.d') AS p, id FROM db.d WHERE day = sys.max_pt('db.d')").to_arrow()
    assert found.to_pylist() == [{"p": date(2026, 1, 10), "id": 2}]
    catalog.sql("CREATE TABLE db.n (id INT, n INT) PARTITIONED BY (n)")
    catalog.sql("INSERT INTO db.n VALUES (1, 9), (2, 10)")
    assert catalog.sql("SELECT sys.max_pt('db.n') AS p").to_arrow().to_pylist() == [{"p": 10}]


def test_a_table_without_partitions_has_no_largest_one(catalog: paimon.Catalog) -> None:
    catalog.sql("CREATE TABLE db.plain (id INT)")
    catalog.sql("CREATE TABLE db.none (id INT, pt INT) PARTITIONED BY (pt)")
    for query, error, message in (
        ("SELECT sys.max_pt('db.plain')", InvalidRequest, "has no partitions"),
        ("SELECT sys.max_pt('db.none')", InvalidRequest, "has no partition with rows"),
        ("SELECT sys.max_pt('db.missing')", NotFound, "missing"),
        ("SELECT sys.max_pt(id) FROM db.t", InvalidRequest, "single quotes"),
        ("SELECT sys.max_pt()", InvalidRequest, "single quotes"),
    ):
        with pytest.raises(error, match=message):
            catalog.sql(query).to_arrow()
