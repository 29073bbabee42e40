"""Rescale: rows do not change, each key is in the bucket of the new number, and no concurrent row is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products
from support.warm_processes import run_code

import paimon
from paimon.domain.bucket.bucket_rule import compute_bucket
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitConflict, CorruptTable, InvalidRequest, StorageError
from paimon.domain.maintenance.rescale import PartitionSources
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.predicate.sql import parse_predicate
from paimon.domain.row.binary_row import deserialize
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.prepared_files import abort
from paimon.operations.rescale.rescale import rescale, rewrite_partitions
from paimon.operations.table_context import TableContext

COUNTS = st.integers(1, 7)
ENGINES: list[dict[str, str]] = [
    {},
    {"sequence.field": "s", "file.format": "avro", "num-levels": "3"},
    {"merge-engine": "partial-update", "changelog-producer": "lookup"},
    {"merge-engine": "aggregation", "fields.s.aggregate-function": "sum", "fields.v.aggregate-function": "last_value"},
    {"merge-engine": "first-row", "changelog-producer": "lookup"},
    {"deletion-vectors.enabled": "true"},
    {"bucket-function.type": "mod", "bucket-key": "k", "changelog-producer": "full-compaction"},
    {"bucket-function.type": "hive", "write-only": "true", "target-file-size": "1 b"},
]
ROW = st.fixed_dictionaries({
    "k": st.integers(-9, 9), "p": st.sampled_from("ab"), "s": st.integers(0, 3), "v": st.none() | st.text("xy"),
})  # fmt: skip


def create_keyed(home: Path | str, buckets: int, **options: str) -> paimon.Table:
    return create(home, ["p", "k"], buckets, **options)


def create_append(home: Path | str, buckets: int, **options: str) -> paimon.Table:
    return create(home, [], buckets, **{"bucket-key": "k"} | options)


def create(home: Path | str, keys: Sequence[str], buckets: int, **options: str) -> paimon.Table:
    catalog = paimon.connect(home)
    catalog.create_database("db", exist_ok=True)
    ddl = "k INT NOT NULL, p STRING NOT NULL, s INT, v STRING"
    return catalog.create_table(
        "db.t", ddl, primary_keys=keys, partition_keys=["p"], options=options | {"bucket": str(buckets)}
    )


def reopen(table: paimon.Table) -> paimon.Table:
    opened = paimon.open_table(table.location)
    assert isinstance(opened, paimon.Table)
    return opened


def read_rows(table: paimon.Table) -> list[str]:
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def read_live_files(table: paimon.Table) -> list[ManifestEntry]:
    return CommitBase(table.context, table.snapshot()).read_live_files(lambda _: True)


def list_values_by_key(table: paimon.Table) -> dict[int, list[int]]:
    """Return the values of `s` of each `k` in the order of a scan."""
    found: dict[int, list[int]] = {}
    for row in table.scan().to_arrow().to_pylist():
        found.setdefault(row["k"], []).append(row["s"])
    return found


def list_stored_files(table: paimon.Table) -> set[str]:
    return {path.name for path in Path(table.location).rglob("bucket-*/*")}


def count_buckets(table: paimon.Table) -> dict[str, set[int]]:
    """Return the numbers of buckets that the files of each partition name."""
    types = [f.type for f in table.table_schema.partition_fields]
    found: dict[str, set[int]] = {}
    for entry in read_live_files(table):
        found.setdefault(deserialize(entry.partition, types)[0], set()).add(entry.total_buckets)
    return found


def check_buckets(table: paimon.Table, total: int) -> None:
    """Check that each row is in the bucket that the row-wise bucket function returns."""
    options, schema = table.definition.options, table.table_schema
    types = [schema.field_of(name).type for name in schema.bucket_keys]
    read = table.new_read_builder()
    for split in read.new_scan().plan().splits():
        for row in read.new_read().to_arrow([split]).to_pylist():
            key = tuple(row[name] for name in schema.bucket_keys)
            assert compute_bucket(key, types, total, options.bucket_function) == split.bucket


@settings(max_examples=25)
@given(st.data(), st.sampled_from(ENGINES), COUNTS, COUNTS)
def test_rows_of_keyed_tables_do_not_change(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, options: dict[str, str], old: int, new: int
) -> None:
    table = create_keyed(tmp_path_factory.mktemp("lake"), old, **options)
    for rows in data.draw(st.lists(st.lists(ROW, min_size=1, max_size=12), min_size=1, max_size=4)):
        table.write(rows)
    rows_before, changes_before = read_rows(table), table.changes().to_arrow().num_rows
    done = table.rescale(new)
    table = reopen(table)
    assert read_rows(table) == rows_before and table.options["bucket"] == str(new)
    assert all(totals == {new} for totals in count_buckets(table).values())
    assert bool(done.snapshot_ids) == (new != old)
    if new != old:
        top = table.definition.options.num_levels - 1
        assert {e.file.level for e in read_live_files(table)} == {top}
        assert table.changes().to_arrow().num_rows >= changes_before
    check_buckets(table, new)
    report = table.maintain.check(deep=True)
    assert report.is_whole, str(report)
    table.write([{"k": 1, "p": "a", "s": 9, "v": "new"}])
    assert table.maintain.check(deep=True).is_whole


APPENDED: list[dict[str, str]] = [{}, {"bucket-append-ordered": "false"}, {"deletion-vectors.enabled": "true"}]


@pytest.mark.parametrize(("buckets", "options"), mark_products([(3, 6), (4, 2), (3, 2), (1, 5)], APPENDED))
def test_append_tables_preserve_rows_and_the_order_of_each_key(
    tmp_path: Path, buckets: tuple[int, int], options: dict[str, str]
) -> None:
    old, new = buckets
    table = create_append(tmp_path, old, **options)
    for number in range(4):
        table.write([{"k": k, "p": "a", "s": number, "v": "x" * k} for k in range(40)])
    table.delete("k = 7 and s = 1")
    before = list_values_by_key(table)
    table.rescale(new)
    table = reopen(table)
    assert count_buckets(table) == {"a": {new}}
    check_buckets(table, new)
    assert list_values_by_key(table) == before
    assert {k: sorted(found) for k, found in before.items()} == {k: [0, 1, 2, 3] for k in range(40)} | {7: [0, 2, 3]}
    report = table.maintain.check(deep=True)
    assert report.is_whole, str(report)


def test_partitions_that_are_not_selected_do_not_change(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    table.write([{"k": k, "p": p, "s": 0, "v": "x"} for k in range(20) for p in "ab"])
    rows = read_rows(table)
    done = table.rescale(5, where="upper(p) = 'A'")
    table = reopen(table)
    assert (done.partitions, done.rows, done.files_before) == (1, 20, 2)
    assert count_buckets(table) == {"a": {5}, "b": {2}} and read_rows(table) == rows
    assert table.scan(where="p = 'b' and k = 3").count() == table.scan(where="p = 'a' and k = 3").count() == 1
    with pytest.raises(InvalidRequest, match=r"Partition p=b .* has 2 buckets, but option 'bucket' is 5.*rescale\(5\)"):
        table.write([{"k": 1, "p": "b", "s": 1, "v": "y"}])
    table.with_options({"bucket": 2}).write([{"k": 3, "p": "b", "s": 2, "v": "own number"}])
    assert table.scan(where="p = 'b' and k = 3").to_arrow()["v"].to_pylist() == ["own number"]
    with pytest.raises(CommitConflict, match="rescaled to 5 buckets"):
        table.with_options({"bucket": 2}).write([{"k": 3, "p": "c", "s": 2, "v": "a new partition"}])
    assert table.maintain.check(deep=True).is_whole
    table.rescale(5)
    table.write([{"k": 1, "p": p, "s": 1, "v": "y"} for p in "abc"])
    assert count_buckets(table) == {"a": {5}, "b": {5}, "c": {5}}


def test_a_rescale_that_died_before_its_commit_is_repeated(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    table.write([{"k": k, "p": "a", "s": 0, "v": "x"} for k in range(20)])
    before = read_rows(table)
    assert run_code(_DYING_RESCALE, table.location).code == 9
    table = reopen(table)
    assert table.options["bucket"] == "5" and count_buckets(table) == {"a": {2}} and read_rows(table) == before
    with pytest.raises(InvalidRequest, match=r"has 2 buckets, but option 'bucket' is 5.*Table\.rescale\(5\)"):
        table.write([{"k": 1, "p": "a", "s": 1, "v": "y"}])
    assert table.rescale(5).rows == 20
    table.write([{"k": 1, "p": "a", "s": 1, "v": "y"}])
    assert count_buckets(table) == {"a": {5}} and len(read_rows(table)) == 20
    assert table.maintain.remove_orphans(older_than=timedelta(0), allow_young=True).num_rows == 5
    assert table.maintain.check(deep=True).is_whole


_DYING_RESCALE = """
import os, sys
import paimon
import paimon.operations.rescale.rescale as module

