"""Maintenance with Spark tasks: results are those of the embedded methods, and tasks read and delete the files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from pyspark.sql import SparkSession

import paimon
import paimon.spark
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.maintenance.fault import Fault, FaultKind, FileReport
from paimon.operations.metadata import metadata_files
from paimon.ports.files import FileIO
from paimon.spark.tasks.distribute import TaskResult, decode_result, encode_result

pytestmark = pytest.mark.spark
OPTIONS = {
    "bucket": "2",
    "write-only": "true",
    "num-sorted-run.compaction-trigger": "3",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "2",
}


@pytest.fixture
def session(spark: SparkSession, catalog: paimon.Catalog) -> Iterator[SparkSession]:
    """A new session with the warehouse of the test."""
    yield paimon.spark.register(spark.newSession(), catalog.warehouse)


def create_table_with_commits(catalog: paimon.Catalog, name: str, commits: int = 4) -> paimon.Table:
    table = catalog.create_table(name, "k INT NOT NULL, v STRING", primary_keys=["k"], options=OPTIONS)
    for number in range(commits):
        table.write({"k": list(range(20)), "v": [f"v{number}"] * 20})
    return table


def damage_a_file(table: paimon.Table) -> Path:
    """Change a byte of the pages of one data file."""
    path = Path(table.scan().plan().splits[0].file_paths[0])
    group = pq.ParquetFile(path).metadata.row_group(0)
    column = group.column(group.num_columns - 1)
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[start + column.total_compressed_size - 1] ^= 4  # the last byte of its pages
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "result",
    [
        7,
        frozenset({"a", "ü"}),
        FileReport(3, [Fault(FaultKind.CONTENT, "a/ü", "has 3 rows", ["snapshot 1", "tag t"])]),
        pa.table({"path": ["a"], "size": [1], "modified": pa.array([0], pa.timestamp("ms", "UTC"))}),
        pa.table({"path": pa.array([], pa.string())}),
    ],
    ids=["count", "names", "report", "files", "no files"],
)
def test_results_of_tasks_are_returned_as_they_were(result: TaskResult) -> None:
    assert decode_result(encode_result(result)) == result


def test_unknown_results_are_refused() -> None:
    with pytest.raises(CorruptTable, match="unknown type"):
        decode_result(b"?1")
    with pytest.raises(Unsupported, match="result is of type list"):
        encode_result(["a"])  # type: ignore[arg-type]


def test_checks_find_what_embedded_checks_find(session: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_table_with_commits(catalog, "db.t")
    whole = paimon.spark.check("db.t", deep=True, spark=session)
    assert whole.is_whole
    assert whole.rows == table.maintain.check(deep=True).rows > 0
    path = damage_a_file(table)
    fresh = paimon.open_table(table.location)
    found = paimon.spark.check("db.t", deep=True, spark=session)
    assert found == fresh.maintain.check(deep=True)
    assert [fault.path for fault in found.faults] == [str(path)]


def test_tasks_read_list_and_delete_files(
    session: SparkSession, catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the driver's engine refuse these calls, so only the tasks can make them."""
    table = create_table_with_commits(catalog, "db.t", commits=6)
    orphans = [Path(table.location, f"bucket-{bucket}", "data-0.parquet") for bucket in (0, 1)]
    for orphan in orphans:
        orphan.write_bytes(b"x")
        os.utime(orphan, (0, 0))
    monkeypatch.setattr(metadata_files, "_CHUNK_FILES", 1)
    files = _DriverFiles(table.engine.files)
    guarded = table.with_engine(evolve(table.engine, files=files))
    assert paimon.spark.check(guarded, deep=True, spark=session).rows > 0
    files.lists_data = False  # a check compares the names and sizes of data files in the driver
    listed = paimon.spark.remove_orphans(guarded, spark=session)
    assert sorted(map(Path, listed["path"].to_pylist())) == orphans
    latest = table.snapshots()[-1].id
    due = paimon.spark.compact(table, full=True, dry_run=True, spark=session)
    assert (due.snapshot_ids, table.snapshots()[-1].id) == ((), latest)
    done = paimon.spark.compact(table, full=True, spark=session)
    assert (due.buckets, due.files_before) == (done.buckets, done.files_before)
    assert paimon.spark.rescale(table, 7, dry_run=True, spark=session).partitions == 1
    due_snapshots = paimon.spark.expire_snapshots(guarded, retain_max=1, dry_run=True, spark=session).snapshots
    assert due_snapshots == len(table.snapshots()) - 1 > 0
    expired = paimon.spark.expire_snapshots(guarded, retain_max=1, spark=session)
    assert expired.files > 10 and expired.snapshots == due_snapshots
    assert len(table.snapshots()) == 1
    paimon.spark.remove_orphans(guarded, dry_run=False, spark=session)
    assert not any(orphan.exists() for orphan in orphans)
    orphans[0].write_bytes(b"x")
    an_hour_ago, minute = time.time() - 3600, timedelta(minutes=1)
    os.utime(orphans[0], (an_hour_ago, an_hour_ago))
    with pytest.raises(paimon.InvalidRequest, match="allow_young=True"):
        paimon.spark.remove_orphans(table, minute, dry_run=False, spark=session)
    paimon.spark.remove_orphans(table, minute, dry_run=False, allow_young=True, spark=session)
    assert not orphans[0].exists()
    assert paimon.spark.check(table, deep=True, spark=session).is_whole


