"""Global indexes of tables with data evolution: built, read, dropped, and never wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paimon
from paimon.domain.commit import plan_change
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.commit.request import CommitRequest
from paimon.domain.manifest.entries import IndexManifestEntry
from paimon.domain.scan import row_id_ranges
from paimon.operations import global_indexes
from paimon.operations.commit.commit import commit
from paimon.operations.metadata.manifests import read_index_manifest

OPTIONS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}
DROPS = {"global-index.column-update-action": "DROP_PARTITION_INDEX"}


@pytest.fixture(autouse=True)
def _select_single_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not join row ids that are close: indexes of small tables would select all rows, and never be wrong."""
    monkeypatch.setattr(row_id_ranges, "_CLOSE_ROWS", 0)


def create(tmp_path: Path, **options: str) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d", exist_ok=True)
    names = {key.replace("_", "-"): value for key, value in options.items()}
    columns = "id INT, p STRING, s STRING, v INT"
    return catalog.create_table(
        f"d.t{len(catalog.tables('d'))}", columns, partition_keys=["p"], options=OPTIONS | names
    )


def rows_of(start: int, end: int) -> list[dict[str, Any]]:
    return [
        {"id": i, "p": "ab"[i % 2], "s": None if i % 7 == 0 else f"s{i % 50}", "v": i % 30} for i in range(start, end)
    ]


def read(table: paimon.Table, where: str, use_index: bool = True) -> list[dict[str, Any]]:
    opened = table.with_options({"global-index.enabled": str(use_index).lower()})
    return sorted(opened.scan(where=where).to_arrow().to_pylist(), key=lambda row: row["id"])


def index_entries(table: paimon.Table) -> list[IndexManifestEntry]:
    snapshot = table.snapshot()
    assert snapshot is not None
    found = () if snapshot.index_manifest is None else read_index_manifest(table.context, snapshot.index_manifest)
    return [entry for entry in found if entry.global_index is not None]


def index_files(table: paimon.Table) -> set[str]:
    return {path.name for path in Path(table.location, "index").glob("*-global-index-*")}


CONDITIONS = (
    "s = 's7'", "s IS NULL", "v = 3", "v < 2 OR s = 's1'", "s LIKE 's4%' AND v > 20", "v IN (1, 9, 100)",
    "NOT (v >= 5)", "s = 's3' AND p = 'a'", "s = 'new'", "s = 'new' OR v = 77", "s <> 's1'",
)  # fmt: skip
STEPS = st.sampled_from(("append", "update", "update_indexed", "delete", "create_s", "create_v", "drop_s", "overwrite"))


def run_step(table: paimon.Table, step: str, number: int) -> None:
    match step:
        case "append":
            table.write(rows_of(number * 1000, number * 1000 + 40))
        case "update":
            table.with_options(DROPS).update({"v": "77"}, f"id % 11 = {number % 11}")
        case "update_indexed":
            table.with_options(DROPS).update({"s": "'new'"}, f"v = {number % 30} AND p = 'a'")
        case "delete":
            table.delete(f"s = 's{number}' AND v < 15")
        case "create_s" | "create_v":
            table.maintain.create_global_index(step[-1])
        case "drop_s":
            table.maintain.drop_global_index("s")
        case "overwrite":
            table.overwrite(rows_of(number * 1000 + 500, number * 1000 + 520)[::2], partition={"p": "a"})


def check_history(tmp_path: Path, steps: Sequence[str], most: int = len(CONDITIONS)) -> None:
    """Run the steps, and compare the answers with and without indexes after each; `most` conditions each time."""
    table = create(tmp_path, **{"btree_index.block_size": "100 b", "btree_index.records_per_range": "15"})
    for number, step in enumerate(("append", "create_s", *steps)):
        run_step(table, step, number)
        for where in (CONDITIONS * 2)[number : number + most]:
            assert read(table, where) == read(table, where, use_index=False), (step, where)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=5))
def test_an_index_never_changes_an_answer(tmp_path: Path, steps: list[str]) -> None:
    check_history(tmp_path, steps, most=4)


def test_answers_after_each_kind_of_change(tmp_path: Path) -> None:
    check_history(tmp_path, ("append", "create_v", "update_indexed", "delete", "create_s", "update"), most=6)


