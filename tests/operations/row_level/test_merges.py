"""Merging a source: tables equal the row-wise reference, or the call is refused by name and nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_nightly
from support.warm_processes import run_code

import paimon
from paimon.adapters.executors.local import SerialExecutor, ThreadExecutor
from paimon.builders import merge_builder
from paimon.builders.merge_builder import MergeBuilder
from paimon.domain.assignment.merge_reference import merge_rows
from paimon.domain.errors import CommitConflict, InvalidRequest, Unsupported
from paimon.domain.predicate.build import col
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.arrow import fields_from_arrow
from paimon.operations.data_files.read_data_file import BATCH_ROWS
from paimon.operations.row_level import merge as merge_module
from paimon.operations.row_level import merge_match, merge_source
from paimon.operations.row_level.merge import bind_merge
from paimon.ports.engine import MemoryBudget
from paimon.ports.executor import Executor
from paimon.table import Table

Rows = list[dict[str, Any]]
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("v", pa.int32()), ("s", pa.string())])
KEYED_SCHEMA = SCHEMA.set(0, pa.field("id", pa.int64(), nullable=False)).set(1, pa.field("day", pa.int32(), False))
SOURCE_SCHEMA = pa.schema(
    [("id", pa.int64()), ("day", pa.int32()), ("v", pa.int32()), ("s", pa.string()), ("f", pa.int32())]
)
MARKED = {"deletion-vectors.enabled": "true"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {},
    "append partitioned": {"partition_keys": ["day"]},
    "append with vectors": {"options": MARKED},
    "append in buckets": {"options": {"bucket": "2", "bucket-key": "id"}},
    "append in buckets with vectors": {"options": {**MARKED, "bucket": "2", "bucket-key": "id"}},
    "fixed": {"primary_keys": ["id"], "options": {"bucket": "2"}},
    "fixed with vectors": {"primary_keys": ["id"], "options": {**MARKED, "bucket": "1"}},
    "fixed write-only": {"primary_keys": ["id"], "options": {"bucket": "1", "write-only": "true"}},
    "partitioned": {"primary_keys": ["id", "day"], "partition_keys": ["day"], "options": {"bucket": "1"}},
    "dynamic": {"primary_keys": ["id"]},
    "cross partition": {"primary_keys": ["id"], "partition_keys": ["day"]},
    "partial update": {"primary_keys": ["id"], "options": {
        "bucket": "1", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}},
}  # fmt: skip


WAREHOUSES = count()


def make(place: Path | str, layout: str = "append", **more: Any) -> Table:
    catalog = paimon.connect(str(place))
    catalog.create_database("d", exist_ok=True)
    options = LAYOUTS[layout] | more
    return catalog.create_table("d.t", KEYED_SCHEMA if options.get("primary_keys") else SCHEMA, **options)


def row(number: int, day: int = 1, v: int | None = 0, s: str | None = "old", **more: Any) -> dict[str, Any]:
    return {"id": number, "day": day, "v": v, "s": s, **more}


def read(table: Table) -> Rows:
    return sort_rows(table.scan().to_arrow().to_pylist())


def sort_rows(rows: Any) -> Rows:
    return sorted(
        (dict(r) for r in rows), key=lambda r: tuple((v is None, v or 0 if n != "s" else v or "") for n, v in r.items())
    )


def run(merge: MergeBuilder) -> tuple[int, int, int]:
    done = merge.execute()
    return done.inserted, done.updated, done.deleted


def apply(table: Table, source: Any, on: Any, clauses: list[tuple[str, tuple[Any, ...]]]) -> MergeBuilder:
    merge = table.merge(source, on)
    for name, arguments in clauses:
        merge = getattr(merge, name)(*arguments)
    return merge


def expect(table: Table, source: pa.Table, merge: MergeBuilder) -> tuple[Rows, tuple[int, int, int]]:
    """Return the rows and the counts that the reference computes."""
    bound = bind_merge(table.context, fields_from_arrow(source.schema), merge.request)
    done = merge_rows(table.scan().to_arrow().to_pylist(), source.to_pylist(), bound)
    rows = [{name: r.get(name) for name in SCHEMA.names} for r in done.rows]
    return sort_rows(rows), (done.inserted, done.updated, done.deleted)


ONS = [
    "target.id = source.id",
    ["id", "day"],
    "id",
    "source.id = target.id AND source.f > 1",
    "target.id = source.id AND target.v < 3 AND source.s IS NOT NULL",
    "target.day = source.day AND target.id = source.v",
    "target.v = source.f",
]
CONDITIONS = ["source.f > 2", "target.v = 1", "source.s = 'new' OR target.day = 2", None]
SETS = [{"v": "source.f"}, {"v": "target.v + source.f * 2", "s": "source.s"}, {"s": "'x'"}]
MATCHED = st.lists(
    st.one_of(
        st.tuples(st.just("when_matched_update"), st.tuples(st.sampled_from(SETS), st.sampled_from(CONDITIONS))),
        st.tuples(st.just("when_matched_delete"), st.tuples(st.sampled_from(CONDITIONS))),
    ),
    max_size=3,
)
INSERTS = st.lists(
    st.one_of(
        st.tuples(st.just("when_not_matched_insert_all"), st.tuples(st.sampled_from(["source.f > 1", "v = 2", None]))),
        st.tuples(
            st.just("when_not_matched_insert"),
            st.tuples(st.just({"id": "id", "day": "day", "v": "f + 1"}), st.sampled_from(["f < 3", None])),
        ),
    ),
    max_size=2,
)
BY_SOURCE = st.lists(
    st.one_of(
        st.tuples(
            st.just("when_not_matched_by_source_update"),
            st.tuples(st.just({"v": "v + 7"}), st.sampled_from(["v > 1", None])),
        ),
        st.tuples(st.just("when_not_matched_by_source_delete"), st.tuples(st.sampled_from(["day = 2", "s IS NULL"]))),
    ),
    max_size=2,
)
SMALL = st.integers(0, 4)
TARGETS = st.lists(
    st.builds(row, st.integers(0, 7), st.integers(1, 2), st.none() | SMALL, st.sampled_from(["old", "new", None])),
    max_size=10,
)
SOURCES = st.lists(
    st.builds(row, st.integers(0, 9), st.integers(1, 2), st.none() | SMALL, st.sampled_from(["new", None]), f=SMALL),
    max_size=7,
)


def drop_unreachable(clauses: list[tuple[str, tuple[Any, ...]]]) -> list[tuple[str, tuple[Any, ...]]]:
    kept = []
    for clause in clauses:
        kept.append(clause)
        if clause[1][-1] is None:
            break
    return kept


@contextmanager
def spill_sources(spills: bool) -> Iterator[None]:
    """Spill each source, and divide it into parts of about one row."""
    with pytest.MonkeyPatch.context() as patch:
        if spills:
            patch.setattr(merge_source, "must_spill", lambda engine, size: size > 0)
            patch.setattr(merge_source, "part_bytes", lambda engine: 100)
        yield


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.booleans(),
    TARGETS,
    SOURCES,
    st.sampled_from(ONS),
    MATCHED,
    INSERTS,
    BY_SOURCE,
    st.data(),
)
def test_a_merge_equals_its_reference(
    layout: str,
    spills: bool,
    target: Rows,
    source: Rows,
    on: Any,
    matched: list[Any],
    inserts: list[Any],
    by_source: list[Any],
    data: st.DataObject,
) -> None:
    clauses = [*drop_unreachable(matched), *drop_unreachable(inserts), *drop_unreachable(by_source)]
    if not clauses:
        return
    table = make(f"memory://merge-{next(WAREHOUSES)}", layout)
    cut = data.draw(st.integers(0, len(target)))
    for part in (target[:cut], target[cut:]):
        table.write(pa.Table.from_pylist(part, SCHEMA))
    keys = table.primary_keys
    if keys:  # two inserts of one key would be merged by the table, which the reference does not do
        source = list({tuple(r[k] for k in keys): r for r in source}.values())
        if layout == "partial update":
            source = [{**r, "s": r["s"] or "text", "v": r["v"] or 0} for r in source]
    new = pa.Table.from_pylist(source, SOURCE_SCHEMA)
    given_rows = new.to_reader(max_chunksize=2) if spills else new
    merge, before = apply(table, given_rows, on, clauses), read(table)
    try:
        expected, counts = expect(table, new, merge)
    except InvalidRequest:
        with spill_sources(spills), pytest.raises(InvalidRequest, match="match the same row"):
            merge.execute()
        assert read(table) == before
        return
    inserted_keys = [tuple(r[k] for k in keys) for r in expected]
    if keys and len(set(inserted_keys)) < len(inserted_keys):
        return  # an inserted key exists already, under another ON condition: the table merges both rows
    if layout == "partial update" and any(r["v"] is None or r["s"] is None for r in expected):
        return  # a null keeps the old value
    with spill_sources(spills):
        assert run(merge) == counts
    assert read(table) == expected
    assert table.scan().count() == len(expected)


def test_each_file_and_batch_keeps_its_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted rows before changed ones, several files of a bucket, and blocks of few pairs."""
    monkeypatch.setattr(merge_match, "_MOST_PAIRS", 3)
    table = make(tmp_path, "append in buckets with vectors")
    for start in range(0, 40, 10):
        table.write([row(i, v=i % 5) for i in range(start, start + 10)])
    table.delete("v = 1")
    source = [row(i, s="new") for i in range(0, 60, 3)]
    merge = table.merge(source, "id").when_matched_update({"s": "source.s"}, "target.v <> 2").when_matched_delete()
    done = merge.when_not_matched_insert_all().execute()
    old = [i for i in range(40) if i % 5 != 1]
    both = [i for i in old if i % 3 == 0]
    assert done.updated == len([i for i in both if i % 5 != 2])
    assert done.deleted == len([i for i in both if i % 5 == 2])
    assert done.inserted == 20 - len(both)
    found = {r["id"]: r["s"] for r in read(table)}
    assert found == {
        **{i: "old" for i in old if i % 3},
        **{i: "new" for i in range(0, 60, 3) if i not in both or i % 5 != 2},
    }


