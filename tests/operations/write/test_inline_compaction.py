"""Inline compaction during writes: at any time the rows equal the reference merge, other writers lose no rows, and
refused writes leave no files."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.tables import create_table
from support.warm_processes import run_code

import paimon
from paimon.builders.table_write import TableWrite
from paimon.domain.errors import CommitConflict, CorruptTable, InvalidRequest
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.row.kinds import RowKind
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import IntType
from paimon.operations.commit.base import CommitBase
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext

DDL = "k INT NOT NULL, p STRING NOT NULL, s INT, v STRING"
FORCED = {"compaction.force-up-level-0": "true"}
"""Options under which every flush is compacted."""


def create_keyed_table(home: Path | str, name: str = "t", **options: str) -> paimon.Table:
    return create_table(
        home, DDL, f"db.{name}", primary_keys=["k", "p"], partition_keys=["p"], options={"bucket": "1", **options}
    )


def arrow(table: paimon.Table, rows: Iterable[dict[str, Any]]) -> pa.Table:
    schema = table.arrow_schema.append(pa.field("op", pa.string()))
    return pa.Table.from_pylist([{"op": "+I", "p": "a", **row} for row in rows], schema)


def write_rows(table: paimon.Table, rows: Iterable[dict[str, Any]]) -> Any:
    return table.write(arrow(table, rows), kind_column="op")


def rows_of(table: paimon.Table) -> list[str]:
    return sorted(map(str, table.scan().to_arrow().to_pylist()))


def live(table: paimon.Table) -> list[ManifestEntry]:
    return CommitBase(table.context, latest_snapshot(table.context)).read_live_files(lambda _: True)


def levels(table: paimon.Table) -> list[int]:
    return sorted(e.file.level for e in live(table))


def kinds(table: paimon.Table) -> list[str]:
    return [s.commit_kind.value for s in table.snapshots()]


def data_files(table: paimon.Table) -> set[str]:
    return {p.name for p in Path(table.location).rglob("data-*") if p.is_file()}


def test_a_write_that_makes_too_many_runs_compacts_them_in_a_second_snapshot(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"num-sorted-run.compaction-trigger": "3"})
    results = [write_rows(table, [{"k": 1, "v": str(step)}]) for step in range(3)]
    assert [r.snapshot_ids for r in results] == [(1,), (2,), (3, 4)]
    assert kinds(table) == ["APPEND", "APPEND", "APPEND", "COMPACT"]
    assert levels(table) == [3] and rows_of(table) == ["{'k': 1, 'p': 'a', 's': None, 'v': '2'}"]
    assert len(data_files(table)) == 4, "the three that older snapshots need, and the one they became"


@pytest.mark.parametrize("option", ["write-only", "write.compaction-skip"])
def test_a_table_that_is_only_written_is_not_compacted(tmp_path: Path, option: str) -> None:
    table = create_keyed_table(tmp_path, **{"num-sorted-run.compaction-trigger": "1", option: "true"})
    for step in range(4):
        write_rows(table, [{"k": 1, "v": str(step)}])
    assert levels(table) == [0, 0, 0, 0]
    writer = table.new_batch_write_builder().new_write()
    writer.compact({"p": "a"}, 0)
    with pytest.raises(InvalidRequest, match="is not compacted by its writers"):
        writer.compact({"p": "a"}, 0, full=True)


def test_a_stream_caches_its_files_over_many_commits(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"num-sorted-run.compaction-trigger": "2"})
    builder = table.new_stream_write_builder("stream")
    commit = builder.new_commit()
    with builder.new_write() as writer:
        for step in range(7):
            writer.write(arrow(table, [{"k": step % 3, "v": str(step)}]), "op")
            commit.commit(step, writer.prepare_commit(step))
            assert len(levels(table)) <= 2
    assert [r.count("'v'") for r in rows_of(table)] == [1, 1, 1]
    assert "COMPACT" in kinds(table)


def test_messages_that_wait_for_their_commit_count_as_files(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"num-sorted-run.compaction-trigger": "3"})
    builder = table.new_stream_write_builder("stream")
    commit = builder.new_commit()
    with builder.new_write() as writer:
        prepared = []
        for step in range(5):
            writer.write(arrow(table, [{"k": step % 2, "v": str(step), "op": "-D" if step == 4 else "+I"}]), "op")
            prepared.append(writer.prepare_commit(step))
        assert any(m.compact.compact_before for messages in prepared for m in messages)
        for step, messages in enumerate(prepared):
            assert commit.commit(step, messages).lost_compaction is None
    assert rows_of(table) == ["{'k': 1, 'p': 'a', 's': None, 'v': '3'}"]


def lost_race(table: paimon.Table, writer: TableWrite) -> Any:
    """Another compaction conflicts with the compaction of a writer."""
    builder = table.new_batch_write_builder("me")
    writer.write(arrow(table, [{"k": 1, "v": "new"}]), "op")
    messages = writer.prepare_commit(7)
    assert any(m.compact.compact_before for m in messages)
    assert table.compact(full=True).snapshot_ids
    return builder.new_commit().commit(messages)


def test_an_overtaken_compaction_is_discarded_and_the_stream_continues(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"num-sorted-run.compaction-trigger": "3"})
    for step in range(2):
        write_rows(table, [{"k": step, "v": str(step)}])
    with table.new_stream_write_builder("me").new_write() as writer:
        done = lost_race(table, writer)
        assert done.lost_compaction is not None and len(done.snapshot_ids) == 1
        assert levels(table) == [0, 3] and len(data_files(table)) == 4, "the lost file is gone"
        for step in range(2):
            writer.write(arrow(table, [{"k": 5 + step, "v": "later"}]), "op")
            done = table.new_batch_write_builder("me").new_commit().commit(writer.prepare_commit(8 + step))
            assert done.lost_compaction is None
            assert levels(table) == [[3], [0, 3]][step]
    assert len(rows_of(table)) == 4


def test_another_writers_rows_are_seen_before_deletes_are_dropped(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **FORCED)
    with table.new_stream_write_builder("one").new_write() as writer:
        writer.write(arrow(table, [{"k": 1, "v": "first"}]), "op")
        commit = table.new_stream_write_builder("one").new_commit()
        commit.commit(1, writer.prepare_commit(1))
        other = table.with_options({"write-only": True})
        write_rows(other, [{"k": 2, "v": "theirs"}])
        writer.write(arrow(table, [{"k": 2, "op": "-D"}]), "op")
        commit.commit(2, writer.prepare_commit(2))
    assert rows_of(table) == ["{'k': 1, 'p': 'a', 's': None, 'v': 'first'}"]


def test_deletes_are_not_dropped_before_concurrent_rows_of_others(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **FORCED)
    other = table.with_options({"write-only": True}).new_batch_write_builder("other")
    with other.new_write() as late:
        late.write(arrow(table, [{"k": 2, "v": "theirs"}]), "op")
        theirs = late.prepare_commit()
    builder = table.new_batch_write_builder("one")
    with builder.new_write() as writer:
        writer.write(arrow(table, [{"k": 1}, {"k": 2, "op": "-D"}]), "op")
        messages = writer.prepare_commit()
    other.new_commit().commit(theirs)
    assert builder.new_commit().commit(messages).lost_compaction is not None
    assert [row.split(",")[0] for row in rows_of(table)] == ["{'k': 1"]


def test_a_full_compaction_runs_with_every_nth_identifier(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"full-compaction.delta-commits": "3"})
    builder = table.new_stream_write_builder("stream")
    commit = builder.new_commit()
    found = []
    with builder.new_write() as writer:
        for step in range(1, 8):
            if step != 6:
                writer.write(arrow(table, [{"k": step, "p": "ab"[step % 2]}]), "op")
            commit.commit(step, writer.prepare_commit(step))
            found.append(levels(table))
        writer.write(arrow(table, [{"k": 9}]), "op")
        with pytest.raises(InvalidRequest, match="counts commit identifiers"):
            writer.prepare_commit()
    assert found == [[0], [0, 0], [5, 5], [0, 5, 5], [0, 0, 5, 5], [5, 5], [0, 5, 5]]
    write_rows(table, [{"k": 1}])
    assert 0 not in {e.file.level for e in live(table) if e.partition == live(table)[-1].partition}


def test_a_batch_write_compacts_in_full_where_commits_are_counted(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"full-compaction.delta-commits": "4"})
    for k in range(3):
        write_rows(table, [{"k": k}])
        assert levels(table) == [5]


def test_one_bucket_is_compacted_on_request(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path)
    for p in ("a", "b"):
        for k in range(2):
            write_rows(table, [{"k": k, "p": p}])
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.compact({"p": "b"}, 0, full=True)
        messages = writer.prepare_commit()
        builder.new_commit().commit(messages)
        with pytest.raises(InvalidRequest, match="has no value for 'p'"):
            writer.compact({}, 0)
    assert levels(table) == [0, 0, 5] and kinds(table)[-1] == "COMPACT"


def test_aborted_compactions_leave_no_files(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{**FORCED, "compaction.size-ratio": "900"})
    write_rows(table, [{"k": 1}])
    before = data_files(table)
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write(arrow(table, [{"k": 1, "v": "x"}]), "op")
        messages = writer.prepare_commit()
    assert len(data_files(table) - before) == 2
    builder.new_commit().abort(messages)
    assert data_files(table) == before


def test_a_stream_continues_after_an_abandoned_commit(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{**FORCED, "compaction.size-ratio": "900"})
    builder = table.new_stream_write_builder("stream")
    commit = builder.new_commit()
    with builder.new_write() as writer:
        for step in range(5):
            writer.write(arrow(table, [{"k": step}, {"k": 9, "v": str(step)}]), "op")
            messages = writer.prepare_commit(step)
            if step == 2:
                commit.inner.abort(messages)
            else:
                commit.commit(step, messages)
    assert [row.split(",")[0] for row in rows_of(table)] == [f"{{'k': {k}" for k in (0, 1, 3, 4, 9)]
    assert levels(table) == [5] and data_files(table) >= {e.file.file_name for e in live(table)}


def test_a_missing_file_stops_the_compaction(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{**FORCED, "compaction.size-ratio": "900"})
    write_rows(table, [{"k": 1}])
    for path in Path(table.location).rglob("data-*"):
        path.unlink()
    with pytest.raises(CorruptTable):
        write_rows(table, [{"k": 1}])
    assert len(table.snapshots()) == 2 and not data_files(table)


def test_writers_with_an_older_schema_lose_no_column(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{**FORCED, "compaction.size-ratio": "900"})
    write_rows(table, [{"k": 1}])
    new = table.alter(AddColumn("added", IntType()))
    new.write([{"k": 2, "p": "a", "added": 7}], missing_columns="null")
    with pytest.raises(InvalidRequest, match="newer schema"):
        table.with_options({"compaction.force-rewrite-all-files": True}).compact(full=True)
    with pytest.warns(RuntimeWarning, match="newer schema than this writer"):
        write_rows(table, [{"k": 3}])
    assert sorted(levels(new)) == [0, 5]
    write_rows(new.with_options({"write.missing-columns": "null"}), [{"k": 4}])
    assert levels(new) == [5]
    assert {row["k"]: row["added"] for row in new.scan().to_arrow().to_pylist()} == {1: None, 2: 7, 3: None, 4: None}


def test_overwrites_compact_only_their_own_files(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **FORCED)
    write_rows(table, [{"k": 1}, {"k": 2}])
    table.overwrite([{"k": 3, "p": "a"}], missing_columns="null")
    assert levels(table) == [5] and len(rows_of(table)) == 1
    assert kinds(table)[-2:] == ["OVERWRITE", "COMPACT"]


_COUNTING = """
import sys, paimon
table, name, streaming = paimon.open_table(sys.argv[1]), sys.argv[2], sys.argv[3] == "streaming"
lost = 0
stream = table.new_stream_write_builder(name)
writer = stream.new_write()
for step in range(9):
    rows = [{"k": k, "p": "a", "s": 1, "v": None} for k in (0, step % 3, 10 + len(name))]
    if streaming:
        writer.write(rows)
        lost += stream.new_commit().commit(step, writer.prepare_commit(step)).lost_compaction is not None
    else:
        lost += table.write(rows).lost_compaction is not None