def test_a_stale_index_would_change_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: an update of the indexed column keeps the index."""
    monkeypatch.setattr(plan_change, "drop_stale_indexes", lambda change, *_: change)
    with pytest.raises(AssertionError):
        check_history(tmp_path, ("update_indexed",))


def test_few_rows_are_read_and_the_plan_names_the_index(tmp_path: Path) -> None:
    table = create(tmp_path)
    for start in range(0, 16_000, 4_000):
        table.write([{"id": i, "p": "a", "s": f"k{i}", "v": 0} for i in range(start, start + 4_000)])
    done = table.maintain.create_global_index("s")
    assert (done.files, done.rows) == (1, 16_000)
    table.write([{"id": -1, "p": "a", "s": "k5000", "v": 1}])
    plan = table.scan(where="s = 'k5000'").plan()
    assert "global index btree(s): 5 -> 2" in plan.explain()
    assert [split.row_id_ranges for split in plan.splits] == [((5_000, 5_001), (16_000, 16_001))]
    assert [split.merged_row_count for split in plan.splits] == [None]
    assert [row["id"] for row in read(table, "s = 'k5000'")] == [-1, 5_000]
    assert read(table, "s = 'k77777'") == []
    assert table.scan(where="s = 'k5000'").count() == 2
    assert table.update({"v": "v + 10"}, "s = 'k5000'").rows == 2
    assert table.delete("s = 'k5000' AND v = 11").rows == 1
    assert [row["id"] for row in read(table, "s = 'k5000'")] == [5_000]


def test_a_second_call_indexes_what_was_appended(tmp_path: Path) -> None:
    table = create(tmp_path)
    assert table.maintain.create_global_index("s").snapshot_id is None
    table.write(rows_of(0, 100))
    assert table.maintain.create_global_index("s", where="p = 'a'").rows == 50
    assert table.maintain.create_global_index("s").rows == 50
    table.write(rows_of(100, 150))
    assert table.maintain.create_global_index("s").rows == 50
    assert table.maintain.create_global_index("s").snapshot_id is None
    ranges = sorted(
        (e.global_index.row_range_start, e.global_index.row_range_end) for e in index_entries(table) if e.global_index
    )
    assert ranges == [(0, 49), (50, 99), (100, 124), (125, 149)]
    assert table.maintain.drop_global_index("s", where="p = 'b'", dry_run=True).files == 2
    assert table.maintain.drop_global_index("s", where="p = 'b'").files == 2
    assert table.maintain.drop_global_index("s").files == 2
    assert table.maintain.drop_global_index("s").snapshot_id is None


def test_an_index_file_of_no_rows_is_refused() -> None:
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "btree-index.records-per-range": "0"}
    catalog = paimon.connect("memory://no-rows")
    catalog.create_database("d")
    with pytest.raises(paimon.InvalidRequest, match=r"records-per-range.* is 0"):
        catalog.create_table("d.t", "id INT", options=options)
    table = catalog.create_table("d.t", "id INT", options=options | {"btree-index.records-per-range": "1"})
    table.write([{"id": 1}])
    with pytest.raises(paimon.InvalidRequest, match=r"records-per-range.* is -1"):
        table.with_options({"btree-index.records-per-range": "-1"}).maintain.create_global_index("id")


def test_the_options_limit_blocks_and_files(tmp_path: Path) -> None:
    table = create(tmp_path, **{"btree_index.records_per_range": "100"})
    table.write(rows_of(0, 500)[::2])
    assert table.maintain.create_global_index("v").files == 3
    sizes = []
    for size in ("100 b", "64 kb"):
        table.maintain.drop_global_index("v")
        table.with_options({"btree-index.block-size": size}).maintain.create_global_index("v")
        sizes.append(sum(entry.file_size for entry in index_entries(table)))
    assert sizes[0] > sizes[1]


def test_updates_of_indexed_values_are_refused_or_drop_the_index(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 40))
    table.maintain.create_global_index("s")
    before = {path.name for path in Path(table.location).rglob("data-*")}
    with pytest.raises(paimon.InvalidRequest, match=r"Column 's' has a global index.*drop_partition_index"):
        table.update({"s": "'x'"}, "id = 3")
    assert {path.name for path in Path(table.location).rglob("data-*")} == before
    table.update({"v": "1"}, "id = 3")
    assert len(index_entries(table)) == 2
    table.with_options(DROPS).update({"s": "'x'"}, "id = 3")
    assert len(index_entries(table)) == 1
    assert [row["id"] for row in read(table, "s = 'x'")] == [3]


def test_an_update_during_the_build_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 40))
    build = global_indexes.build_index

    def build_slowly(*given: Any) -> Any:
        message = build(*given)
        table.update({"s": "'x'"}, "id = 3")
        return message

    monkeypatch.setattr(global_indexes, "build_index", build_slowly)
    with pytest.raises(paimon.CommitConflict, match="while their index was built"):
        table.maintain.create_global_index("s", where="p = 'b'")
    assert index_files(table) == set()
    monkeypatch.undo()
    table.maintain.create_global_index("s")
    assert [row["id"] for row in read(table, "s = 'x'")] == [3]


def test_a_rollback_during_the_build_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row ids become those of other rows."""
    table = create(tmp_path)
    table.write(rows_of(0, 4))
    table.write(rows_of(4, 8))
    build = global_indexes.build_index

    def build_slowly(*given: Any) -> Any:
        message = build(*given)
        table.maintain.rollback_to(snapshot=1)
        table.write(rows_of(20, 24))
        return message

    monkeypatch.setattr(global_indexes, "build_index", build_slowly)
    with pytest.raises(paimon.CommitConflict, match="computed from are not in the table"):
        table.maintain.create_global_index("s", where="p = 'b'")
    assert index_files(table) == set()


