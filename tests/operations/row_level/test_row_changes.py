"""Deleting and updating rows: the table equals a list of the same rows, or the call is refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paimon
from paimon.domain.errors import CommitConflict, InvalidRequest, Unsupported
from paimon.domain.predicate.build import col
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.operations.row_level import delete_update
from paimon.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("v", pa.int32()), ("s", pa.string())])
MARKED = {"deletion-vectors.enabled": "true"}
FIXED = {"bucket": "2", "bucket-key": "id"}
LAYOUTS: list[dict[str, str]] = [
    {},
    MARKED,
    {**MARKED, "deletion-vectors.bitmap64": "true", "deletion-vector.index-file.target-size": "30 b"},
    FIXED,
    {**FIXED, **MARKED},
]
Rows = list[dict[str, Any]]


def make(place: Path, options: dict[str, str], primary_keys: list[str] | None = None, name: str = "t") -> Table:
    catalog = paimon.connect(str(place))
    catalog.create_database("d", exist_ok=True)
    return catalog.create_table(
        f"d.{name}", SCHEMA, primary_keys=primary_keys or [], partition_keys=["day"], options=options
    )


def rows(first: int, count: int, day: int = 1) -> Rows:
    numbers = range(first, first + count)
    return [{"id": i, "day": day, "v": i % 5, "s": None if i % 4 == 0 else f"s{i}"} for i in numbers]


def read(table: Table, **kinds: Any) -> Rows:
    return sorted(table.scan(**kinds).to_arrow().to_pylist(), key=lambda r: (r["day"], r["id"]))


class Model:
    """The expected rows of the table."""

    def __init__(self) -> None:
        self.rows: Rows = []

    def sorted(self) -> Rows:
        return sorted(self.rows, key=lambda r: (r["day"], r["id"]))


WHERES: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("v = 3", lambda r: r["v"] == 3),
    ("s IS NULL", lambda r: r["s"] is None),
    ("s <> 's1' AND day = 1", lambda r: r["s"] is not None and r["s"] != "s1" and r["day"] == 1),
    ("id BETWEEN 4 AND 11", lambda r: 4 <= r["id"] <= 11),
    ("day = 2", lambda r: r["day"] == 2),
    ("1 = 0", lambda r: False),
    ("id < 2 OR v > 3", lambda r: r["id"] < 2 or r["v"] > 3),
]
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "delete", "update"]), st.sampled_from(WHERES), st.integers(1, 2)),
    min_size=2,
    max_size=6,
)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(LAYOUTS), STEPS)
def test_the_table_equals_a_model(
    tmp_path_factory: pytest.TempPathFactory, options: dict[str, str], steps: list[Any]
) -> None:
    table, model, following = make(tmp_path_factory.mktemp("rows"), options), Model(), 0
    for action, (text, holds), day in [("write", WHERES[0], 1), *steps]:
        if action == "write":
            table.write(rows(following, 7, day))
            model.rows += rows(following, 7, day)
            following += 7
            continue
        expected = [r for r in model.rows if holds(r)]
        if action == "delete":
            assert table.delete(text).rows == len(expected)
            model.rows = [r for r in model.rows if not holds(r)]
        else:
            assert table.update({"v": "v + 1", "s": "'new'"}, where=text).rows == len(expected)
            model.rows = [{**r, "v": r["v"] + 1, "s": "new"} if holds(r) else r for r in model.rows]
        assert read(table) == model.sorted()
        assert table.scan().count() == len(model.rows)


def test_rows_of_a_bucket_stay_in_order_when_their_file_is_rewritten(tmp_path: Path) -> None:
    table = make(tmp_path, {"bucket": "1", "bucket-key": "id"})
    table.write(rows(0, 10))
    table.update({"s": "'x'"}, where="v = 1")
    assert table.scan().to_arrow()["id"].to_pylist() == list(range(10))
    table.delete(where="v = 0")
    assert table.scan().to_arrow()["id"].to_pylist() == [i for i in range(10) if i % 5]


@pytest.mark.parametrize("options", LAYOUTS)
def test_a_delete_is_one_overwrite_snapshot_and_earlier_ones_stay(tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path, options)
    table.write(rows(0, 8))
    done = table.delete(where="id = 3", properties={"why": "asked to"})
    snapshot = table.snapshot()
    assert snapshot is not None
    assert done.snapshot_ids == (snapshot.id,)
    assert (snapshot.commit_kind, snapshot.operation) == (CommitKind.OVERWRITE, "DELETE")
    assert snapshot.properties["why"] == "asked to"
    assert read(table, snapshot=1) == rows(0, 8)
    assert table.delete(where="id = 3").snapshot_ids == ()
    table.update({"s": None}, where=col("id") == 4)
    newest = table.snapshot()
    assert newest is not None
    assert newest.operation == "UPDATE"


def test_a_delete_never_drops_a_part_of_its_condition(tmp_path: Path) -> None:
    table = make(tmp_path, {})
    table.write(rows(0, 6, day=1) + rows(6, 6, day=2))
    before = read(table)
    with pytest.raises(InvalidRequest, match="between"):
        table.delete(where=col("id") < 9 and col("day") == 2)
    with pytest.raises(InvalidRequest, match="between"):
        table.update({"v": "0"}, where=0 < col("id") < 3)
    for dropped in (False, True, None, [col("id") == 1], col("id")):
        with pytest.raises(InvalidRequest):
            table.delete(where=dropped)  # type: ignore[arg-type]
    assert read(table) == before
    assert table.delete(where=(col("id") < 9) & (col("day") == 2)).rows == 3
    assert table.delete(where=col("id").between(1, 2)).rows == 2


def test_a_file_is_not_renamed_if_rows_are_deleted_by_vector(tmp_path: Path) -> None:
    table = make(tmp_path, MARKED)
    table.write(rows(0, 8))
    before = {f.file_name for split in table.scan().plan().splits for f in split.files}
    table.delete(where="v = 1")
    splits = table.scan().plan().splits
    assert {f.file_name for split in splits for f in split.files} == before
    assert [d.range.cardinality for split in splits for d in split.deletion_files if d] == [2]


def test_index_files_that_hold_no_changed_vector_stay(tmp_path: Path) -> None:
    table = make(tmp_path, {**MARKED, "deletion-vector.index-file.target-size": "30 b"})
    for first in (0, 10, 20):
        table.write(rows(first, 10))
    table.delete(where="v = 1")
    names = {r["file_name"] for r in table.system_table("table_indexes").scan().to_arrow().to_pylist()}
    table.delete(where="id = 12")
    after = {r["file_name"] for r in table.system_table("table_indexes").scan().to_arrow().to_pylist()}
    assert len(names) == 3
    assert len(names & after) == 2
    assert table.scan().count() == 30 - 6 - 1


KEYED = [
    {"bucket": "2"},
    {"bucket": "2", "changelog-producer": "input"},
    {"bucket": "1", "sequence.field": "v"},
    {"bucket": "1", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
]


@pytest.mark.parametrize("options", KEYED)
def test_rows_with_keys(tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path, options, ["day", "id"])
    table.write(rows(0, 10))
    table.write(rows(5, 10))
    assert table.update({"v": "v + 10", "s": "'x'"}, where="id < 3").rows == 3
    assert table.delete(where="id >= 12 OR v = 11").rows == 4
    expected = [{**r, "v": r["v"] + 10, "s": "x"} if r["id"] < 3 else r for r in rows(0, 12)]
    assert read(table) == [r for r in expected if r["v"] != 11]
    newest = table.snapshot()
    assert newest is not None
    assert newest.commit_kind is not CommitKind.OVERWRITE


def test_aggregations_accept_deletes_if_configured(tmp_path: Path) -> None:
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
    refusing = make(tmp_path, options, ["day", "id"])
    refusing.write(rows(0, 4))
    with pytest.raises(InvalidRequest, match="does not accept deletes") as refused:
        refusing.delete(where="id = 1")
    assert "aggregation.remove-record-on-delete" in str(refused.value)
    with pytest.raises(InvalidRequest, match="does not accept updates"):
        refusing.update({"v": 1}, where="id = 1")
    taking = make(tmp_path, {**options, "aggregation.remove-record-on-delete": "true"}, ["day", "id"], "u")
    taking.write(rows(0, 4))
    taking.delete(where="id = 1")
    assert [r["id"] for r in read(taking)] == [0, 2, 3]


@pytest.mark.parametrize(
    "options", [{"merge-engine": "first-row"}, {"merge-engine": "partial-update"}, {"ignore-delete": "true"}]
)
def test_engines_that_take_no_deletes(tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path, {"bucket": "1", **options}, ["day", "id"])
    with pytest.raises(InvalidRequest, match="deletes"):
        table.delete(where="id = 1")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id": 3}, "primary key"),
        ({"day": 3}, "primary key"),
        ({"w": 3}, "'w'"),
        ({"v": "s + 1"}, "arithmetic needs numbers"),
        ({"v": "v * 3000000000"}, "'v'"),
        ({"v": Decimal("1.5")}, "1.5"),
        ({"s": "news"}, "'news'"),
        ({"v": "f(v)"}, "f"),
        ({}, "at least one column"),
    ],
)
def test_invalid_assignments(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    table = make(tmp_path, {"bucket": "1"}, ["day", "id"])
    table.write(rows(0, 5))
    with pytest.raises(InvalidRequest) as refused:
        table.update(values, where="id > 1")
    assert message.lower() in str(refused.value).lower()
    assert len(table.snapshots()) == 1
    assert read(table) == rows(0, 5)


def test_partition_columns_of_append_tables_stay(tmp_path: Path) -> None:
    table = make(tmp_path, {})
    with pytest.raises(InvalidRequest, match="partition"):
        table.update({"day": 2}, where="id = 1")
    with pytest.raises(InvalidRequest, match="wher"):
        table.delete(where="nowhere = 1")


def test_row_ids_are_not_lost(tmp_path: Path) -> None:
    table = make(tmp_path, {"row-tracking.enabled": "true"})
    table.write(rows(0, 5))
    with pytest.raises(Unsupported, match="row-tracking"):
        table.delete(where="id = 1")
    with pytest.raises(Unsupported, match="row-tracking"):
        table.update({"v": 1}, where="id = 1")


@pytest.mark.parametrize("options", [{"bucket": "1"}, {"bucket": "1", **MARKED}], ids=["merge on read", "vectors"])
def test_changes_of_keyed_rows_see_what_others_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    """An update neither overwrites the values of another writer, nor brings back the rows that it deleted."""
    table = make(tmp_path, options, ["id", "day"])
    table.write(rows(1, 3))
    commit, others = (
        delete_update.commit_rows,
        [lambda: table.delete("id = 2"), lambda: table.update({"v": "90"}, "id = 3")],
    )

    def commit_late(*arguments: Any, **more: Any) -> Any:
        while others:
            others.pop()()
        return commit(*arguments, **more)

    monkeypatch.setattr(delete_update, "commit_rows", commit_late)
    assert table.update({"v": "v + 1"}, "v > 0").rows == 2
    assert [(r["id"], r["v"]) for r in read(table)] == [(1, 2), (3, 91)]
    others += [lambda: table.update({"v": "0"}, "id = 1")]
    assert table.delete("v > 0").rows == 1
    assert [(r["id"], r["v"]) for r in read(table)] == [(1, 0)]


@pytest.mark.parametrize("options", [{"bucket": "1"}, {"bucket": "1", **MARKED}], ids=["merge on read", "vectors"])
def test_changes_of_keyed_rows_see_a_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    """An update does not bring back rows that a rollback removed, also if another commit has the same snapshot id."""
    table = make(tmp_path, options, ["id", "day"])
    commit = delete_update.commit_rows
    table.write(rows(1, 2))
    kept_id = table.snapshots()[-1].id
    table.write([{**r, "v": 50} for r in rows(1, 3)])
    read_id, states = table.snapshots()[-1].id, [7]

    def commit_late(*arguments: Any, **more: Any) -> Any:
        while states:
            table.maintain.rollback_to(kept_id)
            table.write([{**r, "v": states.pop()} for r in rows(3, 1)])
            assert table.snapshots()[-1].id == read_id
        return commit(*arguments, **more)

    monkeypatch.setattr(delete_update, "commit_rows", commit_late)
    assert table.update({"s": "'new'"}, "v > 0").rows == 3
    assert [(r["id"], r["v"], r["s"]) for r in read(table)] == [(1, 1, "new"), (2, 2, "new"), (3, 7, "new")]


@pytest.mark.parametrize("options", LAYOUTS)
def test_of_two_that_change_one_file_one_is_refused(
    tmp_path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path, options)
    table.write(rows(0, 9))
    other = table.with_options({})
    concurrent_actions: list[Callable[[], object]] = [lambda: other.delete(where="id = 2")]
    real = delete_update.commit_rows

    def commit(*args: Any) -> Any:
        while concurrent_actions:
            concurrent_actions.pop()()
        return real(*args)

    monkeypatch.setattr(delete_update, "commit_rows", commit)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(CommitConflict):
        table.update({"v": 100}, where="id <= 3")
    assert read(table) == [r for r in rows(0, 9) if r["id"] != 2]
    left = {p.name for p in set(tmp_path.rglob("*")) - before if p.is_file()}
    reachable = {p.name for p in _reachable(table, tmp_path)}
    assert {n for n in left if n.startswith(("data-", "index-")) and "manifest" not in n} <= reachable


def _reachable(table: Table, place: Path) -> list[Path]:
    names = {f.file_name for s in table.scan().plan().splits for f in s.files}
    names |= {r["file_name"] for r in table.system_table("table_indexes").scan().to_arrow().to_pylist()}
    return [p for p in place.rglob("*") if p.name in names]


@pytest.mark.parametrize("options", LAYOUTS)
def test_files_without_rows_go(tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path, options)
    for day in (1, 2):
        table.write(rows(0, 8, day))
    table.delete("day = 1 AND id = 3")
    assert table.delete("day = 1").rows == 7
    assert read(table) == rows(0, 8, 2)
    splits = table.scan().plan().splits
    assert {split.partition for split in splits} == {s.partition for s in table.scan(where="day = 2").plan().splits}
    assert not table.system_table("table_indexes").scan().to_arrow().num_rows or table.definition.is_bucketed
    assert table.update({"s": "'all'"}, where="TRUE").rows == 8
    assert {r["s"] for r in read(table)} == {"all"}
    assert sum(split.row_count for split in table.scan().plan().splits) == 8
    table.delete("TRUE")
    assert table.scan().plan().splits == ()


def test_changes_that_partial_update_does_not_accept_are_refused(tmp_path: Path) -> None:
    options = {"bucket": "1", "merge-engine": "partial-update"}
    table = make(tmp_path, options, ["day", "id"])
    table.write(rows(0, 6))
    with pytest.raises(InvalidRequest, match="'s' cannot be set to null"):
        table.update({"s": None}, where="id > 0")
    table.update({"s": None, "v": 7}, where="id IN (0, 4)")
    assert [r["v"] for r in read(table)] == [7, 1, 2, 3, 7, 0]
    grouped = make(tmp_path, {**options, "fields.v.sequence-group": "s"}, ["day", "id"], "grouped")
    grouped.write(rows(0, 6))
    grouped.update({"s": None}, where="id > 0")
    assert {r["s"] for r in read(grouped)} == {None}
    summing = {"fields.v.sequence-group": "s", "fields.s.aggregate-function": "listagg"}
    adding = make(tmp_path, {**options, **summing}, ["day", "id"], "adding")
    with pytest.raises(InvalidRequest, match="aggregates s"):
        adding.update({"v": "v + 1"}, where="TRUE")


@pytest.mark.parametrize("options", [FIXED, {**FIXED, **MARKED}])
def test_rows_whose_bucket_key_changes_move(tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path, options)
    table.write(rows(0, 12))
    table.update({"id": "id + 100"}, where="v < 3")
    expected = [{**r, "id": r["id"] + 100} if r["v"] < 3 else r for r in rows(0, 12)]
    assert read(table) == sorted(expected, key=lambda r: r["id"])
    for row in expected:
        assert table.scan(where=f"id = {row['id']}").to_arrow().to_pylist() == [row], "found in its own bucket"