@pytest.mark.parametrize("layout", ["append", "append with vectors", "fixed"])
def test_all_clauses_in_one_file(tmp_path: Path, layout: str) -> None:
    """Two updates of matches, a delete, and an update and a delete of other rows, among unchanged ones."""
    table = make(tmp_path, layout)
    table.write([row(i, v=i) for i in range(12)])
    source = [row(i, v=i * 100, s="new") for i in (1, 2, 4, 5, 7, 8, 20)]
    merge = (
        table.merge(source, "id")
        .when_matched_update({"v": "source.v"}, "target.v IN (2, 7)")
        .when_matched_delete("target.v = 4")
        .when_matched_update({"s": "source.s"}, "target.v IN (1, 5)")
        .when_not_matched_by_source_update({"v": "-1"}, "v IN (0, 8, 9)")
        .when_not_matched_by_source_delete("v = 11")
    )
    assert run(merge) == (0, 6, 2)
    changed = {2: {"v": 200}, 7: {"v": 700}, 1: {"s": "new"}, 5: {"s": "new"}, 0: {"v": -1}, 9: {"v": -1}}
    assert read(table) == sort_rows({**row(i, v=i), **changed.get(i, {})} for i in range(12) if i not in (4, 11))
    if layout == "append":
        ids = table.scan().to_arrow()["id"].to_pylist()
        assert ids == sorted(ids), "a rewritten file keeps its order"


