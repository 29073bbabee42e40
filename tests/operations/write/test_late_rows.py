"""Rows of a write that is committed after others are the newest, whatever their sequence numbers were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_nightly, mark_products
from support.simulated_engines import assemble

import paimon
from paimon.builders.direct_writes import commit_messages
from paimon.builders.table_write import TableWrite
from paimon.domain.identifier import Identifier
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.ddl import parse_columns
from paimon.operations.commit import commit as commit_module
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.operations.write.commit_rows import join_messages
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO
from paimon.table import open_at
from paimon.testing.faulty_files import FaultyFiles
from paimon.testing.interleaving import ConstantRandom, Interleaving, SequentialIds, SimulatedClock
from paimon.testing.memory_files import MemoryFiles

LAYOUTS: dict[str, dict[str, Any]] = {
    "fixed": {"bucket": 1},
    "buckets": {"bucket": 3},
    "dynamic": {"bucket": -1},
    "vectors": {"bucket": 1, "deletion-vectors.enabled": True},
    "lookup": {"bucket": 1, "changelog-producer": "lookup"},
    "input": {"bucket": 1, "changelog-producer": "input"},
    "full changelog": {"bucket": 1, "changelog-producer": "full-compaction"},
    "write-only": {"bucket": 1, "write-only": True},
    "partial update": {"bucket": 1, "merge-engine": "partial-update"},
    "aggregation": {"bucket": 1, "merge-engine": "aggregation", "fields.v.aggregate-function": "last_value"},
    "orc": {"bucket": 1, "file.format": "orc"},
    "avro": {"bucket": 1, "file.format": "avro"},
    "thin": {"bucket": 1, "data-file.thin-mode": True},
}


def make_table(tmp_path: Path, options: dict[str, Any]) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT NOT NULL, v BIGINT", primary_keys=["id"], options=options)
    table.write([{"id": 1, "v": 10}, {"id": 2, "v": 20}])
    return table


def read(table: paimon.Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist())


def commit_others_first(monkeypatch: pytest.MonkeyPatch, *actions: Callable[[], object]) -> None:
    """Let others commit before the first attempts of a commit, one action each."""
    waiting, is_other = list(actions), list[bool]()

    def publish(real: Callable[..., object], *given: Any) -> Any:
        if waiting and not is_other:
            is_other.append(True)
            waiting.pop(0)()
            is_other.clear()
        return real(*given)

    for name in ("publish_change", "publish_in_group"):
        monkeypatch.setattr(commit_module, name, partial(publish, getattr(commit_module, name)))


def update_twice(table: paimon.Table, start: int) -> Callable[[], object]:
    def act() -> None:
        for value in (start, start + 1):
            table.with_options({}).write([{"id": 1, "v": value}])

    return act


@pytest.mark.parametrize(("name", "earlier_rows"), mark_products(LAYOUTS, [0, 5], always=["fixed", "dynamic",
    "vectors", "lookup", "partial update", "aggregation", "orc"]))  # fmt: skip
def test_the_last_commit_has_the_newest_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, earlier_rows: int
) -> None:
    table = make_table(tmp_path, LAYOUTS[name])
    commit_others_first(monkeypatch, update_twice(table, 100), update_twice(table, 200))
    rows = [{"id": 100 + i, "v": 0} for i in range(earlier_rows)] + [{"id": 1, "v": 500}]
    written = table.write(rows)
    assert written.rows == len(rows)
    expected = [(1, 500), (2, 20), *((100 + i, 0) for i in range(earlier_rows))]
    assert read(table) == expected
    table.write([{"id": 2, "v": 21}])
    expected[1] = (2, 21)
    assert read(table) == expected
    table.with_options({"write-only": False}).compact(full=True)
    assert read(table) == expected
    assert table.maintain.check(deep=True).faults == ()
    assert table.maintain.remove_orphans(timedelta(0), allow_young=True).num_rows == 0


def test_changes_show_the_late_row_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(tmp_path, {"bucket": 1, "changelog-producer": "lookup"})
    commit_others_first(monkeypatch, update_twice(table, 100))
    table.write([{"id": 1, "v": 500}])
    table.compact(full=True)
    state: dict[int, int] = {}
    for row in table.changes().to_arrow().to_pylist():
        if row["_row_kind"] in ("+I", "+U"):
            state[row["id"]] = row["v"]
    assert state == {1: 500, 2: 20}


def test_deletes_of_a_late_write_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(tmp_path, {"bucket": 1})
    commit_others_first(monkeypatch, update_twice(table, 100))
    table.write([{"id": 1, "v": 0, "k": "-D"}], kind_column="k")
    assert read(table) == [(2, 20)]


def test_snapshots_that_expired_meanwhile_do_not_hide_newer_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path, {"bucket": 1, "write-only": True})

    def act() -> None:
        update_twice(table, 100)()
        table.maintain.expire_snapshots(retain_max=1, retain_min=1)

    commit_others_first(monkeypatch, act)
    table.write([{"id": 1, "v": 500}])
    assert [snapshot.id for snapshot in table.snapshots()] == [3, 4]
    assert read(table) == [(1, 500), (2, 20)]


def test_rows_above_the_limit_stay_as_java_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(tmp_path, {"bucket": 1, "commit.late-rows.max-size": "1 b"})
    commit_others_first(monkeypatch, update_twice(table, 100))
    table.write([{"id": 1, "v": 500}])
    assert read(table) == [(1, 101), (2, 20)]
    commit_others_first(monkeypatch, update_twice(table, 100))
    table.with_options({"commit.late-rows.max-size": "64 mb"}).write([{"id": 1, "v": 500}])
    assert read(table) == [(1, 500), (2, 20)]


def test_messages_that_a_program_keeps_stay_as_they_are(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"bucket": 1})
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write([{"id": 1, "v": 500}])
        messages = writer.prepare_commit()
    update_twice(table, 100)()
    builder.new_commit().commit(messages)
    assert read(table) == [(1, 101), (2, 20)]


@pytest.mark.parametrize("options", [{"sequence.field": "v"}, {}])
def test_files_are_written_again_only_if_numbers_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    table = make_table(tmp_path, {"bucket": 1, "write-only": True, **options})
    other_keys = [{"id": 7, "v": 7}] if not options else [{"id": 1, "v": 7}]
    commit_others_first(monkeypatch, lambda: table.with_options({}).write(other_keys))
    table.write([{"id": 1, "v": 500}])
    files = table.system_table("files").scan().to_arrow().to_pylist()
    assert sorted(f["max_sequence_number"] for f in files) == [1, 2, 2]


class Race:
    """Writers of the same keys on one storage, whose steps are interleaved in the drawn order."""

    def __init__(self, order: Sequence[int], options: Mapping[str, str]) -> None:
        self._interleaving, self._memory, self._order = Interleaving(), MemoryFiles(), list(order)
        self._ids = SequentialIds()
        self._paths = TablePaths("/lake/d.db/t")
        retries = {"commit.max-retries": "100", "commit.min-retry-wait": "0 ms", "bucket": "1", "file.format": "avro"}
        columns = "id BIGINT NOT NULL, v BIGINT"
        declaration = TableDeclaration(parse_columns(columns), ("id",), options={**retries, **options})
        create_table(self._engine(self._memory), self._paths, declaration)
        self.written: dict[str, dict[int, int | None]] = {}

    def run(self, writes: Sequence[Sequence[Mapping[int, int | None]]]) -> None:
        """Let each writer make its writes, one after the other; None deletes the key."""
        actors = {str(number): partial(self._write_all, number, given) for number, given in enumerate(writes)}
        outcomes = self._interleaving.run(actors, self._choose)
        assert not any(isinstance(outcome, BaseException) for outcome in outcomes.values()), outcomes

    def open_table(self) -> paimon.Table:
        return self._open(self._memory)

    def _write_all(self, writer: int, writes: Sequence[Mapping[int, int | None]]) -> None:
        files = FaultyFiles(self._memory, lambda operation, path: self._interleaving.pause())
        table = self._open(files)
        for number, rows in enumerate(writes):
            user = f"{writer}.{number}"
            self.written[user] = dict(rows)
            kinds = ["-D" if value is None else "+I" for value in rows.values()]
            data = {"id": list(rows), "v": [value or 0 for value in rows.values()], "k": kinds}
            table.write(data, kind_column="k", commit_user=user)

    def _open(self, files: FileIO) -> paimon.Table:
        table = open_at(self._engine(files), "/lake/d.db/t", Identifier("d", "t"), {})
        assert isinstance(table, paimon.Table)
        return table

    def _engine(self, files: FileIO) -> Engine:
        return assemble(files, SimulatedClock(self._interleaving), self._ids, ConstantRandom())

    def _choose(self, names: Sequence[str]) -> str:
        self._order.append(self._order.pop(0))
        return names[self._order[-1] % len(names)]


WRITES = st.lists(
    st.lists(st.dictionaries(st.integers(0, 3), st.integers(1, 99) | st.none(), min_size=1), min_size=1, max_size=3),
    min_size=2,
    max_size=3,
)


@settings(max_examples=40, deadline=None)
@given(
    order=st.lists(st.integers(0, 5), min_size=1, max_size=30),
    writes=WRITES,
    options=st.sampled_from([{}, {"num-sorted-run.compaction-trigger": "2"}, {"deletion-vectors.enabled": "true"}]),
)
def test_the_order_of_commits_decides(
    order: list[int], writes: list[list[dict[int, int | None]]], options: dict[str, str]
) -> None:
    race = Race(order, options)
    race.run(writes)
    table = race.open_table()
    state: dict[int, int | None] = {}
    for snapshot in table.snapshots():
        if snapshot.commit_kind is not CommitKind.COMPACT:
            state |= race.written[snapshot.commit_user]
    expected = sorted((key, value) for key, value in state.items() if value is not None)
    assert read(table) == expected
    table.compact(full=True)
    assert read(table) == expected
    assert table.maintain.check(deep=True).faults == ()


@pytest.mark.parametrize("layout", mark_nightly(["fixed", "input", "aggregation", "orc"], always=["fixed", "input"]))
@pytest.mark.parametrize("gap", [0, 1000])
def test_writers_of_one_commit_share_a_bucket_in_their_order(tmp_path: Path, layout: str, gap: int) -> None:
    """The second writer has the newer row of key 1; another commit comes between both, or before the commit."""
    table = make_table(tmp_path, LAYOUTS[layout]).with_options({"write-only": True})
    messages = []
    for number in range(3):
        with TableWrite(table.context, "me", number_gap=number * gap) as writer:
            writer.write([{"id": n, "v": 100 * number + n} for n in (1, number + 3)])
            messages += writer.prepare_commit()
        if number:
            table.write([{"id": 1, "v": 7}, {"id": 2, "v": number}])
    joined = join_messages(table.context, messages)
    assert len(joined) == 1 and len(joined[0].data.new_files) == 3
    data, changelog = joined[0].data.new_files, joined[0].data.changelog_files
    numbers = [(f.min_sequence_number, f.max_sequence_number) for f in data]
    assert [(f.min_sequence_number, f.max_sequence_number) for f in changelog] == numbers * (layout == "input")
    assert all(Path(joined[0].bucket_path, f.file_name).exists() for f in (*data, *changelog))
    commit_messages(table.new_batch_write_builder("me").new_commit(), joined)
    wanted = [(1, 201), (2, 2), (3, 3), (4, 104), (5, 205)]
    assert read(table) == wanted
    table.compact(full=True)
    assert read(table) == wanted and table.maintain.check().is_whole


def test_writers_of_one_commit_leave_no_files_if_they_cannot_be_joined(tmp_path: Path) -> None:
    """The rows of the third writer, whose numbers are not larger, cannot be read again."""
    table = make_table(tmp_path, {"bucket": 1, "write-only": True})
    before = set(tmp_path.glob("**/data-*"))
    messages = []
    for _ in range(3):
        with TableWrite(table.context, "me") as writer:
            writer.write([{"id": 1, "v": 1}])
            messages += writer.prepare_commit()
    Path(messages[2].bucket_path, messages[2].data.new_files[0].file_name).unlink()
    with pytest.raises(paimon.PaimonError):
        join_messages(table.context, messages)
    assert set(tmp_path.glob("**/data-*")) == before
