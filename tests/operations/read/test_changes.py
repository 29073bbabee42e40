"""Changes and incremental reads of tables on disk: their rows, and that they lead from state to state."""

from __future__ import annotations

import pickle
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products

import paimon
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.schema.changes import AddColumn, RenameColumn
from paimon.domain.types.data_types import IntType

ONE_BUCKET = {"bucket": "1"}
KINDS = ["+I", "-U", "+U", "-D"]


def new_table(root: Path, options: Mapping[str, str] = ONE_BUCKET, *, keyed: bool = True) -> paimon.Table:
    catalog = paimon.connect(root / "lake")
    catalog.create_database("shop")
    keys = ["k"] if keyed else []
    return catalog.create_table("shop.orders", "k INT NOT NULL, v INT", primary_keys=keys, options=dict(options))


def write_changes(table: paimon.Table, *rows: tuple[int, int | None, str]) -> None:
    data = {"k": [r[0] for r in rows], "v": pa.array([r[1] for r in rows], pa.int32()), "op": [r[2] for r in rows]}
    table.write(data, kind_column="op")


def to_tuples(changes: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in changes.to_arrow().to_pylist()]


def read_values(table: paimon.Table, options: Mapping[str, object]) -> list[tuple[int, int]]:
    rows = table.with_options(options).scan().to_arrow().to_pylist()
    return sorted((row["k"], row["v"]) for row in rows)


def read_audit_log(table: paimon.Table, options: Mapping[str, object]) -> list[tuple[str, int, int]]:
    rows = table.with_options(options).system_table("audit_log").scan().to_arrow().to_pylist()
    return sorted((row["rowkind"], row["k"], row["v"]) for row in rows)


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    table = new_table(tmp_path)
    write_changes(table, (1, 1, "+I"), (2, 2, "+I"))
    write_changes(table, (1, None, "-D"), (2, 20, "+U"))
    write_changes(table, (3, 3, "+I"))
    return table


def test_without_producer_the_records_of_each_append(orders: paimon.Table) -> None:
    changes = orders.changes()
    assert changes.arrow_schema.names == ["_snapshot_id", "_row_kind", "k", "v"]
    assert changes.arrow_schema.field("_snapshot_id").type == pa.int64()
    assert [s.id for s in changes.snapshots] == [1, 2, 3]
    assert to_tuples(changes) == [
        (1, "+I", 1, 1),
        (1, "+I", 2, 2),
        (2, "-D", 1, None),
        (2, "+U", 2, 20),
        (3, "+I", 3, 3),
    ]
    assert changes.to_batches().read_all().equals(changes.to_arrow())
    assert changes.count() == 5