print(lost)
"""


def test_processes_that_write_and_compact_one_table_count_right(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{"num-sorted-run.compaction-trigger": "2", "merge-engine": "aggregation",
                               "fields.s.aggregate-function": "sum", "commit.max-retries": "100"})  # fmt: skip
    jobs = [("me", "streaming"), ("you", "batch")]
    with ThreadPoolExecutor() as pool:  # each waits for its process
        ended = list(pool.map(lambda job: run_code(_COUNTING, table.location, *job), jobs))
    assert [process.code for process in ended] == [0, 0]
    lost = [int(process.output) for process in ended]
    counted = {row["k"]: row["s"] for row in table.scan().to_arrow().to_pylist()}
    assert counted == {0: 18 + 6, 1: 6, 2: 6, 12: 9, 13: 9}
    made = kinds(table)
    assert made.count("APPEND") == 18 and 0 < made.count("COMPACT") <= 18 - sum(lost)
    table.compact(full=True)
    assert {row["k"]: row["s"] for row in table.scan().to_arrow().to_pylist()} == counted


def create_append_table(home: Path, **options: str) -> paimon.Table:
    return create_table(
        home, DDL, options={"bucket": "1", "bucket-key": "k", "compaction.min.file-num": "3", **options}
    )


def test_neighbours_of_append_buckets_are_put_together_in_their_order(tmp_path: Path) -> None:
    table = create_append_table(tmp_path)
    found = []
    for k in range(8):
        table.write([{"k": 1, "p": "a", "s": k}])
        found.append(len(live(table)))
    assert found == [1, 2, 1, 2, 1, 2, 1, 2]
    assert table.scan().to_arrow()["s"].to_pylist() == list(range(8))
    numbers = sorted((e.file.min_sequence_number, e.file.max_sequence_number) for e in live(table))
    assert numbers == [(0, 6), (7, 7)]


def test_an_append_stream_continues_its_numbers_and_considers_each_file_once(tmp_path: Path) -> None:
    table = create_append_table(tmp_path, **{"target-file-size": "1 b"})
    builder = table.new_stream_write_builder("stream")
    commit = builder.new_commit()
    with builder.new_write() as writer:
        for step in range(6):
            writer.write([{"k": 1, "p": "a", "s": step}])
            commit.commit(step, writer.prepare_commit(step))
    assert kinds(table) == ["APPEND"] * 6, "files of the target size are not compacted"
    assert sorted(e.file.min_sequence_number for e in live(table)) == list(range(6))


def test_append_tables_without_buckets_are_not_compacted_inline(tmp_path: Path) -> None:
    table = create_table(tmp_path, DDL, options={"bucket": "-1", "compaction.min.file-num": "2"})
    for k in range(4):
        table.write([{"k": k, "p": "a"}])
    assert kinds(table) == ["APPEND"] * 4


ROW = st.fixed_dictionaries({
    "k": st.integers(0, 5), "p": st.sampled_from("ab"), "s": st.none() | st.integers(0, 3),
    "v": st.none() | st.text("xyz", max_size=2), "op": st.sampled_from(["+I", "+I", "+U", "-D"]),
})  # fmt: skip
WRITES = st.lists(st.lists(ROW, min_size=1, max_size=8), min_size=2, max_size=7)
TRIGGERS = st.fixed_dictionaries({
    "num-sorted-run.compaction-trigger": st.sampled_from(["1", "2", "3", "5"]),
    "compaction.max-size-amplification-percent": st.sampled_from(["0", "200", "99999"]),
    "compaction.force-up-level-0": st.sampled_from(["true", "false"]),
    "num-levels": st.sampled_from(["2", "3", "6"]),
})  # fmt: skip
# A sequence field that decreases after a dropped delete makes its row visible again, in Java too.
MERGES: list[dict[str, str]] = [
    {},
    {"sequence.field": "s", "ignore-delete": "true"},
    {"merge-engine": "partial-update", "ignore-delete": "true"},
    {"merge-engine": "aggregation", "ignore-delete": "true", "fields.s.aggregate-function": "sum"},
    {"changelog-producer": "lookup"},
    {"deletion-vectors.enabled": "true"},
    {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.s.aggregate-function": "sum",
        "changelog-producer": "full-compaction",
    },
]
LOOKING_UP = ("changelog-producer", "deletion-vectors.enabled")


@settings(max_examples=12, deadline=None)
@given(writes=WRITES, triggers=TRIGGERS, merging=st.sampled_from(MERGES), streaming=st.booleans())
def test_after_any_history_the_rows_are_those_of_a_table_that_was_never_compacted(
    writes: list[list[dict[str, Any]]], triggers: dict[str, str], merging: dict[str, str], streaming: bool
) -> None:
    with tempfile.TemporaryDirectory() as home:
        table = create_keyed_table(home, **triggers, **merging)
        merge_options = {key: value for key, value in merging.items() if key not in LOOKING_UP}
        plain = create_keyed_table(home, "plain", **{"write-only": "true"}, **merge_options)
        builder = table.new_stream_write_builder("stream")
        writer = builder.new_write()
        for step, rows in enumerate(writes):
            write_rows(plain, rows)
            if streaming:
                writer.write(arrow(table, rows), "op")
                done = builder.new_commit().commit(step, writer.prepare_commit(step))
                assert done.lost_compaction is None
            else:
                write_rows(table, rows)
        assert rows_of(table) == rows_of(plain)


STEP = st.tuples(st.integers(0, 1), st.sampled_from(["write", "write", "prepare", "commit", "commit", "compact"]))
LOOKING: list[dict[str, str]] = [{}, {"deletion-vectors.enabled": "true"}, {"changelog-producer": "lookup"}]
COUNTED = {"merge-engine": "aggregation", "fields.s.aggregate-function": "sum", "ignore-delete": "true"}


def find_tied_rows(table: paimon.Table, snapshot: int) -> dict[tuple[int, str], list[dict[str, Any] | None]]:
    """Return, for the keys to which two writers gave the same newest sequence number, the rows that can win."""
    files = CommitBase(table.context, table.snapshots()[snapshot - 1]).read_live_files(lambda _: True)
    wanted = {e.file.file_name for e in files}
    stored = [pq.ParquetFile(p).read() for p in Path(table.location).rglob("data-*") if p.name in wanted]
    records: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in (row for rows in stored for row in rows.to_pylist()):
        records.setdefault((row["k"], row["p"]), []).append(row)
    newest: dict[tuple[int, str], list[dict[str, Any] | None]] = {}
    for key, found in records.items():
        last = max(row["_SEQUENCE_NUMBER"] for row in found)
        newest[key] = [
            None if row["_VALUE_KIND"] == RowKind.DELETE else {name: row[name] for name in table.arrow_schema.names}
            for row in found
            if row["_SEQUENCE_NUMBER"] == last
        ]
    return {key: rows for key, rows in newest.items() if len(rows) > 1}


def rows_by_key(table: paimon.Table, snapshot: int, columns: list[str]) -> dict[tuple[int, str], dict[str, Any]]:
    rows = table.scan(columns=columns, snapshot=snapshot).to_arrow().to_pylist()
    found = {(row["k"], row["p"]): row for row in rows}
    assert len(found) == len(rows), f"snapshot {snapshot} has a key twice"
    return found


def check_rows_unchanged(table: paimon.Table, snapshot: int, counting: bool) -> None:
    """Check that the rows of a snapshot are those of the one before it; of tied records either one can win."""
    # Which text of tied records an aggregation keeps depends on the order of its files. Its sums do not.
    columns = [name for name in table.arrow_schema.names if not (counting and name == "v")]
    before, after = (rows_by_key(table, s, columns) for s in (snapshot - 1, snapshot))
    tied = {} if counting else find_tied_rows(table, snapshot - 1)
    for key, candidates in tied.items():
        assert before.pop(key, None) in candidates
        assert after.pop(key, None) in candidates, f"snapshot {snapshot} has a row that nobody wrote"
    assert before == after, f"snapshot {snapshot} changed rows"


def test_a_compaction_includes_newer_records_that_are_on_a_higher_level(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **FORCED, **{"changelog-producer": "lookup"})
    builders = [table.new_stream_write_builder(user) for user in ("one", "two")]
    one, two = (builder.new_write() for builder in builders)
    one.write(arrow(table, [{"k": 1, "op": "-D"}]), "op")
    older = one.prepare_commit(0)
    two.write(arrow(table, [{"k": 1, "v": "newer"}, *({"k": k, "v": str(k)} for k in range(10, 999))]), "op")
    builders[1].new_commit().commit(0, two.prepare_commit(0))
    builders[0].new_commit().commit(0, older)
    assert levels(table) == [0, 5]
    two.write(arrow(table, [{"k": 2, "v": "2"}]), "op")
    done = builders[1].new_commit().commit(1, two.prepare_commit(1))
    assert done.lost_compaction is None and levels(table) == [5]
    assert [row["v"] for row in table.scan(where="k < 10").to_arrow().sort_by("k").to_pylist()] == ["newer", "2"]


def test_a_compaction_is_not_published_below_older_records_of_the_same_keys(tmp_path: Path) -> None:
    options = {"changelog-producer": "lookup", "target-file-size": "1 kb"}  # files that overlap none stay as they are
    table = create_keyed_table(tmp_path, **FORCED, **options)
    write_rows(table, [{"k": k, "v": str(k)} for k in range(1000, 1099)])
    builders = [table.new_stream_write_builder(user) for user in ("one", "two")]
    one, two = (builder.new_write() for builder in builders)
    one.write(arrow(table, [{"k": 1, "op": "-D"}]), "op")
    older = one.prepare_commit(0)
    two.write(arrow(table, [{"k": 1, "v": "newer"}, {"k": 1, "v": "newest"}, *({"k": k} for k in range(2, 999))]), "op")
    newer = two.prepare_commit(0)
    assert builders[0].new_commit().commit(0, older).lost_compaction is None
    lost = builders[1].new_commit().commit(0, newer).lost_compaction
    assert isinstance(lost, CommitConflict) and "newer records" in str(lost)
    assert levels(table)[:2] == [0, 4] and table.scan(where="k = 1").to_arrow()["v"].to_pylist() == ["newest"]


def rows_of_steps(changes: dict[int, tuple[int, str]]) -> list[dict[str, Any]]:
    """Return a row for each step: the given keys and row kinds, and for other steps any row."""
    given_rows = {step: {"k": k, "p": "a", "s": None, "v": str(step), "op": op} for step, (k, op) in changes.items()}
    return [given_rows.get(step, {"k": 9, "p": "a", "s": None, "v": None, "op": "+I"}) for step in range(24)]


TWO_RUNS = {"num-sorted-run.compaction-trigger": "2"}
OTHER_WRITER_COMPACTED = example(
    steps=[(0, "write"), (1, "write"), (1, "write"), (0, "prepare"), (1, "prepare"), (0, "commit"), (1, "commit")],
    triggers=FORCED, rows=rows_of_steps({0: (1, "+I"), 1: (0, "+I"), 2: (1, "-D")}), counting=False, looking={},
)  # fmt: skip
"""One writer drops a delete whose row the other writer has already moved above level 0."""
OLDER_ABOVE_NEWER = example(
    steps=[(1, "write"), (0, "write"), (1, "write"), (0, "prepare"), (1, "prepare"), (1, "commit")],
    triggers=TWO_RUNS, rows=rows_of_steps({0: (0, "+I"), 1: (1, "-D"), 2: (1, "+I")}), counting=False,
    looking={"changelog-producer": "lookup"},
)  # fmt: skip
"""A file with older records reaches a smaller level than a file with newer ones."""
LOOKED_UP_IN_LOST_FILE = example(
    steps=[(1, "write"), (1, "prepare"), (1, "commit"), (1, "write"), (1, "prepare"), (0, "write"), (0, "prepare"),
           (1, "commit"), (0, "write")],
    triggers=TWO_RUNS, rows=rows_of_steps({0: (0, "+I"), 3: (0, "+I"), 5: (1, "+I"), 8: (1, "+I")}), counting=True,
    looking={"changelog-producer": "lookup"},
)  # fmt: skip
"""A writer looks a key up in a file of its own compaction, which is then not committed."""
TIED = example(
    steps=[(0, "write"), (1, "write"), (0, "prepare"), (1, "prepare"), (0, "commit"), (1, "commit"), (0, "write")],
    triggers=TWO_RUNS, rows=rows_of_steps({0: (1, "+I"), 1: (1, "+U")}), counting=False, looking={},
)  # fmt: skip
"""Both writers give their first record of one key the same sequence number, and one of them compacts it later."""


@OTHER_WRITER_COMPACTED
@OLDER_ABOVE_NEWER
@LOOKED_UP_IN_LOST_FILE
@TIED
@settings(max_examples=15, deadline=None)
@given(steps=st.lists(STEP, min_size=6, max_size=24), triggers=TRIGGERS, rows=st.lists(ROW, min_size=24, max_size=24),
       counting=st.booleans(), looking=st.sampled_from(LOOKING))  # fmt: skip
def test_interleaved_commits_of_writers_lose_and_duplicate_no_rows(
    steps: list[tuple[int, str]],
    triggers: dict[str, str],
    rows: list[dict[str, Any]],
    counting: bool,
    looking: dict[str, str],
) -> None:
    with tempfile.TemporaryDirectory() as home:
        table = create_keyed_table(home, **triggers, **(COUNTED if counting else {}), **looking)
        builders = [table.new_stream_write_builder(str(i)) for i in range(2)]
        writers = [builder.new_write() for builder in builders]
        waiting: list[list[tuple[int, Any, list[dict[str, Any]]]]] = [[], []]
        buffered: list[list[dict[str, Any]]] = [[], []]
        counted: dict[tuple[int, str], int] = {}
        end = [(i, action) for i in range(2) for action in ("prepare", *["commit"] * (len(steps) + 1))]
        for step, (i, action) in enumerate([*steps, *end]):
            if action == "write":
                row = {**rows[step], "s": 1, "op": "+I"} if counting else rows[step]
                writers[i].write(arrow(table, [row]), "op")
                buffered[i].append(row)
            elif action == "prepare":
                waiting[i].append((step, writers[i].prepare_commit(step), buffered[i]))
                buffered[i] = []
            elif action == "commit" and waiting[i]:
                identifier, messages, written = waiting[i].pop(0)
                builders[i].new_commit().commit(identifier, messages)
                for row in written:
                    counted[row["k"], row["p"]] = counted.get((row["k"], row["p"]), 0) + 1
            elif action == "compact":
                table.compact()
        for snapshot in table.snapshots():
            # With deletion vectors compaction shows the rows of level 0.
            if snapshot.commit_kind.value == "COMPACT" and "deletion-vectors.enabled" not in looking:
                check_rows_unchanged(table, snapshot.id, counting)
        if counting:
            table.compact(full=True)
            assert {(r["k"], r["p"]): r["s"] for r in table.scan().to_arrow().to_pylist()} == counted
        if counting and "changelog-producer" in looking:
            counted_changes: dict[tuple[int, str], int] = {}
            for r in table.changes().to_arrow().to_pylist():
                sign = 1 if r["_row_kind"] in ("+I", "+U") else -1
                counted_changes[r["k"], r["p"]] = counted_changes.get((r["k"], r["p"]), 0) + sign * r["s"]
            assert counted_changes == counted


class CountingReads:
    """Files, and the names of those that were read."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.names: list[str] = []

    def read(self, path: str, *limit: int) -> bytes:
        self.names.append(path.rpartition("/")[2])
        data: bytes = self.inner.read(path, *limit)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize("write_only", [True, False])
