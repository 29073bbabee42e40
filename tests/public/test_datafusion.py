"""The catalog of DataFusion: the rows of our scans, the files of our plans, one snapshot until a refresh."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import paimon

datafusion = pytest.importorskip("datafusion", reason="the extra datafusion is not installed")
COLUMNS = "day INT NOT NULL, id BIGINT NOT NULL, word STRING, size DOUBLE, cost DECIMAL(10, 2), at TIMESTAMP_LTZ(3)"


@pytest.fixture
def lake(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    orders = catalog.create_table(
        "shop.orders", COLUMNS, primary_keys=["day", "id"], partition_keys=["day"], options={"bucket": "1"}
    )
    orders.write([make_row(day, id) for day in range(3) for id in range(4)])
    orders.write([{**make_row(1, 2), "word": "newer"}, {**make_row(1, 3), "size": None}])
    return catalog


def make_row(day: int, id: int) -> dict[str, Any]:
    return {
        "day": day,
        "id": id,
        "word": f"word {id}",
        "size": float("nan") if id == 0 else id / 2,
        "cost": Decimal(id),
        "at": datetime(2026, 1, 1 + id, tzinfo=UTC),
    }


def query(context: Any, text: str) -> list[dict[str, Any]]:
    return list(context.sql(text).to_arrow_table().to_pylist())


def test_a_table_that_cannot_be_opened_is_left_out_with_a_warning(lake: paimon.Catalog, tmp_path: Path) -> None:
    broken = lake.create_table("shop.broken", "id INT")
    broken.write([{"id": 1}])
    (tmp_path / "shop.db" / "broken" / "snapshot" / "snapshot-1").write_text("{")
    context = datafusion.SessionContext()
    with pytest.warns(paimon.PaimonWarning, match=r"'shop\.broken' is not attached"):
        paimon.attach_datafusion(context, "lake", lake)
    assert query(context, "SELECT count(*) AS n FROM lake.shop.orders") == [{"n": 12}]


@pytest.mark.parametrize(
    "condition",
    [
        "day = 1 AND id = 2",
        "word = 'newer' OR word IS NULL",
        "size > 0.5",
        "size IS NULL",
        "cost BETWEEN 1 AND 2.5",
        "at >= TIMESTAMP '2026-01-03T00:00:00Z'",
        "word LIKE 'word%' AND id IN (1, 3)",
    ],
)
def test_filters_return_the_rows_of_a_scan(lake: paimon.Catalog, condition: str) -> None:
    context = datafusion.SessionContext()
    paimon.attach_datafusion(context, "lake", lake)
    found = query(context, f"SELECT * FROM lake.shop.orders WHERE {condition} ORDER BY day, id")
    context.from_arrow(lake.table("shop.orders").scan().to_arrow(), "rows")
    if "size >" in condition:  # the dataset filters, and NaN is greater than nothing for pyarrow
        condition += " AND NOT isnan(size)"
    assert found == query(context, f"SELECT * FROM rows WHERE {condition} ORDER BY day, id")
    assert found


def test_a_filter_reads_the_files_of_our_plan(lake: paimon.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    context = datafusion.SessionContext()
    paimon.attach_datafusion(context, "lake", lake)
    opened: set[str] = set()
    local = paimon.adapters.files.local.LocalFiles
    read = local.open
    monkeypatch.setattr(local, "open", lambda self, path: (opened.add(path), read(self, path))[1])
    assert query(context, "SELECT word FROM lake.shop.orders WHERE day = 2 AND id = 1") == [{"word": "word 1"}]
    assert {Path(path).parent.parent.name for path in opened if "/data-" in path} == {"day=2"}


def test_tables_keep_their_snapshot_until_a_refresh(lake: paimon.Catalog) -> None:
    context = datafusion.SessionContext()
    attached = paimon.attach_datafusion(context, "lake", lake)
    lake.table("shop.orders").write([make_row(9, 9)])
    lake.create_table("shop.empty", "id INT")
    both = "SELECT count(*) AS n FROM lake.shop.orders AS a JOIN lake.shop.orders AS b USING (day, id)"
    assert query(context, both) == [{"n": 12}]
    attached.refresh()
    assert query(context, both) == [{"n": 13}]
    assert query(context, "SELECT * FROM lake.shop.empty") == []
    tables = "SELECT table_name FROM lake.information_schema.tables WHERE table_schema = 'shop' ORDER BY 1"
    information = datafusion.SessionContext(datafusion.SessionConfig().with_information_schema(True))
    paimon.attach_datafusion(information, "lake", lake)
    assert query(information, tables) == [{"table_name": "empty"}, {"table_name": "orders"}]
    lake.drop_table("shop.empty")
    attached.refresh()
    with pytest.raises(Exception, match="not found"):
        query(context, "SELECT * FROM lake.shop.empty")
    with pytest.raises(paimon.AlreadyExists, match="Catalog of DataFusion 'lake' already exists"):
        paimon.attach_datafusion(context, "lake", lake)
