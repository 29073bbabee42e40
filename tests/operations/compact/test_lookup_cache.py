"""The lookup cache of a writer: the same results with fewer reads, within its limits."""

from __future__ import annotations

import gc
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from support.case_lists import mark_nightly
from support.tables import create_table

import paimon
from paimon.adapters.observers import CountingObserver
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.errors import StorageError
from paimon.domain.row.binary_row import serialize
from paimon.operations.compact import lookup_cache as local_copies
from paimon.operations.compact.lookup_cache import LookupCache
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter

SMALL = {"bucket": "2", "target-file-size": "20 kb", "num-sorted-run.compaction-trigger": "4"}
CASES: dict[str, dict[str, str]] = {
    "lookup": {"changelog-producer": "lookup"},
    "sums": {"changelog-producer": "lookup", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "vectors": {"deletion-vectors.enabled": "true", "file.format": "orc"},
    "vectors by sequence": {"deletion-vectors.enabled": "true", "sequence.field": "n", "file.format": "avro"},
    "first-row": {"merge-engine": "first-row", "changelog-producer": "lookup"},
}  # fmt: skip


def create_counted_table(home: Path, options: dict[str, str]) -> paimon.Table:
    ddl = "a STRING NOT NULL, b DOUBLE NOT NULL, n INT, v STRING"
    given = {**SMALL, "primary-key.allow-floating": "true", **options}
    table = create_table(home, ddl, primary_keys=["a", "b"], options=given)
    engine = evolve(table.engine, observer=CountingObserver(), temp=LocalTempStore(str(home)))
    return type(table)(TableContext(engine, table.definition))


def copies_made(table: paimon.Table) -> int:
    assert isinstance(table.engine.observer, CountingObserver)
    return table.engine.observer.metrics["lookup.local_copies"]


def copies_of(home: Path) -> list[Path]:
    return list(home.rglob("stored-*.arrow"))


def rows_of(step: int, count: int = 40) -> list[dict[str, Any]]:
    chance = random.Random(step)
    numbers = [-0.0, 0.0, float("nan"), *(i / 2 for i in range(900))]
    return [
        {"a": chance.choice("xyz"), "b": chance.choice(numbers), "n": step, "v": chance.randbytes(20).hex()}
        for i in range(count)
    ]


def write_stream(table: paimon.Table, rounds: int, first: int = 1) -> None:
    """One writer and one commit per step: at first many rows, then a few."""
    builder = table.new_stream_write_builder("u")
    with builder.new_write() as writer:
        for step in range(first, first + rounds):
            writer.write(rows_of(step, 2_000 if step == 1 else 6))
            builder.new_commit().commit(step, writer.prepare_commit(step))


def outcome(table: paimon.Table) -> tuple[Any, ...]:
    changes = table.changes().to_arrow().to_pylist() if "changelog-producer" in table.options else []
    return repr(changes), repr(table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("case", mark_nightly(CASES, always=["lookup", "vectors by sequence"]))
def test_results_are_the_same_without_a_lookup_cache(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_copies = create_counted_table(tmp_path / "with", CASES[case])
    write_stream(with_copies, 7)
    assert copies_made(with_copies) > 1
    monkeypatch.setattr(local_copies.BucketLookupFiles, "find_blocks", lambda *_: None)
    without = create_counted_table(tmp_path / "without", CASES[case])
    write_stream(without, 7)
    assert copies_made(without) == 0
    assert outcome(with_copies) == outcome(without)
    assert not copies_of(tmp_path)


class ManualWriter:
    """Write step by step, and inspect the lookup files on disk after each."""

    def __init__(self, home: Path, options: dict[str, str]) -> None:
        self.home = home
        self.table = create_counted_table(home, CASES["lookup"] | options)
        self.writer = TableWriter(self.table.context, "u")
        self.step = 0

    def take(self, count: int = 6) -> int:
        """Run one step and return the bytes of all copies."""
        self.step += 1
        self.writer.write(pa.Table.from_pylist(rows_of(self.step, count)))
        commit = self.table.new_stream_write_builder("u").new_commit()
        commit.commit(self.step, self.writer.prepare_commit(self.step))
        return sum(p.stat().st_size for p in copies_of(self.home))


def test_a_file_is_cached_on_its_second_lookup_and_dropped_after_compaction(tmp_path: Path) -> None:
    rounds = ManualWriter(tmp_path, {"bucket": "1", "target-file-size": "1 mb"})
    assert rounds.take(2_000) == 0  # no upper level
    assert rounds.take() == 0  # requested once
    assert rounds.take() > 0
    assert copies_made(rounds.table) == 1
    copy = copies_of(tmp_path)
    rounds.take()
    assert copies_of(tmp_path) == copy
    rounds.writer.compact(serialize((), ()), 0, True)
    rounds.take()
    rounds.take()
    assert copies_of(tmp_path) == []
    rounds.take()
    assert copies_of(tmp_path) != []
    rounds.writer.close()
    assert copies_of(tmp_path) == []


@pytest.mark.parametrize("limit", [0, 60_000, 250_000])
def test_lookup_files_stay_within_the_disk_limit(tmp_path: Path, limit: int) -> None:
    rounds = ManualWriter(tmp_path, {"lookup.cache-max-disk-size": f"{limit} b"})
    disk_bytes = [rounds.take(2_000 if step == 0 else 6) for step in range(12)]
    assert max(disk_bytes) <= limit
    assert (max(disk_bytes) > 0) == (limit > 0)
    made = copies_made(rounds.table)
    assert made <= 12  # files that do not fit are not copied repeatedly
    rounds.writer.close()


@pytest.mark.parametrize(("limit", "blocks"), [("256 mb", 1), ("16 kb", 2)])
def test_less_memory_makes_smaller_blocks_of_lookup_files(tmp_path: Path, limit: str, blocks: int) -> None:
    options = {"bucket": "1", "target-file-size": "64 mb", "lookup.cache-max-memory-size": limit}
    table = create_counted_table(tmp_path, CASES["lookup"] | options)
    count = 140_000  # rows are read from a file in batches of 122,880
    many = pa.table({
        "a": ["x"] * count, "b": pa.array(range(count), pa.float64()), "n": pa.array([1] * count, pa.int32()),
        "v": ["y"] * count,
    })  # fmt: skip
    builder = table.new_stream_write_builder("u")
    with builder.new_write() as writer:
        for step, rows in enumerate([many, many.slice(7, 1), many.slice(8, 1)], 1):
            writer.write(rows)
            builder.new_commit().commit(step, writer.prepare_commit(step))
        found = [pa.ipc.open_file(pa.memory_map(str(path))).num_record_batches for path in copies_of(tmp_path)]
    assert found == [blocks]
    assert table.scan().count() == count


def test_unused_lookup_files_are_removed(tmp_path: Path) -> None:
    rounds = ManualWriter(tmp_path, {"lookup.cache-file-retention": "1 min"})
    for step in range(4):
        rounds.take(2_000 if step == 0 else 6)
    assert copies_of(tmp_path)
    later = rounds.table.engine.clock.now_millis() + 61_000
    copies = rounds.writer._compaction._copies  # type: ignore[union-attr]
    assert copies is not None
    copies._engine = evolve(copies._engine, clock=type("Later", (), {"now_millis": lambda _: later})())
    copies.begin([], lambda key: rounds.writer._compaction._live_names(key))  # type: ignore[union-attr]
    assert copies_of(tmp_path) == []
    rounds.writer.close()


def test_a_deleted_lookup_file_is_replaced_by_a_read(tmp_path: Path) -> None:
    rounds = ManualWriter(tmp_path, {})
    for step in range(5):
        rounds.take(2_000 if step == 0 else 6)
        for copy in copies_of(tmp_path):
            copy.unlink()
    assert copies_made(rounds.table) > 1
    rounds.writer.close()


def test_without_local_disk_lookups_read_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_disk_full(*_: object) -> None:
        raise StorageError("disk", "is full")

    monkeypatch.setattr(LocalTempStore, "store", raise_disk_full)
    rounds = ManualWriter(tmp_path, {})
    assert [rounds.take(2_000 if step == 0 else 6) for step in range(5)] == [0] * 5
    rounds.writer.close()
    assert rounds.table.scan().count() > 100


def test_lookup_files_are_not_pickled_and_are_deleted_with_their_writer(tmp_path: Path) -> None:
    rounds = ManualWriter(tmp_path, {})
    for step in range(4):
        rounds.take(2_000 if step == 0 else 6)
    assert copies_of(tmp_path)
    assert pickle.loads(pickle.dumps(LookupCache(rounds.table.context))) is None
    del rounds
    gc.collect()
    assert copies_of(tmp_path) == []
