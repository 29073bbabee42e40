"""Data files outside the directory of their table: every writer puts them there, and every verb finds them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import fsspec
import pyarrow as pa
import pytest

import paimon
from paimon.domain.errors import AlreadyExists, CorruptTable, InvalidRequest, TableDropped
from paimon.domain.manifest.entries import FileKind
from paimon.domain.paths import may_overlap
from paimon.operations.expire.orphan_files import find_orphan_files
from paimon.operations.metadata.manifests import read_data_manifests, read_index_manifest, read_manifest
from paimon.operations.metadata.storage_time import OlderThan

STRATEGY, PATHS = "data-file.external-paths.strategy", "data-file.external-paths"
VECTORS = "deletion-vectors.enabled"
KEYED = {"bucket": "2", "changelog-producer": "input", "index-file-in-data-file-dir": "true"}
INDEXED = {"file-index.bloom-filter.columns": "v", "file-index.in-manifest-threshold": "1 b"}


class Home:
    """A warehouse, and two directories outside of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.warehouse, self.roots = tmp_path / "lake", (tmp_path / "a", tmp_path / "b")
        self.catalog = paimon.connect(self.warehouse, allowed_roots=self.roots)
        self.catalog.create_database("d")

    def options(self, strategy: str = "round-robin", **others: str) -> dict[str, str]:
        urls = ",".join(f"file://{root}" for root in self.roots)
        return {PATHS: urls, STRATEGY: strategy, **others}

    def create(self, columns: str, options: Mapping[str, str], **layout: object) -> paimon.Table:
        given = {**self.options(), **options}
        return self.catalog.create_table("d.t", columns, options=given, **layout)  # type: ignore[arg-type]

    def outside(self) -> set[Path]:
        return {path for root in self.roots for path in root.rglob("*") if path.is_file()}

    def inside(self) -> set[Path]:
        table = self.warehouse / "d.db" / "t"
        return {p for p in table.rglob("*") if p.is_file() and "bucket-" in str(p)}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def write_rounds(table: paimon.Table, rounds: int = 3) -> None:
    for number in range(rounds):
        table.write([{"k": k, "v": f"{number}", "p": k % 2} for k in range(10)])


def list_named_files(table: paimon.Table) -> set[Path]:
    """Return the files that the newest state names, with index files next to data files."""
    snapshot = table.snapshot()
    assert snapshot is not None
    entries = [
        e for m in read_data_manifests(table.context, snapshot) for e in read_manifest(table.context, m.file_name)
    ]
    paths = {p for e in entries if e.kind is FileKind.ADD for p in e.file.paths_in("in the table")}
    indexes = read_index_manifest(table.context, snapshot.index_manifest) if snapshot.index_manifest else ()
    return {Path(p.removeprefix("file://")) for p in paths | {e.external_path or "in the table" for e in indexes}}


