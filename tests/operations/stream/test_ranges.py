"""Ranges of a stream: any division into batches returns each change once, and the same range returns the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from attrs import evolve
from support.case_lists import mark_nightly

import paimon
from paimon.changes import Changes
from paimon.domain.changelog.stream_start import parse_start
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.scan.split_packing import SplitLimits
from paimon.domain.scan.stream_position import StreamPosition, decode_position, encode_position, identify_plan
from paimon.domain.scan.stream_tasks import BatchLimits, group_by_key_order
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import IntType
from paimon.operations.read.changes.followed import read_stream_split
from paimon.operations.stream.ranges import StreamRanges
from paimon.operations.stream.start import Progress

DDL = "id BIGINT NOT NULL, amount BIGINT"
UNLIMITED = BatchLimits()
TASKS = SplitLimits(128 << 20, 1 << 20)
KEYED = {"bucket": 2, "changelog-producer": "input"}


def open_ranges(table: paimon.Table, columns: tuple[str, ...] | None = None) -> StreamRanges:
    context = table.context
    names = tuple(context.schema.names) if columns is None else columns
    progress = Progress(context, context.options.consumer_id, False)
    return StreamRanges(context, parse_start(context.options, None), names, progress)


def stored(position: StreamPosition | None) -> StreamPosition | None:
    """Return the position as a restart reads it."""
    return decode_position(json.loads(json.dumps(encode_position(position))))


def batches(
    table: paimon.Table, limits: BatchLimits, position: StreamPosition | None = None
) -> Iterator[tuple[StreamPosition | None, StreamPosition | None]]:
    """Yield the ranges until nothing is left; each comes from a new object, as after a restart."""
    while True:
        end = stored(open_ranges(table).advance(position, limits))
        if end == position:
            return
        yield position, end
        position = end


def read_range(
    table: paimon.Table, start: StreamPosition | None, end: StreamPosition | None
) -> list[tuple[object, ...]]:
    changes = Changes(table.context)
    groups = group_by_key_order(open_ranges(table).plan_range(start, end), table.definition.bucket_mode, TASKS)
    found: list[tuple[object, ...]] = []
    for group in groups:
        for followed in group:
            for batch in read_stream_split(
                table.context, changes.read_plan, changes.arrow_schema, followed.split, followed.is_state
            ):
                found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


def rows(first: int, count: int, amount: int = 1) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table({"id": ids, "amount": pa.array([amount] * count, pa.int64())})


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    made = paimon.connect(tmp_path)
    made.create_database("db")
    return made


@pytest.fixture(scope="module", params=["append", "keyed"])
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> paimon.Table:
    """A table with some snapshots; the third is the state at which a stream with the option starts."""
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    catalog.create_database("db")
    keys = {"primary_keys": ["id"], "options": KEYED} if request.param == "keyed" else {}
    table = catalog.create_table("db.t", DDL, **keys)  # type: ignore[arg-type]
    for number in range(5):
        table.write(rows(number * 3, 8, number))
        if number == 3:
            table.compact()
    return table


@pytest.mark.parametrize("state", mark_nightly([False, True], always=[True]))
@pytest.mark.parametrize(("files", "rows_limit"), [(None, None), (1, None), (3, None), (None, 1), (None, 17), (2, 20)])
def test_any_limits_return_each_change_once(
    history: paimon.Table, files: int | None, rows_limit: int | None, state: bool
) -> None:
    mode = {"scan.mode": "from-snapshot-full" if state else "from-snapshot", "scan.snapshot-id": 3}
    table = history.with_options(mode)
    limits = BatchLimits(files, rows_limit)
    ranges = list(batches(table, limits))
    parts = [read_range(table, start, end) for start, end in ranges]
    with table.follow(idle_timeout=0) as follow:
        wanted = sorted(tuple(row.values()) for batch in follow for row in batch.to_pylist())
    assert sorted(row for part in parts for row in part) == wanted
    for (start, end), part in zip(ranges, parts, strict=True):
        splits = open_ranges(table).plan_range(start, end)
        taken = sum(len(f.split.files) for f in splits)
        assert files is None or taken <= files or len(splits) == 1
        assert rows_limit is None or sum(f.split.row_count for f in splits) <= rows_limit or len(splits) == 1
        assert read_range(table, start, end) == part
    assert len(ranges) == 1 or limits.are_given


def test_changes_of_a_key_are_in_one_task_in_order(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL, primary_keys=["id"], options=KEYED)
    for number in range(5):
        table.write(rows(0, 9, number))
    ranges = open_ranges(table.with_options({"scan.mode": "from-snapshot", "scan.snapshot-id": 1}))
    splits = ranges.plan_range(None, ranges.advance(None, UNLIMITED))
    groups = group_by_key_order(splits, table.definition.bucket_mode, TASKS)
    assert [len(group) for group in groups] == [5, 5]
    for group in groups:
        assert len({f.split.bucket for f in group}) == 1
        assert [f.split.snapshot_id for f in group] == [1, 2, 3, 4, 5]
    table.rescale(3)
    catalog.table("db.t").write(rows(0, 9, 9))
    rescaled = catalog.table("db.t", {"scan.mode": "from-snapshot", "scan.snapshot-id": 1})
    ranges = open_ranges(rescaled)
    splits = ranges.plan_range(None, ranges.advance(None, UNLIMITED))
    groups = group_by_key_order(splits, table.definition.bucket_mode, TASKS)
    assert len(groups) == 1  # a key may have moved to another bucket
    numbers = [f.split.snapshot_id for f in groups[0]]
    assert numbers == sorted(numbers)


def test_an_overwrite_that_moves_keys_begins_a_batch(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL, primary_keys=["id"], options={"dynamic-bucket.target-row-num": 4})
    table.write(rows(0, 9))
    table.overwrite(rows(4, 9, 2))  # keys are assigned to buckets again
    table.write(rows(4, 9, 3))
    table = table.with_options({"scan.mode": "from-snapshot", "scan.snapshot-id": 1})
    ranges = [open_ranges(table).plan_range(start, end) for start, end in batches(table, UNLIMITED)]
    assert [{f.split.snapshot_id for f in splits} for splits in ranges] == [{1}, {3}]


def test_a_stream_of_an_empty_table_begins_with_its_first_state(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    ranges = open_ranges(table)
    assert ranges.advance(None, UNLIMITED) is None and ranges.plan_range(None, None) == []
    latest = open_ranges(table.with_options({"scan.mode": "latest"})).advance(None, UNLIMITED)
    table.write(rows(0, 3))
    assert [f.is_state for f in ranges.plan_range(None, ranges.advance(None, UNLIMITED))] == [True]
    assert [f.is_state for f in ranges.plan_range(latest, ranges.advance(latest, UNLIMITED))] == [False]


def test_a_stream_that_ends_at_the_latest_snapshot_reads_none_after_it(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    table.write(rows(0, 3))
    ranges = open_ranges(table)
    end = ranges.advance(None, UNLIMITED)
    ranges.end_at_latest()
    table.write(rows(3, 3))
    assert ranges.advance(end, UNLIMITED) == end
    assert open_ranges(table).advance(end, UNLIMITED) != end


def test_changed_columns_end_the_stream_after_all_changes_before(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    table.write(rows(0, 3))
    ranges, part = open_ranges(table), open_ranges(table, ("id",))
    end = ranges.advance(None, UNLIMITED)
    table.write(rows(3, 3))
    table.alter(AddColumn("note", IntType()))
    catalog.table("db.t").write({"id": [9], "amount": [1], "note": [1]})
    reached = ranges.advance(end, UNLIMITED)
    assert reached is not None and [f.split.snapshot_id for f in ranges.plan_range(end, reached)] == [2]
    with pytest.raises(InvalidRequest, match=r"changed in snapshot 3: note.*Start.*again with the same checkpoint"):
        ranges.advance(reached, UNLIMITED)
    newest = open_ranges(catalog.table("db.t")).advance(reached, UNLIMITED)
    for others in (open_ranges(catalog.table("db.t")), part):  # a stream of other columns goes on
        assert [f.split.snapshot_id for f in others.plan_range(reached, newest)] == [3]
    assert part.advance(reached, UNLIMITED) == newest


def test_lost_history_is_an_error_with_a_way_out(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    for number in range(4):
        table.write(rows(number, 2))
    begun = open_ranges(table.with_options({"scan.mode": "from-snapshot", "scan.snapshot-id": 2}))
    start = begun.advance(None, BatchLimits(files=1))
    end = begun.advance(start, UNLIMITED)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    for failing in (lambda: begun.advance(start, UNLIMITED), lambda: open_ranges(table).plan_range(start, end)):
        with pytest.raises(NotFound, match=r"have expired.*start at 4.*consumer"):
            failing()
    catalog.drop_table("db.t")
    again = catalog.create_table("db.t", DDL)
    for number in range(5):
        again.write(rows(number, 2))
    refusal = r"another table than 'db\.t', or the table was dropped.*new checkpoint"
    with pytest.raises(InvalidRequest, match=refusal):
        open_ranges(again).advance(end, UNLIMITED)
    with pytest.raises(InvalidRequest, match=refusal):
        open_ranges(again).plan_range(None, end)


@pytest.mark.parametrize("ends_at_latest", [False, True])
def test_a_rolled_back_or_dropped_table_ends_the_stream(catalog: paimon.Catalog, ends_at_latest: bool) -> None:
    """A stream that ends at the latest snapshot must not take an older table for one without new rows."""
    table = catalog.create_table("db.t", DDL)
    for number in range(4):
        table.write(rows(number, 2))
    end = stored(open_ranges(table).advance(None, UNLIMITED))
    running, other = open_ranges(table), catalog.create_table("db.other", DDL)
    assert running.advance(end, UNLIMITED) == end
    restarted, of_other = open_ranges(table), open_ranges(other)
    for ranges in (running, restarted, of_other) if ends_at_latest else ():
        ranges.end_at_latest()
    with pytest.raises(InvalidRequest, match=r"another table than 'db\.other'"):
        of_other.advance(end, UNLIMITED)
    table.maintain.rollback_to(2)
    if ends_at_latest:
        restarted.end_at_latest()
    with pytest.raises(NotFound, match=r"Snapshot '5' does not exist.*The latest is 2.*rolled back.*new checkpoint"):
        restarted.advance(end, UNLIMITED)
    catalog.drop_table("db.t")
    with pytest.raises(NotFound, match=r"Table .*/t' does not exist"):
        running.advance(end, UNLIMITED)


def test_other_splits_of_a_snapshot_that_is_read_in_part_are_refused(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL, options={"source.split.target-size": "1 b"})
    for number in range(4):
        table.write(rows(number, 2))
    position = open_ranges(table).advance(None, BatchLimits(files=2))
    assert position is not None and position.splits == 2
    other = table.with_options({"source.split.target-size": "1 gb", "source.split.open-file-cost": "1 b"})
    end = open_ranges(table).advance(position, UNLIMITED)
    for ranges in (open_ranges(table), open_ranges(other)):  # the size of splits does not move files
        assert len(ranges.plan_range(position, end)) == 2
    with pytest.raises(InvalidRequest, match="splits of snapshot 4 are others"):
        open_ranges(other).plan_range(evolve(position, plan="0" * 16), end)


def test_other_splits_of_a_table_with_data_evolution_are_refused(catalog: paimon.Catalog) -> None:
    options = {"data-evolution.enabled": "true", "row-tracking.enabled": "true", "source.split.target-size": "1 b"}
    table = catalog.create_table("db.t", DDL, options=options)
    for number in range(4):
        table.write(rows(number, 2))
    position = open_ranges(table).advance(None, BatchLimits(files=2))
    assert position is not None and position.splits == 2
    other = table.with_options({"source.split.target-size": "1 gb", "source.split.open-file-cost": "1 b"})
    with pytest.raises(InvalidRequest, match="splits of snapshot 4 are others"):
        open_ranges(other).plan_range(None, position)
    with pytest.raises(InvalidRequest, match="splits of snapshot 4 are others"):
        open_ranges(other).advance(position, BatchLimits(files=2))


def test_a_limit_holds_to_a_file_and_small_files_share_a_task(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    for number in range(6):
        table.write(rows(10 * number, 10))
    table.delete("id = 1")
    ((split,),) = [table.scan().plan().splits]
    assert len(split.files) == 6
    ranges = list(batches(table, BatchLimits(files=4)))
    assert [len(open_ranges(table).plan_range(*limits)) for limits in ranges] == [4, 2]
    assert sorted(row[-2] for limits in ranges for row in read_range(table, *limits)) == [0, *range(2, 60)]
    (_, first), (_, end) = ranges
    assert first is not None and end is not None
    splits = open_ranges(table).plan_range(None, end)
    sizes = [split.split.file_size for split in splits]
    groups = [
        group_by_key_order(splits, BucketMode.UNAWARE, SplitLimits(size, 1)) for size in (128 << 20, max(sizes) * 2, 1)
    ]
    assert [[len(group) for group in tasks] for tasks in groups] == [[6], [2, 2, 2], [1] * 6]


def test_positions_that_count_undivided_splits_stay_valid(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL)
    for day in range(2):
        table.write(rows(10 * day, 10))
    table = table.with_options({"source.split.target-size": "1 b"})
    table.write(rows(20, 10))
    splits = table.scan().plan().splits
    whole = table.with_options({"source.split.target-size": "1 gb", "source.split.open-file-cost": "1 b"})
    undivided = whole.scan().plan().splits
    assert (len(splits), len(undivided)) == (3, 1)
    end = open_ranges(whole).advance(None, UNLIMITED)
    assert end is not None
    earlier = evolve(end.start, splits=1, plan=identify_plan(undivided), last_id=3, last_identity=end.last_identity)
    assert len(open_ranges(whole).plan_range(None, stored(earlier))[0].split.files) == 3
    assert open_ranges(whole).plan_range(stored(earlier), end) == []
    assert open_ranges(whole).advance(stored(earlier), BatchLimits(files=1)) == end


def test_a_consumer_protects_what_comes_next_and_moves_only_when_told(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("db.t", DDL, options={"consumer-id": "me"})
    table.write(rows(0, 2))
    ranges = open_ranges(table)
    state_end = ranges.advance(None, UNLIMITED)
    assert dict(table.consumers) == {"me.state": 1}
    ranges.record(state_end)
    assert dict(table.consumers) == {"me": 2}
    for number in range(1, 4):
        table.write(rows(number, 2))
    end = ranges.advance(state_end, UNLIMITED)
    assert dict(table.consumers) == {"me": 2}
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    restarted = open_ranges(table)
    assert restarted.advance(stored(state_end), UNLIMITED) == end
    assert [f.split.snapshot_id for f in restarted.plan_range(state_end, end)] == [2, 3, 4]
    restarted.record(end)
    assert dict(table.consumers) == {"me": 5}
    created = table.table_schema.time_millis
    assert open_ranges(table).advance(None, UNLIMITED) == StreamPosition(5, 0, False, 5, False, created_millis=created)


def test_an_offset_of_another_source_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no member 'splits'"):
        decode_position({"snapshot": 3})
