"""Frames of Daft: the rows of one snapshot, a task for each split, and filters with the meaning of Daft."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon

daft = pytest.importorskip("daft", reason="the extra daft is not installed")


def test_a_frame_of_daft_has_the_rows_of_a_scan(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    columns = "day INT NOT NULL, id BIGINT NOT NULL, word STRING, size DOUBLE, tags MAP<STRING, INT>"
    orders = catalog.create_table(
        "shop.orders", columns, primary_keys=["day", "id"], partition_keys=["day"], options={"bucket": "1"}
    )
    rows = [
        {"day": day, "id": id, "word": f"w{id}", "size": float("nan") if id == 0 else id / 2, "tags": {"k": id}}
        for day in range(3)
        for id in range(4)
    ]
    orders.write(rows)
    orders.write([{**rows[1], "word": "newer"}])
    frame = paimon.scan_daft(orders)
    orders.write([{**rows[0], "id": 9}])
    assert frame.count_rows() == 12
    assert frame.where((daft.col("day") == 0) & (daft.col("id") == 1)).select("word").to_pydict() == {"word": ["newer"]}
    assert frame.where(daft.col("size") > 1).count_rows() == 6, "NaN is the largest number for Daft"
    part = paimon.scan_daft(orders.scan(columns=["id"], where="day = 0"))
    assert sorted(part.to_pydict()["id"]) == [0, 1, 2, 3, 9]
    assert paimon.scan_daft(orders.scan(where="day = 7")).count_rows() == 0
    copy = catalog.create_table("shop.copy", frame.select("id", "tags"))
    assert copy.write(frame.select("id", "tags")).rows == 12
    assert copy.scan(where="id = 3", limit=1).to_arrow()["tags"].to_pylist() == [[("k", 3)]]
    with pytest.raises(paimon.InvalidRequest, match="A int is not a table"):
        paimon.scan_daft(3)  # type: ignore[arg-type]
