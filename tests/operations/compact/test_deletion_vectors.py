"""Deletion vectors of compacted tables: each live key is stored once above level 0; no concurrent change is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products
from support.warm_processes import start_code

import paimon
from paimon.domain.errors import CommitConflict, StorageError
from paimon.table import Table
from paimon.testing.faulty_files import Fault, FaultyFiles

T = TypeVar("T")
R = TypeVar("R")

SCHEMA = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.int64()), ("s", pa.string())])
VECTORS = {"deletion-vectors.enabled": "true"}
LEAST = {"compaction.max-size-amplification-percent": "1000000"}
"""So that few compactions take everything, and levels have something to mark."""
TREES: list[dict[str, str]] = [
    {},
    {"deletion-vectors.bitmap64": "true", "num-sorted-run.compaction-trigger": "3"},
    {"changelog-producer": "lookup"},
    {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true", "sequence.field": "v"},
    {"changelog-producer": "input", "target-file-size": "1 kb"},
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    {
        "merge-engine": "aggregation",
        "aggregation.remove-record-on-delete": "true",
        "fields.v.aggregate-function": "last_value",
        "fields.s.aggregate-function": "last_value",
        "changelog-producer": "lookup",
    },
]
Rows = dict[int, dict[str, Any]]


def tree(place: Path, **options: str) -> Table:
    catalog = paimon.connect(str(place))
    catalog.create_database("d")
    options = {"bucket": "1", **VECTORS, **LEAST, **options}
    return catalog.create_table("d.t", SCHEMA, primary_keys=["k"], options=options)


def append_table(place: Path, **options: str) -> Table:
    catalog = paimon.connect(str(place))
    catalog.create_database("d")
    return catalog.create_table("d.t", SCHEMA, options={**VECTORS, **options})


def read(table: Table) -> Rows:
    found = table.scan().to_arrow().to_pylist()
    rows = {row["k"]: row for row in found}
    assert len(rows) == len(found), "a key comes twice"
    return rows


def vectors(table: Table) -> int:
    """Rows that vectors delete, in files that are read."""
    splits = table.scan().plan().splits
    return sum(d.range.cardinality or 0 for split in splits for d in split.deletion_files if d)


def count_stored_rows(table: Table) -> int:
    return sum(split.row_count for split in table.scan().plan().splits)


def files_on_disk(place: Path) -> set[str]:
    return {str(p) for p in place.rglob("*") if p.is_file() and not p.name.startswith((".", "LATEST"))}


OPERATIONS = st.lists(st.tuples(st.sampled_from(["+I", "+U", "-D"]), st.integers(0, 15)), min_size=1, max_size=8)
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "write", "write", "full", "delete", "update"]), OPERATIONS, st.booleans()),
    min_size=3,
    max_size=9,
)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(TREES), STEPS)
def test_each_live_key_is_stored_once_and_the_changelog_is_complete(
    tmp_path_factory: pytest.TempPathFactory, options: dict[str, str], steps: list[Any]
) -> None:
    table = tree(tmp_path_factory.mktemp("tree"), **options)
    table.write([{"k": k, "v": 0, "s": "first"} for k in range(16)])
    expected: Rows = {k: {"k": k, "v": 0, "s": "first"} for k in range(16)}
    for step, (action, operations, inline) in enumerate(steps, 1):
        if action == "write":
            rows = [{"k": k, "v": step, "s": f"{step}-{i}", "op": kind} for i, (kind, k) in enumerate(operations)]
            for row in rows:
                values = {name: row[name] for name in ("k", "v", "s")}
                expected = {k: r for k, r in expected.items() if k != row["k"]}
                expected |= {} if row["op"] == "-D" else {row["k"]: values}
            handle = table if inline else table.with_options({"write-only": True})
            handle.write(rows, kind_column="op")
            table.compact()
        elif action == "full":
            table.compact(full=True)
            assert vectors(table) == 0
        elif action == "delete":
            gone = {k for _, k in operations}
            table.delete(f"k IN ({', '.join(map(str, gone))})")
            expected = {k: row for k, row in expected.items() if k not in gone}
        elif options.get("merge-engine") != "aggregation":
            table.update({"s": "'set'", "v": str(step)}, where=f"k < {operations[0][1]}")
            expected = {k: {**r, "s": "set", "v": step} if k < operations[0][1] else r for k, r in expected.items()}
        assert read(table) == expected
        assert count_stored_rows(table) - vectors(table) == len(expected)
    if options.get("changelog-producer") == "lookup":
        assert replay_changes(table) == expected


def replay_changes(table: Table) -> Rows:
    """The changes that a stream since the first snapshot returns."""
    rows: Rows = {}
    for change in table.changes().to_arrow().to_pylist():
        kind, key = change.pop("_row_kind"), change["k"]
        del change["_snapshot_id"]
        if kind in ("-U", "-D"):
            assert rows.pop(key) == change, "a change retracts what was reported"
        else:
            rows[key] = change
    return rows


def test_level_0_is_read_if_requested(tmp_path: Path) -> None:
    table = tree(tmp_path)
    table.write([{"k": k, "v": 0, "s": "old"} for k in range(4)])
    table.with_options({"write-only": True}).write([{"k": 1, "v": 1, "s": "new"}])
    assert read(table)[1]["s"] == "old"
    assert read(table.with_options({"deletion-vectors.merge-on-read": True}))[1]["s"] == "new"
    table.compact()
    assert read(table)[1]["s"] == "new"
    assert vectors(table) == 1
    assert read(table.with_options({"deletion-vectors.merge-on-read": True})) == read(table)


def test_rows_that_are_not_visible_yet_are_changed_too(tmp_path: Path) -> None:
    table = tree(tmp_path)
    table.write([{"k": k, "v": 0, "s": "old"} for k in range(6)])
    writing = table.with_options({"write-only": True})
    writing.write([{"k": k, "v": 1, "s": "new"} for k in (1, 2, 7, 8)])
    assert writing.delete("s = 'new' AND k IN (1, 7)").rows == 2
    assert writing.update({"v": "v + 1"}, where="k IN (0, 2, 8)").rows == 3
    assert sorted(read(table)) == [0, 1, 2, 3, 4, 5]
    table.compact()
    assert {k: (r["v"], r["s"]) for k, r in read(table).items()} == {
        0: (1, "old"), 2: (2, "new"), 3: (0, "old"), 4: (0, "old"), 5: (0, "old"), 8: (2, "new"),
    }  # fmt: skip


def test_one_index_file_per_bucket_and_an_empty_one_without_deleted_rows(tmp_path: Path) -> None:
    table = tree(tmp_path)
    table.write([{"k": k, "v": 0, "s": f"{k * 7919:09d}" * 5} for k in range(5_000)])
    for k in range(3):
        table.write([{"k": k, "v": 1, "s": "new"}])
        (entry,) = table.system_table("table_indexes").scan().to_arrow().to_pylist()
        assert (entry["row_count"], vectors(table)) == (1, k + 1)
    table.compact(full=True)
    (entry,) = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    assert (entry["row_count"], entry["file_size"], entry["dv_ranges"]) == (0, 1, [])


def test_top_level_files_are_rewritten_only_for_their_vectors(tmp_path: Path) -> None:
    table = tree(tmp_path)
    table.write([{"k": k, "v": 0, "s": "old"} for k in range(50)])
    table.write([{"k": 7, "v": 1, "s": "-", "op": "-D"}], kind_column="op")
    assert (vectors(table), count_stored_rows(table)) == (1, 50)
    table.compact(full=True)
    assert (vectors(table), count_stored_rows(table)) == (0, 49)
    assert table.compact(full=True).snapshot_ids == ()


class ConcurrentAction:
    """An executor that runs a callback after all tasks are done."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self._happens = happens

    def map(self, function: Callable[[T], R], tasks: Iterable[T], discard: object = None) -> Iterator[R]:
        done = [function(task) for task in tasks]
        self._happens()
        yield from done


