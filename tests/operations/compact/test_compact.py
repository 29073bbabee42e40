"""Compaction: rows do not change, there are fewer files, unselected files stay, and impossible requests fail."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import create_table
from support.warm_processes import run_code, start_code

import paimon
from paimon.domain.errors import CommitConflict, InvalidRequest, StorageError
from paimon.domain.lsm.keys import to_comparable_key
from paimon.domain.manifest.entries import FileSource, ManifestEntry
from paimon.domain.schema.changes import AddColumn, SetColumnType
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import BigIntType, IntType
from paimon.operations.commit.base import CommitBase
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.ports.engine import MemoryBudget

T = TypeVar("T")
R = TypeVar("R")
DDL = "k INT NOT NULL, p STRING NOT NULL, s INT, v STRING"
ROW = st.fixed_dictionaries({
    "k": st.integers(0, 9), "p": st.sampled_from("ab"), "s": st.none() | st.integers(0, 3),
    "v": st.none() | st.text("xyz", max_size=2), "op": st.sampled_from(["+I", "+I", "+U", "-D", "-U"]),
})  # fmt: skip
STEPS = st.lists(st.lists(ROW, min_size=1, max_size=12) | st.booleans(), min_size=2, max_size=7)
"""Rows to write, or a compaction (True: a full one)."""
OPTIONS: list[dict[str, str]] = [
    {},
    {"num-sorted-run.compaction-trigger": "2", "compaction.max-size-amplification-percent": "9999"},
    {"sequence.field": "s", "compaction.force-up-level-0": "true"},
    {"sequence.field": "s", "sequence.field.sort-order": "descending", "num-sorted-run.compaction-trigger": "2"},
    {"ignore-delete": "true", "file.format": "avro", "num-sorted-run.compaction-trigger": "1"},
    {"changelog-producer": "input", "file.format": "orc", "target-file-size": "1 b"},
    {"data-file.thin-mode": "true", "file.format.per.level": "0:avro", "compaction.small-file-ratio": "0"},
    {"compaction.force-rewrite-all-files": "true", "target-file-row-num": "2", "num-levels": "3"},
]


def create_keyed_table(home: Path | str, **options: str) -> paimon.Table:
    return create_table(home, DDL, primary_keys=["k", "p"], partition_keys=["p"],
                   options={"bucket": "1", "write-only": "true", **options})  # fmt: skip


def write_rows(table: paimon.Table, rows: list[dict[str, Any]]) -> None:
    schema = table.arrow_schema.append(pa.field("op", pa.string()))
    table.write(pa.Table.from_pylist([{"op": "+I", **row} for row in rows], schema), kind_column="op")


def rows_of(table: paimon.Table) -> list[str]:
    return sorted(map(str, table.scan().to_arrow().to_pylist()))


def live(table: paimon.Table) -> list[ManifestEntry]:
    snapshot = latest_snapshot(table.context)
    return CommitBase(table.context, snapshot).read_live_files(lambda _: True)


def files_on_disk(table: paimon.Table) -> set[str]:
    return {str(path) for path in Path(table.location).rglob("*") if path.is_file() and path.parent.name != "snapshot"}


def check_levels(table: paimon.Table) -> None:
    """Above level 0 the files of a level are disjoint, and their metadata in the manifest agree with their rows."""
    types = [f.type for f in table.table_schema.key_fields]
    levels: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
    for entry in live(table):
        if entry.file.level:
            levels.setdefault((entry.partition, entry.bucket, entry.file.level), []).append(entry)
    for entries in levels.values():
        spans = sorted(
            (to_comparable_key(e.file.min_key, types), to_comparable_key(e.file.max_key, types)) for e in entries
        )
        assert all(low <= high for low, high in spans)
        assert all(before[1] < after[0] for before, after in pairwise(spans))


@settings(max_examples=12, deadline=None)
@given(options=st.sampled_from(OPTIONS), steps=STEPS)
def test_rows_before_are_rows_after_and_levels_do_not_overlap(
    options: dict[str, str], steps: list[list[dict[str, Any]] | bool]
) -> None:
    with tempfile.TemporaryDirectory() as home:
        table = create_keyed_table(home, **{"write-only": "true", **options})
        plain = create_table(f"{home}/plain", DDL, primary_keys=["k", "p"], partition_keys=["p"],
                        options={"bucket": "1", "write-only": "true", **options})  # fmt: skip
        for step in [*steps, True]:
            if isinstance(step, list):
                if "sequence.field" in options:  # after a delete is dropped, rows with smaller sequences become visible
                    step = [{**row, "op": "+I"} for row in step]
                write_rows(table, step)
                write_rows(plain, step)
                continue
            table.compact(full=step)
            assert rows_of(table) == rows_of(plain), "a table that is never compacted"
            check_levels(table)
        top = max((e.file.level for e in live(table)), default=0)
        assert {e.file.level for e in live(table)} <= {top}, "a full compaction leaves one run"
        assert not any(e.file.delete_row_count for e in live(table))


ENGINES: list[dict[str, str]] = [
    {"merge-engine": "partial-update"},
    {"merge-engine": "partial-update", "sequence.field": "s"},
    {"merge-engine": "aggregation", "fields.s.aggregate-function": "sum"},
]


@settings(max_examples=5, deadline=None)
@given(options=st.sampled_from(ENGINES), steps=STEPS, trigger=st.integers(1, 3))
def test_engines_that_combine_rows_continue_from_the_compacted_rows(
    options: dict[str, str], steps: list[list[dict[str, Any]] | bool], trigger: int
) -> None:
    with tempfile.TemporaryDirectory() as home:
        options = {"write-only": "true", "num-sorted-run.compaction-trigger": str(trigger), **options}
        table, plain = create_keyed_table(f"{home}/a", **options), create_keyed_table(f"{home}/b", **options)
        for step in [*steps, True]:
            if isinstance(step, list):
                for each in (table, plain):
                    write_rows(each, [{**row, "op": "+I"} for row in step])
            else:
                table.compact(full=step)
                assert rows_of(table) == rows_of(plain)


def test_deletes_are_kept_above_older_rows_and_dropped_on_the_top_level(tmp_path: Path) -> None:
    table = create_keyed_table(
        tmp_path, **{"num-sorted-run.compaction-trigger": "2", "compaction.max-size-amplification-percent": "99999"}
    )
    table.write([{"k": k, "p": "a", "s": 0, "v": Random(k).randbytes(200).hex()} for k in range(100)])
    table.compact(full=True)
    write_rows(table, [{"k": 1, "p": "a", "op": "-D"}])
    write_rows(table, [{"k": 2, "p": "a", "op": "-D"}, {"k": 3, "p": "a", "v": "new"}])
    assert table.compact().files_before == 2
    above = {e.file.level: e.file for e in live(table)}
    assert set(above) == {1, 2}
    assert (above[1].row_count, above[1].delete_row_count, above[2].row_count) == (3, 2, 100)
    assert table.scan().count() == 98
    table.compact(full=True)
    (entry,) = live(table)
    assert (entry.file.level, entry.file.row_count, entry.file.delete_row_count) == (2, 98, 0)
    assert table.scan().count() == 98


def test_the_snapshot_of_a_compaction(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    for k in range(5):
        write_rows(table, [{"k": k, "p": "a", "v": "x"}])
    done = table.compact()
    assert (done.snapshot_ids, done.buckets, done.files_before, done.files_after, done.rows) == ((6,), 1, 5, 1, 5)
    snapshot = table.snapshot()
    assert snapshot is not None and snapshot.commit_kind is CommitKind.COMPACT
    (entry,) = live(table)
    assert (entry.file.level, entry.file.file_source, entry.file.row_count) == (5, FileSource.COMPACT, 5)
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (0, 4)
    assert table.compact(full=True).snapshot_ids == (), "there is nothing to do"
    assert table.scan(snapshot=5).count() == 5, "files of older snapshots are not deleted"


def test_a_large_file_moves_without_being_read(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"target-file-size": "1 b"})
    write_rows(table, [{"k": 1, "p": "a"}])
    (before,) = live(table)
    Path(f"{table.location}/p=a/bucket-0/{before.file.file_name}").chmod(0)
    done = table.compact(full=True)
    (after,) = live(table)
    assert after.file == evolve(before.file, level=5)
    assert (done.files_before, done.files_after) == (1, 1)


def test_an_empty_table_and_an_empty_result(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    assert table.compact(full=True).snapshot_ids == ()
    write_rows(table, [{"k": 1, "p": "a"}])
    write_rows(table, [{"k": 1, "p": "a", "op": "-D"}])
    assert table.compact(full=True).files_after == 0
    assert live(table) == [] and table.scan().count() == 0


def test_partitions_are_selected_by_a_predicate_over_their_columns(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    for p in "aabb":
        write_rows(table, [{"k": 1, "p": p}])
    assert table.compact(full=True, where="p = 'b'").files_before == 2
    assert sorted(e.file.level for e in live(table)) == [0, 0, 5]
    assert table.compact(full=True, where=paimon.col("p") == "none").snapshot_ids == ()
    with pytest.raises(InvalidRequest, match="'v'"):
        table.compact(where="p = 'a' AND v = 'x'")


@pytest.mark.parametrize(
    ("where", "selected"),
    [
        ("upper(p) = 'B'", "b"),
        ("p LIKE '%b'", "b"),
        ("p || p = 'aa' OR length(p) > 1", "ac"),
        ("CASE WHEN p = 'a' THEN false ELSE p < 'z' END", "bc"),
        ("CAST(p AS VARCHAR) NOT IN ('a', 'b')", "c"),
        ("NOT (lower(p) <> 'a')", "a"),
        ("1 + 1 = 2", "abc"),
        ("p = 'b' AND length(p) = 2", ""),
    ],
)
def test_partitions_are_selected_by_scalar_sql_over_their_values(tmp_path: Path, where: str, selected: str) -> None:
    values = {"a": "a", "b": "b", "c": "cc"}
    table = create_keyed_table(tmp_path)
    for p in values.values():
        write_rows(table, [{"k": 1, "p": p}])
    table.compact(full=True, where=where)
    compacted = {row["partition"] for row in table.system_table("files").scan(where="level > 4").to_arrow().to_pylist()}
    assert {name for name, value in values.items() if any(value in shown for shown in compacted)} == set(selected)


def test_scalar_sql_over_other_columns_selects_no_partition(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    for where in ("upper(v) = 'X'", "upper(p) = 'A' AND length(v) = 1"):
        with pytest.raises(InvalidRequest, match="'v', which is not a partition column"):
            table.compact(where=where)
    with pytest.raises(InvalidRequest, match="is not a condition"):
        table.compact(where="upper(p)")


def test_files_of_older_schemas_become_files_of_the_newest(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    write_rows(table, [{"k": 1, "p": "a", "s": 7, "v": "x"}])
    table = table.alter(AddColumn("more", IntType()), SetColumnType("s", BigIntType()))
    write_rows(table, [{"k": 2, "p": "a", "s": 1 << 40, "more": 3}])
    before = rows_of(table)
    table.compact(full=True)
    (entry,) = live(table)
    assert entry.file.schema_id == table.table_schema.id
    assert rows_of(table) == before


def test_files_are_rolled_at_the_target_size(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"target-file-size": "64 kb", "file.compression": "none"})
    for part in range(3):
        write_rows(table, [{"k": k, "p": "a", "v": Random(k).randbytes(20).hex()} for k in range(part, 9_000, 2)])
    before = rows_of(table)
    table.compact(full=True)
    sizes = [e.file.file_size for e in live(table)]
    assert len(sizes) > 3 and max(sizes) < 2 * 64 * 1024
    check_levels(table)
    assert rows_of(table) == before


# Append tables.


@pytest.mark.parametrize("partition_keys", [[], ["p"]])
@pytest.mark.parametrize("options", [{"bucket": "-1"}, {"bucket": "2", "bucket-key": "k"}])
def test_small_files_of_append_tables_are_put_together(
    tmp_path: Path, options: dict[str, str], partition_keys: list[str]
) -> None:
    table = create_table(tmp_path, DDL, partition_keys=partition_keys, options=options)
    for round_ in range(4):
        table.write([{"k": k, "p": "ab"[k % 2], "s": round_, "v": None} for k in range(8)])
    before, files = table.scan().to_arrow().to_pylist(), len(live(table))
    assert table.compact().snapshot_ids == (), "four files are too few"
    done = table.compact(full=True)
    assert done.files_before == files and len(live(table)) == done.files_after < files
    after = table.scan().to_arrow().to_pylist()
    assert sorted(map(str, after)) == sorted(map(str, before))
    if "bucket-key" in options:
        passes = [[row["s"] for row in after if row["k"] == k] for k in range(8)]
        assert passes == [[0, 1, 2, 3]] * 8, "the order within a bucket stays"
        table.write([{"k": 0, "p": "a", "s": 4, "v": None}])
        assert [r["s"] for r in table.scan().to_arrow().to_pylist() if r["k"] == 0] == [0, 1, 2, 3, 4]
    assert {e.file.file_source for e in live(table)} >= {FileSource.COMPACT}


# Concurrent commits.


class ConcurrentAction:
    """An executor that runs a callback after planning, and pickles every task."""

    def __init__(self, happens: Callable[[], object], fails_after: int | None = None) -> None:
        self._happens = happens
        self._left = fails_after

    def map(self, function: Callable[[T], R], tasks: Iterable[T], discard: object = None) -> Iterator[R]:
        self._happens()
        for task in tasks:
            if self._left == 0:
                raise StorageError("somewhere", "is full")
            self._left = None if self._left is None else self._left - 1
            sent: tuple[Callable[[T], R], T] = pickle.loads(pickle.dumps((function, task)))
            yield sent[0](sent[1])


def with_concurrent_action(table: paimon.Table, executor: ConcurrentAction) -> paimon.Table:
    return table.with_engine(evolve(table.engine, executor=executor))


class BudgetRecorder:
    """An executor that records the memory budget of each task."""

    def __init__(self) -> None:
        self.shares: list[int] = []

    def map(self, function: Callable[[T], R], tasks: Iterable[T], discard: object = None) -> Iterator[R]:
        assert isinstance(function, partial)
        for task in tasks:
            self.shares.append(function.args[0].engine.memory.bytes)
            yield function(task)


@pytest.mark.parametrize("verb", ["compact", "write", "scan", "check"])
def test_tasks_that_run_at_once_share_the_memory_budget(tmp_path: Path, verb: str) -> None:
    table = create_keyed_table(tmp_path)
    for partition in ("a", "b"):
        write_rows(table, [{"k": 1, "p": partition}])
        write_rows(table, [{"k": 1, "p": partition}])
    recorder = BudgetRecorder()
    memory = MemoryBudget(96 << 20, tasks=4)
    shared = table.with_engine(evolve(table.engine, executor=recorder, memory=memory))
    if verb == "compact":
        shared.compact(full=True)
    elif verb == "write":
        inline = shared.with_options({"write-only": "false", "num-sorted-run.compaction-trigger": "1"})
        write_rows(inline, [{"k": 2, "p": "a"}, {"k": 2, "p": "b"}])
    elif verb == "scan":
        shared.scan().to_arrow()
    else:
        shared.maintain.check(deep=True)
    assert set(recorder.shares) == {(96 << 20) // min(4, len(recorder.shares))}


def test_a_task_uses_further_threads_only_where_tasks_leave_some() -> None:
    budget = MemoryBudget(96 << 20, tasks=4)
    assert [budget.share(tasks).leaves_threads for tasks in (1, 3, 4, 9)] == [True, True, False, False]
    assert MemoryBudget().share(9).leaves_threads, "a serial executor runs one task at a time"


def test_concurrent_writes_are_preserved(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    for k in range(3):
        write_rows(table, [{"k": k, "p": "a", "v": "old"}])

    def write() -> None:
        write_rows(
            table, [{"k": 0, "p": "a", "v": "new"}, {"k": 1, "p": "a", "op": "-D"}, {"k": 9, "p": "b", "v": "new"}]
        )

    assert with_concurrent_action(table, ConcurrentAction(write)).compact(full=True).snapshot_ids == (5,)
    assert {(r["k"], r["v"]) for r in table.scan().to_arrow().to_pylist()} == {(0, "new"), (2, "old"), (9, "new")}
    assert sorted(e.file.level for e in live(table)) == [0, 0, 5]


@pytest.mark.parametrize("other", ["compact", "overwrite"])
def test_concurrently_replaced_files_are_a_conflict_without_leftovers(tmp_path: Path, other: str) -> None:
    table = create_keyed_table(tmp_path)
    for k in range(3):
        write_rows(table, [{"k": k, "p": "a"}])
    seen: list[set[str]] = []

    def happens() -> None:
        if other == "compact":
            table.compact(full=True)
        else:
            table.overwrite([{"k": 7, "p": "a", "s": None, "v": None}], partition={"p": "a"})
        seen.append(files_on_disk(table))

    with pytest.raises(CommitConflict):
        with_concurrent_action(table, ConcurrentAction(happens)).compact(full=True)
    assert files_on_disk(table) == seen[0]
    assert len(table.snapshots()) == 4


def test_a_snapshot_that_expires_during_its_compaction_is_a_conflict_without_leftovers(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    for k in range(3):
        write_rows(table, [{"k": k, "p": "a"}])
    seen: list[set[str]] = []

    def happens() -> None:
        table.compact(full=True)
        table.maintain.expire_snapshots(retain_min=1, retain_max=1)
        seen.append(files_on_disk(table))

    with pytest.raises(CommitConflict, match=r"Snapshot 3 of table 'db\.t' expired") as refused:
        with_concurrent_action(table, ConcurrentAction(happens)).compact(full=True)
    assert "Compact again" in str(refused.value)
    assert files_on_disk(table) == seen[0] and table.scan().count() == 3


def test_a_task_that_fails_leaves_no_files(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    for p in "aabb":
        write_rows(table, [{"k": 1, "p": p}])
    before = files_on_disk(table)
    with pytest.raises(StorageError, match="full"):
        with_concurrent_action(table, ConcurrentAction(lambda: None, fails_after=1)).compact(full=True)
    assert files_on_disk(table) == before
    assert table.scan().count() == 2


def test_a_compactor_loses_no_concurrent_writes(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"write-only": "true", "num-sorted-run.compaction-trigger": "2"})
    script = (
        "import sys, paimon; t = paimon.open_table(sys.argv[1])\n"
        "for i in range(5): t.write([{'k': int(sys.argv[2]) * 100 + i, 'p': 'a', 's': i, 'v': 'x'},"
        " {'k': -1, 'p': 'a', 's': i, 'v': 'shared'}])"
    )
    writers = [start_code(script, [table.location, str(n)]) for n in range(2)]
    passes = 0
    try:
        while any(writer.is_alive() for writer in writers):
            table.compact(full=passes % 2 == 0)
            passes += 1
            assert passes < 6_000, "the writers starve"
            time.sleep(0.01)
    finally:
        for writer in writers:
            writer.kill()
    assert [writer.exitcode for writer in writers] == [0, 0]
    table.compact(full=True)
    kinds = [s.commit_kind for s in table.snapshots()]
    assert kinds.count(CommitKind.APPEND) == 10 and kinds.count(CommitKind.COMPACT) > 1
    assert {r["k"] for r in table.scan().to_arrow().to_pylist()} == {-1, *range(5), *range(100, 105)}


def test_memory_stays_bounded_however_large_the_files_are(tmp_path: Path) -> None:
    # The open block of a file is in memory too. It is small here, so that the bound is visible.
    table = create_keyed_table(tmp_path, **{"file.block-size": "1 mb"})
    for run in range(6):
        numbers = pa.array(range(run, 900_000, 6), pa.int32())
        text = pa.array([f"{n:040d}" for n in range(len(numbers))])
        parts = pa.array(["a"] * len(numbers))
        table.write(pa.table({"k": numbers, "p": parts, "s": numbers, "v": text}))
    script = (
        "import sys, pyarrow as pa, paimon\n"
        "t = paimon.connect(sys.argv[1], memory_budget='6 mb').table('db.t')\n"
        "done = t.compact(full=True)\n"
        "assert done.rows == 900_000, done\n"
        "print(pa.default_memory_pool().max_memory())"
    )
    done = run_code(script, str(tmp_path))
    assert done.code == 0, done.errors
    whole = table.scan().to_arrow().nbytes
    assert whole > 50_000_000
    assert int(done.output) < whole / 2, f"{int(done.output):,} of {whole:,} bytes"
