"""The pure rules of commits: retries, fields that pass from snapshot to snapshot, and contents of index manifests."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.commit.entries import Change, append_change, compact_change, data_files, file_paths
from paimon.domain.commit.index_entries import live_index_files
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.commit.next_snapshot import (
    SnapshotContent,
    Stamp,
    WrittenList,
    carry_watermark,
    delta_rows,
    next_snapshot,
)
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.commit.row_ids import assign_row_ids
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, IndexManifestEntry, ManifestEntry
from paimon.domain.snapshot.snapshot import NO_WATERMARK, CommitKind, Snapshot

SOURCE = FileSource.APPEND
LIST = WrittenList("l", 1)
entries = st.builds(
    ManifestEntry,
    st.sampled_from(FileKind),
    st.just(bytes(12)),
    st.just(0),
    st.just(1),
    st.builds(DataFileMeta, st.text("ab", min_size=1, max_size=3), st.just(1), st.integers(0, 100)),
)


def snapshot(base: Snapshot | None, schema: int = 0, **content: object) -> Snapshot:
    made = SnapshotContent(CommitKind.APPEND, LIST, LIST, **content)  # type: ignore[arg-type]
    return next_snapshot(base, made, Stamp("u", 1, schema, "uuid", 5))


@given(st.lists(st.lists(entries, max_size=4), max_size=5))
def test_totals_add_up(deltas: list[list[ManifestEntry]]) -> None:
    last: Snapshot | None = None
    for delta in deltas:
        last = snapshot(last, delta_rows=delta_rows(delta))
    if last is not None:
        assert last.id == len(deltas)
        assert last.total_record_count == sum(map(delta_rows, deltas))


@given(st.lists(st.none() | st.integers(-5, 5) | st.just(NO_WATERMARK), min_size=1))
def test_the_watermark_is_the_highest_ever_given(given_ones: list[int | None]) -> None:
    carried: int | None = None
    for watermark in given_ones:
        carried = carry_watermark(carried, watermark)
    assert carried == max((w for w in given_ones if w not in (None, NO_WATERMARK)), default=None)


def test_statistics_are_valid_for_one_schema() -> None:
    analysed = snapshot(None, delta_rows=0, statistics="stat")
    assert snapshot(analysed, delta_rows=0).statistics == "stat"
    assert snapshot(analysed, schema=1, delta_rows=0).statistics is None


def test_changelog_counts_exist_only_with_a_changelog() -> None:
    assert snapshot(None, delta_rows=1).changelog_record_count is None
    assert snapshot(None, delta_rows=1, changelog_list=LIST, changelog_rows=0).changelog_record_count == 0


@given(st.integers(0, 60), st.floats(0, 1, exclude_max=True))
def test_waits_double_up_to_the_longest_and_vary_by_a_fifth(retry: int, chance: float) -> None:
    wait = RetryPolicy().wait_millis(retry, chance)
    plain = min(10 * 2**retry, 10_000)
    assert plain <= wait <= 1.2 * plain


def test_retries_end_by_count_and_by_time() -> None:
    policy = RetryPolicy(max_retries=2, timeout_millis=100)
    assert [policy.gives_up(n, 0) for n in (0, 1, 2)] == [False, False, True]
    assert not policy.gives_up(0, 100) and policy.gives_up(0, 101)


FILES = [DataFileMeta(n, 1, 1) for n in "abcdef"]


def test_messages_become_two_changes_with_all_files() -> None:
    data = DataIncrement(new_files=FILES[:2], changelog_files=FILES[4:5])
    compact = CompactIncrement(compact_before=FILES[:2], compact_after=FILES[2:3], changelog_files=FILES[5:6])
    message = CommitMessage(bytes(12), 3, 4, "/t/bucket-3", data, compact)
    first, second = append_change([message]), compact_change([message])
    assert (first.kind, second.kind) == (CommitKind.APPEND, CommitKind.COMPACT)
    assert [(e.kind.name, e.file.file_name) for e in second.entries] == [("DELETE", "a"), ("DELETE", "b"), ("ADD", "c")]
    assert [e.file.file_name for e in (*first.changelog, *second.changelog)] == ["e", "f"]
    assert {(e.bucket, e.total_buckets) for e in (*first.entries, *second.entries)} == {(3, 4)}
    assert (first.added_rows, first.added_files) == (2, 2)


def test_deleting_files_makes_an_overwrite() -> None:
    message = CommitMessage(bytes(12), 0, -1, "/t/bucket-0", DataIncrement(deleted_files=FILES[:1]))
    assert append_change([message]).kind is CommitKind.OVERWRITE


def test_an_upgraded_file_is_not_the_writers_to_delete() -> None:
    upgraded = DataFileMeta("a", 1, 1, level=5)
    message = CommitMessage(
        bytes(12), 0, 1, "/t/b", DataIncrement(FILES[1:2]), CompactIncrement(FILES[:1], (upgraded, FILES[2]))
    )
    assert [f.file_name for f in data_files(message)] == ["b", "c"]


def test_extra_files_are_in_the_directory_of_their_file() -> None:
    message = CommitMessage(bytes(12), 0, 1, "/t/b")
    assert file_paths(message, DataFileMeta("x", 1, 1, extra_files=("x.index",))) == ["/t/b/x", "/t/b/x.index"]
    outside = DataFileMeta("x", 1, 1, extra_files=("x.index",), external_path="/o/q/x")
    assert file_paths(message, outside) == ["/o/q/x", "/o/q/x.index"]


def index(kind: FileKind, name: str, bucket: int = 0, index_type: str = "HASH") -> IndexManifestEntry:
    return IndexManifestEntry(kind, bytes(12), bucket, index_type, name, 1, 1)


changes = st.lists(st.builds(index, st.sampled_from(FileKind), st.sampled_from("xyz"), st.integers(0, 1)), max_size=6)


@given(st.lists(changes, max_size=4))
def test_one_index_file_a_bucket_and_type_the_newest(history: list[list[IndexManifestEntry]]) -> None:
    live: tuple[IndexManifestEntry, ...] = ()
    expected: dict[int, str] = {}
    for step in history:
        live = live_index_files(live, step, bucketed=True)
        for entry in step:
            if entry.kind is FileKind.DELETE:
                expected.pop(entry.bucket, None)
        expected |= {e.bucket: e.file_name for e in step if e.kind is FileKind.ADD}
    assert {e.bucket: e.file_name for e in live} == expected
    assert len(live) == len(expected)


@given(st.lists(changes, max_size=4))
def test_without_buckets_vectors_cancel_by_name(history: list[list[IndexManifestEntry]]) -> None:
    live: tuple[IndexManifestEntry, ...] = ()
    names: set[str] = set()
    for step in history:
        vectors = [index(e.kind, e.file_name, 0, "DELETION_VECTORS") for e in step]
        gone = [e.file_name for e in vectors if e.kind is FileKind.DELETE]
        new = [e.file_name for e in vectors if e.kind is FileKind.ADD]
        left = names - set(gone)
        fits = set(gone) <= names and len(gone) == len(set(gone)) and len(set(new)) == len(new) and not left & set(new)
        try:
            live = live_index_files(live, vectors, bucketed=False)
        except CommitConflict:
            assert not fits
            return
        assert fits
        names = left | set(new)
        assert {e.file_name for e in live} == names


@given(st.lists(st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 5)), max_size=5), max_size=4), st.booleans())
def test_row_ids_are_given_once_and_without_gaps(commits: list[list[tuple[str, int]]], by_partition: bool) -> None:
    given_out: list[int] = []
    free = 0
    for number, files in enumerate(commits, 1):
        added = tuple(
            ManifestEntry(FileKind.ADD, p.encode(), 0, -1, DataFileMeta(f"{number}-{i}", 1, n, file_source=SOURCE))
            for i, (p, n) in enumerate(files)
        )
        change, free = assign_row_ids(Change(CommitKind.APPEND, added), free, number, by_partition)
        for entry in change.entries:
            assert entry.file.first_row_id is not None
            assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (number, number)
            given_out += range(entry.file.first_row_id, entry.file.first_row_id + entry.file.row_count)
        partitions = [e.partition for e in change.entries]
        assert not by_partition or len(set(partitions)) == sum(a != b for a, b in pairwise([b"", *partitions]))
    assert given_out == list(range(free))


def test_files_of_the_same_rows_share_row_ids() -> None:
    names = [("m", 4), ("x.blob", 3), ("y.blob", 1), ("n", 2), ("z.blob", 2)]
    files = [DataFileMeta(n, 1, r, file_source=SOURCE) for n, r in names]
    tracked = DataFileMeta("k", 1, 9, first_row_id=77, file_source=SOURCE)
    entries = tuple(ManifestEntry(FileKind.ADD, b"", 0, -1, f) for f in (*files, tracked))
    change, free = assign_row_ids(Change(CommitKind.APPEND, entries), 10, 1, True)
    assert [e.file.first_row_id for e in change.entries] == [10, 10, 13, 14, 14, 77]
    assert free == 16
