"""Files of other systems become an append table: the rows that they have, and statistics that prune no row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from pyarrow import orc

import paimon
from paimon.adapters.executors.local import ThreadExecutor
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, PaimonError, StorageError, Unsupported
from paimon.operations.metadata.metadata_files import copy_stream
from paimon.operations.write import migrate_files
from paimon.ports.files import FileIO

ROWS = pa.table({
    "id": pa.array([1, 2, 3], pa.int32()),
    "name": ["a", "b", None],
    "ratio": [1.5, float("nan"), 2.0],
    "at": pa.array([1, 2, None], pa.timestamp("us")),
    "price": pa.array([Decimal("1.23"), None, Decimal("-4.00")], pa.decimal128(10, 2)),
    "list": pa.array([[1], [], None], pa.list_(pa.int64())),
    "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    "nested": [{"x": 1, "y": "q"}, None, {"x": None, "y": None}],
})  # fmt: skip


def write_avro(rows: pa.Table, path: str) -> None:
    fields = [("id", "int"), ("name", "string"), ("ratio", "double")]
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": ["null", t]} for n, t in fields]}
    with Path(path).open("wb") as file:
        fastavro.writer(file, schema, rows.select([n for n, _ in fields]).to_pylist())


WRITERS: dict[str, Callable[[pa.Table, str], Any]] = {
    "parquet": pq.write_table, "orc": orc.write_table, "avro": write_avro,
}  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    return catalog


def put(directory: Path, name: str, rows: pa.Table = ROWS, writer: Callable[..., Any] = pq.write_table) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    writer(rows, str(directory / name))
    return directory / name


@pytest.mark.parametrize("format_name", WRITERS)
def test_files_in_partitions_become_a_table(catalog: paimon.Catalog, tmp_path: Path, format_name: str) -> None:
    for day in ("2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"):
        put(tmp_path / "src" / f"day={day}" / "hour=7", f"part-0.{format_name}", writer=WRITERS[format_name])
        (tmp_path / "src" / f"day={day}" / "_SUCCESS").write_text("")
    planned = catalog.migrate_table(str(tmp_path / "src"), "db.t", partition_types="day DATE", dry_run=True)
    assert "db.t" not in catalog and len(planned.files) == 3
    done = catalog.migrate_table(str(tmp_path / "src"), "db.t", partition_types="day DATE")
    table = catalog.table("db.t")
    assert done.snapshot_id == 1 and table.partition_keys == ("day", "hour")
    assert table.arrow_schema.field("hour").type == pa.int32()
    found = table.scan(where="day = DATE '2026-01-01' AND hour = 7").to_arrow()
    names = [name for name in ROWS.column_names if name in found.column_names]
    assert (
        repr(found.select(names).to_pylist()) == repr(ROWS.cast(found.select(names).schema).to_pylist())
        if (format_name != "avro")
        else repr(found.select(names).to_pylist()) == repr(ROWS.select(names).to_pylist())
    )
    assert table.scan(where="id > 2").count() == 3 and table.scan(where="ratio > 100").count() == 3
    assert table.scan(where="day IS NULL").count() == 3 and table.scan(where="name = 'zz'").count() == 0
    assert table.maintain.check(deep=True).is_whole
    table.write([{"id": 9, "day": date(2026, 1, 1), "hour": 7}])
    assert (table.compact(full=True).buckets, table.scan().count()) == (1, 10)


def test_statistics_come_from_the_footer(catalog: paimon.Catalog, tmp_path: Path) -> None:
    put(tmp_path / "src", "a.parquet")
    catalog.migrate_table(str(tmp_path / "src"), "db.t", options={"metadata.stats-mode": "full"})
    text = catalog.table("db.t$files").scan().to_arrow()["min_value_stats"][0].as_py()
    assert "id=1" in text and "name=a" in text and "price=-4.00" in text and "ratio=null" in text


def test_the_source_stays_unless_the_caller_deletes_it(catalog: paimon.Catalog, tmp_path: Path) -> None:
    file = put(tmp_path / "src", "a.parquet")
    empty = put(tmp_path / "src", "b.parquet", ROWS.slice(0, 0))
    catalog.migrate_table(str(tmp_path / "src"), "db.one")
    assert file.exists()
    done = catalog.migrate_table(str(tmp_path / "src"), "db.two", delete_origin=True)
    assert [f.source for f in done.files] == [str(file)] and not file.exists() and empty.exists()
    assert catalog.table("db.two").scan().count() == 3


def test_files_without_rows_become_an_empty_table(catalog: paimon.Catalog, tmp_path: Path) -> None:
    put(tmp_path / "src", "a.parquet", ROWS.slice(0, 0))
    assert catalog.migrate_table(str(tmp_path / "src"), "db.t").snapshot_id is None
    assert catalog.table("db.t").scan().count() == 0


OTHER = ROWS.select(["id"]).append_column("extra", ROWS["name"])
SOURCES: dict[str, tuple[dict[str, Any], type[PaimonError], str]] = {
    "other columns": ({"b.parquet": OTHER}, InvalidRequest, "Column 'at' is TIMESTAMP"),
    "another type": (
        {"b.parquet": ROWS.set_column(0, "id", ROWS["id"].cast(pa.int64()))}, InvalidRequest, "is INT in file",
    ),
    "other partitions": ({"p=1/b.parquet": ROWS}, InvalidRequest, "different partition columns"),
    "a plain directory": ({"sub/b.parquet": ROWS}, InvalidRequest, "not named as a partition"),
    "nanoseconds": ({"a.parquet": pa.table({"t": pa.array([1], pa.timestamp("ns"))})}, Unsupported, "nanoseconds"),
    "unsigned": ({"a.parquet": pa.table({"t": pa.array([1], pa.uint32())})}, Unsupported, "isSigned=false"),
    "not a file of the format": ({"b.parquet": b"PAR1 rubbish PAR1"}, CorruptTable, "b.parquet.*move it elsewhere"),
    "an unknown ending": ({"a.csv": b"1,2"}, InvalidRequest, "does not end in a format"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_a_refused_source_creates_no_table(catalog: paimon.Catalog, tmp_path: Path, name: str) -> None:
    files, error, message = SOURCES[name]
    if "a.parquet" not in files and "a.csv" not in files:
        put(tmp_path / "src", "a.parquet")
    for path, rows in files.items():
        target = tmp_path / "src" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(rows) if isinstance(rows, bytes) else pq.write_table(rows, target)
    with pytest.raises(error, match=message):
        catalog.migrate_table(str(tmp_path / "src"), "db.t")
    assert "db.t" not in catalog and not list((tmp_path / "lake" / "db.db").rglob("*.parquet"))


def test_bad_arguments_are_refused(catalog: paimon.Catalog, tmp_path: Path) -> None:
    put(tmp_path / "src" / "day=x", "a.parquet")
    source = str(tmp_path / "src")
    with pytest.raises(NotFound):
        catalog.migrate_table(str(tmp_path / "missing"), "db.t")
    with pytest.raises(Unsupported, match="hive"):
        catalog.sql(f"CALL sys.migrate_table('hive', '{source}', 'db.t')")
    with pytest.raises(InvalidRequest, match="'x'"):
        catalog.migrate_table(source, "db.t", partition_types="day DATE")
    with pytest.raises(InvalidRequest, match="'id' is INT in the files, not STRING"):
        put(tmp_path / "stored" / "id=1", "a.parquet")
        catalog.migrate_table(str(tmp_path / "stored"), "db.t", partition_types="id STRING")
    with pytest.raises(InvalidRequest, match="'hour' is not a partition column"):
        catalog.migrate_table(source, "db.t", partition_types="hour INT")
    with pytest.raises(InvalidRequest, match="append table"):
        catalog.migrate_table(source, "db.t", options={"bucket": "2", "bucket-key": "id"})
    assert "db.t" not in catalog and not list((tmp_path / "lake" / "db.db").rglob("*.parquet"))


def test_a_bad_file_leaves_nothing_of_those_that_threads_copied(
    catalog: paimon.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        put(tmp_path / "src", f"{number}.parquet")
    catalog = evolve(catalog, engine=evolve(catalog.engine, executor=ThreadExecutor(3)))

    def refuse_third(source: FileIO, path: str, target: FileIO, copy: str) -> int:
        size = copy_stream(source, path, target, copy)
        if copy.endswith("-2.parquet"):
            raise StorageError(path, "planted")
        return size

    monkeypatch.setattr(migrate_files, "copy_stream", refuse_third)
    with pytest.raises(StorageError, match="planted"):
        catalog.migrate_table(str(tmp_path / "src"), "db.t")
    assert not list((tmp_path / "lake").rglob("*.parquet"))
