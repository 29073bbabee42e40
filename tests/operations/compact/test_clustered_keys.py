"""Primary-key tables whose files are clustered by other columns (`pk-clustering-override`), against a model by key."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.tables import create_table

import paimon
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.maintenance.sort_order import SortOrder
from paimon.operations.data_files import external_sort
from paimon.ports.engine import Engine

CLUSTERED = {
    "bucket": "1",
    "pk-clustering-override": "true",
    "clustering.columns": "c,v",
    "deletion-vectors.enabled": "true",
}
COLUMNS = "k INT NOT NULL, p INT NOT NULL, c STRING, v INT"
Row = dict[str, Any]


def make_rows(seed: int, keys: int = 40, count: int = 12) -> list[Row]:
    drawn = random.Random(seed)
    rows = {
        k: {"k": k, "p": k % 2, "c": drawn.choice([None, "a", "bb", "c" * 20]), "v": drawn.randrange(9)}
        for k in drawn.sample(range(keys), count)
    }
    return list(rows.values())


def rows_by_key(table: paimon.Table, rows: pa.Table | None = None) -> dict[int, Row]:
    found = (table.scan().to_arrow() if rows is None else rows).to_pylist()
    assert len({row["k"] for row in found}) == len(found)
    return {row["k"]: row for row in found}


def write_and_check(table: paimon.Table, steps: Iterable[int], first_wins: bool = False) -> dict[int, Row]:
    """Write, delete and read; after each step, scans, counts and lookups return the rows of the model."""
    model: dict[int, Row] = {}
    for step in steps:
        rows = make_rows(step)
        table.write(rows)
        model = {**{r["k"]: r for r in rows}, **model} if first_wins else {**model, **{r["k"]: r for r in rows}}
        if not first_wins and step % 2:
            deleted = sorted(model)[step % 3 :: 7]
            table.delete(where=f"k IN ({', '.join(map(str, deleted))})")
            model = {k: row for k, row in model.items() if k not in deleted}
        if table.options.get("write-only") == "true":
            table.compact()
        check_rows(table, model)
    return model


def check_rows(table: paimon.Table, model: Mapping[int, Row]) -> None:
    assert rows_by_key(table) == model
    assert table.scan().count() == len(model)
    assert rows_by_key(table, table.scan(where="c = 'bb' AND v < 5").to_arrow()) == {
        k: row for k, row in model.items() if row["c"] == "bb" and row["v"] < 5
    }
    keys = [{name: row[name] for name in table.primary_keys} for row in model.values()]
    assert rows_by_key(table, table.lookup(keys)) == model


def describe_files(table: paimon.Table) -> list[Row]:
    return table.system_table("files").scan().to_arrow().to_pylist()


@pytest.mark.parametrize(
    ("keys", "partitions", "options"),
    [
        ("k", [], {}),
        ("k", [], {"bucket": "2", "merge-engine": "first-row"}),
        ("p,k", ["p"], {"data-file.thin-mode": "true", "changelog-producer": "input"}),
        ("k", [], {"write-only": "true", "file.format": "avro", "deletion-vectors.bitmap64": "true"}),
        ("p,k", ["p"], {"bucket": "-1", "dynamic-bucket.target-row-num": "8", "clustering.columns": "p,c"}),
        ("k", [], {"clustering.columns": "v", "file-index.bloom-filter.columns": "k,c", "file.format": "orc"}),
    ],
    ids=["plain", "first-row", "thin", "write-only", "dynamic", "indexed"],
)
def test_reads_return_the_rows_of_each_key(
    tmp_path: Path, keys: str, partitions: list[str], options: dict[str, str]
) -> None:
    table = create_table(
        tmp_path, COLUMNS, primary_keys=keys.split(","), partition_keys=partitions, options={**CLUSTERED, **options}
    )
    model = write_and_check(table, range(5), "merge-engine" in options)
    assert table.maintain.check(deep=True).faults == ()
    assert table.compact(full=True).snapshot_ids
    check_rows(table, model)
    assert table.compact(full=True).snapshot_ids == ()
    assert table.maintain.check(deep=True).faults == ()


def test_a_full_compaction_leaves_one_run_in_the_order_of_the_columns(tmp_path: Path) -> None:
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=CLUSTERED)
    for step in range(3):
        table.write(make_rows(step))
    assert [(f["level"], f["deleteRowCount"]) for f in describe_files(table)] == [(1, 0)] * 3
    table.compact(full=True)
    order = [(row["c"] or "", row["v"]) for row in table.scan().to_arrow().to_pylist()]
    (file,) = describe_files(table)
    assert order == sorted(order)
    assert (file["min_key"], file["record_count"]) == (f"[null, {order[0][1]}]", len(order))
    assert table.scan().to_arrow()["k"].to_pylist() != sorted(table.scan().to_arrow()["k"].to_pylist())


def test_files_are_merged_when_there_are_enough_of_them(tmp_path: Path) -> None:
    """By default five runs that overlap; or as many neighbors that are small and overlap no other file."""
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=CLUSTERED)
    counts = []
    for step in range(7):
        table.write(make_rows(step))
        counts.append(len(describe_files(table)))
    assert counts == [1, 2, 3, 4, 5, 2, 3]
    ascending = create_table(
        tmp_path / "two", COLUMNS, primary_keys=["k"], options={**CLUSTERED, "clustering.columns": "v"}
    )
    for step in range(7):
        ascending.write([{"k": step, "p": 0, "c": None, "v": step}])
    assert len(describe_files(ascending)) == 3


def test_rows_of_level_0_are_merged_with_clustered_files(tmp_path: Path) -> None:
    """With merge-on-read, and where a stream starts at a state, level 0 is merged with files in another order."""
    options = {**CLUSTERED, "write-only": "true", "deletion-vectors.merge-on-read": "true"}
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=options)
    table.write(make_rows(0, 400, 300))
    table.compact()
    before = rows_by_key(table)
    table.write(make_rows(1, 400, 200))
    after = {**before, **{row["k"]: row for row in make_rows(1, 400, 200)}}
    assert rows_by_key(table) == after
    assert rows_by_key(table.with_options({"deletion-vectors.merge-on-read": "false"})) == before
    table.delete(where="v = 3")
    assert table.compact(full=True).files_after == 1
    assert rows_by_key(table) == {k: row for k, row in after.items() if row["v"] != 3}


def test_sorts_of_files_that_are_merged_share_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**CLUSTERED, "deletion-vectors.merge-on-read": "true"}
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=options)
    for step in range(3):
        table.write(make_rows(step))
    first = table.snapshots()[1].id
    table.with_options({"write-only": "true"}).write(make_rows(3))
    limits: list[int] = []
    begin = external_sort._Runs.__init__

    def record(runs: external_sort._Runs, engine: Engine, order: SortOrder) -> None:
        begin(runs, engine, order)
        limits.append(runs._limit)

    monkeypatch.setattr(external_sort._Runs, "__init__", record)
    between = {"incremental-between": f"{first},{table.snapshots()[-1].id}", "incremental-between-scan-mode": "diff"}
    for read in (table, table.with_options(between)):
        limits.clear()
        assert rows_by_key(read)
        assert len(limits) >= 3 and sum(limits) <= table.engine.memory.bytes // 8
    limits.clear()
    assert table.maintain.check(deep=True).faults == ()
    assert len(limits) >= 3 and sum(limits) <= table.engine.memory.bytes // 8


def test_one_repair_compacts_level_0(tmp_path: Path) -> None:
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options={**CLUSTERED, "write-only": "true"})
    for step in range(6):
        table.write(make_rows(step))
    assert table.scan().count() == 0
    health = table.maintain.health(fix=True)
    assert health.findings and health.is_healthy
    assert rows_by_key(table) == {row["k"]: row for step in range(6) for row in make_rows(step)}


def test_states_are_compared_by_key(tmp_path: Path) -> None:
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=CLUSTERED)
    table.write(make_rows(0))
    earlier = table.snapshots()[-1].id
    before = rows_by_key(table)
    table.write(make_rows(1))
    table.compact(full=True)
    after = rows_by_key(table)
    options = {"incremental-between": f"{earlier},{table.snapshots()[-1].id}", "incremental-between-scan-mode": "diff"}
    changed = rows_by_key(table.with_options(options))
    assert changed == {k: row for k, row in after.items() if before.get(k) != row} or changed == {
        row["k"]: row for row in make_rows(1)
    }
    assert rows_by_key(table, table.scan(snapshot=earlier).to_arrow()) == before


def test_a_compaction_that_did_not_see_the_files_of_another_is_refused(tmp_path: Path) -> None:
    """Both writers look up in the same files; without a check, the key of both would be live twice."""
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=CLUSTERED)
    builders = [table.new_batch_write_builder() for _ in range(2)]
    writers = [builder.new_write() for builder in builders]
    prepared = []
    for number, writer in enumerate(writers):
        writer.write([{"k": 1, "p": 0, "c": str(number), "v": number}])
        prepared.append(writer.prepare_commit())
    for builder, messages in zip(builders, prepared, strict=True):
        builder.new_commit().commit(messages)
    assert [row["c"] for row in table.scan().to_arrow().to_pylist()] == ["1"]
    assert table.maintain.check(deep=True).faults == ()


def test_an_older_row_of_level_0_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    """It is in a file that was written first, and that the compaction of another writer did not know."""
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=CLUSTERED)
    first, second = (t.new_batch_write_builder() for t in (table.with_options({"write-only": "true"}), table))
    older, newer = first.new_write(), second.new_write()
    older.write([{"k": 2, "p": 0, "c": "older", "v": 0}, {"k": 9, "p": 0, "c": "older", "v": 0}])
    newer.write([{"k": k, "p": 0, "c": "newer", "v": k} for k in (0, 1, 2)])
    messages = newer.prepare_commit()
    first.new_commit().commit(older.prepare_commit())
    second.new_commit().commit(messages)
    assert {f["level"] for f in describe_files(table)} == {0, 1}
    for full in (False, True):
        table.compact(full=full)
        found = rows_by_key(table)
        assert {k: row["c"] for k, row in found.items()} == {0: "newer", 1: "newer", 2: "newer", 9: "older"}


def test_bounds_are_shown_in_the_types_of_their_file(tmp_path: Path) -> None:
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options={**CLUSTERED, "clustering.columns": "v"})
    table.write([{"k": 1, "p": 0, "c": "a", "v": -7}])
    table = table.alter("ALTER COLUMN v TYPE STRING").alter("RENAME COLUMN v TO w")
    table.write([{"k": 2, "p": 0, "c": "a", "w": "a text of more than seven bytes"}])
    for name in ("files", "file_key_ranges"):
        bounds = table.system_table(name).scan().to_arrow()["min_key"].to_pylist()
        assert sorted(bounds) == ["[-7]", "[a text of more than seven bytes]"]


def test_columns_evolve_but_not_those_of_the_order(tmp_path: Path) -> None:
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=CLUSTERED)
    table.write(make_rows(0))
    model = rows_by_key(table)
    table = table.alter("ADD COLUMN w INT")
    table = table.alter("ALTER COLUMN v TYPE BIGINT")
    table.write([{**row, "w": 1} for row in make_rows(1)])
    model = {**{k: {**row, "w": None} for k, row in model.items()}, **{r["k"]: {**r, "w": 1} for r in make_rows(1)}}
    assert rows_by_key(table) == model
    table.compact(full=True)
    assert rows_by_key(table) == model
    for change in ("SET ('clustering.columns' = 'v')", "RESET ('clustering.columns')", "DROP COLUMN c"):
        with pytest.raises(InvalidRequest, match=r"clustering\.columns"):
            table.alter(change)
    with pytest.raises(InvalidRequest, match=r"clustering\.columns"):
        table.with_options({"clustering.columns": "c"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clustering.columns": "x"}, "does not exist"),
        ({"clustering.columns": "a"}, "has no order"),
        ({"bucket": "-2"}, "cannot be combined"),
    ],
)
def test_declarations_that_cannot_be_clustered_are_refused(tmp_path: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        create_table(tmp_path, f"{COLUMNS}, a ARRAY<INT>", primary_keys=["k"], options={**CLUSTERED, **options})


def test_other_orders_and_other_buckets_are_refused_by_name(tmp_path: Path) -> None:
    table = create_table(tmp_path, COLUMNS, primary_keys=["k"], options=CLUSTERED)
    table.write(make_rows(0))
    with pytest.raises(InvalidRequest, match="is clustered"):
        table.compact(order_strategy="order", order_by=["v"])
    with pytest.raises(Unsupported, match="pk-clustering-override"):
        table.rescale(2)
    assert len(rows_by_key(table)) == 12