def with_concurrent_action(table: Table, happens: Callable[[], object]) -> Table:
    return table.with_engine(evolve(table.engine, executor=ConcurrentAction(happens)))


def make_ten_rows(first: int) -> list[dict[str, Any]]:
    return [{"k": k, "v": k, "s": "x"} for k in range(first, first + 10)]


OTHERS: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("k = 3"),
    "delete elsewhere in the file": lambda table: table.delete("k = 4"),
    "update": lambda table: table.update({"v": 9}, where="k = 3"),
    "compact": lambda table: table.compact(full=True),
}
APPENDED = [{}, {"bucket": "1", "bucket-key": "k"}, {"deletion-vectors.bitmap64": "true"}]


RACES = [*product(OTHERS, ["delete", "compact"])]


@pytest.mark.parametrize(("race", "options", "marked"), mark_products(RACES, APPENDED, [False, True],
    always=[("delete", "delete"), ("delete elsewhere in the file", "delete"), ("update", "compact"),
    ("compact", "delete")]))  # fmt: skip
def test_a_race_is_refused_and_no_row_is_lost(
    tmp_path: Path, race: tuple[str, str], options: dict[str, str], marked: bool
) -> None:
    other, first = race
    table = append_table(tmp_path, **options, **{"write-only": "true"})
    for number in (0, 10):
        table.write(make_ten_rows(number))
    if marked:
        table.delete("k = 0 OR k = 10")
    before = files_on_disk(tmp_path)
    seen: list[Any] = []

    def happens() -> None:
        if not seen:
            late_ones = files_on_disk(tmp_path) - before
            seen.append(late_ones)
            OTHERS[other](table)
            seen.append((sorted(read(table).items()), files_on_disk(tmp_path) - late_ones))

    late = with_concurrent_action(table, happens)
    with pytest.raises(CommitConflict):
        late.delete("k IN (3, 5)") if first == "delete" else late.compact(full=True)
    assert (sorted(read(table).items()), files_on_disk(tmp_path)) == seen[1]


