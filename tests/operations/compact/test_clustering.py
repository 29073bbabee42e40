"""Incremental clustering: compactions sort new files, and merge them with older ones as levels grow."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.tables import create_table

import paimon
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.maintenance.sort_order import bind_clustering_order

CLUSTERED = {"clustering.incremental": "true", "clustering.columns": "a", "num-sorted-run.compaction-trigger": "3"}


def write_part(table: paimon.Table, number: int) -> None:
    numbers = np.arange(number, 2100, 7)
    table.write(
        {
            "a": pa.array(numbers * 7919 % 1000, pa.int32()),
            "b": pa.array(numbers, pa.int32()),
            "p": ["x"] * len(numbers),
        }
    )


def describe_files(table: paimon.Table) -> list[tuple[int, int, int]]:
    """The bucket, the level and the number of rows of each file."""
    files = table.system_table("files").scan().to_arrow().to_pylist()
    return sorted((f["bucket"], f["level"], f["record_count"]) for f in files)


def rows_of(table: paimon.Table) -> list[str]:
    return sorted(map(str, table.scan().to_arrow().to_pylist()))


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_compactions_cluster_the_newest_runs(tmp_path: Path, vectors: str) -> None:
    """Three files become a run; later ones get a level below it, until they are large against it."""
    table = create_table(tmp_path, "a INT, b INT, p STRING", options={**CLUSTERED, "deletion-vectors.enabled": vectors})
    seen = []
    for number in range(7):
        write_part(table, number)
        table.compact()
        seen.append(describe_files(table))
    assert seen[1] == [(0, 0, 300), (0, 0, 300)]
    assert seen[2] == [(0, 3, 900)]
    assert seen[4] == [(0, 2, 600), (0, 3, 900)]
    assert seen[6] == [(0, 3, 2100)]
    assert table.scan().to_arrow()["a"].to_pylist() == sorted(np.arange(2100) * 7919 % 1000)
    if vectors == "true":
        table.delete(where="a < 100")
        before = rows_of(table)
        assert table.compact(full=True).files_before == 1, "to remove the deleted rows"
        assert rows_of(table) == before
    assert table.compact(full=True).snapshot_ids == ()
    assert table.maintain.check(deep=True).faults == ()


def test_a_full_compaction_clusters_again_after_the_columns_changed(tmp_path: Path) -> None:
    table = create_table(tmp_path, "a INT, b INT, p STRING", partition_keys=["p"], options=CLUSTERED)
    write_part(table, 0)
    table.compact(full=True, where="p = 'x'")
    assert table.compact(full=True, where="p = 'x'").snapshot_ids == ()
    table = table.alter("SET ('clustering.columns' = 'b')")
    assert table.compact(full=True).files_before == 1
    assert table.scan().to_arrow()["b"].to_pylist() == list(range(0, 2100, 7))


def test_buckets_are_clustered_by_compactions_and_not_by_writers(tmp_path: Path) -> None:
    options = {**CLUSTERED, "bucket": "2", "bucket-key": "b", "bucket-append-ordered": "false"}
    table = create_table(tmp_path, "a INT, b INT, p STRING", options=options)
    for number in range(5):
        write_part(table, number)
    assert {level for _, level, _ in describe_files(table)} == {0}
    before = rows_of(table)
    assert table.compact().buckets == 2
    assert rows_of(table) == before
    assert {level for _, level, _ in describe_files(table)} == {3}


@pytest.mark.parametrize(
    ("columns", "given", "strategy"),
    [("a", "auto", "order"), ("a,b", "auto", "zorder"), ("a,b,c,d,e", "auto", "hilbert"), ("a,b", "order", "order")],
)
def test_the_strategy_follows_from_the_number_of_columns(
    tmp_path: Path, columns: str, given: str, strategy: str
) -> None:
    options = {"clustering.incremental": "true", "clustering.columns": columns, "clustering.strategy": given}
    table = create_table(tmp_path, "a INT, b INT, c INT, d INT, e INT", options=options)
    order = bind_clustering_order(table.definition)
    assert (order.strategy, ",".join(f.name for f in order.fields)) == (strategy, columns)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        ({"clustering.columns": "p"}, "'p' of clustering.columns is a partition column"),
        ({"clustering.columns": "a,b"}, r"'b' of clustering.columns has type ARRAY<INT>"),
        ({"clustering.strategy": "hilbert"}, "two columns in clustering.columns"),
    ],
)
def test_columns_that_no_compaction_can_sort_by_are_refused_at_once(
    tmp_path: Path, refused: dict[str, str], message: str
) -> None:
    columns = "a INT, b ARRAY<INT>, p STRING"
    with pytest.raises(InvalidRequest, match=message):
        create_table(tmp_path, columns, partition_keys=["p"], options={**CLUSTERED, **refused})
    table = create_table(tmp_path, columns, partition_keys=["p"], options=refused, name="db.u")
    names = refused.get("clustering.columns", "a")
    with pytest.raises(InvalidRequest, match=message):
        table.alter(f"SET ('clustering.incremental' = 'true', 'clustering.columns' = '{names}')")
    with pytest.raises(InvalidRequest, match=message):
        bind_clustering_order(table.with_options({**CLUSTERED, **refused}).definition)


def test_contradicting_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"needs 'clustering\.columns'"):
        create_table(tmp_path, "a INT", options={"clustering.incremental": "true"})
    table = create_table(tmp_path, "a INT, b INT, p STRING", name="db.u", options={**CLUSTERED, "owner": "x"})
    write_part(table, 0)
    with pytest.raises(InvalidRequest, match="is clustered"):
        table.compact(order_strategy="order", order_by="b")
    with pytest.raises(Unsupported, match=r"clustering\.incremental\.optimize-write.*call compact"):
        table.alter("SET ('clustering.incremental.optimize-write' = 'true')")


def test_files_are_sorted_one_by_one_with_local_sort(tmp_path: Path) -> None:
    """Each new file of about the target size is in order; together they are not, and the strategy has no effect."""
    options = {**CLUSTERED, "clustering.columns": "a,b", "clustering.incremental.mode": "LOCAL-SORT"}
    table = create_table(tmp_path, "a INT, b INT, p STRING", options={**options, "target-file-size": "1 kb"})
    for part in range(3):
        write_part(table, part)
    rows = rows_of(table)
    assert table.compact().files_before == 3
    assert [level for _, level, _ in describe_files(table)] == [3] * 3
    assert rows_of(table) == rows
    keys = [(row["a"], row["b"]) for row in table.scan().to_arrow().to_pylist()]
    assert [keys[i : i + 300] == sorted(keys[i : i + 300]) for i in (0, 300, 600)] == [True] * 3
    assert keys != sorted(keys)
    assert table.compact(full=True).snapshot_ids == ()


def test_idle_partitions_are_clustered_with_those_of_a_condition(tmp_path: Path) -> None:
    options = {
        **CLUSTERED,
        "clustering.history-partition.idle-to-full-sort": "1 ms",
        "clustering.history-partition.limit": "2",
    }
    table = create_table(tmp_path, "a INT, p STRING", partition_keys=["p"], options=options)
    for partition in "dcba":
        table.write({"a": [2, 1], "p": [partition] * 2})
        time.sleep(0.003)
    assert table.compact(where="p = 'a'").buckets == 2, "too few files in 'a', so only two others"
    files = table.system_table("files").scan().to_arrow().to_pylist()
    assert {f["partition"] for f in files if f["level"]} == {"{d}", "{c}"}
    assert table.compact().snapshot_ids == (), "without a condition there are no other partitions"
    idle = table.with_options({"clustering.history-partition.idle-to-full-sort": "1 h"})
    assert idle.compact(where="p = 'a'").snapshot_ids == ()