def test_rows_of_a_rewritten_file_stay_in_order(tmp_path: Path) -> None:
    table = make(tmp_path, options={"bucket": "1", "bucket-key": "id"})
    table.write([row(i) for i in range(10)])
    table.merge([row(3, s="x"), row(7)], "id").when_matched_update({"s": "source.s"}, "source.s = 'x'").execute()
    table.merge([row(5)], "id").when_matched_delete().execute()
    assert table.scan().to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_a_file_changes_late_and_another_only_matches(tmp_path: Path) -> None:
    """The first change is far from the beginning of its file, and a match without a clause inserts no row."""
    table = make(tmp_path)
    last = BATCH_ROWS + 10
    table.write(pa.table([pa.array(c, t) for c, t in zip(([*range(last)], [1] * last, [0] * last, ["old"] * last),
                                                         SCHEMA.types, strict=True)], schema=SCHEMA))  # fmt: skip
    table.write([row(last, v=1), row(last + 1, v=1)])
    kept = {f.file_name for split in table.scan(where=f"id >= {last}").plan().splits for f in split.files}
    source = [row(i, s="new") for i in (5, last - 1, last, last + 2)]
    merge = table.merge(source, "id").when_matched_update({"s": "source.s"}, f"target.v = 0 AND target.id > {last - 5}")
    assert run(merge.when_not_matched_insert_all()) == (1, 1, 0)
    changed = table.scan(where="s = 'new'").to_arrow()["id"].to_pylist()
    assert (sorted(changed), table.scan().count()) == ([last - 1, last + 2], last + 3)
    assert kept <= {f.file_name for split in table.scan().plan().splits for f in split.files}


@pytest.mark.parametrize("layout", ["append", "append with vectors", "fixed"])
def test_one_commit_with_its_operation_and_properties(tmp_path: Path, layout: str) -> None:
    table = make(tmp_path, layout)
    table.write([row(i) for i in range(6)])
    merge = table.merge([row(1, s="new"), row(9)], "id").when_matched_update_all().when_not_matched_insert_all()
    done = merge.execute(properties={"why": "asked to"})
    snapshot = table.snapshot()
    assert snapshot is not None
    assert (done.snapshot_ids, snapshot.operation) == ((snapshot.id,), "MERGE")
    assert snapshot.properties["why"] == "asked to"
    assert snapshot.commit_kind is (CommitKind.APPEND if table.primary_keys else CommitKind.OVERWRITE)
    assert done.files == (2 if table.primary_keys else 1)
    assert table.merge([row(50)], "id").when_matched_delete().execute().snapshot_ids == ()
    assert read(table) == sort_rows([*(row(i, s="new" if i == 1 else "old") for i in range(6)), row(9)])


