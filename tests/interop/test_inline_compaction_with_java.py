"""One history written by us and by Java, each compacting inline: the same files on the same levels; Java reads ours."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_lengths
from support.java_paimon import JavaPaimon, canonical

import paimon
from paimon.operations.commit.base import CommitBase
from paimon.operations.metadata.snapshots import latest_snapshot

pytestmark = pytest.mark.interop

FIELDS = {"id": "BIGINT NOT NULL", "p": "STRING NOT NULL", "s": "INT", "v": "STRING"}
DDL = ", ".join(f"{name} {kind}" for name, kind in FIELDS.items())
KEYED = {"primary_keys": ["p", "id"], "partition_keys": ["p"]}
ALL_RUNS = {"compaction.size-ratio": "1000"}
"""Our files and Java's differ by a few bytes: nothing may hang on which of two files of about one size is larger."""
FIXED = {"bucket": "2", "bucket-key": "id"}
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "defaults": (KEYED, {"bucket": "2"}),
    "eager": (KEYED, {"bucket": "1", "num-sorted-run.compaction-trigger": "1"}),
    "three runs": (KEYED, {"bucket": "2", "num-sorted-run.compaction-trigger": "3", "num-levels": "4"}),
    "forced": (KEYED, {"bucket": "1", "compaction.force-up-level-0": "true"}),
    "amplified": (KEYED, {"bucket": "1", "num-sorted-run.compaction-trigger": "2",
                          "compaction.max-size-amplification-percent": "50"}),
    "never amplified": (KEYED, {"bucket": "1", "num-sorted-run.compaction-trigger": "2", "compaction.size-ratio": "20",
                                "compaction.max-size-amplification-percent": "100000"}),
    "sequence": (KEYED, {"bucket": "1", "sequence.field": "s", "num-sorted-run.compaction-trigger": "2"}),
    "avro": (KEYED, {"bucket": "1", "file.format": "avro", "num-sorted-run.compaction-trigger": "2",
                     "compaction.max-size-amplification-percent": "0"}),
    "lookup": (KEYED, {"bucket": "1", "changelog-producer": "lookup", **ALL_RUNS}),
    "lookup, gentle": (KEYED, {"bucket": "1", "changelog-producer": "lookup", "lookup-compact": "gentle"}),
    "lookup, partial update": (KEYED, {"bucket": "1", "changelog-producer": "lookup",
                                       "merge-engine": "partial-update", **ALL_RUNS}),
    "deletion vectors": (KEYED, {"bucket": "2", "deletion-vectors.enabled": "true", **ALL_RUNS}),
    "first row": (KEYED, {"bucket": "1", "merge-engine": "first-row"}),
    "fixed append": ({"partition_keys": ["p"]}, {**FIXED}),
    "fixed append, few": ({"partition_keys": ["p"]}, {**FIXED, "compaction.min.file-num": "2"}),
    "fixed append, large files": ({}, {**FIXED, "compaction.min.file-num": "4", "target-file-size": "1 kb"}),
    "unordered append": ({}, {**FIXED, "compaction.min.file-num": "3", "bucket-append-ordered": "false"}),
    "append without buckets": ({}, {"bucket": "-1", "compaction.min.file-num": "2"}),
}  # fmt: skip


def create_tables(java: JavaPaimon, tmp_path: Path, case: str) -> tuple[paimon.Table, Path]:
    """Our table of a case, and the path of Java's table."""
    keys, options = CASES[case]
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    java.create(tmp_path / "java", FIELDS, options=options, **keys)
    return catalog.create_table("db.t", DDL, options=options, **keys), tmp_path / "java"


def open_table(directory: Path) -> paimon.Table:
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    return table


