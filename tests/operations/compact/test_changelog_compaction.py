"""Compactions with lookups and changelogs: rows do not change, and changes lead from state to state, in any windows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_nightly, mark_products
from support.tables import create_table

import paimon
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.manifest.entries import DataFileMeta, FileSource, ManifestEntry
from paimon.domain.merge.merge_engines import MERGE_ENGINES
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.operations.commit.base import CommitBase
from paimon.operations.data_files import read_data_file
from paimon.operations.metadata.manifests import read_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import latest_snapshot
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
OPTIONS_BY_ENGINE: dict[str, list[dict[str, str]]] = {
    "deduplicate": [{}, {"sequence.field": "s"}],
    "partial-update": [{}, {"fields.s.sequence-group": "v"}, {"sequence.field": "s"}],
    "aggregation": [{"fields.s.aggregate-function": "sum", "fields.v.aggregate-function": "listagg"}],
}
"""The options of the engines that have some."""
TREES: list[dict[str, str]] = [
    {},
    {"num-sorted-run.compaction-trigger": "2", "compaction.max-size-amplification-percent": "9999"},
    {"num-sorted-run.compaction-trigger": "2", "compaction.size-ratio": "0", "num-levels": "4",
     "compaction.max-size-amplification-percent": "9999", "target-file-size": "1 b"},
    {"file.format": "avro", "file.format.per.level": "0:orc", "compaction.small-file-ratio": "0"},
    {"changelog-file.format": "avro", "changelog-file.stats-mode": "none", "data-file.thin-mode": "true"},
]  # fmt: skip


def create_write_only_table(home: Path | str, **options: str) -> paimon.Table:
    return create_table(home, DDL, primary_keys=["k"], options={"bucket": "1", "write-only": "true", **options})


def write_rows(table: paimon.Table, rows: Rows) -> None:
    table.write([{"s": None, "v": None, "w": None, "op": "+I", **row} for row in rows], kind_column="op")


def limit_memory(table: paimon.Table, budget: int) -> paimon.Table:
    """The table on a small budget: windows of few rows."""
    return table.with_engine(evolve(table.engine, memory=MemoryBudget(budget)))


def to_texts(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(repr(row[name]) for name in "ksvw")


def rows_of(table: paimon.Table) -> dict[int, tuple[str, ...]]:
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["k"] for row in rows}) == len(rows)
    return {row["k"]: to_texts(row) for row in rows}


def apply_changes(state: dict[int, tuple[str, ...]], changes: Sequence[dict[str, Any]]) -> dict[int, tuple[str, ...]]:
    """The state after the changes. Each change must fit the state before it."""
    state = dict(state)
    for change in changes:
        previous = state.pop(change["k"], None)
        if change["_row_kind"] in ("-U", "-D"):
            assert previous == to_texts(change), "a retracted row must exist"
        else:
            assert previous is None, "an added row must not exist"
            state[change["k"]] = to_texts(change)
    return state


def files(table: paimon.Table) -> list[DataFileMeta]:
    snapshot = latest_snapshot(table.context)
    return [e.file for e in CommitBase(table.context, snapshot).read_live_files(lambda _: True)]


def changelog_entries(table: paimon.Table) -> list[ManifestEntry]:
    snapshot = table.snapshot()
    assert snapshot is not None and snapshot.changelog_manifest_list is not None
    metas = read_manifest_list(table.context, snapshot.changelog_manifest_list)
    return [e for m in metas for e in read_manifest(table.context, m.file_name)]


@pytest.fixture(autouse=True)
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_data_file, "_LEAST_ROWS", 1)


def engines_and_producers() -> list[tuple[str, str]]:
    return [
        (e, p) for e in sorted(MERGE_ENGINES) for p in ("lookup", "full-compaction") if (e, p) != ("first-row", FULL)
    ]


FULL = "full-compaction"


def normalize_zero(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "w": None if row["w"] is None else row["w"] + 0.0}


@pytest.mark.parametrize(("engine", "producer"), mark_nightly(engines_and_producers(),
    always=[("deduplicate", "lookup"), ("aggregation", "lookup"), ("partial-update", "full-compaction"),
    ("first-row", "lookup")]))  # fmt: skip
@settings(max_examples=4, deadline=None)
@given(data=st.data(), steps=STEPS, budget=st.sampled_from([600, 3_000, 1 << 20]))
def test_each_changelog_leads_to_the_next_state(
    engine: str, producer: str, data: st.DataObject, steps: list[Rows | bool], budget: int
) -> None:
    merging = data.draw(st.sampled_from(OPTIONS_BY_ENGINE.get(engine, [{}])))
    options = {"merge-engine": engine, "changelog-producer": producer, **merging, **data.draw(st.sampled_from(TREES))}
    options["changelog-producer.row-deduplicate"] = data.draw(st.sampled_from(["true", "false"]))
    if any("orc" in value for value in options.values()):  # like Java's, our ORC reader returns 0.0 for -0.0
        steps = [step if isinstance(step, bool) else [normalize_zero(row) for row in step] for step in steps]
    with tempfile.TemporaryDirectory() as home:
        table = create_write_only_table(home, **options)
        uncompacted = create_write_only_table(
            f"{home}/plain", **{"merge-engine": engine, **merging, "changelog-producer": "none"}
        )
        reported: dict[int, tuple[str, ...]] = {}
        model: dict[int, tuple[str, ...]] = {}
        numbers = count()
        for step in [*steps, True]:
            if isinstance(step, list):
                # After compaction drops a delete, a later row with a smaller sequence becomes visible.
                deletes = engine == "deduplicate" and "sequence.field" not in merging
                kinds = data.draw(st.sampled_from([["+I"], ["+I", "-D"]])) if deletes else ["+I"]
                rows = [{**row, "op": kinds[i % len(kinds)]} for i, row in enumerate(step)]
                if "sequence.field" in merging and engine != "deduplicate":
                    # A merged row has the largest sequence of its records. A later record with a smaller one is
                    # merged before all of them, so the result depends on earlier compactions.
                    first = 4 * next(numbers)  # rows of one write come in any order of their sequences
                    rows = [{**row, "s": first + (row["s"] or 0)} for row in rows]
                # A merge ignores a row without a sequence, unless it is the only row of its key.
                if "fields.s.sequence-group" in merging:
                    rows = [{**row, "s": row["s"] or 0} for row in rows]
                write_rows(table, rows)
                write_rows(uncompacted, rows)
                model = {**{row["k"]: to_texts(row) for row in reversed(step)}, **model}
                continue
            done = limit_memory(table, budget).compact(full=step)
            if done.snapshot_ids:
                changes = table.changes(after=done.snapshot_ids[0] - 1).to_arrow().to_pylist()
                reported = apply_changes(reported, changes)
            after = model if engine == "first-row" else rows_of(uncompacted)
            assert rows_of(table) == after, "equals the table that was never compacted"
            if producer == "lookup" or step:
                assert reported == after, "the changes make the state"
            top = max((f.level for f in files(table)), default=0)
            assert all(f.delete_row_count == 0 for f in files(table) if f.level == top > 0)


@settings(max_examples=4, deadline=None)
@given(
    steps=STEPS, tree=st.sampled_from(TREES), engine=st.sampled_from(["partial-update", "aggregation", "deduplicate"])
)
def test_forced_lookups_do_not_change_the_rows(steps: list[Rows | bool], tree: dict[str, str], engine: str) -> None:
    more = {"fields.s.aggregate-function": "sum"} if engine == "aggregation" else {}
    with tempfile.TemporaryDirectory() as home:
        table = create_write_only_table(f"{home}/a", **{"merge-engine": engine, "force-lookup": "true", **more, **tree})
        uncompacted = create_write_only_table(f"{home}/b", **{"merge-engine": engine, **more})
        for step in [*steps, False]:
            if isinstance(step, list):
                write_rows(table, step)
                write_rows(uncompacted, step)
                continue
            table.compact(full=step)
            assert rows_of(table) == rows_of(uncompacted)
            assert not [f for f in files(table) if f.level == 0], "level 0 is always selected"


def test_what_a_lookup_compaction_commits(tmp_path: Path) -> None:
    table = create_write_only_table(
        tmp_path, **{
            "changelog-producer": "lookup", "changelog-file.prefix": "changes-", "changelog-file.format": "orc",
            "changelog-file.stats-mode": "none", "changelog-file.compression": "zstd", "file.format": "parquet",
        }
    )  # fmt: skip
    write_rows(table, [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}, {"k": 3, "v": "c"}])
    table.compact()
    write_rows(table, [{"k": 1, "v": "A"}, {"k": 2, "op": "-D"}, {"k": 4, "v": "d"}, {"k": 9, "op": "-D"}])
    done = table.compact()
    snapshot = table.snapshot()
    assert snapshot is not None and done.snapshot_ids == (4,)
    assert (snapshot.commit_kind, snapshot.changelog_record_count) == (CommitKind.COMPACT, 4)
    (entry,) = changelog_entries(table)
    assert entry.file.file_name.startswith("changes-") and entry.file.file_name.endswith(".orc")
    assert (entry.file.row_count, entry.file.delete_row_count) == (4, 2)
    assert (entry.file.file_source, entry.file.level) == (FileSource.APPEND, 5)
    assert entry.file.value_stats_cols == ()
    changes = table.changes(after=3).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["k"], c["v"]) for c in changes] == [
        ("-U", 1, "a"), ("+U", 1, "A"), ("-D", 2, "b"), ("+I", 4, "d"),
    ]  # fmt: skip


def test_updates_that_change_nothing_that_counts_are_left_out(tmp_path: Path) -> None:
    table = create_write_only_table(
        tmp_path, **{"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true",
                     "changelog-producer.row-deduplicate-ignore-fields": "s"}
    )  # fmt: skip
    write_rows(table, [{"k": 1, "s": 1, "v": "a", "w": 0.0}, {"k": 2, "s": 1, "v": "a"}])
    table.compact()
    write_rows(table, [{"k": 1, "s": 2, "v": "a", "w": -0.0}, {"k": 2, "s": 2, "v": "a"}])
    table.compact()
    changes = table.changes(after=3).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["k"], c["s"]) for c in changes] == [("-U", 1, 1), ("+U", 1, 2)]


def test_a_lookup_reads_levels_below_its_output_level(tmp_path: Path) -> None:
    table = create_write_only_table(
        tmp_path, **{"changelog-producer": "lookup", "merge-engine": "aggregation",
                     "fields.s.aggregate-function": "sum", "num-sorted-run.compaction-trigger": "9"}
    )  # fmt: skip
    table.write([{"k": k, "s": 1, "v": "x" * 50, "w": None} for k in range(500)])
    table.compact(full=True)
    write_rows(table, [{"k": 7, "s": 10}, {"k": 999, "s": 5}])
    table.compact()
    assert {f.level for f in files(table)} == {8, 9}, "the large run stays"
    changes = table.changes(after=3).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["k"], c["s"]) for c in changes] == [("-U", 7, 1), ("+U", 7, 11), ("+I", 999, 5)]
    write_rows(table, [{"k": 7, "s": 100}])
    table.compact()
    changes = table.changes(after=5).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["s"]) for c in changes] == [("-U", 11), ("+U", 111)], "not counted twice"


def test_a_large_file_is_moved_and_its_changes_are_written(tmp_path: Path) -> None:
    for producer in ("lookup", FULL):
        table = create_write_only_table(
            tmp_path / producer, **{"changelog-producer": producer, "target-file-size": "1 b"}
        )
        write_rows(table, [{"k": 1, "v": "a"}])
        (before,) = files(table)
        table.compact(full=True)
        assert files(table) == [evolve(before, level=5)]
        assert [c["_row_kind"] for c in table.changes(after=1).to_arrow().to_pylist()] == ["+I"]


def test_changes_of_rows_without_a_merge_equal_the_reads(tmp_path: Path) -> None:
    groups = {"merge-engine": "partial-update", "fields.s.sequence-group": "v"}
    table = create_write_only_table(tmp_path, **{"changelog-producer": "lookup", **groups})
    write_rows(table, [{"k": 1, "v": "merging would leave this out"}])
    table.compact()
    assert apply_changes({}, table.changes().to_arrow().to_pylist()) == rows_of(table)
    write_rows(table, [{"k": 1, "w": 1.0}])
    table.compact()
    assert apply_changes({}, table.changes().to_arrow().to_pylist()) == rows_of(table)


def test_first_row_stores_the_first_row_and_reports_it_once(tmp_path: Path) -> None:
    table = create_write_only_table(tmp_path, **{"merge-engine": "first-row", "changelog-producer": "lookup"})
    write_rows(table, [{"k": 1, "v": "a"}, {"k": 1, "v": "b"}])
    assert rows_of(table) == {}, "level 0 is not looked at"
    table.compact()
    write_rows(table, [{"k": 1, "v": "c"}, {"k": 2, "v": "d", "op": "+U"}])
    table.compact()
    assert [(r["k"], r["v"]) for r in table.scan().to_arrow().to_pylist()] == [(1, "a"), (2, "d")]
    changes = table.changes().to_arrow().to_pylist()
    assert [(c["_row_kind"], c["v"]) for c in changes] == [("+I", "a"), ("+I", "d")]


def test_wherever_a_compaction_fails_neither_rows_nor_changes_are_left(tmp_path: Path) -> None:
    options = {"changelog-producer": "lookup", "merge-engine": "partial-update", "target-file-size": "1 b"}
    table = create_write_only_table(tmp_path, **options, **{"num-sorted-run.compaction-trigger": "9"})
    write_rows(table, [{"k": k, "s": k} for k in range(5)])
    table.compact(full=True)
    for k in range(2):
        write_rows(table, [{"k": k, "v": "new"}])
    before = {p for p in Path(table.location).rglob("*") if p.is_file()}
    names = [p.name for p in before]
    for failing in range(100):
        files_ = FaultyFiles(table.engine.files, at_new_file(failing, names))
        faulty = table.with_engine(evolve(table.engine, files=files_, executor=InOrder()))
        try:
            assert faulty.compact().files_after == 2
            break
        except StorageError:
            assert {p for p in Path(table.location).rglob("*") if p.is_file()} == before
    assert failing >= 4, "files of both kinds were to fail"
    assert [c["_row_kind"] for c in table.changes(after=4).to_arrow().to_pylist()] == ["-U", "+U"] * 2


class InOrder:
    """An executor of this thread."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T], discard: object = None) -> Iterator[R]:
        return map(function, tasks)


