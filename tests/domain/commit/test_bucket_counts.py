"""An append and an overwrite may not leave files for two numbers of buckets in one partition."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from paimon.domain.commit.conflicts.buckets import check_bucket_counts, check_bucket_option, has_other_bucket_count
from paimon.domain.commit.conflicts.files import check_conflicts
from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.snapshot.snapshot import CommitKind

ADD, DELETE = FileKind.ADD, FileKind.DELETE


def build_entry(name: str, total: int, kind: FileKind = ADD, partition: bytes = b"p") -> ManifestEntry:
    return ManifestEntry(kind, partition, 0, total, DataFileMeta(name, 100, 1))


def build_append(*totals: int) -> Change:
    return Change(CommitKind.APPEND, tuple(build_entry(f"new-{total}", total) for total in totals))


@pytest.mark.parametrize(
    ("totals", "options", "expected"),
    [([4], [4], False), ([2], [4], True), ([4, 2], [4], True), ([-1], [4], False), ([-2], [4], False),
     ([2], [-1], False), ([2], [-2], False), ([], [4], False), ([4], [2, 4], True), ([4], [4, -1, 4], False)],
)  # fmt: skip
def test_only_other_bucket_counts_are_checked(totals: Sequence[int], options: Sequence[int], expected: bool) -> None:
    assert has_other_bucket_count(build_append(*totals), options) is expected


@pytest.mark.parametrize("kind", [CommitKind.COMPACT, CommitKind.OVERWRITE])
def test_other_checks_cover_compactions_and_overwrites(kind: CommitKind) -> None:
    assert not has_other_bucket_count(Change(kind, (build_entry("new", 2),)), [4])


@pytest.mark.parametrize(
    ("live", "added", "is_refused"),
    [(4, 4, False), (2, 2, False), (4, 2, True), (2, 4, True), (None, 2, True), (None, 4, False), (-2, 4, False)],
)
def test_files_have_the_number_of_their_partition_or_of_the_option(
    live: int | None, added: int, is_refused: bool
) -> None:
    base = [] if live is None else [build_entry("old", live)]
    refusal = pytest.raises(CommitConflict, match=r"rescaled to \d buckets, but the commit adds files for")
    with refusal if is_refused else nullcontext():
        check_bucket_counts([*base, build_entry("else", 7, partition=b"q")], build_append(added), 4)


@pytest.mark.parametrize(("late", "is_refused"), [([], False), ([2], True), ([4], False), ([-2], False)])
def test_an_overwrite_refuses_files_that_were_added_concurrently(late: Sequence[int], is_refused: bool) -> None:
    base = [build_entry("old", 2), *(build_entry(f"late-{total}", total) for total in late)]
    change = Change(CommitKind.OVERWRITE, (build_entry("old", 2, DELETE), build_entry("new", 4)))
    refusal = pytest.raises(CommitConflict, match="Files for 2 buckets were added to a partition during its rescale")
    with refusal if is_refused else nullcontext():
        check_conflicts(base, change, [])


@pytest.mark.parametrize(("expected", "option", "is_refused"), [(None, 2, False), (4, 4, False), (4, 2, True)])
def test_a_rescale_is_published_only_with_its_option(expected: int | None, option: int, is_refused: bool) -> None:
    refusal = pytest.raises(CommitConflict, match="changed from 4 to 2 during the rescale")
    with refusal if is_refused else nullcontext():
        check_bucket_option(expected, option)
