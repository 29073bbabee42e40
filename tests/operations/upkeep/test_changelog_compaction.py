"""Compactions that look up and tell: the rows stay, what they tell leads from state to state, in any windows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import paimon
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.manifest.entries import DataFileMeta, FileSource, ManifestEntry
from paimon.domain.merge.registry import ENGINES
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.operations.commit.base import CommitBase
from paimon.operations.maintain.rewriting import read
from paimon.operations.read.manifests import read_manifest, read_manifest_list
from paimon.operations.read.snapshots import latest_snapshot
from paimon.ports.engine import MemoryBudget
from paimon.testing.faulty_files import Fault, FaultyFiles

T = TypeVar("T")
R = TypeVar("R")
DDL = "k INT NOT NULL, s INT, v STRING, w DOUBLE"
Rows = list[dict[str, Any]]
ROW = st.fixed_dictionaries({
    "k": st.integers(0, 12), "s": st.none() | st.integers(0, 3), "v": st.none() | st.text("xy", max_size=2),
    "w": st.none() | st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
})  # fmt: skip
STEPS = st.lists(st.lists(ROW, min_size=1, max_size=8) | st.booleans(), min_size=2, max_size=9)
"""Rows to write, or a compaction (True: a full one)."""
DEDUPLICATE: list[dict[str, str]] = [{}, {"sequence.field": "s"}]
OTHERS: dict[str, list[dict[str, str]]] = {
    "partial-update": [{}, {"fields.s.sequence-group": "v"}, {"sequence.field": "s"}],
    "aggregation": [{"fields.s.aggregate-function": "sum", "fields.v.aggregate-function": "listagg"}],
    "first-row": [{}],
}
TREES: list[dict[str, str]] = [
    {},
    {"num-sorted-run.compaction-trigger": "2", "compaction.max-size-amplification-percent": "9999"},
    {"num-sorted-run.compaction-trigger": "2", "compaction.size-ratio": "0", "num-levels": "4",
     "compaction.max-size-amplification-percent": "9999", "target-file-size": "1 b"},
    {"file.format": "avro", "file.format.per.level": "0:orc", "compaction.small-file-ratio": "0"},
    {"changelog-file.format": "avro", "changelog-file.stats-mode": "none", "data-file.thin-mode": "true"},
]  # fmt: skip


def created(home: Path | str, **options: str) -> paimon.Table:
    catalog = paimon.connect(home)
    catalog.create_database("db", exist_ok=True)
    return catalog.create_table(
        "db.t", DDL, primary_keys=["k"], options={"bucket": "1", "write-only": "true", **options}
    )


def wrote(table: paimon.Table, rows: Rows) -> None:
    table.write([{"s": None, "v": None, "w": None, "op": "+I", **row} for row in rows], kind_column="op")


def cramped(table: paimon.Table, budget: int) -> paimon.Table:
    """The table on a small budget: windows of few rows."""
    return evolve(table, engine=evolve(table.engine, memory=MemoryBudget(budget)))


def plain(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(repr(row[name]) for name in "ksvw")


def rows_of(table: paimon.Table) -> dict[int, tuple[str, ...]]:
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["k"] for row in rows}) == len(rows)
    return {row["k"]: plain(row) for row in rows}


def applied(state: dict[int, tuple[str, ...]], changes: Sequence[dict[str, Any]]) -> dict[int, tuple[str, ...]]:
    """The state after changes, each of which must fit what it finds."""
    state = dict(state)
    for change in changes:
        held = state.pop(change["k"], None)
        if change["_row_kind"] in ("-U", "-D"):
            assert held == plain(change), "what is taken away was there"
        else:
            assert held is None, "what comes was not there"
            state[change["k"]] = plain(change)
    return state


def files(table: paimon.Table) -> list[DataFileMeta]:
    snapshot = latest_snapshot(table.engine, table.definition.paths)
    return [e.file for e in CommitBase(table.engine, table.definition, snapshot).live(lambda _: True)]


def changelog_entries(table: paimon.Table) -> list[ManifestEntry]:
    snapshot = table.snapshot()
    assert snapshot is not None and snapshot.changelog_manifest_list is not None
    metas = read_manifest_list(table.engine, table.definition, snapshot.changelog_manifest_list)
    return [e for m in metas for e in read_manifest(table.engine, table.definition, m.file_name)]


@pytest.fixture(autouse=True)
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_LEAST_ROWS", 1)


def engines_and_producers() -> list[tuple[str, str]]:
    assert set(ENGINES) == {"deduplicate", *OTHERS}, "a new engine wants its options here"
    return [(e, p) for e in sorted(ENGINES) for p in ("lookup", "full-compaction") if (e, p) != ("first-row", FULL)]


FULL = "full-compaction"


def without_negative_zero(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "w": None if row["w"] is None else row["w"] + 0.0}


@pytest.mark.parametrize(("engine", "producer"), engines_and_producers())
@settings(max_examples=4, deadline=None)
@given(data=st.data(), steps=STEPS, budget=st.sampled_from([600, 3_000, 1 << 20]))
def test_what_is_told_leads_from_state_to_state(
    engine: str, producer: str, data: st.DataObject, steps: list[Rows | bool], budget: int
) -> None:
    merging = data.draw(st.sampled_from(OTHERS.get(engine, DEDUPLICATE)))
    options = {"merge-engine": engine, "changelog-producer": producer, **merging, **data.draw(st.sampled_from(TREES))}
    options["changelog-producer.row-deduplicate"] = data.draw(st.sampled_from(["true", "false"]))
    if any("orc" in value for value in options.values()):  # as Java's, our ORC reader gives 0.0 for -0.0
        steps = [step if isinstance(step, bool) else [without_negative_zero(row) for row in step] for step in steps]
    with tempfile.TemporaryDirectory() as home:
        table = created(home, **options)
        uncompacted = created(f"{home}/plain", **{"merge-engine": engine, **merging, "changelog-producer": "none"})
        told: dict[int, tuple[str, ...]] = {}
        model: dict[int, tuple[str, ...]] = {}
        for step in [*steps, True]:
            if isinstance(step, list):
                # A delete that compaction dropped no longer holds off rows that come later with a smaller sequence.
                deletes = engine == "deduplicate" and "sequence.field" not in merging
                kinds = data.draw(st.sampled_from([["+I"], ["+I", "-D"]])) if deletes else ["+I"]
                rows = [{**row, "op": kinds[i % len(kinds)]} for i, row in enumerate(step)]
                if "fields.s.sequence-group" in merging:  # what has no sequence is merged away, unless alone
                    rows = [{**row, "s": row["s"] or 0} for row in rows]
                wrote(table, rows)
                wrote(uncompacted, rows)
                model = {**{row["k"]: plain(row) for row in reversed(step)}, **model}
                continue
            done = cramped(table, budget).compact(full=step)
            if done.snapshot_ids:
                changes = table.changes(after=done.snapshot_ids[0] - 1).to_arrow().to_pylist()
                told = applied(told, changes)
            after = model if engine == "first-row" else rows_of(uncompacted)
            assert rows_of(table) == after, "what nobody ever compacted"
            if producer == "lookup" or step:
                assert told == after, "the changes make the state"
            top = max((f.level for f in files(table)), default=0)
            assert all(f.delete_row_count == 0 for f in files(table) if f.level == top > 0)


@settings(max_examples=4, deadline=None)
@given(
    steps=STEPS, tree=st.sampled_from(TREES), engine=st.sampled_from(["partial-update", "aggregation", "deduplicate"])
)
def test_forced_lookups_keep_the_rows(steps: list[Rows | bool], tree: dict[str, str], engine: str) -> None:
    more = {"fields.s.aggregate-function": "sum"} if engine == "aggregation" else {}
    with tempfile.TemporaryDirectory() as home:
        table = created(f"{home}/a", **{"merge-engine": engine, "force-lookup": "true", **more, **tree})
        uncompacted = created(f"{home}/b", **{"merge-engine": engine, **more})
        for step in [*steps, False]:
            if isinstance(step, list):
                wrote(table, step)
                wrote(uncompacted, step)
                continue
            table.compact(full=step)
            assert rows_of(table) == rows_of(uncompacted)
            assert not [f for f in files(table) if f.level == 0], "level 0 is always taken"


def test_what_a_lookup_compaction_commits(tmp_path: Path) -> None:
    table = created(
        tmp_path, **{
            "changelog-producer": "lookup", "changelog-file.prefix": "told-", "changelog-file.format": "orc",
            "changelog-file.stats-mode": "none", "changelog-file.compression": "zstd", "file.format": "parquet",
        }
    )  # fmt: skip
    wrote(table, [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}, {"k": 3, "v": "c"}])
    table.compact()
    wrote(table, [{"k": 1, "v": "A"}, {"k": 2, "op": "-D"}, {"k": 4, "v": "d"}, {"k": 9, "op": "-D"}])
    done = table.compact()
    snapshot = table.snapshot()
    assert snapshot is not None and done.snapshot_ids == (4,)
    assert (snapshot.commit_kind, snapshot.changelog_record_count) == (CommitKind.COMPACT, 4)
    (entry,) = changelog_entries(table)
    assert entry.file.file_name.startswith("told-") and entry.file.file_name.endswith(".orc")
    assert (entry.file.row_count, entry.file.delete_row_count) == (4, 2)
    assert (entry.file.file_source, entry.file.level) == (FileSource.APPEND, 5)
    assert entry.file.value_stats_cols == ()
    changes = table.changes(after=3).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["k"], c["v"]) for c in changes] == [
        ("-U", 1, "a"), ("+U", 1, "A"), ("-D", 2, "b"), ("+I", 4, "d"),
    ]  # fmt: skip


def test_updates_that_change_nothing_that_counts_are_left_out(tmp_path: Path) -> None:
    table = created(
        tmp_path, **{"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true",
                     "changelog-producer.row-deduplicate-ignore-fields": "s"}
    )  # fmt: skip
    wrote(table, [{"k": 1, "s": 1, "v": "a", "w": 0.0}, {"k": 2, "s": 1, "v": "a"}])
    table.compact()
    wrote(table, [{"k": 1, "s": 2, "v": "a", "w": -0.0}, {"k": 2, "s": 2, "v": "a"}])
    table.compact()
    changes = table.changes(after=3).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["k"], c["s"]) for c in changes] == [("-U", 1, 1), ("+U", 1, 2)]


def test_a_lookup_goes_below_the_level_that_it_writes_to(tmp_path: Path) -> None:
    table = created(
        tmp_path, **{"changelog-producer": "lookup", "merge-engine": "aggregation",
                     "fields.s.aggregate-function": "sum", "num-sorted-run.compaction-trigger": "9"}
    )  # fmt: skip
    table.write([{"k": k, "s": 1, "v": "x" * 50, "w": None} for k in range(500)])
    table.compact(full=True)
    wrote(table, [{"k": 7, "s": 10}, {"k": 999, "s": 5}])
    table.compact()
    assert {f.level for f in files(table)} == {8, 9}, "the large run stays"
    changes = table.changes(after=3).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["k"], c["s"]) for c in changes] == [("-U", 7, 1), ("+U", 7, 11), ("+I", 999, 5)]
    wrote(table, [{"k": 7, "s": 100}])
    table.compact()
    changes = table.changes(after=5).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["s"]) for c in changes] == [("-U", 11), ("+U", 111)], "not counted twice"


def test_a_large_file_moves_while_its_changes_are_told(tmp_path: Path) -> None:
    for producer in ("lookup", FULL):
        table = created(tmp_path / producer, **{"changelog-producer": producer, "target-file-size": "1 b"})
        wrote(table, [{"k": 1, "v": "a"}])
        (before,) = files(table)
        table.compact(full=True)
        assert files(table) == [evolve(before, level=5)]
        assert [c["_row_kind"] for c in table.changes(after=1).to_arrow().to_pylist()] == ["+I"]


def test_what_stays_as_it_is_is_told_as_it_is(tmp_path: Path) -> None:
    groups = {"merge-engine": "partial-update", "fields.s.sequence-group": "v"}
    table = created(tmp_path, **{"changelog-producer": "lookup", **groups})
    wrote(table, [{"k": 1, "v": "merging would leave this out"}])
    table.compact()
    assert applied({}, table.changes().to_arrow().to_pylist()) == rows_of(table)
    wrote(table, [{"k": 1, "w": 1.0}])
    table.compact()
    assert applied({}, table.changes().to_arrow().to_pylist()) == rows_of(table)


def test_first_row_keeps_the_first_and_tells_it_once(tmp_path: Path) -> None:
    table = created(tmp_path, **{"merge-engine": "first-row", "changelog-producer": "lookup"})
    wrote(table, [{"k": 1, "v": "a"}, {"k": 1, "v": "b"}])
    assert rows_of(table) == {}, "level 0 is not looked at"
    table.compact()
    wrote(table, [{"k": 1, "v": "c"}, {"k": 2, "v": "d", "op": "+U"}])
    table.compact()
    assert [(r["k"], r["v"]) for r in table.scan().to_arrow().to_pylist()] == [(1, "a"), (2, "d")]
    changes = table.changes().to_arrow().to_pylist()
    assert [(c["_row_kind"], c["v"]) for c in changes] == [("+I", "a"), ("+I", "d")]


def test_wherever_a_compaction_fails_neither_rows_nor_changes_are_left(tmp_path: Path) -> None:
    options = {"changelog-producer": "lookup", "merge-engine": "partial-update", "target-file-size": "1 b"}
    table = created(tmp_path, **options, **{"num-sorted-run.compaction-trigger": "9"})
    wrote(table, [{"k": k, "s": k} for k in range(5)])
    table.compact(full=True)
    for k in range(2):
        wrote(table, [{"k": k, "v": "new"}])
    before = {p for p in Path(table.location).rglob("*") if p.is_file()}
    names = [p.name for p in before]
    for failing in range(100):
        files_ = FaultyFiles(table.engine.files, at_new_file(failing, names))
        faulty = evolve(table, engine=evolve(table.engine, files=files_, executor=InOrder()))
        try:
            assert faulty.compact().files_after == 1
            break
        except StorageError:
            assert {p for p in Path(table.location).rglob("*") if p.is_file()} == before
    assert failing >= 4, "files of both kinds were to fail"
    assert [c["_row_kind"] for c in table.changes(after=4).to_arrow().to_pylist()] == ["-U", "+U"] * 2


class InOrder:
    """An executor of this thread."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        return map(function, tasks)


