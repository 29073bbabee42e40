"""Deletion vectors that do not fit the table are refused, and all others are accepted."""

from __future__ import annotations

import pytest
from attrs import evolve

from paimon.domain.commit.conflicts.files import check_vectors
from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import (
    DELETION_VECTORS,
    DataFileMeta,
    DeletionVectorRange,
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
)
from paimon.domain.snapshot.snapshot import CommitKind

ADD, DELETE = FileKind.ADD, FileKind.DELETE


def file(name: str, kind: FileKind = ADD, level: int = 0) -> ManifestEntry:
    return ManifestEntry(kind, b"p", 0, 1, DataFileMeta(name, 1, 1, level=level))


def index(name: str, files: str, kind: FileKind = ADD, bucket: int = 0) -> IndexManifestEntry:
    ranges = tuple(DeletionVectorRange(f, 1, 22, 1) for f in files)
    return IndexManifestEntry(kind, b"p", bucket, DELETION_VECTORS, name, 9, len(files), ranges)


def delete_index(name: str, files: str) -> IndexManifestEntry:
    return index(name, files, DELETE)


def check(
    live: str,
    index_entries: list[IndexManifestEntry],
    entries: list[ManifestEntry],
    changes: list[IndexManifestEntry],
    bucketed: bool,
) -> None:
    change = Change(CommitKind.COMPACT, tuple(entries), (), tuple(changes))
    check_vectors([file(name) for name in live], index_entries, change, bucketed)


BOTH = [False, True]


@pytest.mark.parametrize("bucketed", BOTH)
def test_the_first_vector_and_the_next(bucketed: bool) -> None:
    check("ab", [], [], [index("i", "a")], bucketed)
    check("ab", [index("i", "a")], [], [delete_index("i", "a"), index("j", "ab")], bucketed)


@pytest.mark.parametrize("bucketed", BOTH)
def test_a_missing_index_file_was_changed_by_another_commit(bucketed: bool) -> None:
    with pytest.raises(CommitConflict, match="another commit"):
        check("ab", [index("k", "a")], [], [delete_index("i", "a"), index("j", "a")], bucketed)


def test_a_bucket_has_one_index_file() -> None:
    check("ab", [index("i", "a")], [], [index("j", "b")], False)
    with pytest.raises(CommitConflict, match="another commit"):
        check("ab", [index("i", "a")], [], [index("j", "b")], True)
    check("ab", [index("i", "a", bucket=1)], [], [index("j", "b")], True)


@pytest.mark.parametrize("bucketed", BOTH)
def test_no_rows_are_deleted_from_removed_files(bucketed: bool) -> None:
    with pytest.raises(CommitConflict, match="no longer in the table") as conflict:
        check("b", [], [], [index("i", "a")], bucketed)
    assert conflict.value.files == ("a",)
    with pytest.raises(CommitConflict, match="no longer in the table"):
        check("ab", [], [file("a", DELETE)], [index("i", "a")], bucketed)
    # A vector that was copied from an index file for a data file that is missing. No reader uses it.
    check("b", [index("i", "ab")], [], [delete_index("i", "ab"), index("j", "ab")], bucketed)


@pytest.mark.parametrize("bucketed", BOTH)
def test_no_deleted_rows_return_with_replaced_files(bucketed: bool) -> None:
    with pytest.raises(CommitConflict, match="deleted by another commit") as conflict:
        check("ab", [index("i", "a")], [file("a", DELETE), file("c")], [], bucketed)
    assert conflict.value.files == ("a",)
    check("ab", [index("i", "a")], [file("a", DELETE), file("c")], [delete_index("i", "a")], bucketed)
    check("ab", [index("i", "a")], [file("b", DELETE)], [], bucketed)


@pytest.mark.parametrize("bucketed", BOTH)
def test_a_file_that_changes_its_level_retains_its_vector(bucketed: bool) -> None:
    check("a", [index("i", "a")], [file("a", DELETE), file("a", ADD, 5)], [], bucketed)
    check(
        "a",
        [index("i", "a")],
        [file("a", DELETE), file("a", ADD, 5)],
        [delete_index("i", "a"), index("j", "a")],
        bucketed,
    )


def test_other_index_files_do_not_count() -> None:
    hashes = [evolve(index("h", ""), index_type="HASH")]
    check("a", hashes, [file("a", DELETE)], [index("i", "")], True)
