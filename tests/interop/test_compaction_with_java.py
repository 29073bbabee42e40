"""Java reads and continues what this library compacts, and the reverse."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.case_lists import mark_nightly
from support.java_paimon import JavaPaimon
from support.shared_java_table import create_shared_table, read_rows

pytestmark = pytest.mark.interop

CASES: dict[str, dict[str, str]] = {
    "parquet": {},
    "orc": {"file.format": "orc", "num-sorted-run.compaction-trigger": "2"},
    "avro": {"file.format": "avro", "num-sorted-run.compaction-trigger": "1"},
    "sequence": {"sequence.field": "s", "num-sorted-run.compaction-trigger": "3"},
    "rolled": {"target-file-size": "1 kb", "compaction.force-up-level-0": "true"},
    "input changelog": {"changelog-producer": "input", "num-sorted-run.compaction-trigger": "2"},
}


@pytest.mark.slow("both sides write and compact in turns")
@pytest.mark.parametrize("case", mark_nightly(CASES, always=[*CASES][::4]))
def test_both_write_and_compact_one_table_alternately(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    options = {"bucket": "2", "write-only": "true", **CASES[case]}
    table, directory = create_shared_table(tmp_path, primary_keys=["p", "id"], partition_keys=["p"], options=options)
    chance = random.Random(case)
    for step in range(1, 13):
        rows = [
            {"id": chance.randrange(30), "p": chance.choice("ab"), "s": chance.randrange(5), "v": f"{step}-{i}" * 9}
            for i in range(20)
        ]
        kinds = chance.choices(["+I", "+U", "-D"], [4, 2, 2], k=len(rows))
        if step % 2:
            table.write([{**row, "op": kind} for row, kind in zip(rows, kinds, strict=True)], kind_column="op")
        else:
            java.write(
                directory,
                [{**row, "_ROW_KIND": kind} for row, kind in zip(rows, kinds, strict=True)],
                identifier=step,
            )
        before = java.read(directory)
        assert read_rows(directory) == before
        if step % 6 == 0:
            java.write(directory, [], identifier=100 + step, compact=True, options={"write-only": "false"})
            assert java.snapshot(directory)["commitKind"] == "COMPACT"
        else:
            table.compact(full=step % 5 == 0)
        assert java.read(directory) == before, f"Java after step {step}"
        assert read_rows(directory) == before, f"ours after step {step}"
    assert any(s.commit_user != "java" and s.commit_kind.value == "COMPACT" for s in table.snapshots())


@pytest.mark.parametrize("engine", mark_nightly(["deduplicate", "first-row"], always=["deduplicate"]))
def test_both_write_a_table_that_is_clustered_by_other_columns(java: JavaPaimon, tmp_path: Path, engine: str) -> None:
    """Each continues the clustered files and deletion vectors of the other. Java keeps deletes in its files."""
    options = {
        "bucket": "1",
        "merge-engine": engine,
        "pk-clustering-override": "true",
        "clustering.columns": "v,s",
        "deletion-vectors.enabled": "true",
    }
    table, directory = create_shared_table(tmp_path, primary_keys=["p", "id"], partition_keys=["p"], options=options)
    chance = random.Random(engine)
    live: dict[tuple[str, int], dict[str, object]] = {}
    for step in range(1, 7):
        rows = [
            {"id": i, "p": chance.choice("ab"), "s": chance.randrange(5), "v": chance.choice([None, "x", "y" * 30])}
            for i in chance.sample(range(25), 10)
        ]
        kinds = ["-D" if engine == "deduplicate" and chance.random() < 0.3 else "+I" for _ in rows]
        if step % 2:
            table.write([{**row, "op": kind} for row, kind in zip(rows, kinds, strict=True)], kind_column="op")
        else:
            changes = [{**row, "_ROW_KIND": kind} for row, kind in zip(rows, kinds, strict=True)]
            java.write(directory, changes, identifier=step, compact=step == 4)
        for row, kind in zip(rows, kinds, strict=True):
            key = str(row["p"]), int(str(row["id"]))
            live[key] = live.get(key, row) if engine == "first-row" else row
            if kind == "-D":
                del live[key]
        assert java.read(directory) == read_rows(directory)
        assert len(read_rows(directory)) == len(live)
        keys = [{"p": p, "id": i} for p, i in live]
        found = table.lookup(keys, columns=["s", "v"]).to_pylist()
        assert found == [{"s": row["s"], "v": row["v"]} for row in live.values()]
    table.compact(full=True)
    assert java.read(directory) == read_rows(directory)
    assert table.maintain.check(deep=True).faults == ()


@pytest.mark.parametrize("options", [{"bucket": "-1"}, {"bucket": "2", "bucket-key": "id"}], ids=["unaware", "fixed"])
def test_java_reads_append_tables_that_we_compacted(java: JavaPaimon, tmp_path: Path, options: dict[str, str]) -> None:
    table, directory = create_shared_table(tmp_path, partition_keys=["p"], options=options)
    for step in range(1, 7):
        rows = [{"id": i, "p": "ab"[i % 2], "s": step, "v": None} for i in range(6)]
        if step % 2:
            table.write(rows)
        else:
            java.write(directory, rows, identifier=step)
    before = java.read(directory)
    assert table.compact(full=True).files_after < 12
    assert java.read(directory) == before == read_rows(directory)


def test_the_stored_positions_on_curves_are_javas(java: JavaPaimon) -> None:
    """To store new ones, write what `java.curves()` returns to the file."""
    stored = Path(__file__).parents[1] / "data" / "vectors" / "curves.jsonl"
    assert java.curves() == stored.read_text("utf8")


SORTED: dict[str, dict[str, object]] = {
    "zorder": {"partition_keys": ["p"]},
    "fixed": {"options": {"bucket": "2", "bucket-key": "id"}},
    "dynamic": {"primary_keys": ["id", "p"], "partition_keys": ["p"], "options": {"bucket": "-1"}},
    "clustered": {"options": {"clustering.incremental": "true", "clustering.columns": "s,v"}},
}


@pytest.mark.parametrize("case", mark_nightly(SORTED, always=["zorder", "dynamic"]))
def test_java_reads_and_continues_what_we_sorted(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    table, directory = create_shared_table(tmp_path, **SORTED[case])
    for step in range(3):
        table.write([{"id": i * 7 % 40, "p": "ab"[i % 2], "s": i * step % 5, "v": f"{i}"} for i in range(40)])
    before = java.read(directory)
    sorting = {} if case == "clustered" else {"order_strategy": "zorder", "order_by": ["s", "v"]}
    assert table.compact(full=True, **sorting).snapshot_ids  # type: ignore[arg-type]
    assert java.read(directory) == before == read_rows(directory)
    java.write(directory, [{"id": 3, "p": "b", "s": 1, "v": "new"}], identifier=9)
    assert java.read(directory) == read_rows(directory)
    assert len(read_rows(directory)) == len(before) + (case != "dynamic")