def at_new_file(number: int, names: Sequence[str]) -> Callable[[str, str], Fault | None]:
    """Fails the n-th making or closing of a file in a bucket."""
    left = iter([*[None] * number, Fault.FAILS])

    def plan(operation: str, path: str) -> Fault | None:
        made = "/bucket-" in path and operation in ("create", "close") and path.rpartition("/")[2] not in names
        return next(left, None) if made else None

    return plan


KEYS: dict[str, Callable[[int], Any]] = {
    "BIGINT": lambda n: n - 150,
    "STRING": lambda n: f"ä{n:03}",
    "BYTES": lambda n: bytes([255 - n // 256, n % 256]),
    "DECIMAL(20, 3)": lambda n: Decimal(n - 150).scaleb(-3),
    "DOUBLE": lambda n: (n - 150) / 7,
    "DATE": lambda n: date(1969, 8, 1) + timedelta(days=n),
    "TIMESTAMP(3)": lambda n: datetime(1969, 12, 31, 23) + timedelta(milliseconds=n * 70_007),
    "TIMESTAMP(9)": lambda n: datetime(1969, 12, 31, 23) + timedelta(microseconds=n * 70_000_007),
    "TIME": lambda n: time(n // 60, n % 60),
}


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize("key_type", KEYS)
def test_keys_of_any_type_are_found_in_files_of_many_blocks(tmp_path: Path, key_type: str, file_format: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {"bucket": "1", "write-only": "true", "changelog-producer": "lookup", "file.block-size": "1 kb",
               "file.format": file_format, "primary-key.allow-floating": "true"}  # fmt: skip
    ddl = f"k {key_type} NOT NULL, j INT NOT NULL, v STRING"
    table = catalog.create_table("db.t", ddl, primary_keys=["k", "j"], options=options)
    key = KEYS[key_type]
    table.write([{"k": key(n), "j": n % 3, "v": f"{n:0100d}"} for n in range(300)])
    table.compact(full=True)
    asked = [*range(5, 300, 11), 1_000]
    table.write([{"k": key(n % 301), "j": n % 3 if n < 300 else 99, "v": "new"} for n in asked])
    table.compact()
    told = [c for c in table.changes(after=3).to_arrow().to_pylist() if c["_row_kind"] != "+U"]
    assert [c["v"] for c in told if c["_row_kind"] == "-U"] == [f"{n:0100d}" for n in sorted(asked[:-1], key=key)]
    assert [(c["_row_kind"], c["j"]) for c in told if c["j"] == 99] == [("+I", 99)]


def test_full_compactions_with_forced_lookups_lose_nothing_below(tmp_path: Path) -> None:
    table = created(
        tmp_path, **{"changelog-producer": FULL, "force-lookup": "true", "merge-engine": "aggregation",
                     "fields.s.aggregate-function": "sum", "num-sorted-run.compaction-trigger": "9"}
    )  # fmt: skip
    table.write([{"k": k, "s": 1, "v": "x" * 50, "w": None} for k in range(500)])
    table.compact(full=True)
    for _ in range(2):
        wrote(table, [{"k": 7, "s": 10}])
        table.compact()
    assert {f.level for f in files(table)} == {7, 8, 9}
    assert table.scan(["s"], "k = 7").to_arrow()["s"].to_pylist() == [21]
    assert table.changes(after=2).count() == 0, "nothing reached the top"
    done = table.compact(full=True)
    changes = table.changes(after=done.snapshot_ids[0] - 1).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["k"], c["s"]) for c in changes] == [("-U", 7, 1), ("+U", 7, 21)]


def test_lookups_of_a_table_many_times_the_budget_stay_small(tmp_path: Path) -> None:
    # A file's open block is held besides: small here, so that the bound shows.
    options = {"changelog-producer": "lookup", "merge-engine": "aggregation", "file.block-size": "1 mb"}
    table = created(tmp_path, **options, **{"fields.s.aggregate-function": "sum"})

    def some(keys: range) -> pa.Table:
        numbers, text = pa.array(keys, pa.int32()), [f"{k:040d}" for k in keys]
        return pa.table({"k": numbers, "s": numbers, "v": text, "w": pa.nulls(len(keys), pa.float64())})

    table.write(some(range(500_000)))
    table.compact(full=True)
    for start in range(3):
        table.write(some(range(start, 500_000, 5)))
    whole = table.scan().to_arrow().nbytes
    script = (
        "import sys, pyarrow as pa, paimon\n"
        "t = paimon.connect(sys.argv[1], memory_budget='4 mb').table('db.t')\n"
        "assert t.compact().rows == 300_000\n"
        "print(pa.default_memory_pool().max_memory())"
    )
    out = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert whole > 30_000_000
    assert int(out.stdout) < 16_000_000, f"{int(out.stdout):,} of {whole:,} bytes"


def test_a_delete_that_an_engine_cannot_take_is_refused_when_it_is_looked_up(tmp_path: Path) -> None:
    table = created(tmp_path, **{"merge-engine": "first-row"})
    with pytest.raises(InvalidRequest, match="first-row"):
        wrote(table, [{"k": 1, "op": "-D"}])
        table.compact()
