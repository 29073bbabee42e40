"""A new writer continues with the bucket files that an earlier one of its process knew: it knows what the table has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from attrs import evolve
from support.case_lists import mark_nightly, mark_products
from support.commit_tables import as_another_process

import paimon
from paimon.domain.manifest.entries import FileKind
from paimon.operations.commit.base import CommitBase
from paimon.operations.metadata import manifests
from paimon.operations.metadata.manifests import read_manifest
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.write import restore
from paimon.operations.write.restore import BucketStates, CommittedFiles, KnownBuckets
from paimon.operations.write.route import Address

Step = Callable[[paimon.Table, "Writer"], object]


def make_rows(first: int, days: str = "ab") -> pa.Table:
    return pa.table({"id": range(first, first + 6), "day": [days[n % len(days)] for n in range(6)], "v": [first] * 6})


class Writer:
    """Other processes that write to the same table."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def table(self) -> paimon.Table:
        return paimon.connect(self._path).table("d.t")


def write(first: int, days: str = "ab") -> Step:
    return lambda table, _: table.write(make_rows(first, days))


def write_elsewhere(first: int, days: str = "ab") -> Step:
    return lambda _, other: other.table.write(make_rows(first, days))


HISTORIES: Mapping[str, list[Step]] = {
    "compactions": [write(n) for n in range(7)],
    "another process": [write(0), write_elsewhere(3), write(1, "a"), write_elsewhere(9, "c"), write(2, "c")],
    "many others": [write(0), *(write_elsewhere(n) for n in range(12)), write(1)],
    "overwrite": [write(0), lambda t, _: t.overwrite(make_rows(1, "a"), {"day": "a"}), write(2), write(3)],
    "rescale": [write(0), lambda _, o: o.table.rescale(3), lambda _, o: o.table.write(make_rows(2))],
    "delete": [write(0), lambda t, _: t.delete(where="id < 3"), write(2), lambda t, _: t.delete(where="id >= 0")],
    "compact": [write(0), write(1), lambda t, _: t.compact(full=True), write(2)],
    "rollback": [write(0), write(1), write(2), lambda t, _: t.maintain.rollback_to(2), write(5), write(6), write(7)],
    "schema": [write(0), lambda t, _: t.write(make_rows(1).append_column("w", pa.array([1] * 6)), merge_schema=True)],
}  # fmt: skip


