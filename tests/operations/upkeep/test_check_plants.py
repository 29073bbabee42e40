"""`check` sees each kind of planted lie: of files, of manifests, of vectors, of followers, on every branch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import paimon
from paimon.cli.main import main
from paimon.domain.maintenance.health.fault import Fault, FaultKind, HealthReport
from paimon.domain.manifest.entries import DataFileMeta, DeletionVectorRange, ManifestEntry, ManifestFileMeta
from paimon.domain.row.binary_row import serialize
from paimon.domain.snapshot.json import snapshot_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.stats.codec import to_simple_stats
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import IntType, VarCharType
from paimon.operations.commit.manifests import ManifestWriter
from paimon.operations.read.manifests import data_manifests, live_entries, read_index_manifest

Entries = list[ManifestEntry]
OPTIONS = {"bucket": "2", "num-sorted-run.compaction-trigger": "100", "num-levels": "6"}


def made(root: Path, options: dict[str, str] | None = None, *, keyed: bool = True) -> paimon.Table:
    catalog = paimon.connect(root)
    catalog.create_database("d")
    keys = ["id"] if keyed else []
    bucketed = {} if keyed else {"bucket-key": "id"}
    table = catalog.create_table(
        "d.t", "id INT NOT NULL, s STRING", primary_keys=keys, options={**OPTIONS, **bucketed, **(options or {})}
    )
    table.write({"id": list(range(40)), "s": [f"a{i}" for i in range(40)]})
    table.compact(full=True)
    table.write({"id": list(range(0, 40, 3)), "s": ["b"] * 14})
    return table


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    return made(tmp_path)


def retold(
    table: paimon.Table,
    change: Callable[[Entries], Entries] = list,
    *,
    listed: Callable[[ManifestFileMeta], ManifestFileMeta] = lambda meta: meta,
) -> Snapshot:
    """The newest snapshot again, saying something else of its files."""
    engine, definition = table.engine, table.definition
    old = table.snapshots()[-1]
    entries = change(live_entries(engine, definition, data_manifests(engine, definition, old)))
    writer = ManifestWriter(engine, definition)
    base = writer.manifest_list([listed(meta) for meta in writer.manifests(entries)])
    delta = writer.manifest_list([])
    new = evolve(
        old, base_manifest_list=base.name, base_manifest_list_size=base.size, delta_manifest_list=delta.name,
        delta_manifest_list_size=delta.size, delta_record_count=0,
        total_record_count=sum(e.file.row_count for e in entries),
    )  # fmt: skip
    Path(definition.paths.snapshot(old.id)).write_bytes(snapshot_to_json(new))
    return new


def looked(table: paimon.Table, deep: bool = True) -> HealthReport:
    return paimon.open_table(table.location).maintain.check(deep=deep)


def blamed(table: paimon.Table, kind: FaultKind, words: str, deep: bool = True) -> list[Fault]:
    """The faults, all of one kind, with these words and a state."""
    report = looked(table, deep)
    faults = list(report.faults)
    assert faults
    assert {f.kind for f in faults} == {kind}, str(report)
    assert any(words in fault.reason for fault in faults), str(report)
    assert all(fault.states and fault.kind.remedy for fault in faults)
    assert report.is_whole == kind.is_harmless
    return faults


def with_file(change: Callable[[DataFileMeta], DataFileMeta], level: int = 5) -> Callable[[Entries], Entries]:
    """One file of a level told otherwise."""

    def changed(entries: Entries) -> Entries:
        place = next(i for i, e in enumerate(entries) if e.file.level == level)
        entries[place] = evolve(entries[place], file=change(entries[place].file))
        return entries

    return changed


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
        FaultKind.CONTENT, "0 nulls, and 3"),
    "sequence numbers": (lambda f: evolve(f, max_sequence_number=3), FaultKind.CONTENT, "sequence numbers"),
    "deletes": (lambda f: evolve(f, delete_row_count=2), FaultKind.CONTENT, "deletes"),
    "size": (lambda f: evolve(f, file_size=f.file_size + 1), FaultKind.SIZE, "bytes"),
    "a schema that is not there": (lambda f: evolve(f, schema_id=7), FaultKind.MISSING, "schema"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_is_told_otherwise(table: paimon.Table, lie: str) -> None:
    assert looked(table).faults == ()
    change, kind, words = LIES[lie]
    retold(table, with_file(change))
    report = looked(table)
    assert any(f.kind is kind and (words in f.reason or words in f.path) for f in report.faults), str(report)
    assert not report.is_whole
    touched = {state for fault in report.faults for state in fault.states}
    assert "snapshot 3" in touched
    assert lie == "size" or touched == {"snapshot 3"}  # of a size that is told in two ways, nobody knows which is true


def test_levels_that_overlap(table: paimon.Table) -> None:
    def lifted(entries: Entries) -> Entries:
        return [evolve(e, file=evolve(e.file, level=5)) for e in entries]

    retold(table, lifted)
    assert "overlap in level 5" in blamed(table, FaultKind.LAYOUT, "overlap", deep=False)[0].reason


def test_rows_in_another_bucket_than_their_keys(table: paimon.Table) -> None:
    """Of a key in two buckets a read answers both rows: merging goes bucket by bucket."""
    directory = Path(table.location)

    def moved(entries: Entries) -> Entries:
        entry = next(e for e in entries if e.file.level == 5 and e.bucket == 0)
        shutil.copy(directory / "bucket-0" / entry.file.file_name, directory / "bucket-1" / entry.file.file_name)
        others = [e for e in entries if e is not entry and not (e.bucket == 1 and e.file.level == 5)]
        return [*others, evolve(entry, bucket=1)]

    retold(table, moved)
    (fault,) = blamed(table, FaultKind.PLACE, "another bucket")
    assert "/bucket-1/" in fault.path
    assert looked(table, deep=False).is_whole  # only data tell


def test_a_file_that_is_live_twice(table: paimon.Table) -> None:
    retold(table, lambda entries: [*entries, entries[0]])
    assert not looked(table, deep=False).is_whole


def test_files_outside_of_the_table(table: paimon.Table, tmp_path: Path) -> None:
    retold(table, with_file(lambda f: evolve(f, external_path=f"{tmp_path}/elsewhere/{f.file_name}")))
    assert {f.kind for f in looked(table, deep=False).faults} == {FaultKind.OUTSIDE}
    retold(table, with_file(lambda f: evolve(f, external_path=None, file_name="../../secret.parquet")))
    report = looked(table, deep=False)
    assert not report.is_whole
    assert "_FILE_NAME" in str(report)


def test_bounds_of_a_manifest_that_leave_files_out(table: paimon.Table) -> None:
    retold(table, listed=lambda meta: evolve(meta, max_bucket=0))
    blamed(table, FaultKind.BOUNDS, "buckets 0 to 1, its list says 0 to 0", deep=False)
    retold(table, listed=lambda meta: evolve(meta, min_level=1))
    blamed(table, FaultKind.BOUNDS, "levels 0 to 5", deep=False)


def test_bounds_of_partitions_that_leave_files_out(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    days = catalog.create_table("d.p", "id INT NOT NULL, day STRING NOT NULL", partition_keys=["day"])
    days.write({"id": [1, 2], "day": ["mon", "tue"]})
    other = to_simple_stats([ColumnStats("mon", "mon", 0)], [VarCharType(9)])
    retold(days, listed=lambda meta: evolve(meta, partition_stats=other))
    blamed(days, FaultKind.BOUNDS, "1 partitions outside", deep=False)


def vectors(table: paimon.Table, change: Callable[[DeletionVectorRange], Sequence[DeletionVectorRange]]) -> None:
    """The newest snapshot with an index manifest that tells other vectors."""
    engine, definition = table.engine, table.definition
    old = table.snapshots()[-1]
    assert old.index_manifest is not None
    entries = read_index_manifest(engine, definition, old.index_manifest)
    first, *others = entries
    told = [new for vector in first.deletion_vectors or () for new in change(vector)]
    name = ManifestWriter(engine, definition).index_manifest([evolve(first, deletion_vectors=tuple(told)), *others])
    Path(definition.paths.snapshot(old.id)).write_bytes(snapshot_to_json(evolve(old, index_manifest=name)))


@pytest.fixture
def marked(tmp_path: Path) -> paimon.Table:
    table = made(tmp_path, {"deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "5"})
    assert looked(table).faults == ()
    assert table.snapshots()[-1].index_manifest is not None
    return table


def test_vectors_that_are_told_otherwise(marked: paimon.Table) -> None:
    whole = Path(marked.definition.paths.snapshot(marked.snapshots()[-1].id)).read_bytes()

    def plant(change: Callable[[DeletionVectorRange], Sequence[DeletionVectorRange]]) -> None:
        Path(marked.definition.paths.snapshot(marked.snapshots()[-1].id)).write_bytes(whole)
        vectors(marked, change)

    plant(lambda v: [evolve(v, data_file="data-gone-0.parquet")])
    assert any("not live" in f.reason for f in looked(marked, deep=False).faults)
    plant(lambda v: [evolve(v, cardinality=4000)])
    blamed(marked, FaultKind.CONTENT, "marks 4000 rows", deep=False)
    plant(lambda v: [evolve(v, cardinality=1)])
    assert any("should mark 1" in f.reason for f in looked(marked).faults)
    plant(lambda v: [v, v])
    assert not looked(marked, deep=False).is_whole
    plant(lambda v: [evolve(v, offset=v.offset + 3)])
    assert not looked(marked).is_whole


def test_a_vector_that_is_gone_leaves_keys_twice(marked: paimon.Table) -> None:
    """Reads do not merge above level 0 there: both rows would show."""
    vectors(marked, lambda v: [])
    assert marked.scan().count() > 40
    blamed(marked, FaultKind.LAYOUT, "whose key is there already")


def test_a_cut_index_file(marked: paimon.Table) -> None:
    index = next(Path(marked.location, "index").iterdir())
    index.write_bytes(index.read_bytes()[:-4])
    kinds = {f.kind for f in looked(marked, deep=False).faults}
    assert kinds == {FaultKind.SIZE}
    index.unlink()
    assert {f.kind for f in looked(marked, deep=False).faults} == {FaultKind.MISSING}


def test_a_changelog_that_is_missing(tmp_path: Path) -> None:
    table = made(tmp_path, {"changelog-producer": "input", "changelog.num-retained.min": "50"})
    table.write({"id": [1], "s": ["x"]})
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    assert looked(table).faults == ()
    changelogs = Path(table.location, "changelog")
    (changelogs / "changelog-2").unlink()
    (fault,) = blamed(table, FaultKind.GAP, "followers cannot pass")
    assert fault.states == ("changelog 2",)
    (changelogs / "changelog-3").unlink()
    assert {f.states for f in looked(table).faults if f.kind is FaultKind.GAP} == {("changelog 2",), ("changelog 3",)}
    assert FaultKind.HINT in {f.kind for f in looked(table).faults}  # the newest changelog is not what its hint says


def test_consumers(table: paimon.Table) -> None:
    table.consumers.reset("slow", 1)
    table.maintain.rollback_to(3)
    assert looked(table).faults == ()
    table.with_options({"consumer.changelog-only": "true"}).maintain.expire_snapshots(
        retain_min=1, retain_max=1, older_than=timedelta(0)
    )
    blamed(table, FaultKind.BEHIND, "reads snapshot 1 next, and there are 3 to 3")
    Path(table.location, "consumer", "consumer-slow").write_text("{")
    (fault,) = blamed(table, FaultKind.UNREADABLE, "")
    assert fault.states == ("consumer slow",)


def test_a_tag_whose_files_are_gone(table: paimon.Table) -> None:
    """As if somebody had expired its snapshot and not looked for tags."""
    table.tags.create("old", 1)
    only = Path(table.location, "tag", "tag-old").read_bytes()
    table.tags.delete("old")
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    Path(table.location, "tag", "tag-old").write_bytes(only)
    faults = [f for f in looked(table).faults if f.kind is FaultKind.MISSING]
    assert faults
    assert {state for f in faults for state in f.states} == {"tag old"}


def test_faults_on_branches(table: paimon.Table) -> None:
    table.tags.create("t")
    table.branches.create("b", "t")
    Path(table.location, "branch", "branch-b", "snapshot", "snapshot-3").write_text("{}")
    (fault,) = blamed(table, FaultKind.UNREADABLE, "")
    assert fault.states == ("snapshot 3 of branch b",)
    shutil.rmtree(Path(table.location, "branch", "branch-b", "schema"))
    assert ("branch b",) in {f.states for f in looked(table).faults}


def test_progress_is_told_while_it_looks(table: paimon.Table) -> None:
    told: set[str] = set()

    class Watching:
        def progress(self, activity: str, done: int, total: int | None = None) -> None:
            told.add(activity)

        def count(self, metric: str, value: int) -> None: ...

    evolve(table, engine=evolve(table.engine, observer=Watching())).maintain.check(deep=True)
    assert told >= {"checking snapshots", "checking manifests", "checking files", "reading files"}


def test_the_command_names_what_it_found(table: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    retold(table, with_file(LIES["size"][0]))
    assert main(["fsck", table.location, "--output", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["whole"]
    (fault,) = told["faults"]
    assert fault["kind"] == "size"
    assert "snapshot 3" in fault["states"]
    assert "restore" in fault["remedy"]
    Path(table.location, "snapshot", "LATEST").write_text("77")
    table.maintain.rollback_to(2)
    assert main(["fsck", table.location]) == 0