KINDS = {
    "keys, changelog, index files": ({**KEYED, **INDEXED}, {"primary_keys": ["k", "p"], "partition_keys": ["p"]}),
    "deletion vectors": ({**KEYED, VECTORS: "true"}, {"primary_keys": ["k"]}),
    "dynamic buckets": ({"index-file-in-data-file-dir": "true"}, {"primary_keys": ["k"]}),
    "append": ({**INDEXED, "data-file.path-directory": "rows"}, {"partition_keys": ["p"]}),
    "postponed buckets": ({"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"}, {"primary_keys": ["k"]}),
    "data evolution": (dict.fromkeys(("row-tracking.enabled", "data-evolution.enabled", VECTORS), "true"), {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_files_of_rows_are_outside_the_table(home: Home, kind: str) -> None:
    options, layout = KINDS[kind]
    table = home.create("k INT NOT NULL, v STRING, p INT NOT NULL", options, **layout)
    write_rounds(table)
    if kind == "data evolution":
        table.update(set={"v": "'new'"}, where="k = 3")
    else:
        table.compact(full=True)
    assert home.inside() == set()
    assert list_named_files(table) <= home.outside()
    assert table.maintain.check(deep=True).faults == ()
    expected = {(k, "new" if kind == "data evolution" and k == 3 else "2") for k in range(10)}
    found = {(row["k"], row["v"]) for row in table.scan().to_arrow().to_pylist()}
    assert found >= expected
    table.delete("k = 4")
    if kind == "postponed buckets":
        table.compact()
    assert table.count("k = 4") == 0
    assert home.inside() == set()
    assert table.maintain.check(deep=True).faults == ()
    home.catalog.drop_table("d.t")
    assert home.outside() == set(), "the files that the table named are gone with it"


def test_the_roots_take_turns_or_have_weights_or_directories_of_a_hash(home: Home) -> None:
    columns, counts = "k INT", {}
    for number, (strategy, others) in enumerate(
        {"round-robin": {}, "weight-robin": {f"{PATHS}.weights": "1,9"}, "entropy-inject": {}}.items()
    ):
        options = home.options(strategy, **others)
        table = home.catalog.create_table(f"d.t{number}", columns, options={**options, "target-file-row-num": "1"})
        before = home.outside()
        table.write([{"k": k} for k in range(40)])
        new = home.outside() - before
        counts[strategy] = [sum(path.is_relative_to(root) for path in new) for root in home.roots]
        levels = {len(path.relative_to(home.roots[0].parent).parts) for path in new}
        assert levels == {7 if strategy == "entropy-inject" else 3}
    assert counts["round-robin"] == counts["entropy-inject"] == [20, 20]
    assert counts["weight-robin"][1] > 28


def test_specific_fs_uses_the_roots_of_its_scheme(home: Home) -> None:
    roots = f"s3://nowhere/x, file://{home.roots[1]}"
    options = {PATHS: roots, STRATEGY: "specific-fs", f"{PATHS}.specific-fs": "FILE"}
    table = home.create("k INT", options)
    table.write([{"k": 1}])
    assert {path.is_relative_to(home.roots[1]) for path in home.outside()} == {True}


@pytest.mark.parametrize("strategy", ["round-robin", "entropy-inject"])
def test_expiry_and_orphan_removal_delete_files_outside(home: Home, strategy: str) -> None:
    options = {STRATEGY: strategy, "snapshot.clean-empty-directories": "true", **INDEXED}
    table = home.create("k INT, v STRING, p INT", options, partition_keys=["p"])
    write_rounds(table, 2)
    orphan = min(home.outside()).with_name("data-orphan.parquet")
    orphan.write_bytes(b"x")
    for path in home.outside():
        os.utime(path, (0, 0))
    found = table.maintain.remove_orphans(dry_run=False)
    assert [path.removeprefix("file://") for path in found["path"].to_pylist()] == [str(orphan)]
    table.drop_partitions({"p": 0}, {"p": 1})
    assert home.outside() != set()
    table.maintain.expire_snapshots(retain_max=1, retain_min=1)
    assert [list(root.rglob("*")) for root in home.roots] == [[], []], "the directories of buckets are gone, too"


def test_orphan_removal_keeps_the_files_of_a_table_with_the_same_roots(home: Home) -> None:
    tables = [home.catalog.create_table(f"d.{name}", "k INT", options=home.options()) for name in ("one", "two")]
    for table in tables:
        table.write([{"k": 1}])
    live = home.outside()
    for path in live:
        os.utime(path, (0, 0))
    inside = Path(tables[0].location, "bucket-0", "data-orphan.parquet")
    inside.parent.mkdir(exist_ok=True)
    inside.write_bytes(b"x")
    os.utime(inside, (0, 0))
    with pytest.warns(paimon.PaimonWarning, match="orphan files below .* stay, because table .*two' has it"):
        found = tables[0].maintain.remove_orphans(dry_run=False)
    assert found["path"].to_pylist() == [str(inside)] and home.outside() == live
    home.catalog.drop_table("d.two")
    assert tables[0].maintain.remove_orphans().num_rows == 0


def test_orphan_removal_keeps_the_files_of_a_branch_of_another_table_and_of_its_directory(home: Home) -> None:
    other = home.catalog.create_table("d.other", "k INT")
    other.write([{"k": 1}])
    other.branches.create("b")
    for name, value in home.options().items():
        home.catalog.table("d.other$branch_b").alter(f"SET ('{name}' = '{value}')")
    home.catalog.table("d.other$branch_b").write([{"k": 2}])
    for path in {*home.outside(), *Path(other.location).rglob("*.parquet")}:
        os.utime(path, (0, 0))
    inside = {**home.options(), PATHS: f"file://{other.location}"}
    catalog = paimon.connect(home.warehouse, allowed_roots=[*home.roots, other.location])
    for name, options in {"d.one": home.options(), "d.two": inside}.items():
        table = catalog.create_table(name, "k INT", options=options)
        with pytest.warns(paimon.PaimonWarning, match="because table .*other' has it"):
            assert table.maintain.remove_orphans().num_rows == 0


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("s3://b/x", "s3a://b/x/", True),
        ("s3://b/x", "s3a://b//x/./y", True),
        ("file:///x/y", "/x", True),
        ("s3://b/x", "s3://b/xy", False),
        ("s3://b/x", "s3://c/x", False),
    ],
)
def test_directories_overlap_whatever_their_schemes(first: str, second: str, overlap: bool) -> None:
    assert may_overlap(first, second) is may_overlap(second, first) is overlap


def test_orphans_below_roots_of_earlier_schemas_and_of_branches_are_found(home: Home) -> None:
    table = home.create("k INT", {})
    table.write([{"k": 1}])
    orphan = min(home.outside()).with_name("data-orphan.parquet")
    orphan.write_bytes(b"x")
    os.utime(orphan, (0, 0))
    table.alter("RESET ('data-file.external-paths', 'data-file.external-paths.strategy')")
    found = home.catalog.table(table.name).maintain.remove_orphans(dry_run=False)
    assert [path.removeprefix("file://") for path in found["path"].to_pylist()] == [str(orphan)]


def test_aborted_and_failed_writes_leave_nothing(home: Home) -> None:
    table = home.create("k INT NOT NULL, v STRING", {"bucket": "1", **INDEXED}, primary_keys=["k"])
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(pa.table({"k": pa.array([1], pa.int32()), "v": ["x"]}))
    messages = writer.prepare_commit()
    assert len(home.outside()) == 2
    builder.new_commit().abort(messages)
    assert home.outside() == set()
    with pytest.raises(InvalidRequest):
        table.write([{"k": 1, "v": "x"}, {"k": None, "v": "x"}])
    assert home.outside() == set()
    home.catalog.drop_table("d.t")
    with pytest.raises((TableDropped, paimon.NotFound)):
        table.write([{"k": 1, "v": "x"}])
    assert home.outside() == set()


def test_a_table_that_is_dropped_leaves_the_files_of_others(home: Home) -> None:
    first = home.create("k INT", {})
    first.write([{"k": 1}])
    first.tags.create("old")
    first.overwrite([{"k": 2}])
    first.maintain.expire_snapshots(retain_max=1, retain_min=1)
    second = home.catalog.create_table("d.other", "k INT", options=home.options())
    second.write([{"k": 3}])
    home.catalog.create_table("d.t", "k INT", replace=True)
    assert len(home.outside()) == 1, "the file of the other table"
    assert second.scan().to_arrow().to_pylist() == [{"k": 3}]
    home.catalog.drop_database("d", cascade=True)
    assert home.outside() == set()


def test_a_drop_finds_the_files_of_tags_whose_changelog_expired(home: Home) -> None:
    table = home.create("k INT NOT NULL", {"bucket": "1", "changelog-producer": "input"}, primary_keys=["k"])
    table.write([{"k": 1}])
    table.tags.create("old")
    table.write([{"k": 2}])
    table.write([{"k": 3}])
    table.maintain.expire_snapshots(retain_max=1, retain_min=1)
    home.catalog.drop_table("d.t")
    assert home.outside() == set()


def break_manifest_list(table: Path) -> None:
    max((table / "manifest").glob("manifest-list-*")).write_bytes(b"x")


def break_schema(table: Path) -> None:
    (table / "schema" / "schema-0").write_text("{")


def raise_schema_version(table: Path) -> None:
    schema = json.loads((table / "schema" / "schema-0").read_text())
    (table / "schema" / "schema-0").write_text(json.dumps({**schema, "version": 99}))


@pytest.mark.parametrize("damage", [break_manifest_list, break_schema, raise_schema_version])
def test_a_table_whose_metadata_cannot_be_read_can_be_dropped(home: Home, damage: Callable[[Path], None]) -> None:
    home.create("k INT", {}).write([{"k": 1}])
    place = home.warehouse / "d.db" / "t"
    damage(place)
    catalog = paimon.connect(home.warehouse, allowed_roots=home.roots)
    with pytest.warns(paimon.PaimonWarning, match="files outside its directory may stay, because its metadata"):
        catalog.drop_table("d.t")
    assert not place.exists()


def test_a_replaced_table_does_not_have_its_own_directory_as_root(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path, allowed_roots=[tmp_path])
    catalog.create_database("d")
    catalog.create_table("d.t", "k INT").write([{"k": 1}])
    options = {PATHS: f"file://{tmp_path}/d.db/t", STRATEGY: "round-robin"}
    with pytest.raises(InvalidRequest, match="overlaps the table"):
        catalog.create_filled_table("d.t", "k INT", lambda t: t.write([{"k": 2}]), options=options, replace=True)
    assert catalog.table("d.t").scan().to_arrow().to_pylist() == [{"k": 1}]


def test_orphan_files_are_found_below_the_path_directory_and_in_a_whole_bucket(tmp_path: Path) -> None:
    root = f"memory://{uuid4()}"
    catalog = paimon.connect(tmp_path, allowed_roots=[root])
    catalog.create_database("d")
    options = {PATHS: root, STRATEGY: "round-robin", "data-file.path-directory": "rows"}
    table = catalog.create_table("d.t", "k INT", options=options)
    table.write([{"k": 1}])
    orphan = f"{root}/rows/bucket-0/data-orphan.parquet"
    fsspec.filesystem("memory").pipe(orphan, b"x")
    assert find_orphan_files(table.context, OlderThan(0))["path"].to_pylist() == [orphan]


def test_roots_and_options_of_storages_that_would_be_ignored_or_shown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="names a URL with credentials") as refused:
        paimon.connect(tmp_path, allowed_roots=["s3://ada:hush-hush@b/x"])
    assert "hush-hush" not in str(refused.value)
    with pytest.raises(InvalidRequest, match="no mapping under 's3://b'"):
        paimon.connect(tmp_path, storage={"s3://b": "eu"})