def test_two_builds_of_the_same_rows_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 40))
    build = global_indexes.build_index

    def build_twice(*given: Any) -> Any:
        monkeypatch.setattr(global_indexes, "build_index", build)
        table.maintain.create_global_index("s")
        return build(*given)

    monkeypatch.setattr(global_indexes, "build_index", build_twice)
    with pytest.raises(paimon.CommitConflict, match="already have a global index"):
        table.maintain.create_global_index("s", where="p = 'a'")
    assert len(index_files(table)) == 2


def test_appends_and_deletes_during_the_build_are_no_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 40))
    build = global_indexes.build_index

    def build_slowly(*given: Any) -> Any:
        table.write(rows_of(100, 110))
        table.delete("id = 3")
        return build(*given)

    monkeypatch.setattr(global_indexes, "build_index", build_slowly)
    assert table.maintain.create_global_index("s", where="p = 'b'").rows == 20
    for where in CONDITIONS:
        assert read(table, where) == read(table, where, use_index=False)


def test_a_failed_build_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path, **{"btree_index.records_per_range": "10"})
    table.write(rows_of(0, 40))
    added = iter(range(4))

    def fail_later(self: Any, rows: Any) -> None:
        add(self, rows)
        if next(added) == 1:
            raise paimon.StorageError("x", "the disk is full")

    add = global_indexes._IndexFile.add
    monkeypatch.setattr(global_indexes._IndexFile, "add", fail_later)
    with pytest.raises(paimon.StorageError):
        table.maintain.create_global_index("s", where="p = 'a'")
    assert index_files(table) == set()


def test_expiry_orphans_checks_clones_and_rollback_know_the_files(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 100))
    table.maintain.create_global_index("s")
    first = index_files(table)
    assert table.maintain.check(deep=True).faults == ()
    assert table.maintain.remove_orphans(timedelta(0), allow_young=True).num_rows == 0
    paimon.connect(tmp_path).clone_table(table.name, "d.copy")
    copy = paimon.connect(tmp_path).table("d.copy")
    assert index_files(copy) == first
    assert "global index" in copy.scan(where="s = 's1'").plan().explain()
    assert read(copy, "s = 's1'") == read(table, "s = 's1'")
    table.maintain.drop_global_index("s")
    table.maintain.create_global_index("s")
    assert len(index_files(table)) == 4
    table.maintain.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    assert index_files(table) == {entry.file_name for entry in index_entries(table)}
    copy.write(rows_of(100, 120))
    copy.with_options(DROPS).update({"s": "'x'"}, "id < 50")
    copy.maintain.rollback_to(snapshot=1)
    assert "global index" in copy.scan(where="s = 's1'").plan().explain()
    assert read(copy, "s = 's1'") == read(table, "s = 's1'")


