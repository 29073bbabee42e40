"""Golden cases with lookups or changelogs, written and compacted by this library.

Each snapshot has the rows and the changes of Java.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.canonical_rows import changes_of, rows_of, types_of
from support.case_lists import mark_nightly
from support.golden_replay import Replay, number_steps
from support.golden_tables import DAILY_TABLES, golden_directory

import paimon
from paimon.operations.metadata.manifests import read_manifest, read_manifest_list

HOME = golden_directory()
CHANGELOG_OPTIONS = ("lookup", "full-compaction")
OTHER_SIZES = ("cl_churn_lookup_dv", "pk_seq_fields_dv_lookup")
"""Cases in ORC, where the bytes of files decide to which level they go, and Java's files are of other sizes."""


def definition(case: str) -> Any:
    return json.loads((HOME / case / "case.json").read_text("utf8"))


def has_lookup_or_changelog(case: str) -> bool:
    options = definition(case)["schema"]["options"]
    needs = options.get("changelog-producer") in CHANGELOG_OPTIONS or options.get("merge-engine") == "first-row"
    steps = definition(case).get("steps", [])
    return needs and bool(steps) and all(step["op"] in ("write", "compact") for step in steps)


CASES = sorted(p.parent.name for p in HOME.glob("*/input") if has_lookup_or_changelog(p.parent.name))


def replay_case(case: str, home: Path) -> Replay:
    """All steps; after each write that Java's writer compacts after, so do we."""
    replay = Replay(HOME / case, home / "t")
    steps, options = definition(case)["steps"], definition(case)["schema"]["options"]
    replay.create()
    for number, step in number_steps(steps):
        if step["op"] == "write":
            replay.write(step, number)
        if step["op"] == "compact" or options.get("write-only") != "true":
            replay.table().compact(full=step["op"] == "compact")
    return replay


def lines(path: Path) -> list[str]:
    return path.read_text("utf8").splitlines()


def changelog_files(table: paimon.Table, case: str) -> list[tuple[Any, ...]]:
    """What the manifests say of each changelog file, without its name, size and time."""
    lists = [s.changelog_manifest_list for s in table.snapshots() if s.changelog_manifest_list]
    metas = [m for name in lists for m in read_manifest_list(table.context, name)]
    entries = [e for m in metas for e in read_manifest(table.context, m.file_name)]
    return sorted(
        (e.partition, e.bucket, e.file.min_key, e.file.max_key, e.file.row_count, e.file.delete_row_count,
         0 if case in OTHER_SIZES else e.file.level, e.file.min_sequence_number, e.file.max_sequence_number,
         e.file.file_source, repr(e.file.key_stats), repr(e.file.value_stats), e.file.value_stats_cols,
         e.file.schema_id)
        for e in entries
    )  # fmt: skip


@pytest.mark.parametrize("case", mark_nightly(CASES, always=DAILY_TABLES))
def test_each_snapshot_has_the_rows_and_changes_of_java(case: str, tmp_path: Path) -> None:
    table = replay_case(case, tmp_path).table()
    types = types_of(table.table_schema.fields)
    expected = HOME / case / "expected"
    assert changes_of(table.changes().to_arrow(), types) == sorted(lines(expected / "changelog.jsonl"))
    assert rows_of(table.scan().to_arrow(), types) == lines(expected / "latest.jsonl")
    for path in expected.glob("snapshot-*.jsonl"):
        snapshot = int(path.stem.removeprefix("snapshot-"))
        assert rows_of(table.scan(snapshot=snapshot).to_arrow(), types) == lines(path), path.stem
    java = paimon.open_table(HOME / case / "table")
    assert isinstance(java, paimon.Table)
    assert changelog_files(table, case) == changelog_files(java, case)


def test_the_cases_are_many() -> None:
    assert {"cl_lookup", "cl_lookup_agg", "cl_full_pu", "first_row_many", "cl_churn_lookup_dv"} <= set(CASES)