def test_a_default_of_the_catalog_gives_no_roots_to_all_tables(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="would give all tables the same roots"):
        paimon.connect(tmp_path, **{"table-default.data-file.external-paths": "file:///shared"})


def test_a_clone_has_its_files_in_its_directory(home: Home) -> None:
    table = home.create("k INT NOT NULL, v STRING", {**KEYED, **INDEXED}, primary_keys=["k"])
    table.write([{"k": 1, "v": "x"}])
    before = home.outside()
    home.catalog.clone_table("d.t", "d.copy")
    assert home.outside() == before
    copy = paimon.connect(home.warehouse).table("d.copy")
    copy.write([{"k": 2, "v": "y"}])
    assert copy.count() == 2
    assert home.outside() == before


def test_a_table_like_another_one_does_not_share_its_roots(home: Home) -> None:
    home.create("k INT", {"bucket": "1", "bucket-key": "k"}).write([{"k": 1}])
    home.catalog.sql("CREATE TABLE d.other LIKE d.t")
    other = home.catalog.table("d.other")
    assert dict(other.table_schema.options) == {"bucket": "1", "bucket-key": "k"}
    assert find_orphan_files(other.context, OlderThan(0)).num_rows == 0


def test_branches_tags_rollback_and_rename_keep_their_files(home: Home) -> None:
    table = home.create("k INT NOT NULL, v STRING", {"bucket": "1"}, primary_keys=["k"])
    table.write([{"k": 1, "v": "x"}])
    table.tags.create("one")
    table.branches.create("b", tag="one")
    branch = home.catalog.table("d.t$branch_b")
    branch.write([{"k": 2, "v": "y"}])
    table.overwrite([{"k": 3, "v": "z"}])
    table.maintain.expire_snapshots(retain_max=1, retain_min=1)
    assert table.scan(tag="one").count() == 1
    home.catalog.rename_table("d.t", "d.new")
    renamed = home.catalog.table("d.new")
    renamed.write([{"k": 4, "v": "z"}])
    assert (renamed.count(), home.catalog.table("d.new$branch_b").count()) == (2, 2)
    renamed.maintain.rollback_to(tag="one")
    assert renamed.scan().to_arrow().to_pylist() == [{"k": 1, "v": "x"}]
    assert home.inside() == set()


