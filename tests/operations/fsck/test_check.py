"""`check`: tables without damage have no faults; each kind of damage is found, named, and linked to its snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_nightly
from support.golden_tables import DAILY_TABLES, golden_directory
from support.manifest_columns import to_entry_columns

import paimon
from paimon.cli.main import main
from paimon.domain.lsm.keys import to_comparable_key
from paimon.domain.maintenance.fault import FaultKind, HealthReport
from paimon.domain.maintenance.metadata_checks import find_file_faults, find_overlaps, mark_buckets_at_fault
from paimon.domain.maintenance.referenced_files_columnar import NamedFiles, find_places, number_names
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.row.binary_row import serialize
from paimon.domain.types.data_types import IntType, VarCharType

HOME = golden_directory()
KNOWN = {
    "char_short_orc": "statistics of padded text, by which Java's own reads lose rows",
    "v07_dv": "a file whose first key differs from its metadata",
}


JAVA_TABLES = sorted(p.parent.name for p in HOME.glob("*/table"))


@pytest.mark.parametrize("case", mark_nightly(JAVA_TABLES, always=DAILY_TABLES & {*JAVA_TABLES[::2], *KNOWN}))
def test_tables_of_java_have_no_faults(case: str) -> None:
    report = paimon.open_table(HOME / case / "table").maintain.check(deep=True)
    serious = [fault for fault in report.faults if not fault.kind.is_harmless]
    assert {f.kind for f in serious} == ({FaultKind.CONTENT} if case in KNOWN else set()), str(report)
    assert report.states


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "1", "write-only": "true", "changelog-producer": "input"}
    made = catalog.create_table("d.t", "id INT NOT NULL, s STRING", primary_keys=["id"], options=options)
    for i in range(3):
        made.write({"id": [i, i + 1, i + 2], "s": ["a", None, "c"]})
    made.tags.create("kept", 2)
    return made


def check_table(table: paimon.Table, deep: bool = False) -> HealthReport:
    return paimon.open_table(table.location).maintain.check(deep=deep)


def get_single_fault(report: HealthReport, kind: FaultKind) -> tuple[str, set[str]]:
    """The path and the states of the one fault."""
    assert [f.kind for f in report.faults] == [kind], str(report)
    assert report.is_whole == kind.is_harmless
    return report.faults[0].path, set(report.faults[0].states)


def data_files(table: paimon.Table, prefix: str = "data-") -> list[Path]:
    """Oldest first."""
    return sorted(Path(table.location, "bucket-0").glob(f"{prefix}*"), key=lambda p: p.stat().st_mtime_ns)


def edit_json(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_a_table_without_faults(table: paimon.Table) -> None:
    report = check_table(table, deep=True)
    assert (report.faults, report.is_whole, report.states, report.rows) == ((), True, 4, 9)
    assert str(report).startswith("whole: 4 states")


def test_the_rest_of_an_unfinished_branch_is_no_fault(table: paimon.Table) -> None:
    left = Path(table.location, "branch", "branch-b", "schema")
    left.mkdir(parents=True)
    assert check_table(table).faults == ()
    left.with_name("snapshot").mkdir()
    (left.with_name("snapshot") / "snapshot-1").write_bytes(b"{}")
    assert "without a schema" in str(check_table(table))


def test_a_missing_data_file_touches_the_states_that_have_it(table: paimon.Table) -> None:
    newest = data_files(table)[-1]
    newest.unlink()
    assert get_single_fault(check_table(table), FaultKind.MISSING) == (str(newest), {"snapshot 3"})


def test_a_missing_changelog_file(table: paimon.Table) -> None:
    gone = data_files(table, "changelog-")[1]
    gone.unlink()
    assert get_single_fault(check_table(table), FaultKind.MISSING) == (str(gone), {"snapshot 2"})


def test_a_cut_data_file(table: paimon.Table) -> None:
    oldest = data_files(table)[0]
    oldest.write_bytes(oldest.read_bytes()[:-1])
    states = {"snapshot 1", "snapshot 2", "snapshot 3", "tag kept"}
    assert get_single_fault(check_table(table), FaultKind.SIZE) == (str(oldest), states)


def test_a_missing_manifest(table: paimon.Table) -> None:
    manifest = sorted(Path(table.location, "manifest").glob("manifest-[0-9a-f]*"), key=lambda p: p.stat().st_mtime_ns)
    gone = [m for m in manifest if "list" not in m.name]
    gone[0].unlink()
    kinds = {f.kind for f in check_table(table).faults}
    assert kinds == {FaultKind.MISSING}


def test_a_missing_manifest_list_touches_its_snapshots(table: paimon.Table) -> None:
    name = table.snapshots()[2].delta_manifest_list
    path = Path(table.location, "manifest", name)
    path.unlink()
    assert get_single_fault(check_table(table), FaultKind.MISSING) == (str(path), {"snapshot 3"})


def test_a_snapshot_that_cannot_be_read(table: paimon.Table) -> None:
    path = Path(table.location, "snapshot", "snapshot-1")
    path.write_text("{")
    assert get_single_fault(check_table(table), FaultKind.UNREADABLE) == (str(path), {"snapshot 1"})


def test_a_gap_between_snapshots(table: paimon.Table) -> None:
    path = Path(table.location, "snapshot", "snapshot-2")
    path.unlink()
    assert get_single_fault(check_table(table), FaultKind.GAP) == (str(path), {"snapshot 2"})


def test_a_hint_ahead_of_the_latest_snapshot_is_harmless(table: paimon.Table) -> None:
    hint = Path(table.location, "snapshot", "LATEST")
    hint.write_text("9")
    assert get_single_fault(check_table(table), FaultKind.HINT) == (str(hint), set())
    assert table.scan().count() == 5


def test_counts_that_do_not_add_up(table: paimon.Table) -> None:
    path = Path(table.location, "snapshot", "snapshot-3")
    edit_json(path, lambda record: record.update(totalRecordCount=8))
    assert get_single_fault(check_table(table), FaultKind.COUNT) == (str(path), {"snapshot 3"})
    edit_json(path, lambda record: record.update(totalRecordCount=9, deltaRecordCount=2))
    assert get_single_fault(check_table(table), FaultKind.COUNT) == (str(path), {"snapshot 3"})


def test_a_missing_schema(table: paimon.Table) -> None:
    wider = table.alter(paimon.AddColumn("n", "INT")) if hasattr(paimon, "AddColumn") else None
    path = Path(table.location, "schema", "schema-0")
    if wider is None:
        path.rename(path.with_name("schema-1"))
        edit_json(path.with_name("schema-1"), lambda record: record.update(id=1))
    else:
        path.unlink()
    faults = check_table(table).faults
    assert {f.path for f in faults if f.kind is FaultKind.MISSING} == {str(path)}


def test_a_tag_that_cannot_be_read(table: paimon.Table) -> None:
    path = Path(table.location, "tag", "tag-kept")
    path.write_text("{}")
    assert get_single_fault(check_table(table), FaultKind.UNREADABLE) == (str(path), {"tag kept"})


def test_a_flipped_bit_is_found_by_a_deep_look_and_never_stops_it(table: paimon.Table) -> None:
    newest = data_files(table)[-1]
    whole = newest.read_bytes()
    found = 0
    for at in range(4, len(whole), 97):
        newest.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        report = check_table(table, deep=True)
        assert all(f.path in (str(newest), str(newest.parent)) for f in report.faults)
        found += bool(report.faults)
    assert found > 3


KEYS = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 10), st.integers(0, 3)), max_size=8)


@settings(max_examples=60)
@given(KEYS)
def test_overlaps_are_found_in_each_level_above_0(ranges: list[tuple[int, int, int]]) -> None:
    types = [IntType()]
    files = [
        DataFileMeta(str(i), 1, 1, serialize((low,), types), serialize((low + width,), types), level=level)
        for i, (low, width, level) in enumerate(ranges)
    ]
    clash = any(
        a is not b and a.level == b.level > 0
        and to_comparable_key(a.min_key, types) <= to_comparable_key(b.max_key, types)
        and to_comparable_key(b.min_key, types) <= to_comparable_key(a.max_key, types)
        for a in files for b in files
    )  # fmt: skip
    assert bool(list(find_overlaps(files, types))) == clash


NAMES = st.sampled_from(["", "a", "b", "long enough for the end", None])
FILES = st.lists(
    st.tuples(st.integers(-2, 2), NAMES, st.integers(0, 3), NAMES, st.integers(0, 2), st.integers(0, 2)), max_size=6
)


@settings(max_examples=60)
@given(FILES, st.booleans())
def test_columns_find_the_buckets_whose_files_have_faults(drawn: list[tuple[Any, ...]], keyed: bool) -> None:
    types = [IntType(), VarCharType(40)]
    files = [
        DataFileMeta(
            str(i), 1, 1, serialize((low, first), types), serialize((low + width, last), types), level=level,
            min_sequence_number=level, max_sequence_number=2 - first_bucket // 2, delete_row_count=width,
        )
        for i, (low, first, width, last, level, first_bucket) in enumerate(drawn)
    ]  # fmt: skip
    entries = [ManifestEntry(FileKind.ADD, b"\0" * 12, d[5] - 1, 1, f) for d, f in zip(drawn, files, strict=True)]
    found = mark_buckets_at_fault(to_entry_columns(entries), types if keyed else [])
    for bucket in {e.bucket for e in entries}:
        members = [e.file for e in entries if e.bucket == bucket]
        of_bucket = types if keyed and bucket >= 0 else []
        faults = [*find_file_faults(members, of_bucket), *(find_overlaps(members, of_bucket) if of_bucket else ())]
        marked = [bool(m) for m, e in zip(found, entries, strict=True) if e.bucket == bucket]
        assert marked == [bool(faults)] * len(marked)


def test_the_last_add_of_a_file_says_where_it_is() -> None:
    moved = DataFileMeta("moved", 5, 1, extra_files=("index",))
    away, new = evolve(moved, external_path="s3://b/dir/moved"), evolve(moved, file_name="n")
    later = ((FileKind.DELETE, moved), (FileKind.ADD, away), (FileKind.ADD, new))
    manifests = {
        "m0": NamedFiles.of(to_entry_columns([])),
        "m1": NamedFiles.of(to_entry_columns([ManifestEntry(FileKind.ADD, b"\0" * 12, 0, 2, moved)])),
        "m2": NamedFiles.of(to_entry_columns([ManifestEntry(kind, b"\0" * 12, 1, 2, f) for kind, f in later])),
    }
    names, mentions = number_names(manifests)
    assert names.to_pylist() == ["moved", "index", "n"]
    (files,) = find_places(manifests, mentions, np.ones(3, dtype=bool))
    assert (files.bucket, sorted(zip(files.names, files.sizes, files.external_paths, strict=True), key=str)) == (
        1, [("index", -1, None), ("moved", 5, "s3://b/dir/moved"), ("n", 5, None)],
    )  # fmt: skip


def test_the_command(table: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fsck", table.location, "--deep", "--output", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["whole"], record["faults"], record["records"]) == (True, [], 9)
    data_files(table)[-1].unlink()
    assert main(["fsck", table.location]) == 1
    printed = capsys.readouterr()
    assert "missing" in printed.out
    assert "1 fault was found" in printed.err
    assert "hint:" in printed.err