def test_damage_and_missing_files_are_reported(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 100))
    table.maintain.create_global_index("s", where="p = 'a'")
    (path,) = Path(table.location, "index").glob("btree-*")
    stored = path.read_bytes()
    flipped = bytearray(stored)
    flipped[20] ^= 1
    path.write_bytes(flipped)
    assert table.maintain.check().faults == ()
    (fault,) = table.maintain.check(deep=True).faults
    assert fault.path.endswith(path.name) and "wrong checksum" in fault.reason
    path.write_bytes(stored[:-9] + b"xxxxxxxxx")
    with pytest.raises(paimon.CorruptTable, match=r"is a damaged global index.*drop_global_index"):
        read(table, "s = 's1'")
    assert len(read(table, "s = 's2'", use_index=False)) == 2
    os.remove(path)
    with pytest.raises(paimon.CorruptTable, match=r"does not exist.*drop_global_index"):
        read(table, "s = 's1'")
    assert [fault.path.endswith(path.name) for fault in table.maintain.check().faults] == [True]
    table.maintain.drop_global_index("s")
    assert read(table, "s = 's1'") == read(table, "s = 's1'", use_index=False)


def test_columns_and_tables_that_cannot_be_indexed(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 20))
    with pytest.raises(paimon.InvalidRequest, match="Did you mean 's'"):
        table.maintain.create_global_index("S")
    with pytest.raises(paimon.Unsupported, match="'bitmap'"):
        table.maintain.create_global_index("s", "bitmap")
    with pytest.raises(paimon.InvalidRequest, match="not a partition column"):
        table.maintain.create_global_index("s", where="v = 1")
    with pytest.raises(paimon.Unsupported, match="outside the table"):
        table.with_options({"global-index.external-path": "file:///x"}).maintain.create_global_index("s")
    table.maintain.create_global_index("v")
    table.alter_column_type("v", "BIGINT")
    changed = paimon.connect(tmp_path).table(table.name)
    with pytest.raises(paimon.Unsupported, match="whose type changed to BIGINT"):
        changed.maintain.create_global_index("v")
    for where in ("v = 3", "v > 17"):
        assert "global index" not in changed.scan(where=where).plan().explain()
        assert read(changed, where) == read(changed, where, use_index=False)
    catalog = paimon.connect(tmp_path)
    plain = catalog.create_table("d.plain", "id INT, c CHAR(3), a ARRAY<INT>")
    with pytest.raises(paimon.InvalidRequest, match="no lasting ids"):
        plain.maintain.create_global_index("id")
    other = catalog.create_table("d.other", "id INT, c CHAR(3), a ARRAY<INT>", options=OPTIONS)
    for name in "ca":
        with pytest.raises(paimon.Unsupported, match=r"of type (CHAR|ARRAY)"):
            other.maintain.create_global_index(name)


def test_a_renamed_column_keeps_its_index(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 100))
    table.maintain.create_global_index("s")
    table.rename_column("s", "text")
    renamed = paimon.connect(tmp_path).table(table.name)
    assert "btree(text)" in renamed.scan(where="text = 's1'").plan().explain()
    assert read(renamed, "text = 's1'") == read(renamed, "text = 's1'", use_index=False) != []
    with pytest.raises(paimon.InvalidRequest, match="Column 'text' has a global index"):
        renamed.update({"text": "'x'"}, "id = 1")


def test_updates_that_were_written_before_a_rename_are_refused_or_drop_the_index(tmp_path: Path) -> None:
    """Their files name the column as it was."""
    table = create(tmp_path)
    table.write(rows_of(0, 100)[::2])
    table.maintain.create_global_index("s")
    messages = table.new_batch_write_builder().new_update().update_by_row_id({"_ROW_ID": [3], "s": ["new"]})
    table.rename_column("s", "text")
    renamed = paimon.connect(tmp_path).table(table.name)
    with pytest.raises(paimon.InvalidRequest, match="Column 'text' has a global index"):
        commit(renamed.context, CommitRequest(messages, "user"))
    commit(renamed.with_options(DROPS).context, CommitRequest(messages, "user"))
    assert [row["id"] for row in read(renamed, "text = 'new'")] == [6]


