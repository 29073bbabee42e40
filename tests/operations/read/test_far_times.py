"""Times that 64-bit nanoseconds cannot represent are kept as stored, or refused by name; they never wrap."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon
from paimon.domain.errors import InvalidRequest, Unsupported

FAR = datetime(9999, 12, 31, 23, 59, 59)
FORMATS = ["parquet", "orc", "avro"]


def create(tmp_path: Path, columns: str, **declaration: Any) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d", exist_ok=True)
    return catalog.create_table("d.t", columns, **declaration)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", ["TIMESTAMP(6)", "TIMESTAMP(3)", "DATE", "STRING"])
def test_a_change_to_nanoseconds_neither_loses_nor_rewrites_far_times(tmp_path: Path, name: str, kind: str) -> None:
    options = {"bucket": "1", "file.format": name}
    table = create(tmp_path, f"id INT NOT NULL, c {kind}", primary_keys=["id"], options=options)
    stored = {"DATE": FAR.date(), "STRING": "9999-12-31 23:59:59"}.get(kind, FAR)
    table.write([{"id": 1, "c": stored}, {"id": 2, "c": None}])
    table.set_options({"file.format": "parquet"})
    nanos = change_type(table, "TIMESTAMP(9)")
    nanos.write([{"id": 3, "c": None}])
    before = nanos.snapshot()
    for attempt in (
        lambda: nanos.scan().to_arrow(),
        lambda: nanos.scan(where="c > TIMESTAMP '2020-01-01 00:00:00'").to_arrow(),
        lambda: nanos.compact(full=True),
        lambda: nanos.update({"c": None}, where="id = 2 AND c IS NULL"),
    ):
        with pytest.raises(Unsupported, match=r"column 'c'.*before 1678 or after 2261.*\.(parquet|orc|avro)"):
            attempt()
    assert nanos.snapshot() == before
    assert nanos.scan(["id"]).to_arrow().num_rows == 3
    assert change_type(nanos, kind).scan(where="id = 1").to_arrow()["c"].to_pylist() == [stored]


def change_type(table: paimon.Table, kind: str) -> paimon.Table:
    return table.alter_column_type("c", kind, allow_lossy=True)


@pytest.mark.parametrize("kind", ["TIMESTAMP(9)", "TIMESTAMP(7) WITH LOCAL TIME ZONE"])
@pytest.mark.parametrize("text", ["9999-12-31T23:59:59.999999999", "0001-01-01T00:00:00.000000001"])
def test_far_nanoseconds_given_as_values_are_refused(tmp_path: Path, kind: str, text: str) -> None:
    table = create(tmp_path, f"c {kind}")
    zone = "Z" if "ZONE" in kind else ""
    micros = pa.array([datetime.fromisoformat(text)], pa.timestamp("us", "UTC" if zone else None))
    for data in ([{"c": text + zone}], {"c": [text + zone]}, pa.table({"c": micros}), [{"c": micros[0].as_py()}]):
        with pytest.raises(InvalidRequest, match=r"Column 'c'"):
            table.write(data)
    assert table.snapshot() is None


def test_a_far_partition_value_is_refused_by_name(tmp_path: Path) -> None:
    table = create(tmp_path, "i INT, p TIMESTAMP(6)", partition_keys=["p"])
    table.write([{"i": 1, "p": FAR}])
    schema = next((tmp_path / "d.db/t/schema").glob("schema-0"))
    schema.write_text(schema.read_text().replace("TIMESTAMP(6)", "TIMESTAMP(9)"))
    nanos = paimon.open_table(str(tmp_path / "d.db/t"))
    with pytest.raises(Unsupported, match="before 1678 or after 2261"):
        nanos.scan().to_arrow()
    assert nanos.scan(["i"]).to_arrow().to_pylist() == [{"i": 1}]
