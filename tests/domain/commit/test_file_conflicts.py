"""Which changes contradict the files of the table: pure checks, file by file."""

from __future__ import annotations

import pytest
from attrs import evolve
from support.manifest_columns import to_entry_columns

from paimon.domain.commit.conflicts.files import check_conflicts, drop_known, mark_checked_files, needs_check
from paimon.domain.commit.entries import Change
from paimon.domain.errors import BucketCountConflict, CommitConflict
from paimon.domain.manifest.entries import (
    DELETION_VECTORS,
    DataFileMeta,
    FileKind,
    GlobalIndex,
    IndexManifestEntry,
    ManifestEntry,
)
from paimon.domain.row.binary_row import serialize
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import IntType, VarCharType

KEY = (IntType(nullable=False),)
APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


def entry(text: str) -> ManifestEntry:
    """`+name L level low..high bucket/total partition`, such as ``+a L5 1..3 0/2 p``; ``-`` deletes."""
    name, level, keys, buckets, partition = text.split()
    low, high = (serialize((int(k),), KEY) for k in keys.split(".."))
    bucket, total = (int(number) for number in buckets.split("/"))
    kind = FileKind.ADD if name[0] == "+" else FileKind.DELETE
    return ManifestEntry(
        kind, partition.encode(), bucket, total, DataFileMeta(name[1:], 1, 1, low, high, level=int(level[1:]))
    )


BASE = [
    "+a L0 1..5 0/2 p",
    "+b L5 1..5 0/2 p",
    "+c L5 6..9 0/2 p",
    "+d L5 1..9 1/2 p",
    "+e L5 1..9 0/4 q",
    "+f L5 1..9 0/1 r",
]
CASES = {
    "a new file": (APPEND, ["+n L0 1..9 0/2 p"], None),
    "no other file on its level": (COMPACT, ["+n L4 1..9 0/2 p"], None),
    "a level above 0 with overlapping keys": (COMPACT, ["+n L5 4..5 0/2 p"], "overlapping"),
    "bounds that touch": (COMPACT, ["+n L5 9..12 0/2 p"], "overlapping"),
    "bounds next to each other": (COMPACT, ["+n L5 10..12 0/2 p"], None),
    "level 1": (COMPACT, ["+n L1 1..3 0/2 p", "+o L1 3..4 0/2 p"], "overlapping"),
    "another partition": (COMPACT, ["+n L5 1..9 0/2 s"], None),
    "a replaced file": (COMPACT, ["-b L5 1..5 0/2 p", "+n L5 1..5 0/2 p"], None),
    "an upgrade": (COMPACT, ["-a L0 1..5 0/2 p", "+a L4 1..5 0/2 p"], None),
    "a file that is gone": (COMPACT, ["-x L0 1..5 0/2 p"], "no longer in the table"),
    "a file that moved": (COMPACT, ["-a L1 1..5 0/2 p"], "no longer in the table"),
    "a file that is there": (APPEND, ["+a L0 1..5 0/2 p"], "already in the table"),
    "another number of buckets": (APPEND, ["+n L0 1..9 0/3 p"], "Partition has 2 buckets"),
    "a number of buckets that is not known": (APPEND, ["+n L0 1..9 0/-1 p"], None),
    "that of another partition": (APPEND, ["+n L0 1..9 0/4 q"], None),
    "a rescale": (OVERWRITE, ["-e L5 1..9 0/4 q", "+n L5 1..9 0/8 q"], None),
    "a rescale that leaves files": (OVERWRITE, ["-b L5 1..5 0/2 p", "+n L5 1..9 0/8 p"], "during its rescale to 8"),
    "a rescale, in another order": (OVERWRITE, ["+n L5 1..9 0/8 q", "-e L5 1..9 0/4 q"], None),
    "more buckets than one": (APPEND, ["+n L0 1..9 0/2 r"], "Partition has 1 buckets"),
    "a rescale to one bucket that leaves files": (OVERWRITE, ["+n L4 1..9 0/1 q"], "during its rescale to 1"),
    "an overwrite with as many buckets": (OVERWRITE, ["-b L5 1..5 0/2 p", "+n L5 1..5 0/2 p"], None),
    "an overwrite that only deletes": (OVERWRITE, ["-b L5 1..5 0/2 p"], None),
}