KINDS: Mapping[str, dict[str, str]] = {
    "plain": {},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "changelog": {"changelog-producer": "lookup"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
}


def check_states(table: paimon.Table) -> None:
    """What the engine knows equals what an engine with an empty cache reads."""
    live = CommitBase(table.context, latest_snapshot(table.context)).read_live_files(lambda _: True)
    addresses = sorted({Address(e.partition, b) for e in live for b in range(3)})
    known = CommittedFiles(table.context, True).restore(addresses)
    fresh = table.context.with_engine(as_another_process(table.engine))
    read = CommittedFiles(fresh, True).restore(addresses)
    assert describe(known, addresses) == describe(read, addresses)
    for snapshot in table.snapshots():
        for meta in manifests.read_delta_list(table.context, snapshot):
            assert read_manifest(table.context, meta.file_name) == read_manifest(fresh, meta.file_name)


def describe(states: BucketStates, addresses: list[Address]) -> object:
    files = {a: {f.file_name: f for f in states.files.get(a, ())} for a in addresses}
    return states.next_sequence, files, {a.partition: states.total_buckets.get(a.partition) for a in addresses}


def create_table(path: Path, options: Mapping[str, str]) -> paimon.Table:
    catalog = paimon.connect(path)
    catalog.create_database("d")
    return catalog.create_table(
        "d.t",
        make_rows(0).schema,
        primary_keys=["id", "day"],
        partition_keys=["day"],
        options={"bucket": "2", "num-sorted-run.compaction-trigger": "3", **options},
    )


@pytest.mark.parametrize(("history", "each"), mark_products(HISTORIES, [False, True], always=["compactions",
    "another process", "overwrite", "rescale", "rollback", "schema"]))  # fmt: skip
def test_known_files_are_those_of_the_table(tmp_path, history: str, each: bool) -> None:
    table = create_table(tmp_path, {})
    other = Writer(tmp_path)
    for step in HISTORIES[history]:
        step(table, other)
        if each:
            check_states(table)
    check_states(table)


@pytest.mark.parametrize("kind", mark_nightly(KINDS, always=["deletion vectors"]))
def test_known_files_of_all_kinds_are_those_of_the_table(tmp_path, kind: str) -> None:
    table = create_table(tmp_path, KINDS[kind])
    for step in (step for name in ("compactions", "delete", "overwrite") for step in HISTORIES[name]):
        if kind != "aggregation" or step not in HISTORIES["delete"][1::2]:
            step(table, Writer(tmp_path))
        check_states(table)


@pytest.mark.parametrize(("most", "expected"), [(1_000, 1), (2, 5)], ids=["few files", "more than are kept"])
def test_a_small_write_reads_no_manifest(tmp_path, monkeypatch, most: int, expected: int) -> None:
    table, reads = create_table(tmp_path, {}), []
    read = restore.read_live_columns
    monkeypatch.setattr(restore, "read_live_columns", lambda *given: reads.append(given) or read(*given))
    monkeypatch.setattr(restore, "_MAX_KNOWN", most)
    for _ in range(6):
        table.write(make_rows(0))
    assert len(reads) == expected


def test_a_writer_of_a_dropped_table_does_not_know_its_files(tmp_path) -> None:
    """The new table of the name has as many snapshots."""
    table = create_table(tmp_path, {})
    for first in range(3):
        table.write(make_rows(first))
    catalog = paimon.connect(tmp_path)
    catalog.drop_table("d.t")
    catalog.drop_database("d")
    again = create_table(tmp_path, {}).with_engine(table.engine)
    Writer(tmp_path).table.write(make_rows(5))
    check_states(again)
    for first in range(3):
        Writer(tmp_path).table.write(make_rows(first))
    check_states(again)


def test_an_empty_bucket_is_read_again_after_other_commits(tmp_path) -> None:
    """Its partition may have lost its last file since, and then takes any number of buckets."""
    table = create_table(tmp_path, {})
    table.write(make_rows(0, "a").slice(0, 1))
    snapshot = latest_snapshot(table.context)
    assert snapshot is not None
    (entry,) = CommitBase(table.context, snapshot).read_live_files(lambda _: True)
    full, empty = Address(entry.partition, entry.bucket), Address(entry.partition, 1 - entry.bucket)
    states = BucketStates({full: 1, empty: 0}, {entry.partition: 2}, {full: (entry.file,)})
    known = KnownBuckets(snapshot, {}, {}).with_states(states)
    assert known.select_states([full, empty]) is not None
    after = known.apply(snapshot, [evolve(entry, kind=FileKind.DELETE)])
    assert after.select_states([full]) is None
    assert after.select_states([empty]) is None


def test_statistics_count_as_memory(tmp_path) -> None:
    wide = ", ".join(f"c{n} STRING" for n in range(100))
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    options = {"metadata.stats-mode": "full", "bucket": 1}
    table = catalog.create_table("d.t", f"id INT NOT NULL, {wide}", primary_keys=["id"], options=options)
    table.write([{"id": 1} | {f"c{n}": "x" * 50 for n in range(100)}])
    snapshot = latest_snapshot(table.context)
    assert snapshot is not None
    (entry,) = CommitBase(table.context, snapshot).read_live_files(lambda _: True)
    address = Address(entry.partition, entry.bucket)
    states = BucketStates({address: 1}, {entry.partition: 1}, {address: (entry.file,)})
    assert KnownBuckets(snapshot, {}, {}).with_states(states).bytes > 2 * 100 * 50