def at_new_file(number: int, names: Sequence[str]) -> Callable[[str, str], Fault | None]:
    """Fails the n-th making or closing of a file in a bucket."""
    left = iter([*[None] * number, Fault.FAIL_BEFORE])

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


@pytest.mark.parametrize(
    ("key_type", "file_format"),
    mark_products(KEYS, ["parquet", "orc"], always=["BIGINT", "STRING", "DECIMAL(20, 3)", "TIMESTAMP(9)"]),
)
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
    reported = [c for c in table.changes(after=3).to_arrow().to_pylist() if c["_row_kind"] != "+U"]
    assert [c["v"] for c in reported if c["_row_kind"] == "-U"] == [f"{n:0100d}" for n in sorted(asked[:-1], key=key)]
    assert [(c["_row_kind"], c["j"]) for c in reported if c["j"] == 99] == [("+I", 99)]


def test_full_compactions_with_forced_lookups_lose_no_lower_rows(tmp_path: Path) -> None:
    table = create_write_only_table(
        tmp_path, **{"changelog-producer": FULL, "force-lookup": "true", "merge-engine": "aggregation",
                     "fields.s.aggregate-function": "sum", "num-sorted-run.compaction-trigger": "9"}
    )  # fmt: skip
    table.write([{"k": k, "s": 1, "v": "x" * 50, "w": None} for k in range(500)])
    table.compact(full=True)
    for _ in range(2):
        write_rows(table, [{"k": 7, "s": 10}])
        table.compact()
    assert {f.level for f in files(table)} == {7, 8, 9}
    assert table.scan(["s"], "k = 7").to_arrow()["s"].to_pylist() == [21]
    assert table.changes(after=2).count() == 0, "nothing reached the top"
    done = table.compact(full=True)
    changes = table.changes(after=done.snapshot_ids[0] - 1).to_arrow().to_pylist()
    assert [(c["_row_kind"], c["k"], c["s"]) for c in changes] == [("-U", 7, 1), ("+U", 7, 21)]


def test_lookups_of_a_table_many_times_the_budget_stay_small(tmp_path: Path) -> None:
    # The open block of a file is in memory too. It is small here, so that the bound is visible.
    options = {"changelog-producer": "lookup", "merge-engine": "aggregation", "file.block-size": "1 mb"}
    table = create_write_only_table(tmp_path, **options, **{"fields.s.aggregate-function": "sum"})

    def make_rows(keys: range) -> pa.Table:
        numbers, text = pa.array(keys, pa.int32()), [f"{k:040d}" for k in keys]
        return pa.table({"k": numbers, "s": numbers, "v": text, "w": pa.nulls(len(keys), pa.float64())})

    table.write(make_rows(range(500_000)))
    table.compact(full=True)
    for start in range(3):
        table.write(make_rows(range(start, 500_000, 5)))
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


def test_a_delete_that_an_engine_does_not_accept_is_refused_at_lookup(tmp_path: Path) -> None:
    table = create_write_only_table(tmp_path, **{"merge-engine": "first-row"})
    with pytest.raises(InvalidRequest, match="first-row"):
        write_rows(table, [{"k": 1, "op": "-D"}])
        table.compact()