def test_a_writer_reads_only_the_manifests_of_its_partitions(tmp_path: Path, write_only: bool) -> None:
    table = create_keyed_table(tmp_path, **{"write-only": str(write_only).lower()})
    for p in "abcdefgh":
        write_rows(table, [{"k": 1, "p": p}])
    again = paimon.open_table(table.location)
    assert isinstance(again, paimon.Table)
    files = CountingReads(again.engine.files)
    with TableWrite(TableContext(evolve(again.engine, files=files), again.definition), "me") as writer:
        writer.write(arrow(table, [{"k": 1, "p": "c"}]), "op")
        (message,) = writer.prepare_commit()
    assert message.data.new_files[0].min_sequence_number == 1
    assert len([n for n in files.names if re.fullmatch(r"manifest-[-0-9a-f]{36}-\d+", n)]) == 1


@pytest.mark.parametrize("met", [1, 12])
def test_partitions_continue_their_sequence_numbers(tmp_path: Path, met: int) -> None:
    table = create_keyed_table(tmp_path)
    parts = [f"p{i}" for i in range(12)]
    write_rows(table, [{"k": k, "p": p} for i, p in enumerate(parts) for k in range(i + 1)])
    with table.new_batch_write_builder().new_write() as writer:
        for i in range(0, 12, 12 // met):
            writer.write(arrow(table, [{"k": 0, "p": p} for p in parts[i : i + 12 // met]]), "op")
        firsts = [m.data.new_files[0].min_sequence_number for m in writer.prepare_commit()]
    assert firsts == list(range(1, 13))


def test_compaction_output_has_the_settings_of_its_level(tmp_path: Path) -> None:
    table = create_keyed_table(tmp_path, **{
        "num-sorted-run.compaction-trigger": "2", "num-levels": "2", "file.format.per.level": "0:avro,1:parquet",
        "file.compression.per.level": "0:none,1:zstd", "metadata.stats-mode.per.level": "0:none,1:full",
    })  # fmt: skip
    found = []
    for k in range(2):
        write_rows(table, [{"k": k, "v": "x"}])
        found += [(e.file.level, e.file.file_name.split(".")[1], e.file.value_stats_cols == ()) for e in live(table)]
    assert found == [(0, "avro", True), (1, "parquet", False)]
    (path,) = Path(table.location).rglob("*.parquet")
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