def test_the_roots_may_be_in_another_storage(tmp_path: Path) -> None:
    root = f"memory://{uuid4()}/rows"
    catalog = paimon.connect(tmp_path, allowed_roots=[root], storage={root: {}})
    catalog.create_database("d")
    options = {PATHS: root, STRATEGY: "round-robin", "bucket": "1"}
    table = catalog.create_table("d.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options=options)
    table.write([{"k": 1, "v": "a"}])
    table.write([{"k": 1, "v": "b"}])
    table.compact(full=True)
    assert table.scan().to_arrow().to_pylist() == [{"k": 1, "v": "b"}]
    assert table.lookup([{"k": 1}]).to_pylist() == [{"k": 1, "v": "b"}]
    assert list(Path(table.location).rglob("bucket-*")) == []
    stored = fsspec.filesystem("memory")
    assert stored.find(root)
    assert table.maintain.check(deep=True).faults == ()
    catalog.drop_table("d.t")
    assert stored.find(root) == []


def test_roots_need_the_callers_leave(home: Home) -> None:
    table = home.create("k INT", {})
    table.write([{"k": 1}])
    other = paimon.connect(home.warehouse)
    with pytest.raises(InvalidRequest, match="not allowed") as refused:
        other.table("d.t").write([{"k": 2}])
    assert refused.value.subject == PATHS
    assert "allowed_roots=" in (refused.value.hint or "")
    with pytest.raises(CorruptTable, match="outside the table"):
        other.table("d.t").scan().to_arrow()
    with pytest.warns(paimon.PaimonWarning, match=r"1 file outside the allowed roots stay.*allowed_roots="):
        other.drop_table("d.t")
    assert len(home.outside()) == 1, "nothing is deleted where the caller allows nothing"


def test_expiry_reports_files_that_it_must_keep(home: Home) -> None:
    table = home.create("k INT", {})
    table.write([{"k": 1}])
    table.overwrite([{"k": 2}])
    other = paimon.connect(home.warehouse).table("d.t")
    with pytest.warns(paimon.PaimonWarning, match="1 file outside the allowed roots stay"):
        other.maintain.expire_snapshots(retain_max=1, retain_min=1)
    assert len(home.outside()) == 2


def test_a_storage_has_the_options_under_its_url(tmp_path: Path) -> None:
    root = "s3://b/rows"
    catalog = paimon.connect(tmp_path, allowed_roots=[root], storage={"s3://b": {"bogus": "x"}, "region": "eu"})
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT", options={PATHS: root, STRATEGY: "round-robin"})
    assert table.count() == 0, "no client is made before it is needed"
    with pytest.raises(InvalidRequest, match="'bogus' is not known for s3://"):
        table.write([{"k": 1}])


BAD = {
    "unknown strategy": ({STRATEGY: "random"}, STRATEGY),
    "no scheme": ({PATHS: "/data/x"}, PATHS),
    "relative": ({PATHS: "file:data/x"}, PATHS),
    "no bucket": ({PATHS: "s3:///x"}, PATHS),
    "dots": ({PATHS: "s3://b/x/../y"}, PATHS),
    "no specific-fs": ({STRATEGY: "specific-fs"}, f"{PATHS}.specific-fs"),
    "no path of specific-fs": ({STRATEGY: "specific-fs", f"{PATHS}.specific-fs": "oss"}, f"{PATHS}.specific-fs"),
    "number of weights": ({STRATEGY: "weight-robin", f"{PATHS}.weights": "1"}, f"{PATHS}.weights"),
    "weight of 0": ({STRATEGY: "weight-robin", f"{PATHS}.weights": "1,0"}, f"{PATHS}.weights"),
    "weight that is no number": ({STRATEGY: "weight-robin", f"{PATHS}.weights": "1,x"}, f"{PATHS}.weights"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_refused_by_name(home: Home, case: str) -> None:
    options, subject = BAD[case]
    with pytest.raises(InvalidRequest) as refused:
        home.create("k INT", options)
    assert (refused.value.subject, repr(subject) in refused.value.message) == (subject, True)
    with pytest.raises(paimon.NotFound):
        home.catalog.table("d.t")


def test_a_root_does_not_overlap_the_table(home: Home) -> None:
    location = home.warehouse / "d.db" / "t"
    for root in (location, location / "rows", home.warehouse):
        with pytest.raises(InvalidRequest, match="overlaps the table") as refused:
            home.create("k INT", {PATHS: f"file://{root}"})
        assert refused.value.subject == PATHS
    table = home.catalog.create_table("d.t", "k INT")
    with pytest.raises(AlreadyExists):
        home.catalog.create_table("d.t", "k INT")
    moved = table.set_options({PATHS: f"file://{location}/rows", STRATEGY: "round-robin"})
    with pytest.raises(InvalidRequest, match="overlaps the table"):
        moved.write([{"k": 1}])