def test_any_scalar_sql_in_conditions_and_values(tmp_path: Path) -> None:
    table = make(tmp_path, "fixed")
    table.write([row(i, v=i, s=f"text {i}") for i in range(6)])
    source = pa.table({"key": ["1", "2", "3", "x"], "amount": [5, 2, 9, 4]})
    merge = (
        table.merge(
            source, "CAST(t.id AS VARCHAR) = new.key AND t.v <= new.amount", source_alias="new", target_alias="t"
        )
        .when_matched_delete("t.v = new.amount AND length(s) = 6")
        .when_matched_update({"s": "upper(t.s) || '/' || new.key", "v": "CASE WHEN amount > 5 THEN -amount ELSE 0 END"})
        .when_not_matched_insert({"id": "100 + amount", "day": 1, "s": "concat(key, '!')"}, "key ILIKE 'X'")
        .when_not_matched_by_source_update({"s": "substring(s, 6, 1)"}, "v % 2 = 1")
    )
    assert run(merge) == (1, 3, 1)
    assert read(table) == sort_rows(
        [
            row(0, v=0, s="text 0"), row(1, v=0, s="TEXT 1/1"), row(3, v=-9, s="TEXT 3/3"), row(4, v=4, s="text 4"),
            row(5, v=5, s="5"), row(104, v=None, s="x!"),
        ]
    )  # fmt: skip


def test_sources_of_all_kinds(tmp_path: Path) -> None:
    table = make(tmp_path, "fixed")
    table.write([row(i) for i in range(3)])
    frame = pytest.importorskip("pandas").DataFrame([row(0, s="frame")])
    sources = [frame, iter([pa.Table.from_pylist([row(1, s="reader")], SCHEMA)]), table.scan(where="id = 2")]
    for source in sources:
        assert run(table.merge(source, "id").when_matched_update({"s": "source.s", "v": 5})) == (0, 1, 0)
    assert read(table) == [row(0, v=5, s="frame"), row(1, v=5, s="reader"), row(2, v=5)]
    nulls = [{"id": 1, "day": 1, "v": None, "s": None}]
    table.merge(nulls, col("target.id") == 1).when_matched_update({"v": "source.v", "s": "source.s"}).execute()
    assert read(table)[1] == row(1, v=None, s=None)


@pytest.mark.parametrize("layout", mark_nightly(sorted(LAYOUTS), always=["append", "fixed", "dynamic"]))
def test_an_empty_source_or_table(tmp_path: Path, layout: str) -> None:
    table = make(tmp_path, layout)
    empty = SCHEMA.empty_table()
    insert = table.merge([row(1), row(2, day=2)], ["id", "day"]).when_matched_delete().when_not_matched_insert_all()
    assert table.merge(empty, "id").when_not_matched_insert_all().execute().snapshot_ids == ()
    assert run(insert) == (2, 0, 0)
    assert table.merge(empty, "id").when_matched_delete().execute().snapshot_ids == ()
    assert run(table.merge(empty, "id").when_not_matched_by_source_delete("target.id = 1")) == (0, 0, 1)
    assert read(table) == [row(2, day=2)]


def test_rows_move_to_other_partitions_where_that_keeps_their_key(tmp_path: Path) -> None:
    for number, layout in enumerate(("append partitioned", "cross partition")):
        table = make(tmp_path / str(number), layout)
        table.write([row(1), row(2)])
        assert run(table.merge([row(1, day=2, s="moved")], "id").when_matched_update_all()) == (0, 1, 0)
        assert read(table) == sort_rows([row(1, day=2, s="moved"), row(2)])
        assert table.scan(where="day = 1").count() == 1


def test_only_files_with_possible_matches_are_read(tmp_path: Path) -> None:
    table = make(tmp_path, options={"target-file-size": "1 gb", "compaction.min.file-num": "50"})
    for start in range(0, 50, 10):
        table.write([row(i) for i in range(start, start + 10)])
    names = {f.file_name for split in table.scan().plan().splits for f in split.files}
    damaged = {f.file_name for s in table.scan(where="id >= 20").plan().splits for f in s.files}
    for path in Path(table.location).rglob("data-*"):
        if path.name in damaged:
            path.unlink()
    source = [row(i, s="new") for i in (3, 15)]
    assert len(names) == 5
    assert run(table.merge(source, "id").when_matched_update_all()) == (0, 2, 0)
    wide = pa.Table.from_pylist([row(i % 20) for i in range(1000)], SCHEMA).group_by("id").aggregate([])
    assert run(table.merge(wide, "id").when_matched_update({"s": "'wide'"})) == (0, 20, 0)
    with pytest.raises(paimon.PaimonError):
        table.merge(source, "id").when_not_matched_by_source_delete().execute()


