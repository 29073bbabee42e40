"""Estimates of scans, and the order of the tables of a join that DuckDB reads as streams."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon
from paimon.domain.scan.estimate import ScanEstimate
from paimon.scan import estimate_scan


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    """Primary-key tables whose rows must be merged, so that DuckDB reads streams: 300 rows, and 3."""
    catalog = paimon.connect(tmp_path_factory.mktemp("joins") / "lake")
    catalog.create_database("db")
    for name, rows in (("big", 300), ("small", 3)):
        options = {"bucket": "1", "write-only": "true"}
        table = catalog.create_table("db." + name, "id INT NOT NULL, v INT", primary_keys=["id"], options=options)
        for _ in range(2):
            table.write([{"id": i, "v": i % 10} for i in range(rows)])
    return catalog


def planned_sql(catalog: paimon.Catalog, query: str) -> str:
    lines = catalog.sql(f"EXPLAIN {query}").to_arrow()["plan"].to_pylist()
    return str(next(line for line in lines if line.startswith("query: "))).replace('"', "")


JOIN = "SELECT {0} FROM db.small AS s JOIN db.big AS b ON s.id = b.id"


def test_the_larger_table_comes_first(catalog: paimon.Catalog) -> None:
    sql = planned_sql(catalog, JOIN.format("b.v, s.id"))
    assert sql.index("AS b") < sql.index("AS s")
    found = catalog.sql(JOIN.format("s.id, b.v") + " ORDER BY s.id").to_arrow()
    assert found.to_pylist() == [{"id": i, "v": i} for i in range(3)]
    assert found.schema.names == ["id", "v"]


@pytest.mark.parametrize(
    "query",
    [
        JOIN.format("*"),
        "SELECT s.id FROM db.small AS s LEFT JOIN db.big AS b ON s.id = b.id",
        "SELECT s.v FROM db.small AS s JOIN db.big AS b USING (id)",
        "SELECT s.v FROM db.small AS s NATURAL JOIN db.big AS b",
        "SELECT s.v FROM db.small AS s JOIN db.small AS b ON s.id = b.id",
        "SELECT s.v FROM db.small AS s JOIN (SELECT * FROM db.big) AS b ON s.id = b.id",
    ],
)
def test_other_joins_stay_as_written(catalog: paimon.Catalog, query: str) -> None:
    sql = planned_sql(catalog, query)
    assert sql.index("AS s") < sql.index("AS b")


def test_a_join_in_a_subquery_is_ordered(catalog: paimon.Catalog) -> None:
    sql = planned_sql(catalog, f"SELECT count(*) FROM ({JOIN.format('s.v')}) AS j")
    assert sql.index("AS b") < sql.index("AS s")
    assert catalog.sql(f"SELECT count(*) AS n FROM ({JOIN.format('s.v')}) AS j").to_arrow()["n"].to_pylist() == [3]


def test_statistics_improve_the_estimate(catalog: paimon.Catalog) -> None:
    table = catalog.table("db.big")
    assert estimate_scan(table.scan()).rows == 600  # stored rows, before a merge
    table.analyze()
    assert estimate_scan(table.scan()) == ScanEstimate(300, 300 * (8 + 4 + 4))
    assert estimate_scan(table.scan(columns=["v"])).bytes == 300 * (8 + 4)
    assert estimate_scan(table.scan(where="v = 3")).rows == 30
    assert estimate_scan(table.scan(where="v IN (3, 4) AND id > 0")).rows == 60
    assert estimate_scan(table.scan(where="v IN (3, 4) OR v = 1")).rows == 300
    Path(table.location, "statistics", str(table.snapshots()[-1].statistics)).unlink()
    again = paimon.open_table(table.location)
    assert estimate_scan(again.scan()).rows == 600  # a lost file costs the estimate, not the query
