"""Options that change which rows a read returns: each has the effect that Java gives it, or is refused by name."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, Unsupported
from paimon.domain.schema.changes import SetOption
from paimon.domain.snapshot.snapshot import CommitKind

LOST, CORRUPT = "scan.ignore-lost-files", "scan.ignore-corrupt-files"


@pytest.fixture
def keyed(catalog: paimon.Catalog) -> paimon.Table:
    options = {"bucket": 4, "write-only": True}
    table = catalog.create_table("d.k", "k INT NOT NULL, v INT", primary_keys=["k"], options=options)
    table.write([{"k": k, "v": 0} for k in range(40)])
    table.write([{"k": k, "v": 1} for k in range(20)])
    return table


def keys(table: paimon.Table, options: Mapping[str, object] | None = None) -> list[int]:
    return sorted(table.with_options(options or {}).scan().to_arrow()["k"].to_pylist())


def test_statistics_are_read_for_a_few_files_at_a_time(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paimon.domain.manifest.entry_columns._FILES_AT_ONCE", 2)
    options = {"bucket": 1, "deletion-vectors.enabled": True}
    table = catalog.create_table("d.v", "p INT, k INT NOT NULL, v INT", primary_keys=["k"], options=options)
    for k in range(5):
        table.write([{"p": k, "k": k, "v": k}])
        assert table.scan(where=f"k >= 0 AND v = {k}").to_arrow()["k"].to_pylist() == [k]
    assert table.scan(where="k = 99 AND v = 1").to_arrow().num_rows == 0  # the keys leave no file


# source.split.*


@pytest.fixture
def many_files(catalog: paimon.Catalog) -> paimon.Table:
    table = catalog.create_table("d.files", "k INT, v INT")
    for k in range(6):
        table.write([{"k": k, "v": 0}])
    return table


def count_splits(table: paimon.Table, options: Mapping[str, object]) -> int:
    scan = table.with_options(options).scan()
    assert sorted(scan.to_arrow()["k"].to_pylist()) == list(range(6))
    return len(scan.plan().splits)


def test_small_splits_are_more_splits(many_files: paimon.Table) -> None:
    cheap = {"source.split.open-file-cost": "1 b"}
    assert count_splits(many_files, {}) == 1
    assert count_splits(many_files, {"source.split.target-size": "1 b", **cheap}) == 6
    assert count_splits(many_files, {"source.split.target-size": "8 mb", **cheap}) == 1


def test_a_file_counts_at_least_as_much_as_it_costs_to_open(many_files: paimon.Table) -> None:
    target = {"source.split.target-size": "8 mb"}
    assert count_splits(many_files, target) == 3
    assert count_splits(many_files, {**target, "source.split.open-file-cost": "1 mb"}) == 1
    assert count_splits(many_files, {**target, "source.split.open-file-cost": "8 mb"}) == 6


# scan.bucket


def test_scan_bucket_reads_one_bucket(keyed: paimon.Table) -> None:
    by_bucket: dict[int, list[int]] = {b: [] for b in range(4)}
    for split in keyed.scan().plan().splits:
        rows = keyed.new_read_builder().new_read().to_arrow([split])
        by_bucket[split.bucket] += rows["k"].to_pylist()
    assert all(by_bucket.values())
    for bucket, expected in by_bucket.items():
        assert keys(keyed, {"scan.bucket": bucket}) == sorted(expected)
        assert keyed.with_options({"scan.bucket": bucket}).scan().count() == len(expected)
    assert keys(keyed, {"scan.bucket": 4}) == []


def test_scan_bucket_holds_for_incremental_reads_and_streams(keyed: paimon.Table) -> None:
    one = keyed.with_options({"scan.bucket": 2})
    mine = keys(one)
    assert 0 < len(mine) < 40
    assert keys(one, {"incremental-between": "1,2"}) == [k for k in mine if k < 20]
    assert keys(one, {"incremental-between": "1,2", "incremental-between-scan-mode": "diff"}) == [
        k for k in mine if k < 20
    ]
    followed = one.follow(from_snapshot=1, until=2)
    assert sorted(k for batch in followed for k in batch["k"].to_pylist()) == sorted(
        [*mine, *(k for k in mine if k < 20)]
    )
    state = one.follow(until=2)
    assert sorted(k for batch in state for k in batch["k"].to_pylist()) == mine


@pytest.mark.parametrize("value", ["0", "-1"])
def test_scan_bucket_without_fixed_buckets_is_refused(catalog: paimon.Catalog, value: str) -> None:
    with pytest.raises(InvalidRequest, match=r"scan\.bucket"):
        catalog.create_table("d.a", "k INT", options={"scan.bucket": value})
    table = catalog.create_table("d.a", "k INT")
    table.write([{"k": 1}])
    with pytest.raises(InvalidRequest, match=r"scan\.bucket"):
        table.alter(SetOption("scan.bucket", value))
    with pytest.raises(InvalidRequest, match=r"scan\.bucket"):
        keys(table, {"scan.bucket": value})


def test_a_negative_scan_bucket_is_refused(keyed: paimon.Table) -> None:
    with pytest.raises(InvalidRequest, match=r"scan\.bucket.*-1"):
        keys(keyed, {"scan.bucket": -1})


def test_scan_bucket_does_not_restrict_changes_of_rows(keyed: paimon.Table) -> None:
    one = keyed.with_options({"scan.bucket": 2})
    assert one.delete("k < 20").rows == 20
    assert keys(keyed) == list(range(20, 40))


# scan.mode = latest-delta


def test_latest_delta_reads_the_delta_of_the_latest_snapshot(keyed: paimon.Table) -> None:
    delta = {"scan.mode": "latest-delta"}
    assert keys(keyed, delta) == list(range(20))
    keyed.compact(full=True)
    assert keyed.snapshots()[-1].commit_kind is CommitKind.COMPACT
    assert keys(keyed, delta) == []
    keyed.write([{"k": 77, "v": 0}])
    assert keys(keyed, delta) == [77]
    keyed.overwrite([{"k": 5, "v": 0}], partition={})
    assert keys(keyed, delta) == []


def test_latest_delta_of_an_empty_table_and_of_tables_with_vectors(catalog: paimon.Catalog) -> None:
    options = {"bucket": 1, "deletion-vectors.enabled": True, "write-only": True, "scan.mode": "latest-delta"}
    table = catalog.create_table("d.v", "k INT NOT NULL", primary_keys=["k"], options=options)
    assert keys(table) == []
    table.write([{"k": 1}])
    assert keys(table) == [1]


def test_latest_delta_excludes_time_travel_and_streams(keyed: paimon.Table) -> None:
    table = keyed.with_options({"scan.mode": "latest-delta"})
    with pytest.raises(InvalidRequest, match="latest-delta"):
        table.scan(snapshot=1).to_arrow()
    with pytest.raises(InvalidRequest, match=r"scan\.snapshot-id"):
        keys(table, {"scan.snapshot-id": 1})
    with pytest.raises(Unsupported, match="latest-delta"):
        list(table.follow(until=2))


@pytest.mark.parametrize(
    ("option", "mode"),
    [
        ("scan.file-creation-time-millis", "from-file-creation-time"),
        ("scan.creation-time-millis", "from-creation-timestamp"),
    ],
)
def test_a_stream_does_not_begin_at_a_time_of_files(keyed: paimon.Table, option: str, mode: str) -> None:
    with pytest.raises(Unsupported, match=mode):
        list(keyed.with_options({option: 1}).follow(until=2))


# Files that are lost or corrupt


def first_file(table: paimon.Table) -> tuple[Path, int]:
    split = table.scan().plan().splits[0]
    return Path(split.bucket_path, split.files[0].file_name), split.files[0].row_count


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("damage", ["lost", "corrupt"])
def test_files_are_skipped_only_with_the_option(catalog: paimon.Catalog, file_format: str, damage: str) -> None:
    table = catalog.create_table("d.a", "k INT, v STRING", options={"file.format": file_format, "write-only": True})
    for start in (0, 10):
        table.write([{"k": k, "v": "x"} for k in range(start, start + 10)])
    path, _ = first_file(table)
    if damage == "lost":
        path.unlink()
    else:
        path.write_bytes(b"\0" * path.stat().st_size)
    mine, other = (LOST, CORRUPT) if damage == "lost" else (CORRUPT, LOST)
    for options in ({}, {other: True}):
        with pytest.raises(CorruptTable, match=path.name):
            keys(table, options)
    tolerant = table.with_options({mine: True})
    with pytest.warns(RuntimeWarning, match=path.name):
        left = keys(tolerant)
    assert left in (list(range(10)), list(range(10, 20)))
    with pytest.warns(RuntimeWarning, match=path.name):
        assert tolerant.scan().count() == 10
    with pytest.warns(RuntimeWarning, match=path.name):
        assert tolerant.scan(where="k >= 0 AND v = 'x'").to_arrow().num_rows == 10


def test_a_merge_continues_without_the_lost_file(keyed: paimon.Table) -> None:
    split = next(s for s in keyed.scan().plan().splits if len(s.files) == 2)
    newest = max(split.files, key=lambda f: f.max_sequence_number)
    Path(split.bucket_path, newest.file_name).unlink()
    with pytest.warns(RuntimeWarning, match=newest.file_name):
        rows = keyed.with_options({LOST: True}).scan().to_arrow().to_pylist()
    assert sorted(r["k"] for r in rows) == list(range(40))
    assert sum(r["v"] for r in rows) == 20 - newest.row_count


@pytest.mark.parametrize("option", [LOST, CORRUPT])
def test_neither_compaction_nor_changes_leave_files_out(catalog: paimon.Catalog, option: str) -> None:
    options = {"bucket": 1, "write-only": True, option: True}
    table = catalog.create_table("d.k", "k INT NOT NULL", primary_keys=["k"], options=options)
    for k in (1, 2):
        table.write([{"k": k}])
    path, _ = first_file(table)
    path.unlink() if option == LOST else path.write_bytes(b"\0" * path.stat().st_size)
    with pytest.raises(CorruptTable, match=path.name):
        table.compact(full=True)
    assert len(table.snapshots()) == 2


@pytest.mark.parametrize("option", [LOST, CORRUPT])
def test_columns_in_several_files_are_not_left_out(catalog: paimon.Catalog, option: str) -> None:
    evolving = {"row-tracking.enabled": True, "data-evolution.enabled": True}
    with pytest.raises(Unsupported, match=option):
        catalog.create_table("d.e", "k INT", options={**evolving, option: True})
    table = catalog.create_table("d.e", "k INT", options=evolving)
    with pytest.raises(Unsupported, match=option):
        keys(table, {option: True})


# scan.primary-branch


@pytest.fixture
def branched(catalog: paimon.Catalog) -> paimon.Table:
    """Main holds the partitions a and b, branch `p` the partitions b and c, in another number of buckets."""
    made = catalog.create_table(
        "d.t", "p STRING NOT NULL, k INT NOT NULL, v STRING", primary_keys=["p", "k"], partition_keys=["p"],
        options={"bucket": 2},
    )  # fmt: skip
    shutil.copytree(Path(made.location, "schema"), Path(made.location, "branch", "branch-p", "schema"))
    schema = Path(made.location, "branch", "branch-p", "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"bucket" : "2"', '"bucket" : "1"'))
    made.write([{"p": p, "k": k, "v": "main"} for p in "ab" for k in range(3)])
    catalog.table("d.t$branch_p").write([{"p": p, "k": k, "v": "primary"} for p in "bc" for k in (7, 8)])
    return made


def rows(table: paimon.Table, **arguments: Any) -> list[tuple[str, int, str]]:
    return sorted((r["p"], r["k"], r["v"]) for r in table.scan(**arguments).to_arrow().to_pylist())


def test_the_primary_branch_is_read_first(branched: paimon.Table) -> None:
    table = branched.with_options({"scan.primary-branch": "p"})
    mine = [("a", k, "main") for k in range(3)]
    theirs = [(p, k, "primary") for p in "bc" for k in (7, 8)]
    assert rows(table) == mine + theirs
    assert rows(table, where="k < 5") == mine
    assert rows(table, where="p = 'b' AND k = 0") == []
    assert table.scan().count() == 7
    assert len(rows(branched)) == 6
    table.write([{"p": "b", "k": 1, "v": "again"}])
    assert rows(table) == mine + theirs and ("b", 1, "again") in rows(branched)


def test_a_primary_branch_is_exclusive_and_must_exist(branched: paimon.Table) -> None:
    both = {"scan.primary-branch": "p", "scan.fallback-branch": "p"}
    with pytest.raises(InvalidRequest, match=r"scan\.primary-branch"):
        rows(branched.with_options(both))
    with pytest.raises(NotFound, match="'gone'"):
        rows(branched.with_options({"scan.primary-branch": "gone"}))


# What this library does not follow


def test_chain_tables_and_merged_postponed_rows_are_refused(catalog: paimon.Catalog) -> None:
    with pytest.raises(Unsupported, match=r"chain-table\.enabled"):
        catalog.create_table("d.c", "k INT", options={"chain-table.enabled": True}, allow_unknown_options=True)
    table = catalog.create_table("d.c", "k INT NOT NULL", primary_keys=["k"], options={"bucket": 1, "provider": "x"})
    table.write([{"k": 1}])
    schema = Path(table.location, "schema", "schema-0")
    text = schema.read_text()
    schema.write_text(text.replace('"provider" : "x"', '"chain-table.enabled" : "true"'))
    with pytest.raises(Unsupported, match=r"chain-table\.enabled"):
        keys(catalog.table("d.c"))
    postponed = text.replace('"provider" : "x"', '"postpone.merge-on-read" : "true"')
    schema.write_text(postponed.replace('"bucket" : "1"', '"bucket" : "-2"'))
    with pytest.raises(Unsupported, match=r"postpone\.merge-on-read"):
        keys(catalog.table("d.c"))