def conflicts(table: Table, monkeypatch: pytest.MonkeyPatch, writes: Iterator[Callable[[], Any]]) -> None:
    """Let another writer act between the read of a merge and its commit."""
    commit = merge_module.commit_rows

    def commit_late(*arguments: Any, **more: Any) -> Any:
        next(writes, lambda: None)()
        return commit(*arguments, **more)

    monkeypatch.setattr(merge_module, "commit_rows", commit_late)


@pytest.mark.parametrize(
    "layout",
    mark_nightly(["append", "append with vectors", "fixed", "dynamic"], always=["append with vectors", "fixed"]),
)
def test_rows_of_other_writers_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    """A merge that read an old snapshot runs again, so that no key is inserted twice and no change is lost."""
    table = make(tmp_path, layout)
    table.write([row(1, v=1), row(2, v=2)])
    writes: list[Callable[[], Any]] = [
        lambda: table.write([row(3, v=100)]),
        lambda: table.update({"v": "v + 1000"}, "id = 2"),
        lambda: table.compact(),
    ]
    conflicts(table, monkeypatch, iter(writes))
    source = [row(2, v=20), row(3, v=30)]
    merge = table.merge(source, "id").when_matched_update({"v": "target.v + source.v"}).when_not_matched_insert_all()
    assert run(merge) == (0, 2, 0)
    assert [(r["id"], r["v"]) for r in read(table)] == [(1, 1), (2, 1022), (3, 130)]
    orphans = table.maintain.remove_orphans(older_than=timedelta(0), dry_run=True, allow_young=True)
    assert orphans.num_rows == 0, "refused attempts delete their files"


@pytest.mark.parametrize("layout", ["append", "fixed"])
def test_a_source_that_is_computed_from_the_table_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    table = make(tmp_path, layout)
    table.write([row(1, v=1), row(2, v=2)])
    conflicts(table, monkeypatch, iter([lambda: table.update({"v": "v + 1000"}, "id = 2")]))
    merge = table.merge(lambda: table.scan(columns=["id", "v"]), "id").when_matched_update({"v": "source.v + 1"})
    assert run(merge) == (0, 2, 0)
    assert [(r["id"], r["v"]) for r in read(table)] == [(1, 2), (2, 1003)]


@pytest.mark.parametrize(
    "layout",
    mark_nightly(["append", "append with vectors", "fixed", "dynamic"], always=["append with vectors", "fixed"]),
)
def test_a_rollback_is_seen_although_another_commit_takes_the_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """The snapshot that was read was rolled back, and another commit has its id when the merge commits."""
    table = make(tmp_path, layout)
    table.write([row(1, v=1)])
    kept_id = table.snapshots()[-1].id
    table.write([row(2, v=2)])
    read_id = table.snapshots()[-1].id

    orphans: list[Any] = []

    def list_orphans() -> Any:
        found = table.maintain.remove_orphans(older_than=timedelta(0), dry_run=True, allow_young=True)
        return set(found["path"].to_pylist())

    def replace_snapshot() -> None:
        prepared = list_orphans()
        table.maintain.rollback_to(kept_id)
        orphans.append(list_orphans() - prepared)
        table.write([row(3, v=3)])
        assert table.snapshots()[-1].id == read_id

    conflicts(table, monkeypatch, iter([replace_snapshot]))
    merge = table.merge([row(3, v=30)], "id").when_matched_update({"v": "target.v + source.v"})
    assert run(merge.when_not_matched_insert_all()) == (0, 1, 0)
    assert [(r["id"], r["v"]) for r in read(table)] == [(1, 1), (3, 33)]
    assert list_orphans() == orphans[0], "the refused attempt deletes its files"


def test_a_merge_that_always_conflicts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_builder, "_ATTEMPTS", 3)
    table = make(tmp_path)
    numbers = iter(range(100, 200))
    conflicts(table, monkeypatch, iter(lambda: lambda: table.write([row(next(numbers))]), None))
    with pytest.raises(CommitConflict, match="changed rows"):
        table.merge([row(1)], "id").when_not_matched_insert_all().execute()
    assert 1 not in {r["id"] for r in read(table)}