def test_all_tables_of_a_database_are_maintained(session: SparkSession, catalog: paimon.Catalog) -> None:
    tables = [create_table_with_commits(catalog, f"db.{name}") for name in "ab"]
    rows = [table.scan().to_arrow().sort_by("k") for table in tables]
    due = paimon.spark.maintain("db", dry_run=True, spark=session)
    assert [(row["table"], row["action"], row["count"]) for row in due.to_pylist()] == [
        ("db.a", "compact", 2),
        ("db.a", "expire_snapshots", 2),
        ("db.b", "compact", 2),
        ("db.b", "expire_snapshots", 2),
    ]
    done = paimon.spark.maintain("db", spark=session).to_pylist()
    assert [(row["table"], row["action"], row["error"]) for row in done] == [
        (row["table"], row["action"], None) for row in due.to_pylist()
    ]
    assert [table.scan().to_arrow().sort_by("k") for table in tables] == rows
    assert paimon.spark.maintain(catalog, spark=session).num_rows == 0
    tables[0].write({"k": [1], "v": ["new"]})
    assert paimon.spark.maintain("db.a", full=True, spark=session)["count"].to_pylist() == [1, 2]
    with pytest.raises(paimon.NotFound, match="Database 'shop' does not exist"):
        paimon.spark.maintain("shop", spark=session)


def test_procedures_run_as_tasks(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table = create_table_with_commits(catalog, "db.t")
    path = damage_a_file(table)
    sql = paimon.spark.connect(spark, catalog.warehouse)
    faults = sql.sql("CALL sys.fsck('db.t', deep => true)").collect()
    assert [row["path"] for row in faults] == [str(path)]


def test_a_database_needs_a_warehouse(spark: SparkSession) -> None:
    with pytest.raises(paimon.InvalidRequest, match="no warehouse"):
        paimon.spark.maintain("db", spark=spark.newSession())


class _DriverFiles:
    """Files of the driver: data files are neither read, listed nor deleted through it."""

    def __init__(self, files: FileIO) -> None:
        self._files = files
        self.lists_data = True

    def open(self, path: str) -> object:
        assert "/bucket-" not in path, f"the driver read {path}"
        return self._files.open(path)

    def list(self, directory: str) -> object:
        assert self.lists_data or "/bucket-" not in directory, f"the driver listed {directory}"
        return self._files.list(directory)

    def delete(self, paths: list[str]) -> None:
        assert not any(path.endswith(".parquet") for path in paths), f"the driver deleted {paths}"
        self._files.delete(paths)

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)


def test_indexes_are_built_in_tasks_and_leave_out_files_of_sparks_reader(
    session: SparkSession, catalog: paimon.Catalog
) -> None:
    table = catalog.create_table("db.indexed", "k INT, v STRING", options={"write-only": "true"})
    for number in range(3):
        table.write({"k": [number, number + 10], "v": [f"v{number}"] * 2})
    table.set_options({"file-index.bloom-filter.columns": "v", "file-index.in-manifest-threshold": "1 b"})
    session.sparkContext.setJobGroup("indexes", "build indexes")
    sql = paimon.spark.connect(session, catalog.warehouse)
    (done,) = sql.sql("CALL sys.rewrite_file_index(table => 'db.indexed')").collect()
    assert done["written_indexes"] == 3
    assert session.sparkContext.statusTracker().getJobIdsForGroup("indexes")
    assert len(list(Path(table.location).rglob("*.index"))) == 3
    frame = paimon.spark.read(session, catalog.table("db.indexed"), where="v = 'v1'")
    assert sorted(row["k"] for row in frame.collect()) == [1, 11]
    assert len(frame.inputFiles()) == 1
