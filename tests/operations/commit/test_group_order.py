"""Threads that write the same keys and share snapshots: reads show the rows as if they had been committed in turn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paused_signals import PausedSignal
from support.simulated_engines import assemble

import paimon.operations.commit.group as groups
from paimon.adapters.commit_groups import ThreadCommitGroups
from paimon.builders.direct_writes import WriteResult
from paimon.domain.identifier import Identifier
from paimon.domain.paths import TablePaths
from paimon.domain.types.ddl import parse_columns
from paimon.operations.commit.base import CommitBase
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.ports.engine import Engine
from paimon.table import Table, open_at
from paimon.testing.faulty_files import FaultyFiles
from paimon.testing.interleaving import ConstantRandom, Interleaving, SequentialIds, SimulatedClock
from paimon.testing.memory_files import MemoryFiles

ROOT = "/lake/d.db/t"
KEYED = {"bucket": "1", "file.format": "avro", "write-only": "true"}


class Writers:
    """Threads of two processes that write to one table; `order` chooses which one takes the next step."""

    def __init__(self, order: Sequence[int], options: dict[str, str], is_keyed: bool = True) -> None:
        self.interleaving, self.memory, self.ids = Interleaving(), MemoryFiles(), SequentialIds()
        self._order, self._steps = list(order), 0
        self.results: dict[int, WriteResult] = {}
        self.is_keyed = is_keyed
        keys = ("id",) if is_keyed else ()
        declared = TableDeclaration(parse_columns("id INT NOT NULL, writer INT"), keys, options=options)
        create_table(self._open_engine(self.memory), TablePaths(ROOT), declared)

    def _open_engine(self, files: Any) -> Engine:
        engine = assemble(files, SimulatedClock(self.interleaving), self.ids, ConstantRandom())
        return evolve(engine, commit_groups=ThreadCommitGroups(lambda: PausedSignal(self.interleaving)))

    def open_table(self, files: Any = None) -> Table:
        table = open_at(self._open_engine(files or self.memory), ROOT, Identifier("d", "t"), {})
        assert isinstance(table, Table)
        return table

    def run(self, keys: Sequence[Sequence[int]]) -> None:
        """Let writer n write the keys of entry n, in one commit."""

        def pause(operation: str, path: str) -> None:
            self.interleaving.pause()

        def write(table: Table, writer: int) -> None:
            columns = [keys[writer], [writer] * len(keys[writer])]
            self.results[writer] = table.write(pa.table([pa.array(c, pa.int32()) for c in columns], ["id", "writer"]))

        tables = [self.open_table(FaultyFiles(self.memory, pause)) for _ in range(2)]
        actors = {f"w{n}": lambda n=n: write(tables[n % 2], n) for n in range(len(keys))}
        ends = self.interleaving.run(actors, self._choose)
        assert set(ends.values()) == {None}, ends

    def _choose(self, names: Sequence[str]) -> str:
        self._steps += 1
        shift, place = divmod(self._steps, len(self._order))
        return names[(self._order[place] + shift) % len(names)]

    def check(self, keys: Sequence[Sequence[int]]) -> None:
        """Each snapshot shows, for each key, a writer of the last snapshot that has one."""
        table, snapshots = self.open_table(), {n: r.snapshot_ids[0] for n, r in self.results.items()}
        for snapshot_id in sorted(set(snapshots.values())):
            rows = table.scan(snapshot=snapshot_id).to_arrow().to_pylist()
            writers = [n for n in snapshots if snapshots[n] <= snapshot_id]
            if not self.is_keyed:
                assert sorted((r["id"], r["writer"]) for r in rows) == sorted((k, n) for n in writers for k in keys[n])
                continue
            assert {r["id"] for r in rows} == {k for n in writers for k in keys[n]}
            for row in rows:
                newest = max(snapshots[n] for n in writers if row["id"] in keys[n])
                assert snapshots[row["writer"]] == newest, (row, snapshots)
        if self.is_keyed:
            check_numbers(table)


def check_numbers(table: Table) -> None:
    """No two files with common keys have common sequence numbers."""
    newest = latest_snapshot(table.context)
    entries = CommitBase(table.context, newest).read_live_files(lambda _: True)
    for one, other in ((a.file, b.file) for a, b in combinations(entries, 2) if a.bucket == b.bucket):
        if max(one.min_key, other.min_key) <= min(one.max_key, other.max_key):
            first, second = sorted([one, other], key=lambda f: f.min_sequence_number)
            assert first.max_sequence_number < second.min_sequence_number, "same numbers"


orders = st.lists(st.integers(0, 5), min_size=1, max_size=40)
written = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), min_size=3, max_size=6)


@settings(max_examples=12, deadline=None)
@given(orders, written, st.sampled_from([KEYED, KEYED | {"changelog-producer": "input"}, KEYED | {"bucket": "2"}]))
def test_the_rows_of_a_group_are_ordered_as_its_commits(
    order: list[int], keys: list[list[int]], options: dict[str, str]
) -> None:
    writers = Writers(order, options)
    writers.run(keys)
    writers.check(keys)


ROUND, HOT = [1, 2, 3, 4, 5, 0, 3, 1, 2, 5, 4], [[7], [7, 8], [8, 7], [7], [9], [9, 7]]


@pytest.mark.parametrize("options", [{"bucket": "-1"}, {"bucket": "-1", "row-tracking.enabled": "true"}])
def test_appends_share_snapshots(options: dict[str, str]) -> None:
    writers = Writers(ROUND, {**KEYED, **options}, is_keyed=False)
    writers.run(HOT)
    writers.check(HOT)
    assert len({r.snapshot_ids for r in writers.results.values()}) < len(HOT)
    if "row-tracking.enabled" in options:
        ids = writers.open_table().scan(["_ROW_ID"]).to_arrow()["_ROW_ID"].to_pylist()
        assert sorted(ids) == list(range(sum(map(len, HOT))))


def test_a_group_that_does_not_compare_the_numbers_of_its_members_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: rows of a key have equal numbers in one snapshot, so that any may be the newest."""
    monkeypatch.setattr(groups, "check_order", lambda *_: None)
    writers = Writers(ROUND, KEYED)
    writers.run(HOT)
    with pytest.raises(AssertionError, match="same numbers"):
        writers.check(HOT)