REFUSED: list[tuple[str, Any, list[tuple[str, tuple[Any, ...]]], str]] = [
    ("append", "id", [], "at least one WHEN"),
    ("append", "nothing = source.id", [("when_matched_delete", ())], "'nothing' does not exist"),
    ("append", "target.id = source.nothing", [("when_matched_delete", ())], "'nothing' does not exist"),
    ("append", ["id", "nothing"], [("when_matched_delete", ())], "'nothing' does not exist"),
    ("append", "id = 3", [("when_matched_delete", ())], "both the target and the source"),
    ("append", "id", [("when_matched_delete", ("v > 1",))], "both the target and the source"),
    ("append", "id", [("when_matched_delete", ()), ("when_matched_update_all", ())], "never applies"),
    ("append", "id", [("when_not_matched_insert", ({"v": "target.v"},))], "no row of 'target'"),
    ("append", "id", [("when_not_matched_by_source_delete", ("source.v = 1",))], "no row of 'source'"),
    ("append", "id", [("when_matched_update", ({"nothing": 1},))], "'nothing' does not exist"),
    ("append", "id", [("when_matched_update", ({},))], "sets no column"),
    ("append", "id", [("when_matched_update", ({"v": "source.s"},))], "cannot be set"),
    ("append", "id", [("when_matched_update", ({"v": "upper(source.s)"},))], "cannot be set"),
    ("append", "id", [("when_matched_update", ({"v": "no_function(source.s)"},))], "no_function"),
    ("append", "id", [("when_matched_delete", ("upper(source.s)",))], "not a condition"),
    ("append", "id", [("when_matched_delete", ("(SELECT 1) = 1",))], "subquery"),
    ("fixed", "target.v = source.v", [("when_matched_update_all", ())], "primary key"),
    ("partitioned", ["id"], [("when_matched_update_all", ())], "primary key"),
]


@pytest.mark.parametrize(("layout", "on", "clauses", "message"), REFUSED)
def test_what_is_not_possible_is_refused(tmp_path: Path, layout: str, on: Any, clauses: Any, message: str) -> None:
    table = make(tmp_path, layout)
    table.write([row(1)])
    with pytest.raises((InvalidRequest, Unsupported), match=message):
        apply(table, [row(1, day=2, v=0)], on, clauses).execute()
    assert read(table) == [row(1)]
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize(
    ("layout", "options", "clause", "message"),
    [
        ("fixed", {"bucket": "1", "merge-engine": "first-row"}, "when_matched_delete", "first-row"),
        ("fixed", {"bucket": "1", "merge-engine": "aggregation"}, "when_matched_update_all", "aggregation"),
        ("fixed", {"bucket": "1", "ignore-delete": "true"}, "when_matched_delete", "ignores deletes"),
        ("fixed", {"bucket": "-2"}, "when_matched_delete", "postponed"),
        ("append", {"row-tracking.enabled": "true"}, "when_matched_delete", "row-tracking"),
        ("append", {"fields.v.default-value": "7"}, "when_matched_delete", "default-value"),
    ],
)
def test_tables_that_cannot_be_merged(
    tmp_path: Path, layout: str, options: dict[str, str], clause: str, message: str
) -> None:
    table = make(tmp_path, layout, options=options)
    with pytest.raises((InvalidRequest, Unsupported), match=message):
        getattr(table.merge([row(1)], "id"), clause)().execute()


def test_merge_engines_that_take_only_inserts(tmp_path: Path) -> None:
    table = make(tmp_path, "fixed", options={"bucket": "1", "merge-engine": "first-row"})
    table.write([row(1)])
    assert run(table.merge([row(1, s="new"), row(2)], "id").when_not_matched_insert_all()) == (1, 0, 0)
    assert read(table) == [row(1), row(2)]