def describe_layout(table: paimon.Table) -> list[Any]:
    """The live files: partition, bucket, level, rows, deletes, sequence numbers of each file."""
    snapshot = latest_snapshot(table.context)
    return sorted(
        (e.partition, e.bucket, e.file.level, e.file.min_sequence_number, e.file.max_sequence_number, e.file.row_count,
         e.file.delete_row_count, str(e.file.file_source))
        for e in CommitBase(table.context, snapshot).read_live_files(lambda _: True)
    )  # fmt: skip


def commits(table: paimon.Table) -> list[tuple[str, int]]:
    return [(s.commit_kind.value, s.commit_identifier) for s in table.snapshots()]


def count_changes(table: paimon.Table) -> list[Any]:
    return canonical(table.changes().to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("case", "rounds"),
    mark_lengths(CASES, ["eager", "lookup, partial update", "deletion vectors", "fixed append"], short=6, full=12),
)
def test_the_same_files_are_on_the_same_levels(java: JavaPaimon, tmp_path: Path, case: str, rounds: int) -> None:
    keys, options = CASES[case]
    table, theirs = create_tables(java, tmp_path, case)
    chance = random.Random(case)
    for step in range(1, rounds + 1):
        rows = [
            {"id": chance.randrange(40), "p": chance.choice("ab"), "s": step, "v": "".join(chance.choices("xyz", k=40))}
            for _ in range(chance.choice([1, 3, 60]))
        ]
        takes_deletes = "primary_keys" in keys and "merge-engine" not in options
        kinds = chance.choices(["+I", "+U", "-D"], [4, 2, 2 if takes_deletes else 0], k=len(rows))
        kinded = [{**row, "op": kind} for row, kind in zip(rows, kinds, strict=True)]
        table.write(kinded, kind_column="op", commit_user="java", identifier=step)
        java.write(theirs, [{**row, "_ROW_KIND": kind} for row, kind in zip(rows, kinds, strict=True)], identifier=step)
        assert describe_layout(table) == describe_layout(open_table(theirs)), f"after step {step}"
    assert commits(table) == commits(open_table(theirs))
    assert java.read(Path(table.location)) == java.read(theirs) == canonical(table.scan().to_arrow().to_pylist())
    assert count_changes(table) == count_changes(open_table(theirs))


STREAMED = ["defaults", "eager", "three runs", "never amplified", "fixed append", "fixed append, few",
            "fixed append, large files", "unordered append"]  # fmt: skip


@pytest.mark.parametrize(("case", "rounds"), mark_lengths(STREAMED, ["eager", "unordered append"], short=16, full=24))
def test_one_writer_has_the_same_levels_over_many_commits(
    java: JavaPaimon, tmp_path: Path, case: str, rounds: int
) -> None:
    keys, options = CASES[case]
    table, theirs = create_tables(java, tmp_path, case)
    chance = random.Random(case)
    takes_deletes = "primary_keys" in keys and "merge-engine" not in options
    batches: list[list[dict[str, Any]]] = []
    for step in range(1, rounds + 1):
        # Some rounds write to one partition, some to none: a writer also compacts buckets that it wrote before.
        parts = chance.choice(["a", "ab", "b", ""])
        batch: list[dict[str, Any]] = []
        for _ in range(chance.choice([1, 3, 60]) if parts else 0):
            kind = chance.choice(["+I", "+U", "-D" if takes_deletes else "+I"])
            row = {"id": chance.randrange(40), "p": chance.choice(parts), "s": step, "v": chance.randbytes(20).hex()}
            batch.append({**row, "_ROW_KIND": kind})
        batches.append(batch)
    java.stream(theirs, batches)
    builder = table.new_stream_write_builder("java")
    with builder.new_write() as writer:
        for identifier, rows in enumerate(batches, 1):
            if rows:
                writer.write(rows, "_ROW_KIND")
            builder.new_commit().commit(identifier, writer.prepare_commit(identifier))
    assert commits(table) == commits(open_table(theirs))
    assert describe_layout(table) == describe_layout(open_table(theirs))
    assert java.read(Path(table.location)) == java.read(theirs)
