"""Plans of the golden tables: the live files of Java, and wrong hints."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_nightly
from support.golden_entries import to_java_entry
from support.golden_tables import DAILY_TABLES, golden_directory

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.operations.data_files.deletion_vectors import read_vector
from paimon.operations.metadata.manifests import (
    read_data_manifests,
    read_live_entries,
)
from paimon.operations.metadata.snapshots import (
    earliest_snapshot_id,
    latest_snapshot,
    load_snapshot,
    load_tag,
    snapshot_before,
    snapshot_ids,
    snapshots,
)
from paimon.operations.read.plan import plan_scan
from paimon.table import Table

HOME = golden_directory()
CASES = sorted(p.parents[1].name for p in HOME.glob("*/expected/meta.jsonl"))


def open_table(path: Path) -> Table:
    table = paimon.open_table(path)
    assert isinstance(table, Table)
    return table


@pytest.mark.parametrize("case", mark_nightly(CASES, always=DAILY_TABLES))
def test_live_files_and_their_plan_are_those_that_java_names(case: str) -> None:
    table = open_table(HOME / case / "table")
    context = table.context
    snapshot = latest_snapshot(context)
    lines = [json.loads(line) for line in (HOME / case / "expected/meta.jsonl").read_text("utf8").splitlines()]
    recorded = [
        {k: v for k, v in e.items() if k not in ("entry", "creationTime")} for e in lines if e["entry"] == "data"
    ]
    assert snapshot is not None
    entries = read_live_entries(context, read_data_manifests(context, snapshot))
    found = [to_java_entry(e) for e in entries]
    assert sorted(map(json.dumps, _sort_members(found))) == sorted(map(json.dumps, _sort_members(recorded)))
    planned = plan_scan(context, ScanRequest(snapshot))
    hidden = any(step.name == "levels" for step in planned.steps)
    visible = [e["fileName"] for e in recorded if e["bucket"] >= 0 and (e["level"] > 0 or not hidden)]
    assert Counter(f.file_name for s in planned.splits for f in s.files) == Counter(visible)
    for split in planned.splits:
        for file, vector in zip(split.files, split.deletion_files, strict=False):
            if vector is not None:
                assert 0 < read_vector(context.engine, vector).mask(0, file.row_count).sum() <= file.row_count


def _sort_members(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(sorted(e.items())) for e in entries]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HOME / "pk_many_commits" / "table", tmp_path / "table"))


@pytest.mark.parametrize("hint", [None, b"1", b"99999", b"-8", b"nonsense", b"", b"3\n"])
def test_wrong_hints_do_not_change_reads(copied: Path, hint: bytes | None) -> None:
    table = open_table(copied)
    ids = snapshot_ids(table.context)
    for name in ("LATEST", "EARLIEST"):
        (copied / "snapshot" / name).unlink(missing_ok=True)
        if hint is not None:
            (copied / "snapshot" / name).write_bytes(hint)
    latest = latest_snapshot(table.context)
    assert latest is not None and latest.id == ids[-1]
    if hint != b"3\n":
        assert earliest_snapshot_id(table.context) == ids[0]


def test_reads_skip_a_gap(copied: Path) -> None:
    table = open_table(copied)
    context = table.context
    ids = snapshot_ids(context)
    (copied / "snapshot" / f"snapshot-{ids[1]}").unlink()
    assert [s.id for s in snapshots(context)] == [i for i in ids if i != ids[1]]
    times = {s.id: s.time_millis for s in snapshots(context)}
    for snapshot_id, millis in times.items():
        found = snapshot_before(context, millis)
        assert found is not None and found.time_millis == millis and found.id >= snapshot_id
    assert snapshot_before(context, min(times.values()) - 1) is None
    with pytest.raises(NotFound, match=f"{ids[0]} to {ids[-1]}"):
        load_snapshot(context, ids[1])
    with pytest.raises(NotFound, match=r"Tag .nothing."):
        load_tag(context, "nothing")
    with pytest.raises(InvalidRequest):
        load_tag(context, "../x")


def test_damage_names_the_file(copied: Path) -> None:
    table = open_table(copied)
    context = table.context
    snapshot = latest_snapshot(context)
    assert snapshot is not None
    manifest = read_data_manifests(context, snapshot)[0].file_name
    path = copied / "manifest" / manifest
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[: len(whole) // 2], b"", b"PAR1" + whole[4:]):
        path.write_bytes(damaged)
        with pytest.raises(CorruptTable, match=manifest):
            plan_scan(open_table(copied).context, ScanRequest(snapshot))
    path.unlink()
    with pytest.raises(CorruptTable, match=manifest):
        plan_scan(open_table(copied).context, ScanRequest(snapshot))


def test_a_table_without_snapshots_has_an_empty_plan(copied: Path) -> None:
    for file in (copied / "snapshot").iterdir():
        file.unlink()
    table = open_table(copied)
    assert latest_snapshot(table.context) is None
    assert plan_scan(table.context, ScanRequest(None)).splits == ()
