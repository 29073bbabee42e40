"""ANALYZE: statistics of the rows that a scan returns, stored with a snapshot that changes no row."""

from __future__ import annotations

import pytest

import paimon
from paimon.domain.commit.entries import StatisticsFile
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict, InvalidRequest, Unsupported
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.operations.analyze import Analyzed
from paimon.operations.commit.commit import commit_statistics


def make_table(catalog: paimon.Catalog) -> paimon.Table:
    columns = "id INT NOT NULL, s STRING, m MAP<STRING, INT>"
    table = catalog.create_table("d.t", columns, primary_keys=["id"], options={"bucket": "2", "write-only": "true"})
    table.write([{"id": i, "s": "ab"[: i % 3], "m": None} for i in range(30)])
    table.write([{"id": i, "s": None, "m": None} for i in range(20, 40)])
    return table


def test_the_rows_of_a_scan_are_summarized(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    before = table.scan().to_arrow()
    done = table.analyze()
    assert isinstance(done, Analyzed)
    assert (done.snapshot_id, done.statistics.snapshot_id, done.statistics.row_count) == (3, 2, 40)
    assert done.statistics.columns.keys() == {"id", "s"}
    assert done.estimated_columns == ()
    number, text = done.statistics.columns["id"], done.statistics.columns["s"]
    assert (number.distinct_count, number.smallest, number.largest) == (40, "0", "39")
    assert (text.distinct_count, text.null_count, text.largest_length) == (3, 20, 2)
    newest = table.snapshot()
    assert newest is not None
    assert (newest.commit_kind, newest.delta_record_count, newest.total_record_count) == (CommitKind.ANALYZE, 0, 50)
    assert table.scan().to_arrow() == before
    [row] = table.system_table("statistics").scan().to_arrow().to_pylist()
    assert (row["snapshot_id"], row["mergedRecordCount"]) == (2, 40)
    assert table.maintain.check(deep=True).faults == ()


def test_statistics_stay_until_the_columns_change(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    table.analyze([])
    table.write([{"id": 99, "s": None, "m": None}])
    assert table.system_table("statistics").scan().to_arrow()["colstat"].to_pylist() == ["{ }"]
    changed = table.add_column("n", "INT")
    changed.write([{"id": 99, "s": None, "m": None, "n": 1}])
    assert table.system_table("statistics").scan().to_arrow().num_rows == 0


def test_statistics_of_changed_columns_are_refused(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    table.add_column("n", "INT")
    with pytest.raises(CommitConflict, match="Analyze the table again"):
        commit_statistics(table.context, CommitRequest((), "me"), StatisticsFile("stat-x-0", 0))
    assert len(table.snapshots()) == 2


def test_expiry_and_orphan_removal_keep_the_file_while_a_snapshot_names_it(catalog: paimon.Catalog) -> None:
    table = make_table(catalog)
    first = table.analyze(["id"])
    table.analyze(["id"])
    for _ in range(2):
        table.write([{"id": 1, "s": None, "m": None}])
    files = table.context.files
    directory = f"{table.location}/statistics"
    assert len(list(files.list(directory))) == 2
    table.maintain.expire_snapshots(retain_min=1, retain_max=2)
    assert first.snapshot_id not in {s.id for s in table.snapshots()}
    assert len(list(files.list(directory))) == 1
    assert table.system_table("statistics").scan().to_arrow().num_rows == 1


def test_bad_requests_name_the_object_and_leave_nothing(catalog: paimon.Catalog) -> None:
    empty = catalog.create_table("d.empty", "id INT")
    with pytest.raises(InvalidRequest, match=r"'d.empty' has no snapshot.*Write rows first"):
        empty.analyze()
    table = make_table(catalog)
    with pytest.raises(InvalidRequest, match=r"Column 'ids' does not exist\. Did you mean 'id'"):
        table.analyze(["ids"])
    with pytest.raises(Unsupported, match="column 'm' with type MAP<STRING, INT>"):
        table.analyze(["m"])
    assert len(table.snapshots()) == 2


def test_statements_analyze(catalog: paimon.Catalog) -> None:
    make_table(catalog)
    [row] = catalog.sql("ANALYZE TABLE d.t COMPUTE STATISTICS").to_arrow().to_pylist()
    assert (row["rows"], row["column"]) == (40, None)
    rows = catalog.sql("ANALYZE TABLE d.t COMPUTE STATISTICS FOR COLUMNS s, id").to_arrow()
    assert rows["column"].to_pylist() == ["id", "s"]
    rows = catalog.sql("ANALYZE TABLE d.t COMPUTE STATISTICS FOR ALL COLUMNS").to_arrow()
    assert rows["distinct_count"].to_pylist() == [40, 3]
    with pytest.raises(Unsupported, match="ANALYZE of one partition"):
        catalog.sql("ANALYZE TABLE d.t PARTITION (a = 1) COMPUTE STATISTICS")
    with pytest.raises(Unsupported, match="NOSCAN"):
        catalog.sql("ANALYZE TABLE d.t COMPUTE STATISTICS NOSCAN")
