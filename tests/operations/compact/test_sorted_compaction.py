"""A sorted compaction: rows stay, files have narrow ranges, memory is bounded, and impossible requests fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import create_table

import paimon
from paimon.domain.columns.java_float_order import to_float_sort_key
from paimon.domain.errors import CommitConflict, InvalidRequest, SnapshotExpired, StorageError, Unsupported
from paimon.domain.maintenance.sort_order import SortOrder
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.engines import engine_for
from paimon.operations.data_files import external_sort
from paimon.operations.data_files.external_sort import sort_rows
from paimon.operations.rescale import rescale
from paimon.ports.engine import MemoryBudget

COLUMNS = "a INT, b STRING, c DOUBLE, d ARRAY<INT>, p STRING"


@frozen(eq=False)
class ActingExecutor:
    """Runs tasks in this thread, after another writer acted."""

    action: Callable[[], object]

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], discard: object = None) -> Iterator[Any]:
        self.action()
        return map(function, items)


def make_table(home: Path, **layout: Any) -> paimon.Table:
    options = {"target-file-size": "1 kb", **layout.pop("options", {})}
    return create_table(home, COLUMNS, options=options, **layout)


def write_files(table: paimon.Table, files: int = 3) -> None:
    """Write files whose ranges of column `a` overlap."""
    for number in range(files):
        values = [(i * 7919 + number * 31) % 1000 for i in range(400)]
        table.write([{"a": v, "b": f"t{v % 13}", "c": v / 3, "d": None, "p": "xy"[v % 2]} for v in values])


def rows_of(table: paimon.Table) -> list[str]:
    return sorted(map(str, table.scan().to_arrow().to_pylist()))


def ranges_of_a(table: paimon.Table, partition: str = "") -> list[tuple[int, int]]:
    """The smallest and the largest value of column `a` in each file, ascending."""
    files = paimon.open_table(f"{table.location}$files").scan().to_arrow().to_pylist()
    found = [[int(re.findall(r"a=(\d+)", f[name])[0]) for name in ("min_value_stats", "max_value_stats")]
             for f in files if partition in str(f["partition"])]  # fmt: skip
    return sorted((low, high) for low, high in found)


def are_disjoint(ranges: list[tuple[int, int]]) -> bool:
    return all(before[1] <= after[0] for before, after in pairwise(ranges))


def test_the_files_of_a_sorted_table_have_disjoint_ranges(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    write_files(table)
    before = rows_of(table)
    assert not are_disjoint(ranges_of_a(table))
    planned = table.compact(order_strategy="order", order_by=["a"], dry_run=True)
    done = table.compact(order_strategy="order", order_by=["a"])
    assert (planned.buckets, planned.files_before, planned.rows) == (1, done.files_before, done.rows) == (1, 3, 1200)
    assert rows_of(table) == before
    ranges = ranges_of_a(table)
    assert len(ranges) == done.files_after > 1
    assert are_disjoint(ranges)
    snapshot = table.snapshot()
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.COMPACT


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}, {"changelog-producer": "lookup"}])
def test_dynamic_buckets_get_ranges(tmp_path: Path, options: dict[str, str]) -> None:
    """Keys move to other buckets, and later writes find them there."""
    table = create_table(
        tmp_path, "id INT NOT NULL, a INT, p STRING NOT NULL", primary_keys=["id", "p"], partition_keys=["p"],
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "50", **options},
    )  # fmt: skip
    for part in range(2):
        ids = np.arange(part * 50, part * 50 + 100)
        table.write({"id": pa.array(ids, pa.int32()), "a": pa.array(ids * 7919 % 1000, pa.int32()), "p": ["x"] * 100})
    table.write([{"id": 1, "a": 1, "p": "y"}])
    table.delete(where="id < 10 AND p = 'x'")
    before = rows_of(table)
    planned = table.compact(where="p = 'x'", order_strategy="order", order_by="a", dry_run=True)
    assert planned.snapshot_ids == ()
    done = table.compact(where="p = 'x'", order_strategy="order", order_by="a")
    assert (done.buckets, done.files_after, done.rows) == (planned.buckets, 3, 140)
    assert rows_of(table) == before
    assert are_disjoint(ranges_of_a(table, "x"))
    snapshot = table.snapshot()
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.OVERWRITE
    table.write([{"id": i, "a": -1, "p": "x"} for i in range(10, 160, 7)])
    assert table.scan().count() == 143, "150 and 157 are new"
    assert table.maintain.check(deep=True).faults == ()


def test_an_expired_snapshot_advises_to_try_the_sort_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(tmp_path, primary_keys=["a"])
    write_files(table, 1)

    def fail(*given: object) -> None:
        table.write([{"a": 1, "b": "", "c": 0.0, "d": None, "p": "x"}])
        Path(table.location, "snapshot", "snapshot-1").unlink()
        raise StorageError("manifest", "not found")

    monkeypatch.setattr(rescale, "select_sources", fail)
    with pytest.raises(SnapshotExpired, match="Try again; raise"):
        table.compact(order_strategy="order", order_by="b")


def test_a_concurrent_write_refuses_the_sort_of_dynamic_buckets(tmp_path: Path) -> None:
    table = create_table(tmp_path, "id INT NOT NULL, a INT", primary_keys=["id"])
    table.write([{"id": i, "a": -i} for i in range(9)])
    on_disk = set(Path(table.location).rglob("bucket-*/*"))

    class WritingObserver(type(table.engine.observer)):  # type: ignore[misc]
        def progress(self, *_: object) -> None:
            table.write([{"id": 100, "a": 100}])

    acting = table.with_engine(evolve(table.engine, observer=WritingObserver()))
    with pytest.raises(CommitConflict, match="changed rows after"):
        acting.compact(order_strategy="order", order_by="a")
    assert table.scan().count() == 10
    assert len(set(Path(table.location).rglob("bucket-*/*")) - on_disk) == 1


@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_a_curve_narrows_the_ranges_of_each_column(tmp_path: Path, strategy: str) -> None:
    table = create_table(tmp_path, "b INT, a INT", options={"target-file-size": "4 kb"})
    numbers = np.arange(20_000)
    rows = pa.table(
        {"b": pa.array(numbers * 104729 % 2003, pa.int32()), "a": pa.array(numbers * 7919 % 2000, pa.int32())}
    )
    table.write(rows)
    table.compact(order_strategy=strategy, order_by=["b", "a"])
    assert table.scan().to_arrow().sort_by([("a", "ascending"), ("b", "ascending")]) == rows.sort_by(
        [("a", "ascending"), ("b", "ascending")]
    )
    ranges = ranges_of_a(table)
    assert len(ranges) >= 16
    assert sum(low <= 700 <= high for low, high in ranges) <= len(ranges) / 2


def test_an_option_limits_the_bytes_of_a_text_in_a_zorder(tmp_path: Path) -> None:
    table = make_table(tmp_path, options={"target-file-size": "1 gb"})
    table.write([{"a": i, "b": f"same-{9 - i}", "c": None, "d": None, "p": None} for i in range(10)])

    def sort(text_bytes: int) -> list[int]:
        given = table.with_options({"zorder.var-length-contribution": text_bytes})
        given.compact(order_strategy="zorder", order_by=["b"])
        numbers: list[int] = table.scan().to_arrow()["a"].to_pylist()
        return numbers

    assert sort(5) == list(range(10)), "the texts are equal in their first five bytes"
    assert sort(8) == list(reversed(range(10)))
    with pytest.raises(InvalidRequest, match=r"zorder\.var-length-contribution.* is 0"):
        sort(0)


def test_a_condition_selects_the_partitions_to_sort(tmp_path: Path) -> None:
    table = make_table(tmp_path, partition_keys=["p"])
    write_files(table)
    before = rows_of(table)
    table.compact(where="p = 'x'", order_strategy="order", order_by="a")
    assert rows_of(table) == before
    assert are_disjoint(ranges_of_a(table, "x"))
    assert not are_disjoint(ranges_of_a(table, "y"))


@pytest.mark.parametrize("options", [{}, {"bucket-append-ordered": "false"}])
def test_each_bucket_is_sorted_on_its_own(tmp_path: Path, options: dict[str, str]) -> None:
    table = make_table(tmp_path, options={"bucket": "2", "bucket-key": "b", "write-only": "true", **options})
    write_files(table)
    before = rows_of(table)
    assert table.compact(order_strategy="order", order_by=["a"]).buckets == 2
    assert rows_of(table) == before
    write_files(table, 1)
    table.compact(full=True)
    assert len(rows_of(table)) == len(before) + 400


def test_deleted_rows_are_removed_with_their_vectors(tmp_path: Path) -> None:
    table = make_table(tmp_path, options={"deletion-vectors.enabled": "true"})
    write_files(table)
    table.delete(where="a < 500")
    before = rows_of(table)
    table.compact(order_strategy="order", order_by=["a"])
    assert rows_of(table) == before
    assert ranges_of_a(table)[0][0] >= 500
    assert paimon.open_table(f"{table.location}$table_indexes").scan().count() == 0


def test_rows_that_others_append_during_the_sort_stay(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    write_files(table)
    late = [{"a": 5000, "b": "late", "c": 0.0, "d": None, "p": "x"}]
    acting = table.with_engine(evolve(table.engine, executor=ActingExecutor(lambda: table.write(late))))
    acting.compact(order_strategy="order", order_by=["a"])
    assert table.scan().count() == 1201
    assert ranges_of_a(table)[-1] == (5000, 5000)
    acting = table.with_engine(evolve(table.engine, executor=ActingExecutor(lambda: table.delete(where="a < 500"))))
    with pytest.raises(CommitConflict):
        acting.compact(order_strategy="order", order_by=["a"])
    assert table.scan(where="a < 500").count() == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order_by": ["a"]}, "no order strategy"),
        ({"order_strategy": "order"}, "needs columns"),
        ({"order_strategy": "order", "order_by": " , "}, "needs columns"),
        ({"order_strategy": "sort", "order_by": ["a"]}, "'sort' is not known"),
        ({"order_strategy": "order", "order_by": ["aa"]}, "'aa' of order_by does not exist"),
        ({"order_strategy": "order", "order_by": ["d"]}, "has type ARRAY<INT>, which has no order"),
        ({"order_strategy": "order", "order_by": ["p"]}, "is a partition column"),
        ({"order_strategy": "order", "order_by": ["a", "a"]}, "'a' is given twice"),
        ({"order_strategy": "hilbert", "order_by": ["a"]}, "needs two columns"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_impossible_requests_are_refused(tmp_path: Path, given: dict[str, Any], message: str, dry_run: bool) -> None:
    table = make_table(tmp_path, partition_keys=["p"])
    with pytest.raises(InvalidRequest, match=message):
        table.compact(**given, dry_run=dry_run)


def test_an_empty_order_by_asks_for_no_order(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    write_files(table, 1)
    assert table.compact(full=True, order_by="", dry_run=True) == table.compact(full=True, dry_run=True)


def test_the_bytes_of_texts_are_checked_only_for_a_z_order(tmp_path: Path) -> None:
    table = make_table(tmp_path, options={"zorder.var-length-contribution": "0"})
    write_files(table, 1)
    assert table.compact(order_strategy="order", order_by="b").snapshot_ids
    with pytest.raises(InvalidRequest, match="a text needs a byte"):
        table.compact(order_strategy="zorder", order_by="a,b")


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"primary_keys": ["a"], "options": {"bucket": "1"}}, "primary-key table with bucket mode HASH_FIXED"),
        ({"primary_keys": ["a"], "options": {"bucket": "-2"}}, "bucket mode POSTPONE_MODE"),
        ({"primary_keys": ["a"], "partition_keys": ["p"]}, "bucket mode KEY_DYNAMIC"),
        ({"options": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}}, "data-evolution.enabled"),
    ],
)
def test_tables_that_cannot_be_sorted_are_refused(tmp_path: Path, layout: dict[str, Any], message: str) -> None:
    table = make_table(tmp_path, **layout)
    write_files(table, 1)
    before = rows_of(table)
    with pytest.raises(Unsupported, match=message):
        table.compact(order_strategy="order", order_by=["b"])
    assert rows_of(table) == before


ORDER = SortOrder(
    "order", (DataField(0, "x", dt.DoubleType()), DataField(1, "y", dt.VarCharType()), DataField(2, "z", dt.IntType()))
)
ROW = st.tuples(
    st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("-inf")]),
    st.none() | st.text("ab\0é", max_size=3),
    st.none() | st.integers(-2, 2),
)


def to_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """The order of Java: null first, floats in their total order, text by its bytes, then arrival."""
    x, y, z = row["x"], row["y"], row["z"]
    return (
        () if x is None else to_float_sort_key(x), () if y is None else (y.encode(),), () if z is None else (z,),
        row["n"],
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(ROW, max_size=60), memory=st.sampled_from([1, 20_000, 1 << 30]), piece=st.integers(1, 20))
def test_the_external_sort_equals_a_sort_in_memory(rows: list[tuple[Any, ...]], memory: int, piece: int) -> None:
    schema = pa.schema([("x", pa.float64()), ("y", pa.string()), ("z", pa.int32()), ("n", pa.int64())])
    table = pa.Table.from_pylist([{"x": x, "y": y, "z": z, "n": i} for i, (x, y, z) in enumerate(rows)], schema)
    engine = evolve(engine_for("", {}, {}), memory=MemoryBudget(memory))
    pieces = (table.slice(start, piece) for start in range(0, len(rows), piece))
    found = [row for part in sort_rows(engine, pieces, ORDER) for row in part.to_pylist()]
    expected = sorted(table.to_pylist(), key=to_key)
    assert [row["n"] for row in found] == [row["n"] for row in expected]
    assert list(map(str, found)) == list(map(str, expected))


def test_no_more_runs_are_merged_at_once_than_the_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest fan-in is two. Seven runs are one on each of three levels before the last merge."""
    merged: list[int] = []
    cut = external_sort.cut_into_windows
    monkeypatch.setattr(
        external_sort, "cut_into_windows", lambda runs, *rest: merged.append(len(runs)) or cut(runs, *rest)
    )
    engine = evolve(engine_for("", {}, {}), memory=MemoryBudget(1))
    order = SortOrder("order", (DataField(0, "x", dt.IntType()),))
    pieces = [pa.table({"x": pa.array([number], pa.int32())}) for number in (3, 1, 6, 0, 2, 5, 4)]
    found = pa.concat_tables(sort_rows(engine, pieces, order))
    assert found["x"].to_pylist() == list(range(7))
    assert max(merged) == 2