@pytest.mark.parametrize("first", ["delete", "compact", "update"])
def test_concurrent_rows_are_preserved(tmp_path: Path, first: str) -> None:
    table = append_table(tmp_path, **{"write-only": "true"})
    for number in (0, 10):
        table.write(make_ten_rows(number))
    late = with_concurrent_action(table, lambda: table.write(make_ten_rows(20)))
    if first == "compact":
        late.compact(full=True)
    elif first == "delete":
        late.delete("k < 30")
    else:
        late.update({"v": 0}, where="k < 30")
    assert {k: r["v"] for k, r in read(table).items() if k >= 20} == {k: k for k in range(20, 30)}


@pytest.mark.parametrize("operation", ["create", "close"])
def test_an_index_file_that_cannot_be_written_leaves_no_files(tmp_path: Path, operation: str) -> None:
    table = append_table(tmp_path, **{"deletion-vector.index-file.target-size": "20 b"})
    for number in (0, 10):
        table.write(make_ten_rows(number))
    table.delete("k IN (1, 11)")
    before, rows = files_on_disk(tmp_path), read(table)
    made: list[str] = []

    def plan(asked: str, path: str) -> Fault | None:
        if asked == operation and "/index/" in path:
            made.append(path)
        return Fault.FAIL_BEFORE if len(made) == 2 and path == made[-1] and asked == operation else None

    broken = table.with_engine(evolve(table.engine, files=FaultyFiles(table.engine.files, plan)))
    for act in (lambda: broken.delete("k IN (2, 12)"), lambda: broken.update({"v": 0}, where="k IN (2, 12)")):
        made.clear()
        with pytest.raises(StorageError):
            act()
        assert len(made) == 2
        assert files_on_disk(tmp_path) == before
        assert read(table) == rows


CHANGER = """
import sys, time, paimon
from paimon.domain.errors import CommitConflict
table, number = paimon.open_table(sys.argv[1]), int(sys.argv[2])

def again(act):
    for step in range(500):
        try:
            return act()
        except CommitConflict:
            time.sleep(0.01 * (number + 1))
    raise AssertionError("starved")

for step in range(3):
    first = number * 100 + step * 10
    again(lambda: table.write([{"k": k, "v": 0, "s": "x"} for k in range(first, first + 10)]))
    again(lambda: table.delete(f"k IN ({first}, {first + 7})"))
    again(lambda: table.update({"v": "v + 1"}, where=f"k IN ({first + 1}, {number * 100 + 1})"))
    again(lambda: table.compact(full=step == 1))
"""


@pytest.mark.parametrize("keyed", [False, True])
def test_processes_that_change_and_compact_one_table_lose_no_rows(tmp_path: Path, keyed: bool) -> None:
    table = tree(tmp_path, **{"changelog-producer": "lookup"}) if keyed else append_table(tmp_path)
    changers = [start_code(CHANGER, [table.location, str(n)]) for n in range(2)]
    for changer in changers:
        changer.join()
    assert [changer.exitcode for changer in changers] == [0, 0]
    table.compact(full=True)
    left = {n * 100 + k for n in range(2) for k in range(30) if k % 10 not in (0, 7)}
    ones = {n * 100 + k for n in range(2) for k in (11, 21)}
    expected = {k: 1 if k in ones else 3 if k % 100 == 1 else 0 for k in left}
    assert {k: row["v"] for k, row in read(table).items()} == expected
    if keyed:
        assert replay_changes(table) == read(table)
