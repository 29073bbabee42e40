"""Local copies of the files in which a writer looks keys up: the same answers for less reading, within their limits."""

from __future__ import annotations

import gc
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve

import paimon
from paimon.adapters.observers import CountingObserver
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.errors import StorageError
from paimon.domain.row.binary_row import serialize
from paimon.operations.maintain.rewriting import local_copies
from paimon.operations.maintain.rewriting.local_copies import LocalCopies
from paimon.operations.write.writer import TableWriter

SMALL = {"bucket": "2", "target-file-size": "20 kb", "num-sorted-run.compaction-trigger": "4"}
CASES: dict[str, dict[str, str]] = {
    "lookup": {"changelog-producer": "lookup"},
    "sums": {"changelog-producer": "lookup", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "vectors": {"deletion-vectors.enabled": "true", "file.format": "orc"},
    "vectors by sequence": {"deletion-vectors.enabled": "true", "sequence.field": "n", "file.format": "avro"},
    "first-row": {"merge-engine": "first-row", "changelog-producer": "lookup"},
}  # fmt: skip


def created(home: Path, options: dict[str, str]) -> paimon.Table:
    catalog = paimon.connect(home)
    catalog.create_database("db")
    ddl = "a STRING NOT NULL, b DOUBLE NOT NULL, n INT, v STRING"
    given = {**SMALL, "primary-key.allow-floating": "true", **options}
    table = catalog.create_table("db.t", ddl, primary_keys=["a", "b"], options=given)
    engine = evolve(table.engine, observer=CountingObserver(), temp=LocalTempStore(str(home)))
    return type(table)(engine, table.definition)


def copies_made(table: paimon.Table) -> int:
    assert isinstance(table.engine.observer, CountingObserver)
    return table.engine.observer.metrics["lookup.local_copies"]


def copies_of(home: Path) -> list[Path]:
    return list(home.rglob("kept-*.arrow"))


def rows_of(turn: int, count: int = 40) -> list[dict[str, Any]]:
    chance = random.Random(turn)
    numbers = [-0.0, 0.0, float("nan"), *(i / 2 for i in range(900))]
    return [
        {"a": chance.choice("xyz"), "b": chance.choice(numbers), "n": turn, "v": chance.randbytes(20).hex()}
        for i in range(count)
    ]


def streamed(table: paimon.Table, turns: int, first: int = 1) -> None:
    """One writer and a commit a turn: at first many rows, then a few."""
    builder = table.new_stream_write_builder("u")
    with builder.new_write() as writer:
        for turn in range(first, first + turns):
            writer.write(rows_of(turn, 2_000 if turn == 1 else 6))
            builder.new_commit().commit(turn, writer.prepare_commit(turn))


def outcome(table: paimon.Table) -> tuple[Any, ...]:
    changes = table.changes().to_arrow().to_pylist() if "changelog-producer" in table.options else []
    return repr(changes), repr(table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("case", CASES)
def test_what_is_told_and_kept_is_the_same_without_copies(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_copies = created(tmp_path / "with", CASES[case])
    streamed(with_copies, 7)
    assert copies_made(with_copies) > 1
    monkeypatch.setattr(local_copies.BucketCopies, "blocks_of", lambda *_: None)
    without = created(tmp_path / "without", CASES[case])
    streamed(without, 7)
    assert copies_made(without) == 0
    assert outcome(with_copies) == outcome(without)
    assert not copies_of(tmp_path)


class Turns:
    """A writer's turns by hand, with a look at what lies on the disk after each."""

    def __init__(self, home: Path, options: dict[str, str]) -> None:
        self.home = home
        self.table = created(home, CASES["lookup"] | options)
        self.writer = TableWriter(self.table.engine, self.table.definition, "u")
        self.turn = 0

    def take(self, count: int = 6) -> int:
        """One turn; answers the bytes of all copies."""
        self.turn += 1
        self.writer.write(pa.Table.from_pylist(rows_of(self.turn, count)))
        commit = self.table.new_stream_write_builder("u").new_commit()
        commit.commit(self.turn, self.writer.prepare_commit(self.turn))
        return sum(p.stat().st_size for p in copies_of(self.home))


def test_a_file_is_copied_when_it_is_asked_for_again_and_goes_when_it_is_compacted_away(tmp_path: Path) -> None:
    turns = Turns(tmp_path, {"bucket": "1", "target-file-size": "1 mb"})
    assert turns.take(2_000) == 0  # nothing above
    assert turns.take() == 0  # asked for once
    assert turns.take() > 0
    assert copies_made(turns.table) == 1
    copy = copies_of(tmp_path)
    turns.take()
    assert copies_of(tmp_path) == copy
    turns.writer.compact(serialize((), ()), 0, True)
    turns.take()
    turns.take()
    assert copies_of(tmp_path) == []
    turns.take()
    assert copies_of(tmp_path) != []
    turns.writer.close()
    assert copies_of(tmp_path) == []


@pytest.mark.parametrize("limit", [0, 60_000, 250_000])
def test_copies_take_no_more_disk_than_they_may(tmp_path: Path, limit: int) -> None:
    turns = Turns(tmp_path, {"lookup.cache-max-disk-size": f"{limit} b"})
    taken = [turns.take(2_000 if turn == 0 else 6) for turn in range(12)]
    assert max(taken) <= limit
    assert (max(taken) > 0) == (limit > 0)
    made = copies_made(turns.table)
    assert made <= 12  # what finds no room is not copied again and again
    turns.writer.close()


def test_copies_that_nobody_asks_for_go(tmp_path: Path) -> None:
    turns = Turns(tmp_path, {"lookup.cache-file-retention": "1 min"})
    for turn in range(4):
        turns.take(2_000 if turn == 0 else 6)
    assert copies_of(tmp_path)
    later = turns.table.engine.clock.now_millis() + 61_000
    copies = turns.writer._compaction._copies  # type: ignore[union-attr]
    assert copies is not None
    copies._engine = evolve(copies._engine, clock=type("Later", (), {"now_millis": lambda _: later})())
    copies.begin([], lambda key: turns.writer._compaction._live_names(key))  # type: ignore[union-attr]
    assert copies_of(tmp_path) == []
    turns.writer.close()


def test_a_copy_that_somebody_takes_away_is_done_without(tmp_path: Path) -> None:
    turns = Turns(tmp_path, {})
    for turn in range(5):
        turns.take(2_000 if turn == 0 else 6)
        for copy in copies_of(tmp_path):
            copy.unlink()
    assert copies_made(turns.table) > 1
    turns.writer.close()


def test_without_local_disk_lookups_read_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StorageError("disk", "is full")

    monkeypatch.setattr(LocalTempStore, "keep", full)
    turns = Turns(tmp_path, {})
    assert [turns.take(2_000 if turn == 0 else 6) for turn in range(5)] == [0] * 5
    turns.writer.close()
    assert turns.table.scan().count() > 100


def test_copies_stay_where_they_are_and_go_with_their_writer(tmp_path: Path) -> None:
    turns = Turns(tmp_path, {})
    for turn in range(4):
        turns.take(2_000 if turn == 0 else 6)
    assert copies_of(tmp_path)
    assert pickle.loads(pickle.dumps(LocalCopies(turns.table.engine, turns.table.definition))) is None
    del turns
    gc.collect()
    assert copies_of(tmp_path) == []
