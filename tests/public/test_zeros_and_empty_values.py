"""Zero, the empty text and the empty collection are values, and never treated as missing arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import paimon
from paimon.cli.main import main

ROWS = {"id": [1, 2], "day": ["a", "b"]}


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    made = catalog.create_table("db.t", "id BIGINT, day STRING", partition_keys=["day"])
    made.write(ROWS)
    made.write(ROWS)
    return made


@pytest.mark.parametrize(
    "key",
    ["scan.tag-name", "scan.version", "scan.timestamp", "scan.snapshot-id", "scan.timestamp-millis", "scan.watermark",
     "incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag", "branch"],
)  # fmt: skip
def test_an_empty_time_travel_option_never_reads_the_latest_state(table: paimon.Table, key: str) -> None:
    with pytest.raises(paimon.InvalidRequest):
        paimon.open_table(table.location, {key: ""}).scan().to_arrow()
    with pytest.raises(paimon.InvalidRequest):
        next(iter(paimon.open_table(table.location, {key: ""}).follow(idle_timeout=0)))


@pytest.mark.parametrize("key", ["scan.snapshot-id", "scan.timestamp-millis", "scan.watermark"])
def test_snapshot_and_timestamp_zero_do_not_exist(table: paimon.Table, key: str) -> None:
    with pytest.raises(paimon.NotFound):
        paimon.open_table(table.location, {key: 0}).scan().to_arrow()
    for travel in ({"snapshot": 0}, {"timestamp": 0}):
        with pytest.raises(paimon.NotFound):
            table.scan(**travel).to_arrow()


def test_an_empty_consumer_is_no_follower_without_one(table: paimon.Table) -> None:
    with pytest.raises(paimon.InvalidRequest, match="Consumer name ''"):
        table.follow(consumer_id="")
    with pytest.raises(paimon.InvalidRequest, match="Consumer name ''"):
        paimon.open_table(table.location, {"consumer-id": "other"}).follow(consumer_id="")


@pytest.mark.parametrize(
    "start",
    [
        lambda t: t.write(ROWS, commit_user="", identifier=0),
        lambda t: t.overwrite(ROWS, commit_user=""),
        lambda t: t.new_batch_write_builder(""),
        lambda t: t.new_stream_write_builder(""),
    ],
)
def test_an_empty_commit_user_is_not_replaced_by_a_drawn_one(
    table: paimon.Table, start: Callable[[paimon.Table], object]
) -> None:
    with pytest.raises(paimon.InvalidRequest, match="'commit_user' is empty"):
        start(table)
    assert len(table.snapshots()) == 2


def test_identifier_zero_commits_once(table: paimon.Table) -> None:
    first, second = (table.write(ROWS, commit_user="job", identifier=0) for _ in range(2))
    assert first.snapshot_ids == (3,) and second.snapshot_ids == ()
    builder = table.new_stream_write_builder("stream")
    with builder.new_write() as writer:
        writer.write(ROWS)
        messages = writer.prepare_commit(0)
    commit = builder.new_commit()
    assert commit.commit(0, messages).snapshot_ids == (4,)
    assert commit.commit(0, messages).already_committed
    assert commit.filter_committed([0, 1]) == [1]


def test_no_columns_and_no_rows_are_counts(table: paimon.Table) -> None:
    assert table.scan(columns=[]).to_arrow().num_rows == 4
    assert sum(batch.num_rows for batch in table.scan(columns=[]).to_batches()) == 4
    assert table.scan(limit=0).to_arrow().num_rows == table.scan(limit=0).count() == 0
    assert table.changes(after=0).to_arrow().num_rows == 4
    assert table.changes(after=0, through=0).to_arrow().num_rows == 0


def test_watermark_zero_and_empty_properties_are_stored(table: paimon.Table) -> None:
    table.write(ROWS, watermark=0, properties={"note": ""})
    snapshot = table.snapshot()
    assert snapshot is not None and snapshot.watermark == 0 and snapshot.properties == {"note": ""}


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_predicate_is_not_everything(table: paimon.Table, text: str) -> None:
    for use in (
        lambda: table.scan(where=text).count(),
        lambda: table.delete(text),
        lambda: table.compact(where=text),
        lambda: table.changes(where=text).to_arrow(),
        lambda: table.system_table("files").scan(where=text).to_arrow(),
    ):
        with pytest.raises(paimon.InvalidRequest, match="not a valid condition"):
            use()
    assert table.scan().count() == 4


@pytest.mark.parametrize("storage", ["", 0, [], "endpoint=x"])
def test_storage_options_are_a_mapping(tmp_path: Path, storage: object) -> None:
    for use in (paimon.connect, paimon.open_table):
        with pytest.raises(paimon.InvalidRequest, match="Argument 'storage' must be a mapping, not a"):
            use(tmp_path, storage=storage)  # type: ignore[operator]


@pytest.mark.parametrize("threads", ["", 0, "00"])
def test_threads_are_at_least_one(tmp_path: Path, threads: object) -> None:
    with pytest.raises(paimon.InvalidRequest, match="threads"):
        paimon.connect(tmp_path, threads=threads)


@pytest.mark.parametrize("arguments", [["cat", "--branch", ""], ["write", "--overwrite", "--kind-column", ""]])
def test_empty_arguments_of_commands_are_refused(
    table: paimon.Table, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,day\n1,a\n")
    command, *options = arguments
    files = [str(file)] if command == "write" else []
    assert main([command, table.location, *files, *options]) == 1
    assert "Branch name ''" in (printed := capsys.readouterr().err) or "takes no row kinds" in printed
    assert table.scan().count() == 4


@pytest.mark.parametrize("day", ["DATE '10000-01-01'", "'+10000-01-01'"])
def test_days_after_the_year_9999_in_conditions_and_assignments(tmp_path: Path, day: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "d DATE, t TIMESTAMP(6)")
    days, times = pa.array([2_932_897, 0], pa.int32()), pa.array([253_402_300_800_000_000, 0])
    table.write(pa.table({"d": days.cast(pa.date32()), "t": times.cast(pa.timestamp("us"))}))
    assert table.count(f"d >= {day} AND t = TIMESTAMP '10000-01-01 00:00:00'") == 1
    catalog.sql(f"UPDATE d.t SET d = {day} WHERE d < {day}")
    assert table.to_arrow()["d"].cast(pa.int32()).to_pylist() == [2_932_897] * 2
    catalog.sql(f"DELETE FROM d.t WHERE d = {day}")
    assert table.count() == 0