@pytest.mark.parametrize(("kind", "texts", "refusal"), CASES.values(), ids=CASES)
def test_changes_that_contradict_the_table(kind: CommitKind, texts: list[str], refusal: str | None) -> None:
    change = Change(kind, tuple(entry(text) for text in texts))
    if refusal is None:
        check_conflicts([entry(text) for text in BASE], change, KEY)
        return
    with pytest.raises(CommitConflict, match=refusal) as raised:
        check_conflicts([entry(text) for text in BASE], change, KEY)
    assert raised.value.files and isinstance(raised.value, BucketCountConflict) == ("Partition has" in refusal)


@pytest.mark.parametrize(
    ("texts", "keyed", "marked"),
    [
        (["-b L5 1..5 0/2 p"], False, "abg"),  # the named file, and one for each number of buckets of its partition
        (["-b L5 1..5 0/2 p"], True, "abcg"),  # with all files above level 0 of its bucket
        (["-d L5 1..9 1/2 p"], True, "adgh"),
        (["-d L5 1..9 1/2 p", "-e L5 1..9 0/4 q"], True, "adegh"),
        (["+n L0 1..9 0/4 s"], True, ""),
    ],
)
def test_a_check_reads_the_files_that_decide(texts: list[str], keyed: bool, marked: str) -> None:
    live = [partitioned(entry(text)) for text in [*BASE, "+g L0 1..9 0/3 p", "+h L4 1..9 1/2 p"]]
    change = Change(COMPACT, tuple(partitioned(entry(text)) for text in texts))
    mask = mark_checked_files(to_entry_columns(live), change, keyed)
    assert "".join(e.file.file_name for e, found in zip(live, mask, strict=True) if found) == marked


def partitioned(given: ManifestEntry) -> ManifestEntry:
    """Return the entry with its partition as a serialized row."""
    return evolve(given, partition=serialize((given.partition.decode(),), (VarCharType(),)))


def test_keys_of_untouched_buckets_and_of_append_tables_are_not_compared() -> None:
    base = [entry("+a L5 1..5 0/2 p"), entry("+b L5 4..9 0/2 p")]
    check_conflicts(base, Change(APPEND, (entry("+n L0 1..9 1/2 p"),)), KEY)
    with pytest.raises(CommitConflict, match="overlapping"):
        check_conflicts(base, Change(APPEND, (entry("+n L0 1..9 0/2 p"),)), KEY)
    check_conflicts(base, Change(APPEND, (entry("+n L0 1..9 0/2 p"),)), ())


def test_files_in_which_keys_were_looked_up_must_be_there() -> None:
    base = [entry(text) for text in BASE]
    check_conflicts(base, Change(COMPACT, looked_up=((b"p", 0, "b"), (b"p", 1, "d"))), KEY)
    for place in ((b"p", 1, "b"), (b"q", 0, "b"), (b"p", 0, "x")):
        with pytest.raises(CommitConflict, match="computed from are not in the table") as raised:
            check_conflicts(base, Change(COMPACT, looked_up=((b"p", 0, "b"), place)), KEY)
        assert raised.value.files == (place[2],)


def test_known_files_are_left_out_and_deletes_stay() -> None:
    base = [entry(text) for text in BASE]
    entries = [entry(text) for text in ("+a L0 1..5 0/2 p", "-b L5 1..5 0/2 p", "+n L0 1..5 0/2 p", "+a L1 1..5 0/2 p")]
    assert drop_known(entries, base) == tuple(entries[1:])


def test_only_appends_of_new_files_need_no_check() -> None:
    added, deleted = entry("+n L0 1..9 0/2 p"), entry("-n L0 1..9 0/2 p")
    vectors = IndexManifestEntry(FileKind.ADD, b"p", 0, DELETION_VECTORS, "i", 1, 1)
    hashes = evolve(vectors, index_type="HASH")
    of_rows = evolve(hashes, index_type="btree", global_index=GlobalIndex(0, 9, 1))
    assert not needs_check(Change(APPEND, (added,), index=(hashes,)), False)
    for change in (Change(OVERWRITE, (added,)), Change(COMPACT, (added,)), Change(APPEND, (added, deleted)),
                   Change(APPEND, (added,), index=(hashes, vectors)), Change(APPEND, index=(of_rows,))):  # fmt: skip
        assert needs_check(change, False)
    assert needs_check(Change(APPEND, (added,)), True)
