"""`check` finds each kind of planted fault: in files, manifests, deletion vectors and consumers, on every branch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.tables import create_table

import paimon
from paimon.cli.main import main
from paimon.domain.errors import CorruptTable
from paimon.domain.maintenance.fault import Fault, FaultKind, HealthReport
from paimon.domain.manifest.entries import DataFileMeta, DeletionVectorRange, ManifestEntry, ManifestFileMeta
from paimon.domain.row.binary_row import serialize
from paimon.domain.snapshot.snapshot import Snapshot, snapshot_to_json
from paimon.domain.stats.simple_stats import ColumnStats, to_simple_stats
from paimon.domain.types.data_types import IntType, VarCharType
from paimon.operations.commit.manifest_writer import ManifestWriter
from paimon.operations.metadata.manifests import read_data_manifests, read_index_manifest, read_live_entries
from paimon.operations.table_context import TableContext

Entries = list[ManifestEntry]
OPTIONS = {"bucket": "2", "num-sorted-run.compaction-trigger": "100", "num-levels": "6"}


def create_table_of_two_runs(root: Path, options: dict[str, str] | None = None, *, keyed: bool = True) -> paimon.Table:
    keys = ["id"] if keyed else []
    bucketed = {} if keyed else {"bucket-key": "id"}
    given = {**OPTIONS, **bucketed, **(options or {})}
    table = create_table(root, "id INT NOT NULL, s STRING", "d.t", primary_keys=keys, options=given)
    table.write({"id": list(range(40)), "s": [f"a{i}" for i in range(40)]})
    table.compact(full=True)
    table.write({"id": list(range(0, 40, 3)), "s": ["b"] * 14})
    return table


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    return create_table_of_two_runs(tmp_path)


def rewrite_manifests(
    table: paimon.Table,
    change: Callable[[Entries], Entries] = list,
    *,
    listed: Callable[[ManifestFileMeta], ManifestFileMeta] = lambda meta: meta,
) -> Snapshot:
    """The newest snapshot with other metadata for its files."""
    engine, definition = table.engine, table.definition
    old = table.snapshots()[-1]
    entries = change(
        read_live_entries(TableContext(engine, definition), read_data_manifests(TableContext(engine, definition), old))
    )
    writer = ManifestWriter(TableContext(engine, definition))
    base = writer.write_manifest_list([listed(meta) for meta in writer.write_manifests(entries)])
    delta = writer.write_manifest_list([])
    new = evolve(
        old, base_manifest_list=base.name, base_manifest_list_size=base.size, delta_manifest_list=delta.name,
        delta_manifest_list_size=delta.size, delta_record_count=0,
        total_record_count=sum(e.file.row_count for e in entries),
    )  # fmt: skip
    Path(definition.paths.snapshot(old.id)).write_bytes(snapshot_to_json(new))
    return new


def check_table(table: paimon.Table, deep: bool = True) -> HealthReport:
    return paimon.open_table(table.location).maintain.check(deep=deep)


def check_faults(table: paimon.Table, kind: FaultKind, words: str, deep: bool = True) -> list[Fault]:
    """The faults, all of one kind, with these words and a state."""
    report = check_table(table, deep)
    faults = list(report.faults)
    assert faults
    assert {f.kind for f in faults} == {kind}, str(report)
    assert any(words in fault.reason for fault in faults), str(report)
    assert all(fault.states and fault.kind.remedy for fault in faults)
    assert report.is_whole == kind.is_harmless
    return faults


def with_file(change: Callable[[DataFileMeta], DataFileMeta], level: int = 5) -> Callable[[Entries], Entries]:
    """Change the metadata of one file of a level."""

    def change_entry(entries: Entries) -> Entries:
        place = next(i for i, e in enumerate(entries) if e.file.level == level)
        entries[place] = evolve(entries[place], file=change(entries[place].file))
        return entries

    return change_entry


KEY = [IntType()]


def key(value: int) -> bytes:
    return serialize((value,), KEY)


def stats(low: Any, high: Any, nulls: int, kind: Any) -> Any:
    return to_simple_stats([ColumnStats(low, high, nulls)], [kind])


LIES: dict[str, tuple[Callable[[DataFileMeta], DataFileMeta], FaultKind, str]] = {
    "rows": (lambda f: evolve(f, row_count=f.row_count + 1), FaultKind.UNREADABLE, "rows"),
    "smallest key": (lambda f: evolve(f, min_key=key(-5)), FaultKind.CONTENT, "first and last key"),
    "largest key": (lambda f: evolve(f, max_key=key(30)), FaultKind.CONTENT, "first and last key"),
    "keys upside down": (lambda f: evolve(f, min_key=f.max_key, max_key=f.min_key), FaultKind.LAYOUT, "smallest key"),
    "key statistics": (
        lambda f: evolve(f, key_stats=stats(5, 39, 0, IntType())), FaultKind.CONTENT, "'id' has values outside"),
    "value statistics": (
        lambda f: evolve(f, value_stats=stats("a0", "a2", 0, VarCharType(9)), value_stats_cols=("s",)),
        FaultKind.CONTENT, "'s' has values outside"),
    "nulls": (
        lambda f: evolve(f, value_stats=stats("a", "z", 3, VarCharType(9)), value_stats_cols=("s",)),
        FaultKind.CONTENT, "0 nulls; its metadata records 3"),
    "sequence numbers": (lambda f: evolve(f, max_sequence_number=3), FaultKind.CONTENT, "sequence numbers"),
    "deletes": (lambda f: evolve(f, delete_row_count=2), FaultKind.CONTENT, "deletes"),
    "size": (lambda f: evolve(f, file_size=f.file_size + 1), FaultKind.SIZE, "bytes"),
    "a schema that is not there": (lambda f: evolve(f, schema_id=7), FaultKind.MISSING, "schema"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_wrong_metadata_of_a_data_file(table: paimon.Table, lie: str) -> None:
    assert check_table(table).faults == ()
    change, kind, words = LIES[lie]
    rewrite_manifests(table, with_file(change))
    report = check_table(table)
    assert any(f.kind is kind and (words in f.reason or words in f.path) for f in report.faults), str(report)
    assert not report.is_whole
    touched = {state for fault in report.faults for state in fault.states}
    assert "snapshot 3" in touched
    assert lie == "size" or touched == {"snapshot 3"}  # of two recorded sizes, either may be wrong


def test_levels_that_overlap(table: paimon.Table) -> None:
    def raise_levels(entries: Entries) -> Entries:
        return [evolve(e, file=evolve(e.file, level=5)) for e in entries]

    rewrite_manifests(table, raise_levels)
    assert "overlap in level 5" in check_faults(table, FaultKind.LAYOUT, "overlap", deep=False)[0].reason


def test_rows_in_another_bucket_than_their_keys(table: paimon.Table) -> None:
    """A read returns both rows of a key in two buckets, because each bucket is merged separately."""
    directory = Path(table.location)

    def move_bucket(entries: Entries) -> Entries:
        entry = next(e for e in entries if e.file.level == 5 and e.bucket == 0)
        shutil.copy(directory / "bucket-0" / entry.file.file_name, directory / "bucket-1" / entry.file.file_name)
        others = [e for e in entries if e is not entry and not (e.bucket == 1 and e.file.level == 5)]
        return [*others, evolve(entry, bucket=1)]

    rewrite_manifests(table, move_bucket)
    (fault,) = check_faults(table, FaultKind.PLACE, "another bucket")
    assert "/bucket-1/" in fault.path
    assert check_table(table, deep=False).is_whole  # only the data file shows it


def test_a_file_that_is_live_twice(table: paimon.Table) -> None:
    rewrite_manifests(table, lambda entries: [*entries, entries[0]])
    assert not check_table(table, deep=False).is_whole


def test_values_of_an_entry_that_no_plan_accepts(tmp_path: Path) -> None:
    table = create_table_of_two_runs(tmp_path, keyed=False)
    for change in (
        lambda f: evolve(f, min_key=b"short"),
        lambda f: evolve(f, value_stats=evolve(f.value_stats, max_values=b"")),
    ):
        whole = Path(table.definition.paths.snapshot(table.snapshots()[-1].id)).read_bytes()
        rewrite_manifests(table, with_file(change, level=0))
        with pytest.raises(CorruptTable):
            paimon.open_table(table.location).scan().plan()
        check_faults(table, FaultKind.UNREADABLE, "which is out of range", deep=False)
        Path(table.definition.paths.snapshot(table.snapshots()[-1].id)).write_bytes(whole)


def test_files_outside_of_the_table(table: paimon.Table, tmp_path: Path) -> None:
    rewrite_manifests(table, with_file(lambda f: evolve(f, external_path=f"{tmp_path}/elsewhere/{f.file_name}")))
    assert {f.kind for f in check_table(table, deep=False).faults} == {FaultKind.OUTSIDE}
    rewrite_manifests(table, with_file(lambda f: evolve(f, external_path=None, file_name="../../secret.parquet")))
    report = check_table(table, deep=False)
    assert not report.is_whole
    assert "_FILE_NAME" in str(report)


def test_bounds_of_a_manifest_that_leave_files_out(table: paimon.Table) -> None:
    rewrite_manifests(table, listed=lambda meta: evolve(meta, max_bucket=0))
    check_faults(table, FaultKind.BOUNDS, "buckets 0 to 1, but the manifest list records 0 to 0", deep=False)
    rewrite_manifests(table, listed=lambda meta: evolve(meta, min_level=1))
    check_faults(table, FaultKind.BOUNDS, "levels 0 to 5", deep=False)


def test_bounds_of_partitions_that_leave_files_out(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    days = catalog.create_table("d.p", "id INT NOT NULL, day STRING NOT NULL", partition_keys=["day"])
    days.write({"id": [1, 2], "day": ["mon", "tue"]})
    other = to_simple_stats([ColumnStats("mon", "mon", 0)], [VarCharType(9)])
    rewrite_manifests(days, listed=lambda meta: evolve(meta, partition_stats=other))
    check_faults(days, FaultKind.BOUNDS, "1 partitions outside", deep=False)


def vectors(table: paimon.Table, change: Callable[[DeletionVectorRange], Sequence[DeletionVectorRange]]) -> None:
    """Replace the index manifest of the newest snapshot by one that records other vectors."""
    engine, definition = table.engine, table.definition
    old = table.snapshots()[-1]
    assert old.index_manifest is not None
    entries = read_index_manifest(TableContext(engine, definition), old.index_manifest)
    first, *others = entries
    recorded = [new for vector in first.deletion_vectors or () for new in change(vector)]
    name = ManifestWriter(TableContext(engine, definition)).write_index_manifest(
        [evolve(first, deletion_vectors=tuple(recorded)), *others]
    )
    Path(definition.paths.snapshot(old.id)).write_bytes(snapshot_to_json(evolve(old, index_manifest=name)))


@pytest.fixture
def marked(tmp_path: Path) -> paimon.Table:
    table = create_table_of_two_runs(
        tmp_path, {"deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "5"}
    )
    assert check_table(table).faults == ()
    assert table.snapshots()[-1].index_manifest is not None
    return table


def test_wrong_metadata_of_deletion_vectors(marked: paimon.Table) -> None:
    whole = Path(marked.definition.paths.snapshot(marked.snapshots()[-1].id)).read_bytes()

    def plant(change: Callable[[DeletionVectorRange], Sequence[DeletionVectorRange]]) -> None:
        Path(marked.definition.paths.snapshot(marked.snapshots()[-1].id)).write_bytes(whole)
        vectors(marked, change)

    plant(lambda v: [evolve(v, data_file="data-gone-0.parquet")])
    assert any("not live" in f.reason for f in check_table(marked, deep=False).faults)
    plant(lambda v: [evolve(v, cardinality=4000)])
    check_faults(marked, FaultKind.CONTENT, "marks 4000 rows", deep=False)
    plant(lambda v: [evolve(v, cardinality=1)])
    assert any("the index manifest records 1" in f.reason for f in check_table(marked).faults)
    plant(lambda v: [v, v])
    assert not check_table(marked, deep=False).is_whole
    plant(lambda v: [evolve(v, offset=v.offset + 3)])
    assert not check_table(marked).is_whole


def test_a_missing_vector_leaves_duplicate_keys(marked: paimon.Table) -> None:
    """Reads do not merge above level 0 there, so both rows would be returned."""
    vectors(marked, lambda v: [])
    assert marked.scan().count() > 40
    check_faults(marked, FaultKind.LAYOUT, "with a key that occurs twice")


def test_a_cut_index_file(marked: paimon.Table) -> None:
    index = next(Path(marked.location, "index").iterdir())
    index.write_bytes(index.read_bytes()[:-4])
    kinds = {f.kind for f in check_table(marked, deep=False).faults}
    assert kinds == {FaultKind.SIZE}
    index.unlink()
    assert {f.kind for f in check_table(marked, deep=False).faults} == {FaultKind.MISSING}


def test_a_changelog_that_is_missing(tmp_path: Path) -> None:
    table = create_table_of_two_runs(tmp_path, {"changelog-producer": "input", "changelog.num-retained.min": "50"})
    table.write({"id": [1], "s": ["x"]})
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    assert check_table(table).faults == ()
    changelogs = Path(table.location, "changelog")
    (changelogs / "changelog-2").unlink()
    (fault,) = check_faults(table, FaultKind.GAP, "stream readers cannot continue past it")
    assert fault.states == ("changelog 2",)
    (changelogs / "changelog-3").unlink()
    assert {f.states for f in check_table(table).faults if f.kind is FaultKind.GAP} == {
        ("changelog 2",),
        ("changelog 3",),
    }
    assert FaultKind.HINT in {f.kind for f in check_table(table).faults}  # the newest changelog differs from its hint


def test_consumers(table: paimon.Table) -> None:
    table.consumers.reset("slow", 1)
    table.maintain.rollback_to(3)
    assert check_table(table).faults == ()
    table.with_options({"consumer.changelog-only": "true"}).maintain.expire_snapshots(
        retain_min=1, retain_max=1, older_than=timedelta(0)
    )
    check_faults(table, FaultKind.BEHIND, "reads snapshot 1 next, but only 3 to 3 exist")
    Path(table.location, "consumer", "consumer-slow").write_text("{")
    (fault,) = check_faults(table, FaultKind.UNREADABLE, "")
    assert fault.states == ("consumer slow",)


def test_a_tag_with_missing_files(table: paimon.Table) -> None:
    """As if another process had expired its snapshot and ignored tags."""
    table.tags.create("old", 1)
    only = Path(table.location, "tag", "tag-old").read_bytes()
    table.tags.delete("old")
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    Path(table.location, "tag", "tag-old").write_bytes(only)
    faults = [f for f in check_table(table).faults if f.kind is FaultKind.MISSING]
    assert faults
    assert {state for f in faults for state in f.states} == {"tag old"}


def test_faults_on_branches(table: paimon.Table) -> None:
    table.tags.create("t")
    table.branches.create("b", "t")
    Path(table.location, "branch", "branch-b", "snapshot", "snapshot-3").write_text("{}")
    (fault,) = check_faults(table, FaultKind.UNREADABLE, "")
    assert fault.states == ("snapshot 3 of branch b",)
    shutil.rmtree(Path(table.location, "branch", "branch-b", "schema"))
    assert ("branch b",) in {f.states for f in check_table(table).faults}


def test_progress_is_reported_during_the_check(table: paimon.Table) -> None:
    recorded: set[str] = set()

    class Watching:
        def progress(self, activity: str, done: int, total: int | None = None) -> None:
            recorded.add(activity)

        def count(self, metric: str, value: int) -> None: ...

    table.with_engine(evolve(table.engine, observer=Watching())).maintain.check(deep=True)
    assert recorded >= {"checking snapshots", "checking manifests", "checking files", "reading files"}


def test_the_command_names_the_faults(table: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite_manifests(table, with_file(LIES["size"][0]))
    assert main(["fsck", table.location, "--output", "json"]) == 1
    recorded = json.loads(capsys.readouterr().out)
    assert not recorded["whole"]
    (fault,) = recorded["faults"]
    assert fault["kind"] == "size"
    assert "snapshot 3" in fault["states"]
    assert "restore" in fault["remedy"]
    Path(table.location, "snapshot", "LATEST").write_text("77")
    table.maintain.rollback_to(2)
    assert main(["fsck", table.location]) == 0
