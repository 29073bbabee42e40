"""Cross-partition tables: a key is in one partition and one bucket over writes, processes, overwrites and crashes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from support.case_lists import mark_nightly, mark_products

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest, KeyIndexConflict, StorageError
from paimon.domain.maintenance.fault import FaultKind
from paimon.ports.engine import MemoryBudget
from paimon.testing.memory_key_store import MemoryKeyStores

SCHEMA = pa.schema([("p", pa.string()), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
ENGINES = {
    "deduplicate": {},
    "partial-update": {},
    "aggregation": {"fields.v.aggregate-function": "sum"},
    "first-row": {},
}
Row = tuple[str | None, int, int]


def make(catalog: paimon.Catalog, **options: Any) -> paimon.Table:
    """A table without the option `bucket`; names of options may be written with `_` for `-` and `__` for `.`."""
    named = {key.replace("__", ".").replace("_", "-"): str(value) for key, value in options.items()}
    return catalog.create_table("d.t", SCHEMA, primary_keys=["k"], partition_keys=["p"], options=named)


def rows(values: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist([{"p": p, "k": k, "v": v} for p, k, v in values], SCHEMA)


def state(table: paimon.Table) -> list[Row]:
    found = table.scan().to_arrow().to_pylist()
    return sorted(((row["p"], row["k"], row["v"]) for row in found), key=lambda row: row[1])


def places_of_keys(table: paimon.Table) -> dict[int, list[tuple[str | None, int]]]:
    """The partitions and buckets in which each key has a live row."""
    found: dict[int, list[tuple[str | None, int]]] = {}
    builder = table.new_read_builder()
    for split in builder.new_scan().plan().splits():
        for row in builder.new_read().to_arrow([split]).to_pylist():
            found.setdefault(row["k"], []).append((row["p"], split.bucket))
    return found


def apply(model: dict[int, tuple[str | None, int]], batch: Iterable[Row], engine: str) -> None:
    """Write rows to a dictionary from key to partition and value, as the specification describes it."""
    for partition, key, value in batch:
        old = model.get(key)
        if engine == "deduplicate" or old is None:
            model[key] = (partition, value)
        elif engine == "partial-update":
            model[key] = (old[0], value)
        elif engine == "aggregation":
            model[key] = (old[0], old[1] + value)


@pytest.mark.parametrize("engine", mark_nightly(ENGINES, always=["deduplicate", "partial-update"]))
@pytest.mark.parametrize("seed", mark_nightly([1, 2], always=[1]))
def test_any_history_has_each_key_in_one_place(catalog: paimon.Catalog, engine: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    options = {"merge-engine": engine, "dynamic-bucket.target-row-num": "7", **ENGINES[engine]}
    table = catalog.create_table("d.t", SCHEMA, primary_keys=["k"], partition_keys=["p"], options=options)
    model: dict[int, tuple[str | None, int]] = {}
    for step in range(8):
        size = int(random.integers(1, 40))
        batch = [
            (str(p) if p else None, int(k), int(v))
            for p, k, v in zip(random.integers(0, 4, size), random.integers(0, 60, size), random.integers(0, 99, size),
                               strict=True)
        ]  # fmt: skip
        paimon.connect(catalog.warehouse).table("d.t").write(rows(batch))
        apply(model, batch, engine)
        if step % 3 == 2:
            table.compact(full=True)
        assert state(table) == [(p, k, v) for k, (p, v) in sorted(model.items())]
        places = places_of_keys(table)
        assert all(len(found) == 1 for found in places.values())
        assert {key: found[0][0] for key, found in places.items()} == {key: p for key, (p, _) in model.items()}


def test_moved_keys_are_deleted_where_they_were(catalog: paimon.Catalog) -> None:
    table = make(catalog, write_only="true")
    table.write(rows([("a", 1, 1), ("a", 2, 2)]))
    table.write(rows([("b", 1, 10)]))
    changes = table.system_table("audit_log").scan().to_arrow().to_pylist()
    live_and_deleted = sorted((row["rowkind"], row["p"], row["k"], row["v"]) for row in changes)
    assert live_and_deleted == [("+I", "a", 2, 2), ("+I", "b", 1, 10), ("-D", "a", 1, 10)]


def test_a_first_load_writes_the_last_row_of_a_key(catalog: paimon.Catalog) -> None:
    batch = rows([("a", 1, 1), ("b", 1, 2), ("c", 1, 3)])
    table = make(catalog)
    table.write(batch)
    assert {row["partition"] for row in table.system_table("files").scan().to_arrow().to_pylist()} == {"{c}"}


def test_a_stream_keeps_its_index_between_commits(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    loaded: list[int] = []

    class Counting(MemoryKeyStores):
        def open(self, *args: Any) -> Any:
            loaded.append(1)
            return super().open(*args)

    context = evolve(table.context, engine=evolve(table.context.engine, key_stores=Counting()))
    builder = evolve(table.new_stream_write_builder(), context=context)
    with builder.new_write() as writer:
        commit = builder.new_commit()
        for identifier, partition in enumerate("abcab", 1):
            writer.write(rows([(partition, k, identifier) for k in range(identifier, identifier + 10)]))
            commit.commit(identifier, writer.prepare_commit(identifier))
    model: dict[int, tuple[str | None, int]] = {}
    for identifier, partition in enumerate("abcab", 1):
        apply(model, [(partition, k, identifier) for k in range(identifier, identifier + 10)], "deduplicate")
    assert state(table) == [(p, k, v) for k, (p, v) in sorted(model.items())]
    assert loaded == [1]


def test_every_row_of_a_batch_may_be_dropped_after_a_spill(catalog: paimon.Catalog) -> None:
    table = make(catalog, **{"merge-engine": "first-row", "write-buffer-size": "1 b"})
    table.write(rows([("a", 1, 1)]))
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write(rows([("b", 2, 2)]))
        writer.write(rows([("b", 1, 2)]))
        builder.new_commit().commit(writer.prepare_commit())
    assert state(table) == [("a", 1, 1), ("b", 2, 2)]


def test_rows_that_were_never_committed_leave_no_trace(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1)]))
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(rows([("b", 1, 2)]))
        writer.prepare_commit()
    table.write(rows([("c", 1, 3)]))
    assert state(table) == [("c", 1, 3)]


@pytest.mark.parametrize("options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}])
def test_keys_of_level_0_are_in_the_index(catalog: paimon.Catalog, options: dict[str, str]) -> None:
    table = catalog.create_table("d.t", SCHEMA, primary_keys=["k"], partition_keys=["p"], options=options)
    table.with_options({"write-only": "true"}).write(rows([("a", 1, 1)]))
    assert state(table) == []
    table.write(rows([("b", 1, 2)]))
    table.compact(full=True)
    assert state(table) == ([("a", 1, 1)] if "merge-engine" in options else [("b", 1, 2)])


def test_a_key_contains_its_partition_columns(catalog: paimon.Catalog) -> None:
    columns = "a INT NOT NULL, b INT NOT NULL, c INT, v INT"
    table = catalog.create_table("d.t", columns, primary_keys=["a", "b"], partition_keys=["a", "c"])
    table.write([{"a": a, "b": 1, "c": 0, "v": a} for a in (1, 2)])
    table.write([{"a": 2, "b": 1, "c": 5, "v": 20}])
    found = {(row["a"], row["b"], row["c"], row["v"]) for row in table.scan().to_arrow().to_pylist()}
    assert found == {(1, 1, 0, 1), (2, 1, 5, 20)}


def test_deletes_and_updates_find_their_rows(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1), ("a", 2, 2), ("b", 3, 3)]))
    table.delete("k = 1")
    table.update({"v": "v * 10"}, "k = 3")
    table.write(rows([("b", 1, 5)]))
    assert state(table) == [("b", 1, 5), ("a", 2, 2), ("b", 3, 30)]


def test_the_whole_table_is_overwritten(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1), ("a", 2, 2)]))
    table.overwrite(rows([("b", 1, 10), ("c", 1, 20)]), {})
    assert state(table) == [("c", 1, 20)]
    table.with_options({"dynamic-partition-overwrite": "false"}).overwrite(rows([("b", 7, 7)]))
    assert state(table) == [("b", 7, 7)]


@pytest.mark.parametrize(("engine", "partition"), mark_products(ENGINES, [None, {"p": "a"}]))
def test_an_overwrite_of_a_partition_leaves_the_others(
    catalog: paimon.Catalog, engine: str, partition: dict[str, str] | None
) -> None:
    table = make(catalog, merge_engine=engine, **ENGINES[engine])
    table.write(rows([("a", 1, 1), ("a", 2, 2), ("b", 3, 3), ("c", 4, 4)]))
    table.overwrite(rows([("a", 2, 20), ("a", 5, 50)]), partition)
    assert state(table) == [("a", 2, 20), ("b", 3, 3), ("c", 4, 4), ("a", 5, 50)]
    table.write(rows([("b", 2, 1)]))  # the next writer finds the keys of the overwrite
    assert all(len(places) == 1 for places in places_of_keys(table).values())
    before, count = state(table), len(table.snapshots())
    with pytest.raises(InvalidRequest, match=r"in partition p=c .*, which the overwrite does not replace"):
        table.overwrite(rows([("a", 7, 7), ("a", 4, 40)]), partition)
    assert state(table) == before and len(table.snapshots()) == count
    assert table.maintain.remove_orphans(older_than=timedelta(0), allow_young=True).num_rows == 0


def test_an_overwrite_of_the_written_partitions_moves_keys_between_them(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1), ("b", 2, 2), ("c", 3, 3)]))
    table.overwrite(rows([("b", 1, 10), ("a", 2, 20)]))
    assert state(table) == [("b", 1, 10), ("a", 2, 20), ("c", 3, 3)]
    with pytest.raises(InvalidRequest, match="outside the partition to overwrite"):
        table.overwrite(rows([("b", 8, 8)]), {"p": "a"})


def test_an_overwrite_of_a_partition_conflicts_with_a_writer_of_its_keys(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1), ("b", 2, 2)]))
    builder = table.new_batch_write_builder().overwrite({"p": "a"})
    with builder.new_write() as writer:
        writer.write(rows([("a", 5, 5)]))
        messages = writer.prepare_commit()
    table.write(rows([("b", 5, 50)]))
    with pytest.raises(KeyIndexConflict, match="may have put the same keys into other partitions"):
        builder.new_commit().commit(messages)
    assert state(table) == [("a", 1, 1), ("b", 2, 2), ("b", 5, 50)]


def test_a_target_that_is_not_positive_is_refused(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    with pytest.raises(InvalidRequest, match="target-row-num"):
        table.with_options({"dynamic-bucket.target-row-num": "0"}).write(rows([("a", 1, 1)]))


def test_a_missing_data_file_is_named(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1)]))
    (path,) = Path(str(catalog.warehouse).removeprefix("file://")).rglob("data-*")
    path.unlink()
    with pytest.raises(CorruptTable, match=path.name):
        table.write(rows([("b", 1, 2)]))


def test_a_full_disk_leaves_the_table_readable(catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog)
    table.write(rows(("a", k, k) for k in range(1_000)))
    small = with_memory(table, 64 * 1024)
    monkeypatch.setattr(type(table.context.engine.temp), "store_joined", raise_full_disk)
    with pytest.raises(StorageError, match="joined-1"):
        small.write(rows([("b", 1, 2)]))
    monkeypatch.undo()
    assert len(state(table)) == 1_000
    small.write(rows([("b", 1, 2)]))
    assert state(table)[1] == ("b", 1, 2)


def raise_full_disk(*args: Any) -> None:
    raise StorageError("joined-1", "no space left on device")


def with_memory(table: paimon.Table, size_bytes: int) -> paimon.Table:
    engine = evolve(table.context.engine, memory=MemoryBudget(size_bytes))
    return evolve(table, context=evolve(table.context, engine=engine))


def test_a_small_budget_holds_many_keys(catalog: paimon.Catalog) -> None:
    table = with_memory(make(catalog, dynamic_bucket__target_row_num=1_500), 1 << 20)
    for step, partition in enumerate("abc"):
        table.write(rows((partition, k, step) for k in range(step * 2_000, 10_000)))
    assert state(table) == [("abc"[min(k // 2_000, 2)], k, min(k // 2_000, 2)) for k in range(10_000)]


def test_bootstrap_parallelism_limits_concurrent_reads(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows(("abcdef"[k % 6], k, k) for k in range(60)))
    sizes: list[int] = []

    class Recording:
        def map(self, function: Callable[[Any], Any], tasks: Iterable[Any], discard: object = None) -> Iterator[Any]:
            tasks = list(tasks)
            if "_read_split_keys" in str(function):
                sizes.append(len(tasks))
            return map(function, tasks)

    engine = evolve(table.context.engine, executor=Recording())
    recording = evolve(table, context=evolve(table.context, engine=engine))
    for parallelism, expected in ((2, [2, 2, 2]), (4, [4, 2]), (1, [])):
        sizes.clear()
        options = {"cross-partition-upsert.bootstrap-parallelism": str(parallelism)}
        recording.with_options(options).write(rows([("a", parallelism, 0)]))
        assert sizes == expected


@pytest.mark.parametrize(("time_to_live", "expected"), [("4 h", [("b", 1, 2)]), ("2 h", [("a", 1, 1), ("b", 1, 2)])])
def test_index_ttl_ignores_keys_of_old_files(catalog: paimon.Catalog, time_to_live: str, expected: list[Row]) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1)]))

    class Later:
        def __init__(self, clock: Any) -> None:
            self._clock = clock

        def now_millis(self) -> int:
            return int(self._clock.now_millis()) + 3 * 3_600_000

        def __getattr__(self, name: str) -> Any:
            return getattr(self._clock, name)

    engine = evolve(table.context.engine, clock=Later(table.context.engine.clock))
    later = evolve(table, context=evolve(table.context, engine=engine))
    later.with_options({"cross-partition-upsert.index-ttl": time_to_live}).write(rows([("b", 1, 2)]))
    assert state(table) == expected


def test_a_write_is_placed_again_after_another_writer_was_first(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1)]))
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(rows([("b", 1, 2)]))
        messages = writer.prepare_commit()
    table.write(rows([("c", 1, 3)]))
    commit = table.new_batch_write_builder().new_commit()
    with pytest.raises(KeyIndexConflict, match="Snapshot 2 of user"):
        commit.commit(messages)
    commit.abort(messages)
    assert state(table) == [("c", 1, 3)]


def test_two_writers_of_other_keys_do_not_conflict(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(rows([("b", 1, 2)]))
        messages = writer.prepare_commit()
    table.write(rows([("c", 100, 3)]))
    table.new_batch_write_builder().new_commit().commit(messages)
    assert state(table) == [("b", 1, 2), ("c", 100, 3)]


def test_concurrent_writers_leave_each_key_in_one_partition(catalog: paimon.Catalog) -> None:
    make(catalog)

    def write(number: int) -> None:
        table = paimon.connect(catalog.warehouse).table("d.t")
        for step in range(4):
            table.write(rows(("abc"[(number + k + step) % 3], k, number) for k in range(20)))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    table = catalog.table("d.t")
    assert sorted(places_of_keys(table)) == list(range(20))
    assert all(len(found) == 1 for found in places_of_keys(table).values())


def test_a_stream_reads_commits_of_other_writers(catalog: paimon.Catalog) -> None:
    table = make(catalog, **{"snapshot.num-retained.min": 1, "snapshot.num-retained.max": 8})
    builder = table.new_stream_write_builder()
    model: dict[int, tuple[str | None, int]] = {}
    with builder.new_write() as writer:
        commit = builder.new_commit()
        for identifier in range(1, 8):
            batch = [("abc"[(identifier + k) % 3], k, identifier) for k in range(5)]
            writer.write(rows(batch))
            commit.commit(identifier, writer.prepare_commit(identifier))
            others = [("abc"[(identifier + k + 1) % 3], k, -identifier) for k in range(3, 8)]
            table.write(rows(others))
            apply(model, [*batch, *others], "deduplicate")
        assert state(table) == [(p, k, v) for k, (p, v) in sorted(model.items())]
        table.overwrite(rows([("a", 1, 1)]), {})
        with pytest.raises(KeyIndexConflict, match="replaced rows"):
            writer.write(rows([("b", 1, 2)]))


@pytest.mark.parametrize("write_only", ["true", "false"])
def test_a_stream_moves_a_key_that_another_writer_just_wrote(catalog: paimon.Catalog, write_only: str) -> None:
    """The stream has a commit that is not published yet, so it still has its own state of the bucket."""
    table = make(catalog, **{"write-only": write_only})
    builder = table.new_stream_write_builder("stream")
    commit = builder.new_commit()
    with builder.new_write() as writer:
        writer.write(rows([("a", 1, 1)]))
        commit.commit(1, writer.prepare_commit(1))
        writer.write(rows([("b", 2, 1)]))
        pending = writer.prepare_commit(2)
        table.write(rows(("a", 3, value) for value in range(5)))
        writer.write(rows([("b", 3, 9)]))
        last = writer.prepare_commit(3)
        commit.commit(2, pending)
        commit.commit(3, last)
    assert state(table) == [("a", 1, 1), ("b", 2, 1), ("b", 3, 9)]


def test_a_stream_that_repeats_a_commit_reads_again_where_keys_are(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=1)
    batches = {1: [("a", 1, 1), ("b", 1, 2)], 2: [("b", 1, 3)]}
    for identifiers in ([1], [1, 2]):  # the second job does not know that the first commit was made
        builder = table.new_stream_write_builder("stream")
        with builder.new_write() as writer:
            for identifier in identifiers:
                writer.write(rows(batches[identifier]))
                builder.new_commit().commit(identifier, writer.prepare_commit(identifier))
    assert state(table) == [("b", 1, 3)]


def test_a_table_that_was_rolled_back_refuses_the_commit(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 1)]))
    table.write(rows([("a", 2, 1)]))
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(rows([("b", 1, 2)]))
        messages = writer.prepare_commit()
    table.maintain.rollback_to(1)
    with pytest.raises(KeyIndexConflict, match="Snapshot 2 no longer exists"):
        table.new_batch_write_builder().new_commit().commit(messages)


def check(table: paimon.Table, deep: bool = True) -> list[tuple[FaultKind, str, str]]:
    faults = table.maintain.check(deep=deep).faults
    root = table.location + "/"
    return [(f.kind, f.path.removeprefix(root), f.reason.replace(root, "")) for f in faults]


def write_without_index(table: paimon.Table, values: list[Row]) -> None:
    """Write rows as if their keys were new: the key index leaves out all files."""
    time.sleep(0.01)
    table.with_options({"cross-partition-upsert.index-ttl": "1 ms"}).write(rows(values))


@pytest.mark.parametrize("stores", [None, MemoryKeyStores()], ids=["blocks", "memory"])
def test_a_deep_check_finds_keys_of_two_partitions(catalog: paimon.Catalog, stores: MemoryKeyStores | None) -> None:
    table = make(catalog, write_only="true")
    table = evolve(table, context=evolve(table.context, engine=evolve(table.context.engine, key_stores=stores)))
    table.write(rows(("a", k, 0) for k in range(20)))
    table.write(rows(("b", k, 1) for k in range(5)))  # these leave -D rows in a
    assert check(table) == []
    write_without_index(table, [("b", 7, 2), ("c", 8, 2), ("c", 9, 2), ("c", 30, 2)])
    assert check(table, deep=False) == []
    found = check(table)
    assert {kind for kind, _, _ in found} == {FaultKind.PLACE}
    counts = {path: reason.split()[1] for _, path, reason in found}
    assert sum(map(int, counts.values())) == 3  # of the two rows of a key, one is reported
    assert all("live in other buckets, too, such as p=" in reason for _, _, reason in found)
    table.delete("p = 'a' AND k IN (7, 8, 9)")
    assert check(table) == []


def test_keys_can_be_in_two_partitions_after_the_index_ttl(catalog: paimon.Catalog) -> None:
    table = make(catalog, cross_partition_upsert__index_ttl="1 ms")
    table.write(rows([("a", 1, 0)]))
    write_without_index(table, [("b", 1, 0)])
    assert len(state(table)) == 2 and check(table) == []


def test_a_deep_check_reports_a_missing_file_of_keys(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows([("a", 1, 0)]))
    (data,) = Path(table.location, "p=a", "bucket-0").iterdir()
    data.unlink()
    kinds = [kind for kind, _, _ in check(table)]
    assert set(kinds) == {FaultKind.MISSING}