def test_two_matches_are_refused_with_the_key(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.write([row(1), row(2)])
    twice = [row(5), row(2, s="a"), row(2, s="b")]
    with pytest.raises(InvalidRequest, match=r"Rows 2 and 3 .* id = 2"):
        table.merge(twice, "id").when_matched_update_all().execute()
    assert run(table.merge(twice, "id").when_not_matched_insert_all()) == (1, 0, 0)
    one = table.merge(twice, "target.id = source.id AND source.s = 'b'")
    assert run(one.when_matched_update_all()) == (0, 1, 0)


WIDE = 300_000
MERGE_WIDE_SOURCE = """
import sys, pyarrow as pa, paimon
def make_batches():
    for start in range(0, 300_000, 10_000):
        ids = range(start * 2, (start + 10_000) * 2, 2)
        yield pa.table({"id": pa.array(ids), "s": pa.array([f"{n:0100}" for n in ids])})
table = paimon.connect(sys.argv[1], memory_budget=sys.argv[2]).table("d.t")
source = make_batches()
if sys.argv[3] == "table":  # the caller has the source in memory, so only what is above it counts
    source = pa.concat_tables(source)
before = pa.default_memory_pool().bytes_allocated()
merge = table.merge(source, "id").when_matched_update({"s": "source.s", "v": "v + 1"})
done = merge.when_not_matched_insert({"id": "id", "day": "2", "s": "s", "v": "5"}).execute()
assert (done.inserted, done.updated) == (150_000, 150_000), done
print(pa.default_memory_pool().max_memory() - before)
"""


@pytest.mark.parametrize(
    ("layout", "source"),
    [
        pytest.param("append", "batches", marks=pytest.mark.nightly),
        ("append with vectors", "table"),
        ("fixed", "batches"),
    ],
)
def test_memory_is_bounded_by_the_budget_however_large_the_source_is(tmp_path: Path, layout: str, source: str) -> None:
    table = make(tmp_path, layout)
    ones, zeros = pa.array([1] * WIDE, pa.int32()), pa.array([0] * WIDE, pa.int32())
    table.write(pa.table({"id": pa.array(range(WIDE)), "day": ones, "v": zeros}), missing_columns="null")
    source_bytes = 300_000 * (8 + 4 + 100)
    done = run_code(MERGE_WIDE_SOURCE, str(tmp_path), "6 mb", source)
    assert done.code == 0, done.errors
    peak = int(done.output)
    assert peak < source_bytes * 2 / 3, f"{peak:,} of {source_bytes:,} bytes"
    found = table.scan().to_arrow()
    assert found.num_rows == 450_000
    assert len(found.filter(pc.equal(found["v"], 1))) == len(found.filter(pc.equal(found["v"], 5))) == 150_000
    texts = found.filter(pc.is_valid(found["s"]))
    assert texts.num_rows == 300_000
    assert pc.all(pc.equal(texts["s"].cast(pa.int64()), texts["id"])).as_py()


def make_small_budget(table: Table) -> Table:
    return table.with_engine(evolve(table.engine, memory=MemoryBudget(1 << 20)))


def test_a_large_source_without_equal_columns_is_refused(tmp_path: Path) -> None:
    table = make_small_budget(make(tmp_path))
    batches = (pa.table({"id": pa.array(range(n * 10_000, (n + 1) * 10_000))}) for n in range(100))
    with pytest.raises(InvalidRequest, match=r"memory budget .* no equal columns"):
        table.merge(batches, "target.id < source.id").when_matched_delete().execute()
    assert next(batches).num_rows == 10_000, "the rest was not read"


def test_a_source_without_equal_columns_fills_the_whole_budget(tmp_path: Path) -> None:
    table = make_small_budget(make(tmp_path))
    table.write([row(1), row(2)])
    source = pa.table({"id": pa.array([7] * 60_000)})  # 480 kB, and more with an index of its keys
    done = table.merge([source], "target.id > source.id + 5").when_not_matched_by_source_delete().execute()
    assert done.deleted == 2


def test_many_rows_of_one_key_above_the_budget_are_refused(tmp_path: Path) -> None:
    table = make_small_budget(make(tmp_path))
    table.write([row(1)])
    source = pa.table({"id": pa.array([7] * 50_000)})
    with pytest.raises(InvalidRequest, match="Many rows of the source have the same key"):
        table.merge(source, "id").when_not_matched_insert({"id": "id"}).execute()
    assert table.scan().count() == 1


def test_tables_of_a_large_source_have_the_same_columns(tmp_path: Path) -> None:
    table = make_small_budget(make(tmp_path))
    first = pa.table({"id": pa.array(range(20_000)), "v": pa.array([1] * 20_000, pa.int32())})
    merge = "when_not_matched_insert"
    for last, refused in (
        ({"id": [5], "w": [1]}, "Column 'w' of the source begins after rows without it"),
        ({"id": ["x"]}, "Column 'id' of the source has values that do not fit"),
    ):
        with pytest.raises(InvalidRequest, match=refused):
            getattr(table.merge([first, pa.table(last)], "id"), merge)({"id": "id"}).execute()
    done = getattr(table.merge([first, pa.table({"id": [20_000]})], "id"), merge)({"id": "id", "v": "v"}).execute()
    assert done.inserted == 20_001
    assert table.scan(where="v IS NULL").to_arrow()["id"].to_pylist() == [20_000]


def test_an_error_names_the_rows_of_a_spilled_source(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.write([row(i) for i in range(9)])
    source = [row(i % 5) for i in range(6)]
    with spill_sources(True), pytest.raises(InvalidRequest, match=r"Rows 1 and 6 of the source .* id = 0"):
        table.merge(source, "id").when_matched_delete().execute()


def test_a_spilled_source_is_dropped(tmp_path: Path) -> None:
    table = make(tmp_path)
    dropped: list[str] = []
    temp = table.engine.temp

    class Temp:
        def __getattr__(self, name: str) -> Any:
            return getattr(temp, name)

        def drop(self, handle: str) -> None:
            dropped.append(handle)
            temp.drop(handle)

    watched = table.with_engine(evolve(table.engine, temp=Temp()))
    with spill_sources(True):
        watched.merge([row(1), row(2)], "id").when_not_matched_insert_all().execute()
        watched.merge(lambda: [row(1), row(3)], "id").when_not_matched_insert_all().execute()
        with pytest.raises(InvalidRequest):
            watched.merge([row(1), row(1)], "id").when_matched_delete().execute()
    assert len(set(dropped)) == 6  # a piece for each row
    assert not any(Path(handle).exists() for handle in dropped)
    assert [r["id"] for r in read(table)] == [1, 2, 3]


def test_null_and_float_keys(tmp_path: Path) -> None:
    """Null equals nothing; NaN equals itself, and the zeros differ, as in predicates."""
    catalog = paimon.connect(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", pa.schema([("x", pa.float64()), ("n", pa.int32())]))
    values = [None, float("nan"), 0.0, -0.0, 1.5]
    table.write(pa.table({"x": pa.array(values), "n": pa.array(range(5), pa.int32())}))
    source = pa.table({"x": pa.array([None, float("nan"), -0.0]), "m": pa.array([10, 11, 12], pa.int32())})
    merge = table.merge(source, "x").when_matched_update({"n": "m"}).when_not_matched_insert({"n": "m"})
    assert run(merge) == (1, 2, 0)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [0, 2, 4, 10, 11, 12]


def test_a_builder_does_not_change(tmp_path: Path) -> None:
    table = make(tmp_path)
    start = table.merge([row(1)], "id")
    assert run(start.when_not_matched_insert_all()) == (1, 0, 0)
    with pytest.raises(InvalidRequest, match="WHEN"):
        start.execute()


def test_one_thread_or_many(tmp_path: Path) -> None:
    table = make(tmp_path, "append partitioned")
    table.write([row(i, day=i % 4) for i in range(40)])
    serial = table.with_engine(evolve(table.engine, executor=SerialExecutor()))
    assert run(serial.merge([row(i) for i in range(10)], "id").when_matched_delete()) == (0, 0, 10)
    assert run(table.merge([row(i) for i in range(20)], "id").when_matched_delete()) == (0, 0, 10)
    assert table.scan().count() == 20


def test_the_bytes_of_large_files_do_not_depend_on_threads(tmp_path: Path) -> None:
    table = make(tmp_path, "append")
    count = 650_000  # a row group of 650,000 rows is large enough to be encoded column by column
    numbers = pa.array(range(count), pa.int64())
    days = pa.array([n % 31 for n in range(count)], pa.int32())
    texts = pa.array([f"text {n % 100}" for n in range(count)])
    table.write(pa.table({"id": numbers, "day": days, "v": days, "s": texts}))
    changes = [row(n * 7, v=-n) for n in range(1000)]
    used: list[int] = []

    class Recording(ThreadExecutor):
        def map(self, function, tasks, discard=None):
            used.append(1)
            return super().map(function, tasks)

    def merge(executor: Executor) -> bytes:
        """Merge, and return the bytes of the new file."""
        own = table.with_engine(evolve(table.engine, executor=executor))
        assert run(own.merge(changes, "id").when_matched_update({"v": "source.v"})) == (0, 1000, 0)
        (split,) = table.scan().plan().splits
        (path,) = split.file_paths
        return Path(path).read_bytes()

    first = merge(SerialExecutor())
    table.maintain.rollback_to(1)
    assert merge(Recording(2)) == first
    # The splits, the batches of two reads, and the columns of the new file.
    assert len(used) == 4


@pytest.mark.parametrize("layout", ["append", "fixed"])
def test_times_of_a_merge_are_those_of_its_zone(tmp_path: Path, layout: str) -> None:
    noon = datetime(2026, 7, 1, 3, tzinfo=UTC)  # 12:00 in Tokyo
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    ddl = "id BIGINT NOT NULL, at TIMESTAMP_LTZ(6), local TIMESTAMP(6), n INT"
    table = catalog.create_table("db.t", ddl, **LAYOUTS[layout])
    table.write([{"id": i, "at": noon + timedelta(hours=i), "local": None, "n": 0} for i in range(3)])
    rows = pa.table({"id": [0, 1, 2, 3], "l": pa.array([datetime(2026, 7, 2)] * 4, pa.timestamp("us"))})
    merge = table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
    merge = evolve(merge, request=evolve(merge.request, time_zone="Asia/Tokyo"))
    merge = (
        merge.when_matched_update({"n": "hour(t.at)", "at": "s.l"}, condition="t.at = '2026-07-01 12:00:00'")
        .when_matched_update({"local": "t.at", "at": "'2026-07-03'"}, condition="hour(t.at) = 13")
        .when_not_matched_insert({"id": "s.id", "at": "s.l", "n": "hour(s.l)"})
    )
    merge.execute()
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    day = datetime(2026, 7, 1, 15, tzinfo=UTC)  # 2 July in Tokyo
    assert [(row["at"], row["local"], row["n"]) for row in found] == [
        (day, None, 12),
        (day + timedelta(days=1), datetime(2026, 7, 1, 13), 0),
        (noon + timedelta(hours=2), None, 0),
        (day, None, 0),
    ]