module.commit = lambda *_: os._exit(9)
paimon.open_table(sys.argv[1]).rescale(5)
"""


def test_the_same_number_has_no_effect(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    table.write([{"k": 1, "p": "a", "s": 0, "v": "x"}])
    assert table.rescale(2).snapshot_ids == ()
    assert reopen(table).table_schema.id == 0


def test_a_table_without_snapshots_gets_the_option(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    assert table.rescale(3).snapshot_ids == ()
    assert reopen(table).options["bucket"] == "3"


def test_a_writer_that_started_before_is_refused(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2, **{"write-only": "true"})
    table.write([{"k": 1, "p": "a", "s": 0, "v": "x"}])
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write([{"k": 2, "p": "a", "s": 0, "v": "x"}])
        messages = writer.prepare_commit()
    table.rescale(3)
    with pytest.raises(CommitConflict, match="rescaled to 3 buckets, but the commit adds files for 2"):
        builder.new_commit().commit(messages)
    assert count_buckets(table) == {"a": {3}}


def test_a_writer_that_started_before_may_not_begin_a_partition(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    table.write([{"k": 1, "p": "a", "s": 0, "v": "x"}])
    table.rescale(3)
    with pytest.raises(CommitConflict, match="rescaled to 3 buckets"):
        table.write([{"k": 2, "p": "new", "s": 0, "v": "x"}])


class ConcurrentWriter:
    """Rewrite partitions, and commit one row of another writer after each rewrite, for a number of times."""

    def __init__(self, table: paimon.Table, times: int) -> None:
        self.table = table
        self.times = times
        self.rewritten: list[int] = []

    def __call__(
        self, context: TableContext, partitions: Sequence[PartitionSources], buckets: int, user: str
    ) -> Iterator[CommitMessage]:
        """Rewrite the partitions, then write."""
        self.rewritten.append(len(partitions))
        yield from rewrite_partitions(context, partitions, buckets, user)
        if len(self.rewritten) <= self.times:
            self.table.write([{"k": 100 + len(self.rewritten), "p": "a", "s": 0, "v": "concurrent"}])


@pytest.mark.parametrize("keyed", [True, False])
def test_rows_of_concurrent_writers_are_preserved(tmp_path: Path, keyed: bool) -> None:
    table = create_keyed(tmp_path, 2) if keyed else create_append(tmp_path, 2)
    table.write([{"k": k, "p": p, "s": 0, "v": "x"} for k in range(20) for p in "ab"])
    other = ConcurrentWriter(table, times=2)
    done = rescale(table.context, 3, "me", rewrite=other)
    assert other.rewritten == [2, 1, 1], "only the partition that changed is rewritten again"
    table = reopen(table)
    assert table.scan().count() == 42 and table.scan(where="v = 'concurrent'").count() == 2
    assert count_buckets(table) == {"a": {3}, "b": {3}} and len(done.snapshot_ids) == 1
    assert {e.file.file_name for e in read_live_files(table)} <= list_stored_files(table)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert {e.file.file_name for e in read_live_files(table)} == list_stored_files(table)


def test_a_rescale_that_loses_every_race_changes_no_files(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2, **{"write-only": "true"})
    table.write([{"k": k, "p": "a", "s": 0, "v": "x"} for k in range(20)])
    with pytest.raises(CommitConflict, match="during its rescale to 3"):
        rescale(table.context, 3, "me", rewrite=ConcurrentWriter(table, times=99))
    table = reopen(table)
    assert table.options["bucket"] == "2" and count_buckets(table) == {"a": {2}}
    assert {e.file.file_name for e in read_live_files(table)} == list_stored_files(table)
    table.write([{"k": 1, "p": "a", "s": 0, "v": "y"}])


def test_a_partition_is_rewritten_again_after_an_incomplete_rewrite_whose_snapshot_expired(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    table.write([{"k": k, "p": p, "s": 0, "v": "x"} for k in range(20) for p in "ab"])
    attempts: list[int] = []

    def lose_snapshot(*arguments: Any) -> Iterator[CommitMessage]:
        """Return the first message, then find a file missing, because another writer's commit let it expire."""
        attempts.append(1)
        messages = list(rewrite_partitions(*arguments))
        yield messages[0]
        if len(attempts) == 1:
            abort(arguments[0], messages[1:], "me")
            table.write([{"k": 100, "p": "c", "s": 0, "v": "x"}])
            table.maintain.expire_snapshots(retain_min=1, retain_max=1)
            raise CorruptTable("bucket-0", "does not exist")
        yield from messages[1:]

    rescale(table.context, 3, "me", rewrite=lose_snapshot)
    table = reopen(table)
    assert table.scan().count() == 41 and count_buckets(table) == {"a": {3}, "b": {3}, "c": {3}}
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    assert {e.file.file_name for e in read_live_files(table)} == list_stored_files(table)


