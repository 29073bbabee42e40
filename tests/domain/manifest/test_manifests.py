"""Manifests are read as written, hostile ones are refused, and merging never changes the live files."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.manifest_columns import to_entry_columns

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.entries import (
    DataFileMeta,
    DeletionVectorRange,
    FileKind,
    FileSource,
    GlobalIndex,
    IndexManifestEntry,
    ManifestEntry,
    ManifestFileMeta,
)
from paimon.domain.manifest.entry_codec import (
    Record,
    data_file_from_record,
    entry_from_record,
    entry_to_record,
    index_entry_from_record,
    index_entry_to_record,
    manifest_from_record,
    manifest_to_record,
)
from paimon.domain.manifest.entry_columns import ENTRY_TYPE, ManifestRecords, drain_files, entry_columns, files_at
from paimon.domain.manifest.manifest_stats import manifest_meta, manifest_meta_of_columns, may_hold_partition
from paimon.domain.manifest.merge_entries import (
    check_added_once,
    live_files,
    mark_kept,
    mark_live,
    mark_merged,
    merge_entries,
)
from paimon.domain.manifest.merge_plan import (
    MergeLimits,
    manifests_with_deletes,
    mark_after_full_merge,
    must_change,
    plan_full_merge,
    plan_minor_merge,
)
from paimon.domain.manifest.record_columns import ArrayColumns
from paimon.domain.row.binary_row import serialize
from paimon.domain.stats.simple_stats import SimpleStats
from paimon.domain.types.data_types import IntType
from paimon.operations.metadata.manifests import to_entries

LONGS = st.integers(0, 2**63 - 1)
NAMES = st.text("abcé-0123.", min_size=3, max_size=12)
ROWS = st.lists(st.none() | st.integers(-5, 5), max_size=3).map(lambda v: serialize(v, [IntType()] * len(v)))
STATS = st.builds(SimpleStats, ROWS, ROWS, st.lists(st.none() | LONGS, max_size=3).map(tuple))
FILES = st.builds(
    DataFileMeta, NAMES, LONGS, LONGS, ROWS, ROWS, STATS, STATS, LONGS, LONGS, st.integers(0, 3), st.integers(0, 5),
    st.lists(NAMES, max_size=2).map(tuple), st.none() | LONGS, st.none() | LONGS, st.none() | st.binary(max_size=9),
    st.none() | st.sampled_from(FileSource), st.none() | st.lists(NAMES, max_size=2).map(tuple), st.none() | NAMES,
    st.none() | LONGS, st.none() | st.lists(NAMES, max_size=2).map(tuple),
)  # fmt: skip
ENTRIES = st.builds(ManifestEntry, st.sampled_from(FileKind), ROWS, st.integers(-2, 9), st.integers(-2, 9), FILES)
MANIFESTS = st.builds(
    ManifestFileMeta, NAMES, LONGS, LONGS, LONGS, STATS, st.integers(0, 9), *[st.none() | st.integers(0, 9)] * 6
)
INDEX_ENTRIES = st.builds(
    IndexManifestEntry, st.sampled_from(FileKind), ROWS, st.integers(-2, 9), NAMES, NAMES, LONGS, LONGS,
    st.none() | st.lists(
        st.builds(DeletionVectorRange, NAMES, st.integers(0, 99), st.integers(0, 99), st.none() | LONGS), max_size=2
    ).map(tuple),
    st.none() | NAMES,
    st.none() | st.builds(GlobalIndex, LONGS, LONGS, st.integers(0, 9), st.none() | st.just((1, 2)), st.none()),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(ENTRIES, MANIFESTS, INDEX_ENTRIES)
def test_what_is_encoded_is_decoded(entry: ManifestEntry, meta: ManifestFileMeta, index: IndexManifestEntry) -> None:
    assert entry_from_record(entry_to_record(entry), "m") == entry
    assert manifest_from_record(manifest_to_record(meta), "l") == meta
    assert index_entry_from_record(index_entry_to_record(index), "i") == index


@settings(max_examples=40, deadline=None)
@given(st.lists(ENTRIES, max_size=5))
def test_columns_hold_the_same_files(entries: list[ManifestEntry]) -> None:
    found = to_entry_columns(entries)
    assert files_at(found.files) == [e.file for e in entries]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paimon.domain.manifest.entry_columns._FILES_AT_ONCE", 2)
        assert files_at(found.files) == [e.file for e in entries]
    assert [found.partition_rows[p] for p in found.partitions] == [e.partition for e in entries]
    assert found.buckets.tolist() == [e.bucket for e in entries]


@settings(max_examples=40, deadline=None)
@given(st.lists(ENTRIES, min_size=1, max_size=6), st.booleans(), st.data())
def test_counts_and_bounds_of_columns_are_those_of_the_entries(
    entries: list[ManifestEntry], has_row_ids: bool, data: st.DataObject
) -> None:
    entries = [evolve(e, partition=serialize((i % 3 or None,), TYPES)) for i, e in enumerate(entries)]
    small = {"row_count": 7, "first_row_id": 40 if has_row_ids else None}
    entries = [evolve(e, file=evolve(e.file, **small)) for e in entries] if data.draw(st.booleans()) else entries
    entries = [evolve(e, file=evolve(e.file, row_count=min(e.file.row_count, 2**60), first_row_id=e.file.first_row_id
                                     and min(e.file.first_row_id, 2**60))) for e in entries]  # fmt: skip
    rows = data.draw(st.lists(st.sampled_from(range(len(entries))), unique=True, min_size=1))
    expected = manifest_meta("m", 1, [entries[row] for row in rows], TYPES)
    assert manifest_meta_of_columns("m", 1, to_entry_columns(entries), np.array(rows), TYPES) == expected


def test_files_of_older_writers_lack_columns() -> None:
    record = entry_to_record(ManifestEntry(FileKind.ADD, bytes(12), 0, -1, DataFileMeta("data-1.orc", 1, 1)))["_FILE"]
    optional = ("_CREATION_TIME", "_DELETE_ROW_COUNT", "_EMBEDDED_FILE_INDEX", "_FILE_SOURCE", "_VALUE_STATS_COLS",
                "_EXTERNAL_PATH", "_FIRST_ROW_ID", "_WRITE_COLS")  # fmt: skip
    old = {name: value for name, value in record.items() if name not in optional}
    assert data_file_from_record(old, "m") == DataFileMeta("data-1.orc", 1, 1)


def one_manifest(record: Record) -> ManifestRecords:
    return ManifestRecords(("manifest-x",), (1,), ArrayColumns(pa.array([record], ENTRY_TYPE)))


def test_drained_files_are_equal_and_released() -> None:
    entries = [ManifestEntry(FileKind.ADD, bytes(12), 0, 1, DataFileMeta(name, 1, 1)) for name in ("a", "b", "c", "")]
    parts = [evolve(one_manifest(entry_to_record(e)), paths=(f"manifest-{n}",)) for n, e in enumerate(entries)]
    released = weakref.ref(parts[0].records)
    columns = entry_columns(parts[:3]).take(np.array([0, 2]))
    with pytest.raises(CorruptTable, match="manifest-3"):
        drain_files(entry_columns(parts).files)
    assert [len(records) for records in entry_columns(parts[:3]).files.drain(2)] == [2, 1]  # converted together
    del parts
    assert released() is not None
    assert drain_files(columns.files) == [entries[0].file, entries[2].file]
    assert released() is None


HOSTILE: list[tuple[str, Any]] = [
    ("_FILE_NAME", "../../secret.parquet"),
    ("_FILE_NAME", ""),
    ("_EXTRA_FILES", ["a/b"]),
    ("_FILE_SIZE", -1),
    ("_ROW_COUNT", -(2**63)),
    ("_LEVEL", 2**31 - 1),
    ("_MIN_KEY", b"short"),
    ("_SCHEMA_ID", None),
    ("_DELETE_ROW_COUNT", -1),
    ("_FILE_SOURCE", 7),
]


@pytest.mark.parametrize(("name", "value"), HOSTILE)
def test_hostile_records_are_refused_both_ways(name: str, value: object) -> None:
    record = entry_to_record(ManifestEntry(FileKind.ADD, bytes(12), 0, -1, DataFileMeta("data-1.orc", 1, 1)))
    record["_FILE"][name] = value
    with pytest.raises(CorruptTable, match="manifest-x"):
        entry_from_record(record, "manifest-x")
    with pytest.raises(CorruptTable, match="manifest-x"):
        files_at(entry_columns([one_manifest(record)]).files)


@pytest.mark.parametrize("version", [1, 3])
def test_other_versions_are_unsupported(version: int) -> None:
    record = entry_to_record(ManifestEntry(FileKind.ADD, bytes(12), 0, -1, DataFileMeta("data-1.orc", 1, 1)))
    record["_VERSION"] = version
    with pytest.raises(Unsupported, match="manifest-x"):
        entry_from_record(record, "manifest-x")
    with pytest.raises(Unsupported, match="manifest-x"):
        entry_columns([one_manifest(record)])


TYPES = [IntType()]


@st.composite
def histories(draw: st.DrawFn) -> list[list[ManifestEntry]]:
    """Manifests in order: files are added once, and some of those present are deleted or upgraded."""
    present: list[ManifestEntry] = []
    manifests: list[list[ManifestEntry]] = []
    for number in range(draw(st.integers(1, 7))):
        entries: list[ManifestEntry] = []
        for file in range(draw(st.integers(0, 3))):
            partition = serialize((draw(st.integers(0, 2)),), TYPES)
            meta = DataFileMeta(f"data-{number}-{file}.orc", 1, 1)
            entries.append(ManifestEntry(FileKind.ADD, partition, 0, 1, meta))
        for gone in draw(st.lists(st.sampled_from(present), unique=True, max_size=2)) if present else []:
            present.remove(gone)
            entries.append(gone.to_delete_entry())
            if gone.file.level == 0 and draw(st.booleans()):
                upgraded = DataFileMeta(gone.file.file_name, 1, 1, level=5)
                entries.append(ManifestEntry(FileKind.ADD, gone.partition, 0, 1, upgraded))
        present += [e for e in entries if e.kind is FileKind.ADD]
        if entries:
            manifests.append(entries)
    return manifests


def live(manifests: list[list[ManifestEntry]]) -> Counter[ManifestEntry]:
    return Counter(live_files(e for m in manifests for e in m))


@settings(max_examples=50, deadline=None)
@given(histories())
def test_live_files_by_columns_are_those_of_the_ordered_merge(manifests: list[list[ManifestEntry]]) -> None:
    found = to_entry_columns(*manifests)
    left = found.filter(mark_live(found))
    assert Counter(files_at(left.files)) == Counter(e.file for e in live(manifests).elements())


@settings(max_examples=50, deadline=None)
@given(histories(), st.lists(st.integers(1, 20), min_size=7, max_size=7), st.integers(1, 40), st.integers(1, 4))
def test_merging_manifests_does_not_change_live_files(
    manifests: list[list[ManifestEntry]], sizes: list[int], target: int, min_count: int
) -> None:
    limits = MergeLimits(target, 0, min_count)
    metas = [manifest_meta(f"m{i}", sizes[i], entries, TYPES) for i, entries in enumerate(manifests)]
    entries_by_meta = dict(zip(metas, manifests, strict=True))
    groups = plan_minor_merge(metas, limits)
    assert [m for group in groups for m in group] == metas
    minor = [merge_entries(e for m in group for e in entries_by_meta[m]) for group in groups]
    by_columns = [to_entry_columns(*(entries_by_meta[m] for m in group)) for group in groups]
    assert [Counter(to_entries(c.filter(mark_merged(c)))) for c in by_columns] == [Counter(m) for m in minor]
    assert live(minor) == live(manifests)
    deletes = [e for m in manifests_with_deletes(metas) for e in entries_by_meta[m] if e.kind is FileKind.DELETE]
    gone = {e.identity: e.partition for e in deletes}
    merge = plan_full_merge(metas, set(gone.values()), TYPES, limits)
    if merge is None:
        return
    full = [entries_by_meta[m] for m in merge.kept]
    read = [entries_by_meta[meta] for meta in merge.read]
    columns, deletes = to_entry_columns(*read), to_entry_columns(deletes)
    rewritten = [must_change(meta, limits) for meta in merge.read]
    mask, stays = mark_after_full_merge(mark_kept(columns, deletes), [len(entries) for entries in read], rewritten)
    full += [entries for entries, stay in zip(read, stays, strict=True) if stay]
    full.append(to_entries(columns.filter(mask)))
    assert live(full) == live(manifests)
    assert all(e.kind is FileKind.ADD for m in full for e in m)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.none() | st.integers(-3, 3), min_size=1, max_size=4), st.none() | st.integers(-3, 3))
def test_bounds_of_a_manifest_admit_all_its_partitions(values: list[int | None], other: int | None) -> None:
    entries = [
        ManifestEntry(FileKind.ADD, serialize((v,), TYPES), 0, 1, DataFileMeta(f"f{i}.orc", 1, 1))
        for i, v in enumerate(values)
    ]
    meta = manifest_meta("m", 1, entries, TYPES)
    assert all(may_hold_partition(meta, (v,), TYPES) for v in values)
    known = [v for v in values if v is not None]
    inside = None in values if other is None else bool(known) and min(known) <= other <= max(known)
    assert may_hold_partition(meta, (other,), TYPES) == (inside or (other is not None and not known))


def test_a_file_that_is_added_twice_is_an_error() -> None:
    entry = ManifestEntry(FileKind.ADD, bytes(12), 0, -1, DataFileMeta("data-1.orc", 1, 1))
    with pytest.raises(CorruptTable, match=r"data-1\.orc"):
        merge_entries([entry, entry])
    with pytest.raises(CorruptTable, match=r"data-1\.orc"):
        mark_merged(to_entry_columns([entry], [entry]))
    deleted_first = [entry.to_delete_entry(), entry]
    again = to_entry_columns(deleted_first)
    assert to_entries(again.filter(mark_merged(again))) == merge_entries(deleted_first) == [entry]
    with pytest.raises(CorruptTable, match=r"data-1\.orc"):
        twice = to_entry_columns([entry], [entry])
        check_added_once(twice.filter(mark_live(twice)))
    check_added_once(to_entry_columns([entry], [evolve(entry, file=evolve(entry.file, level=5))]))
    with pytest.raises(CorruptTable, match=r"data-1\.orc"):
        live_files([entry.to_delete_entry()])
