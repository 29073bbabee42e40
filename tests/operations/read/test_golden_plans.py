"""Plans of the golden tables: the live files that Java names, manifests merged as Java did, hints that mislead."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from golden_entries import as_java_tells
from golden_tables import golden_directory

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound
from paimon.domain.manifest.entries import FileKind, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.merge import merge_entries
from paimon.domain.manifest.merge_plan import (
    MergeLimits,
    entries_after_full_merge,
    full_merge,
    full_merge_is_due,
    manifests_with_deletes,
    minor_merge,
    must_change,
)
from paimon.domain.scan.plan import ScanRequest
from paimon.operations.read.deletion.vectors import read_vector
from paimon.operations.read.manifests import data_manifests, live_entries, read_manifest, read_manifest_list
from paimon.operations.read.plan import plan
from paimon.operations.read.snapshots import (
    earliest_snapshot_id,
    latest_snapshot,
    load_snapshot,
    load_tag,
    snapshot_before,
    snapshot_ids,
    snapshots,
)
from paimon.table import Table

HOME = golden_directory()
CASES = sorted(p.parents[1].name for p in HOME.glob("*/expected/meta.jsonl"))


def opened(path: Path) -> Table:
    table = paimon.open_table(path)
    assert isinstance(table, Table)
    return table


@pytest.mark.parametrize("case", CASES)
def test_live_files_and_their_plan_are_those_that_java_names(case: str) -> None:
    table = opened(HOME / case / "table")
    engine, definition = table.engine, table.definition
    snapshot = latest_snapshot(engine, definition.paths)
    lines = [json.loads(line) for line in (HOME / case / "expected/meta.jsonl").read_text("utf8").splitlines()]
    told = [{k: v for k, v in e.items() if k not in ("entry", "creationTime")} for e in lines if e["entry"] == "data"]
    assert snapshot is not None
    entries = live_entries(engine, definition, data_manifests(engine, definition, snapshot))
    found = [as_java_tells(e) for e in entries]
    assert sorted(map(json.dumps, _ordered(found))) == sorted(map(json.dumps, _ordered(told)))
    planned = plan(engine, definition, ScanRequest(snapshot))
    hidden = any(step.name == "levels" for step in planned.steps)
    visible = [e["fileName"] for e in told if e["bucket"] >= 0 and (e["level"] > 0 or not hidden)]
    assert Counter(f.file_name for s in planned.splits for f in s.files) == Counter(visible)
    for split in planned.splits:
        for file, vector in zip(split.files, split.deletion_files, strict=False):
            if vector is not None:
                assert 0 < read_vector(engine, vector).mask(0, file.row_count).sum() <= file.row_count


def _ordered(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(sorted(e.items())) for e in entries]


@pytest.mark.parametrize("case", sorted(p.name for p in HOME.glob("manifest_merge*")))
def test_manifests_are_merged_as_java_merged_them(case: str) -> None:
    table = opened(HOME / case / "table")
    engine, definition = table.engine, table.definition
    options = definition.options
    limits = MergeLimits(
        options.manifest_target_size_bytes, options.manifest_full_compaction_bytes, options.manifest_merge_min_count
    )
    types = [f.type for f in definition.schema.partition_fields]

    def read(manifest: ManifestFileMeta) -> tuple[ManifestEntry, ...]:
        return read_manifest(engine, definition, manifest.file_name)

    def merged(manifests: tuple[ManifestFileMeta, ...]) -> tuple[set[str], list[ManifestEntry]]:
        if full_merge_is_due(manifests, limits):
            deletes = [e for m in manifests_with_deletes(manifests) for e in read(m) if e.kind is FileKind.DELETE]
            chosen = full_merge(manifests, {e.partition for e in deletes}, types, limits)
            if chosen is not None:
                gone = {e.identity for e in deletes}
                left = {m: entries_after_full_merge(read(m), gone, must_change(m, limits)) for m in chosen.read}
                kept = {m.file_name for m in (*chosen.kept, *(m for m, rest in left.items() if rest is None))}
                return kept, [e for rest in left.values() for e in rest or ()]
        groups = minor_merge(manifests, limits)
        fresh = [e for group in groups if len(group) > 1 for e in merge_entries(e for m in group for e in read(m))]
        return {group[0].file_name for group in groups if len(group) == 1}, fresh

    held = snapshots(engine, definition.paths)
    assert len(held) > 10
    for before, after in pairwise(held):
        manifests = data_manifests(engine, definition, before)
        java = read_manifest_list(engine, definition, after.base_manifest_list)
        known = {m.file_name for m in manifests}
        kept, fresh = merged(manifests)
        assert kept == {m.file_name for m in java} & known, after.id
        made = [e for m in java if m.file_name not in known for e in read(m)]
        assert Counter((e.kind, e.identity) for e in made) == Counter((e.kind, e.identity) for e in fresh), after.id


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HOME / "pk_many_commits" / "table", tmp_path / "table"))


@pytest.mark.parametrize("hint", [None, b"1", b"99999", b"-8", b"nonsense", b"", b"3\n"])
def test_hints_only_cost_time(copied: Path, hint: bytes | None) -> None:
    table = opened(copied)
    ids = snapshot_ids(table.engine, table.definition.paths)
    for name in ("LATEST", "EARLIEST"):
        (copied / "snapshot" / name).unlink(missing_ok=True)
        if hint is not None:
            (copied / "snapshot" / name).write_bytes(hint)
    latest = latest_snapshot(table.engine, table.definition.paths)
    assert latest is not None and latest.id == ids[-1]
    if hint != b"3\n":
        assert earliest_snapshot_id(table.engine, table.definition.paths) == ids[0]


def test_a_gap_is_walked_around(copied: Path) -> None:
    table = opened(copied)
    engine, paths = table.engine, table.definition.paths
    ids = snapshot_ids(engine, paths)
    (copied / "snapshot" / f"snapshot-{ids[1]}").unlink()
    assert [s.id for s in snapshots(engine, paths)] == [i for i in ids if i != ids[1]]
    times = {s.id: s.time_millis for s in snapshots(engine, paths)}
    for snapshot_id, millis in times.items():
        found = snapshot_before(engine, paths, millis)
        assert found is not None and found.time_millis == millis and found.id >= snapshot_id
    assert snapshot_before(engine, paths, min(times.values()) - 1) is None
    with pytest.raises(NotFound, match=f"{ids[0]} to {ids[-1]}"):
        load_snapshot(engine, paths, ids[1])
    with pytest.raises(NotFound, match="tag"):
        load_tag(engine, paths, "nothing")
    with pytest.raises(InvalidRequest):
        load_tag(engine, paths, "../x")


def test_damage_names_the_file(copied: Path) -> None:
    table = opened(copied)
    engine, definition = table.engine, table.definition
    snapshot = latest_snapshot(engine, definition.paths)
    assert snapshot is not None
    manifest = data_manifests(engine, definition, snapshot)[0].file_name
    path = copied / "manifest" / manifest
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[: len(whole) // 2], b"", b"PAR1" + whole[4:]):
        path.write_bytes(damaged)
        with pytest.raises(CorruptTable, match=manifest):
            plan(opened(copied).engine, definition, ScanRequest(snapshot))
    path.unlink()
    with pytest.raises(CorruptTable, match=manifest):
        plan(opened(copied).engine, definition, ScanRequest(snapshot))


def test_a_table_without_snapshots_has_an_empty_plan(copied: Path) -> None:
    for file in (copied / "snapshot").iterdir():
        file.unlink()
    table = opened(copied)
    assert latest_snapshot(table.engine, table.definition.paths) is None
    assert plan(table.engine, table.definition, ScanRequest(None)).splits == ()