def test_an_index_of_another_type_is_kept(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 40)[::2])
    context, snapshot = table.context, table.snapshot()
    assert snapshot is not None
    (task,) = global_indexes._plan_tasks(context, snapshot, table.table_schema.field_of("s"), None)
    message = global_indexes.build_index(context, task)
    others = [evolve(entry, index_type="bitmap") for entry in message.compact.new_index_files]
    other = evolve(message, compact=evolve(message.compact, new_index_files=others))
    commit(context, CommitRequest([other], "user"))
    assert table.maintain.create_global_index("s").files == 1
    assert sorted(entry.index_type for entry in index_entries(table)) == ["bitmap", "btree"]
    with pytest.raises(paimon.InvalidRequest, match=r"no global index of type 'bitmp'. It has: bitmap, btree\."):
        table.maintain.drop_global_index("s", "bitmp")


def test_the_index_of_a_dropped_column_can_be_dropped(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 40))
    for name in "sv":
        table.maintain.create_global_index(name)
    table.rename_column("s", "text")
    dropped = paimon.connect(tmp_path).table(table.name).drop_column("text")
    dropped.update({"id": "id + 1"}, "id = 3")
    dropped.rename_column("v", "text")
    named_again = paimon.connect(tmp_path).table(table.name)
    assert named_again.maintain.drop_global_index("s", dry_run=True).files == 2
    assert named_again.maintain.drop_global_index("text", dry_run=True).files == 4
    assert named_again.maintain.drop_global_index("s").files == 2
    with pytest.raises(paimon.InvalidRequest, match="'v' does not exist"):
        named_again.maintain.drop_global_index("v")
    assert named_again.maintain.drop_global_index("text").files == 2


def test_an_index_of_another_branch(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 100))
    table.tags.create("start")
    table.branches.create("trial", tag="start")
    branch = paimon.connect(tmp_path).table(f"{table.name}$branch_trial")
    branch.maintain.create_global_index("s")
    branch.write(rows_of(100, 150))
    assert "global index" in branch.scan(where="s = 's1'").plan().explain()
    assert "global index" not in table.scan(where="s = 's1'").plan().explain()
    assert read(branch, "s = 's1'") == read(branch, "s = 's1'", use_index=False)
    assert table.maintain.remove_orphans(timedelta(0), allow_young=True).num_rows == 0


def test_the_schemas_of_a_branch_do_not_decide_for_another(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 20))
    table.maintain.create_global_index("v")
    table.tags.create("start")
    table.branches.create("trial", tag="start")
    catalog = paimon.connect(tmp_path)
    catalog.table(f"{table.name}$branch_trial").alter_column_type("v", "BIGINT")
    table.add_column("more", "INT")
    branch, main = catalog.table(f"{table.name}$branch_trial"), catalog.table(table.name)
    assert "global index" not in branch.scan(where="v = 3").plan().explain()
    assert "global index" in main.scan(where="v = 3").plan().explain()


def test_changes_between_snapshots_do_not_depend_on_an_index(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 40))
    table.maintain.create_global_index("v")
    table.with_options(DROPS).update({"v": "77"}, "id % 4 = 0")
    answers = []
    for use_index in ("true", "false"):
        options = {"incremental-between-scan-mode": "diff", "global-index.enabled": use_index}
        found = table.with_options({"incremental-between": "2,3", **options}).scan(where="v = 77").to_arrow()
        answers.append(sorted(found.to_pylist(), key=str))
    assert len(answers[0]) == 10
    assert answers[0] == answers[1]


def test_messages_of_a_build_survive_their_encoding(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.write(rows_of(0, 40))
    context, snapshot = table.context, table.snapshot()
    assert snapshot is not None
    tasks = global_indexes._plan_tasks(context, snapshot, table.table_schema.field_of("s"), None)
    messages = decode(encode([global_indexes.build_index(context, task) for task in tasks]))
    commit(context, CommitRequest(messages, "user"))
    assert len(index_entries(table)) == 2
    with pytest.raises(paimon.CommitConflict, match=r"already in the table|already have"):
        commit(context, CommitRequest([evolve(message) for message in messages], "user"))