def test_a_failed_rewrite_leaves_no_files(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    table.write([{"k": k, "p": p, "s": 0, "v": "x"} for k in range(20) for p in "ab"])
    files = list_stored_files(table)

    def fail_after_one(*arguments: Any) -> Iterator[CommitMessage]:
        """Rewrite, and fail before the last message."""
        messages = list(rewrite_partitions(*arguments))
        yield from messages
        raise StorageError("bucket-0", "disk is full")

    with pytest.raises(StorageError):
        rescale(table.context, 3, "me", rewrite=fail_after_one)
    assert list_stored_files(table) == files and reopen(table).options["bucket"] == "2"


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_changes_that_are_not_in_the_changelog_are_written_before(tmp_path: Path, producer: str) -> None:
    table = create_keyed(tmp_path, 2, **{"changelog-producer": producer, "write-only": "true"})
    table.write([{"k": k, "p": "a", "s": 0, "v": "x"} for k in range(9)])
    assert table.changes().to_arrow().num_rows == 0
    table.rescale(4)
    assert sorted(table.changes().to_arrow()["k"].to_pylist()) == list(range(9))


def test_more_rows_than_memory_are_spilled(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    rows = pa.table({"k": range(60_000), "p": ["a"] * 60_000, "s": [1] * 60_000, "v": ["x" * 40] * 60_000})
    table.write(rows)
    small = table.with_engine(evolve(table.engine, memory=evolve(table.engine.memory, bytes=4 << 20)))
    spilled: list[int] = []
    temp = small.engine.temp
    original = temp.spill

    class CountingTemp:
        """Count the spilled rows, and delegate."""

        def __getattr__(self, name: str) -> Any:
            return getattr(temp, name)

        def spill(self, data: pa.Table) -> str:
            """Spill, and count the rows."""
            spilled.append(data.num_rows)
            return original(data)

    small = small.with_engine(evolve(small.engine, temp=CountingTemp()))
    done = small.rescale(3)
    assert len(spilled) > 3 and sum(spilled) == 60_000
    assert done.rows == 60_000 and reopen(table).scan().count() == 60_000
    check_buckets(reopen(table), 3)


def test_progress_counts_source_buckets(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 3)
    table.write([{"k": k, "p": p, "s": 0, "v": "x"} for k in range(50) for p in "ab"])
    seen: list[tuple[str, int, int | None]] = []

    class Recorder:
        """Records progress."""

        def progress(self, activity: str, done: int, total: int | None = None) -> None:
            """Record one call."""
            seen.append((activity, done, total))

        def count(self, metric: str, value: int) -> None:
            """Ignore a metric."""

    table.with_engine(evolve(table.engine, observer=Recorder())).rescale(2)
    assert [call for call in seen if call[0] == "rescaling buckets"] == [
        ("rescaling buckets", number, 6) for number in range(1, 7)
    ]


def test_tables_without_a_fixed_number_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path, [], -1)
    with pytest.raises(InvalidRequest, match="cannot be rescaled, because it has no buckets"):
        table.rescale(4)


@pytest.mark.parametrize("buckets", [0, -1, 32_769, True, "4", 2.0])
def test_numbers_out_of_range_are_refused(tmp_path: Path, buckets: Any) -> None:
    table = create_keyed(tmp_path, 2)
    with pytest.raises(InvalidRequest, match="must be an integer from 1 to 32768"):
        table.rescale(buckets)
    assert reopen(table).options["bucket"] == "2"


def test_a_condition_on_another_column_is_refused(tmp_path: Path) -> None:
    table = create_keyed(tmp_path, 2)
    table.write([{"k": 1, "p": "a", "s": 0, "v": "x"}])
    with pytest.raises(InvalidRequest, match="'k', which is not a partition column"):
        table.rescale(3, where="k = 1")
    with pytest.raises(InvalidRequest, match="'k', which is not a partition column"):
        rescale(table.context, 3, "me", parse_predicate("k = 1"))