@pytest.mark.parametrize("options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}])
def test_a_range_read_skips_level_0_like_a_batch_read(tmp_path: Path, options: Mapping[str, str]) -> None:
    """As in Java: batch reads of these tables do not return level 0, streams do."""
    table = new_table(tmp_path, {**ONE_BUCKET, "write-only": "true", **options})
    write_changes(table, (1, 1, "+I"))
    assert (
        read_values(table, {"incremental-between": "0,1"})
        == read_audit_log(table, {"incremental-between": "0,1"})
        == []
    )
    assert to_tuples(table.changes()) == [(1, "+I", 1, 1)]


def test_an_input_changelog_contains_rows_that_a_flush_merges(tmp_path: Path) -> None:
    table = new_table(tmp_path, {"bucket": "1", "changelog-producer": "input"})
    write_changes(table, (1, 1, "+I"), (1, 1, "-U"), (1, 2, "+U"))
    assert to_tuples(table.changes()) == [(1, "+I", 1, 1), (1, "-U", 1, 1), (1, "+U", 1, 2)]
    assert read_values(table, {}) == [(1, 2)]


def test_a_range_leaves_out_its_start(orders: paimon.Table) -> None:
    assert to_tuples(orders.changes(after=1, through=2)) == [(2, "-D", 1, None), (2, "+U", 2, 20)]
    assert to_tuples(orders.changes(after=3)) == []
    assert to_tuples(orders.changes(after=2)) == to_tuples(orders.changes(after=2, through=3))


def test_a_scan_of_changes_is_pinned(orders: paimon.Table) -> None:
    changes = orders.changes(after=2)
    before = to_tuples(changes)
    write_changes(orders, (4, 4, "+I"))
    assert to_tuples(changes) == before
    assert to_tuples(orders.changes(after=2)) == [*before, (4, "+I", 4, 4)]


def test_columns_and_conditions(orders: paimon.Table) -> None:
    assert to_tuples(orders.changes(columns=["v"], where="k = 2")) == [(1, "+I", 2), (2, "+U", 20)]
    assert to_tuples(orders.changes(columns=[], where="_row_kind = '-D'")) == [(2, "-D")]
    assert to_tuples(orders.changes(columns=["v"], where="k + k = 4 AND v < 10 * k")) == [(1, "+I", 2)]
    either = "lower(_row_kind) = '-d' OR CASE WHEN k = 2 THEN v END = 20"
    assert to_tuples(orders.changes(columns=[], where=either)) == [(2, "-D"), (2, "+U")]
    with pytest.raises(InvalidRequest, match="is not a condition"):
        orders.changes(where="k + 1").to_arrow()
    for name in ("vv", "rowkind", "_row_kind"):
        with pytest.raises(InvalidRequest) as refused:
            orders.changes(columns=[name]).to_arrow()
        assert refused.value.subject == name
    with pytest.raises(InvalidRequest, match="_row_kid"):
        orders.changes(where="_row_kid = '-D'").to_arrow()


@pytest.mark.parametrize(
    "arguments", [{"through": 9}, {"after": 9}, {"after": 2, "through": 1}, {"after": -1}], ids=repr
)
def test_invalid_ranges(orders: paimon.Table, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        orders.changes(**arguments).to_arrow()


def test_an_empty_table_has_no_changes(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert to_tuples(table.changes()) == []
    assert to_tuples(table.changes(after=0)) == []
    with pytest.raises(InvalidRequest, match="no snapshot yet"):
        table.changes(after=1).to_arrow()


def test_expired_snapshots_are_followed_through_their_changelogs(orders: paimon.Table) -> None:
    root = Path(orders.location)
    everything = to_tuples(orders.changes())
    (root / "changelog").mkdir()
    for expired in (1, 2):
        shutil.move(root / "snapshot" / f"snapshot-{expired}", root / "changelog" / f"changelog-{expired}")
    (root / "snapshot" / "EARLIEST").write_text("3")
    assert to_tuples(orders.changes()) == everything
    (root / "changelog" / "changelog-1").unlink()
    assert to_tuples(orders.changes()) == [row for row in everything if row[0] > 1]
    with pytest.raises(NotFound, match="changes are those of 2"):
        orders.changes(after=0).to_arrow()


def test_old_changes_have_the_current_columns(orders: paimon.Table) -> None:
    table = orders.alter(RenameColumn(("v",), "value"), AddColumn(("more",), IntType()))
    assert table.changes(through=1).to_arrow().to_pylist() == [
        {"_snapshot_id": 1, "_row_kind": "+I", "k": 1, "value": 1, "more": None},
        {"_snapshot_id": 1, "_row_kind": "+I", "k": 2, "value": 2, "more": None},
    ]


def test_append_tables_return_inserts(tmp_path: Path) -> None:
    table = new_table(tmp_path, {}, keyed=False)
    table.write({"k": [1], "v": [1]})
    table.overwrite({"k": [2], "v": [2]}, partition={})
    table.write({"k": [3], "v": [3]})
    assert to_tuples(table.changes()) == [(1, "+I", 1, 1), (3, "+I", 3, 3)]
    seen = table.with_options({"streaming-read-append-overwrite": True})
    assert to_tuples(seen.changes()) == [(1, "+I", 1, 1), (2, "+I", 2, 2), (3, "+I", 3, 3)]
    assert read_values(table, {"incremental-between": "1,3", "incremental-between-scan-mode": "diff"}) == [
        (2, 2),
        (3, 3),
    ]


def test_an_option_includes_overwrites(orders: paimon.Table) -> None:
    orders.overwrite({"k": [2], "v": [5]}, partition={})
    assert to_tuples(orders.changes(after=3)) == []
    seen = to_tuples(orders.with_options({"streaming-read-overwrite": True}).changes(after=3))
    assert seen == [(4, "-D", 2, 20), (4, "-D", 3, 3), (4, "+I", 2, 5)]
    orders.compact(full=True)
    orders = orders.set_options({"changelog-producer": "lookup"})
    looked_up = orders.with_options({"streaming-read-overwrite": True})
    with pytest.raises(InvalidRequest, match="streaming-read-overwrite"):
        looked_up.changes().to_arrow()


def test_incremental_deltas_return_every_record(orders: paimon.Table) -> None:
    between = {"incremental-between": "1,3"}
    assert read_audit_log(orders, between) == [("+I", 3, 3), ("+U", 2, 20), ("-D", 1, None)]
    assert orders.with_options(between).scan().count() == 2
    assert read_values(orders, {"incremental-between": "2,2"}) == []
    assert read_values(orders, {"incremental-between": "2,3"}) == [(3, 3)]


@pytest.mark.parametrize(
    ("producer", "mode"),
    mark_products(["none", "input", "lookup", "full-compaction"], ["auto", "delta", "changelog", "diff"]),
)
def test_no_retract_is_a_row_of_an_incremental_read(tmp_path: Path, producer: str, mode: str) -> None:
    table = new_table(tmp_path, ONE_BUCKET | {"changelog-producer": producer})
    write_changes(table, (1, 1, "+I"), (2, 2, "+I"))
    first = table.snapshots()[-1].id
    table.delete("k = 2")
    table.update({"v": "9"}, "k = 1")
    last = table.snapshots()[-1].id
    options = {"incremental-between": f"{first},{last}", "incremental-between-scan-mode": mode}
    expected = [] if (producer, mode) == ("none", "changelog") else [{"k": 1, "v": 9}]
    between, default = table.with_options(options), table.with_options({"incremental-between": f"{first},{last}"})
    scan = between.scan().without_retracts()
    assert scan.to_arrow().to_pylist() == expected
    assert scan.count() == len(expected)
    assert default.scan(where="v = 2").count() == default.scan(where="v = 1").count() == 0
    if mode == "auto":
        builder = default.new_read_builder()
        splits = builder.new_scan().plan().splits()
        assert default.scan().to_arrow() == scan.to_arrow() == builder.new_read().to_arrow(splits)
    records = between.scan().to_arrow().to_pylist()  # as Java's TableRead
    assert len(records) > len(expected) or not expected or mode == "diff"
    catalog = paimon.connect(tmp_path / "lake")
    hint = f"/*+ OPTIONS('incremental-between' = '{first},{last}', 'incremental-between-scan-mode' = '{mode}') */"
    assert catalog.sql(f"SELECT * FROM shop.orders {hint}").to_arrow().to_pylist() == expected
    assert catalog.sql(f"SELECT count(*) AS n FROM shop.orders {hint}").to_arrow().to_pylist() == [{"n": len(expected)}]
    if mode == "auto":
        query = f"SELECT * FROM paimon_incremental_query('shop.orders', '{first}', '{last}')"
        assert catalog.sql(query).to_arrow().to_pylist() == expected
    kinds = {row["rowkind"] for row in between.system_table("audit_log").scan().to_arrow().to_pylist()}
    assert ("-D" in kinds) == bool(expected)


@pytest.mark.parametrize("mode", ["delta", "changelog", "diff"])
def test_postponed_rows_are_in_no_range(tmp_path: Path, mode: str) -> None:
    table = new_table(tmp_path, {"bucket": "-2"})
    write_changes(table, (1, 1, "+I"))
    options = {"incremental-between": "0,1", "incremental-between-scan-mode": mode}
    assert read_values(table, options) == read_audit_log(table, options) == []  # type: ignore[comparison-overlap]
    assert to_tuples(table.changes()) == [(1, "+I", 1, 1)]


def test_the_difference_of_two_states(orders: paimon.Table) -> None:
    write_changes(orders, (2, 2, "+U"))
    between = {"incremental-between": "1,4", "incremental-between-scan-mode": "diff"}
    assert read_values(orders, between) == [(2, 2), (3, 3)]
    assert read_audit_log(orders, between) == [("+I", 3, 3), ("+U", 2, 2), ("-D", 1, None)]
    assert read_values(orders, {**between, "incremental-between": "0,1"}) == [(1, 1), (2, 2)]
    orders.overwrite({"k": [3, 4], "v": [3, 4]}, partition={})
    replaced = {**between, "incremental-between": "4,5"}
    assert read_audit_log(orders, replaced) == [("+I", 4, 4), ("-D", 2, 2)]
    assert orders.with_options(replaced).scan(where="k > 3").to_arrow().to_pylist() == [{"k": 4, "v": 4}]


def test_a_condition_on_values_does_not_make_rows_vanish(orders: paimon.Table) -> None:
    orders.overwrite({"k": [2, 3], "v": [21, 3]}, partition={})
    between = orders.with_options({"incremental-between": "3,4", "incremental-between-scan-mode": "diff"})
    rows = between.system_table("audit_log").scan(where="v = 20").to_arrow().to_pylist()
    assert rows == []  # the row is updated, not deleted
    assert between.scan(where="v > 20").to_arrow().to_pylist() == [{"k": 2, "v": 21}]


def test_combining_merge_engines_return_complete_rows(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    options = {"bucket": "1", "merge-engine": "partial-update"}
    table = catalog.create_table("shop.t", "k INT NOT NULL, v INT, w INT", primary_keys=["k"], options=options)
    table.write({"k": [1, 2], "v": [1, 2], "w": [1, 2]})
    table.write({"k": [1, 2], "v": [None, None], "w": [5, 2]})
    between = table.with_options({"incremental-between": "1,2", "incremental-between-scan-mode": "diff"})
    assert between.scan().to_arrow().to_pylist() == [{"k": 1, "v": 1, "w": 5}]


def test_between_times(orders: paimon.Table) -> None:
    first, *_ = orders.snapshots()
    time.sleep(0.002)
    write_changes(orders, (9, 9, "+I"))
    *_, before, last = orders.snapshots()
    assert read_values(orders, {"incremental-between-timestamp": f"{before.time_millis},{last.time_millis}"}) == [
        (9, 9)
    ]
    assert read_values(orders, {"incremental-between-timestamp": f"0,{first.time_millis - 1}"}) == []
    assert orders.with_options({"incremental-between-timestamp": f"0,{last.time_millis}"}).scan().count() == 5


def test_between_tags_and_to_an_automatic_tag(orders: paimon.Table) -> None:
    root = Path(orders.location)
    (root / "tag").mkdir()
    for name, snapshot in (("2024-01-01", 1), ("2024-01-03", 3), ("other", 2)):
        shutil.copy(root / "snapshot" / f"snapshot-{snapshot}", root / "tag" / f"tag-{name}")
    assert read_values(orders, {"incremental-between": "2024-01-01,2024-01-03"}) == [(2, 20), (3, 3)]
    assert read_values(orders, {"incremental-to-auto-tag": "2024-01-03"}) == [(2, 20), (3, 3)]
    assert read_values(orders, {"incremental-to-auto-tag": "2024-01-01"}) == []
    by_id = {"incremental-between": "other,2024-01-03", "incremental-between-tag-to-snapshot": True}
    assert read_values(orders, by_id) == [(3, 3)]
    for options in ({"incremental-between": "2024-01-03,other"}, {"incremental-to-auto-tag": "other"}):
        with pytest.raises(InvalidRequest):
            read_values(orders, options)


def test_incremental_reads_are_planned_and_read_in_different_processes(orders: paimon.Table) -> None:
    between = {"incremental-between": "0,2", "incremental-between-scan-mode": "diff"}
    builder = orders.with_options(between).new_read_builder()
    splits = pickle.loads(pickle.dumps(builder.new_scan().plan().splits()))
    assert builder.new_read().to_arrow(splits).to_pylist() == [{"k": 2, "v": 20}]
    with pytest.raises(InvalidRequest, match="time travel"):
        orders.with_options(between).scan(snapshot=1).to_arrow()


A_RECORD = st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from(KINDS))
HISTORIES = st.lists(st.lists(A_RECORD, min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(HISTORIES, st.sampled_from(["none", "input"]), st.sampled_from(["1", "2"]), st.data())
def test_a_state_and_the_changes_after_it_make_the_later_state(
    history: list[list[tuple[int, int, str]]], producer: str, buckets: str, data: st.DataObject
) -> None:
    with TemporaryDirectory() as root:
        table = new_table(Path(root), {"bucket": buckets, "changelog-producer": producer})
        for commit in history:
            write_changes(table, *commit)
        start = data.draw(st.integers(0, len(history)))
        end = data.draw(st.integers(start, len(history)))
        assert apply_changes(state(table, start), table.changes(after=start, through=end)) == state(table, end)
        diff = {"incremental-between": f"{start},{end}", "incremental-between-scan-mode": "diff"}
        audit = table.with_options(diff).system_table("audit_log")
        assert apply_changes(state(table, start), audit.scan(), "rowkind") == state(table, end)


def state(table: paimon.Table, snapshot: int) -> dict[int, int]:
    if snapshot == 0:
        return {}
    return {row["k"]: row["v"] for row in table.scan(snapshot=snapshot).to_arrow().to_pylist()}


def apply_changes(rows: dict[int, int], changes: Any, kind: str = "_row_kind") -> dict[int, int]:
    rows = dict(rows)
    for change in changes.to_arrow().to_pylist():
        if change[kind] in ("+I", "+U"):
            rows[change["k"]] = change["v"]
        else:
            rows.pop(change["k"], None)
    return rows


def test_changes_of_several_compactions_in_one_commit_are_in_order(tmp_path: Path) -> None:
    """The second compaction reports a row that is older than all rows that the first one reported."""
    table = new_table(tmp_path, {**ONE_BUCKET, "changelog-producer": "full-compaction"})
    table.write([{"k": 2, "v": 0}])
    last = table.snapshots()[-1].id
    builder = table.new_batch_write_builder()
    messages = []
    with builder.new_write() as writer:
        for rows in ([{"k": 1, "v": 1}], [{"k": 1, "v": 2}, {"k": 2, "v": 9}]):
            writer.write(rows)
            messages += writer.prepare_commit()
    builder.new_commit().commit(messages)
    found = [(kind, k, v) for _, kind, k, v in to_tuples(table.changes(after=last))]
    assert found == [("+I", 1, 1), ("-U", 1, 1), ("+U", 1, 2), ("-U", 2, 0), ("+U", 2, 9)]
