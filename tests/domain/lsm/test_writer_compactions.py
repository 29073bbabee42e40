"""The combined result of the compactions of one writer in one bucket, and which append files it joins."""

from __future__ import annotations

import heapq

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.commit.conflicts.compactions import check_dropped_deletes, check_level_order, find_dropped_deletes
from paimon.domain.commit.conflicts.files import check_conflicts
from paimon.domain.commit.entries import Change, compact_change
from paimon.domain.commit.increments import files_after, join_compactions
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.errors import CommitConflict
from paimon.domain.lsm import sorted_run
from paimon.domain.lsm.keys import Comparable, to_comparable_key
from paimon.domain.maintenance.small_files import Candidates, WindowRules
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.row.binary_row import serialize
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import DataType, IntType

KEY = serialize((), ())
KEY_TYPES = (IntType(nullable=False),)


def file(name: str, level: int = 0, size: int = 1, first: int = 0, last: int | None = None, deletes: int = 0):
    return DataFileMeta(
        name, size, 1, KEY, KEY, level=level, min_sequence_number=first,
        max_sequence_number=first if last is None else last, delete_row_count=deletes,
    )  # fmt: skip


@st.composite
def compactions(draw: st.DrawFn):
    """Live files and successive compactions. Each selects some files, moves some of them, and adds new ones."""
    start = {f"old{i}": file(f"old{i}", draw(st.integers(0, 3))) for i in range(draw(st.integers(0, 3)))}
    new = [file(f"new{i}") for i in range(draw(st.integers(0, 3)))]
    live = start | {f.file_name: f for f in new}
    steps = []
    for round_ in range(draw(st.integers(1, 4))):
        selected = [f for f in live.values() if draw(st.booleans())]
        moved = [evolve(f, level=f.level + 1) for f in selected if draw(st.booleans())]
        made = [file(f"made{round_}.{i}", round_ + 1) for i in range(draw(st.integers(0, 2)))] if selected else []
        steps.append(CompactIncrement(selected, [*made, *moved]))
        live = files_after(live, DataIncrement(), steps[-1])
    return start, DataIncrement(new_files=new), steps


@given(compactions())
def test_combined_compactions_lead_to_the_same_files(drawn):
    start, written, steps = drawn
    live = files_after(start, written, CompactIncrement())
    ever = set(live)
    one, dropped = CompactIncrement(), []
    for step in steps:
        live = files_after(live, DataIncrement(), step)
        ever |= set(live)
        one, gone = join_compactions(one, step)
        dropped += [f.file_name for f in gone]
    assert files_after(start, written, one) == live
    named = {f.file_name for f in (*one.compact_before, *one.compact_after)}
    assert len(set(dropped)) == len(dropped) and not named & set(dropped)
    assert ever == set(dropped) | named | (set(start) | {f.file_name for f in written.new_files}), "no file is lost"
    assert {f.file_name for f in one.compact_before} <= set(start) | {f.file_name for f in written.new_files}


SIZES = st.lists(st.integers(1, 12), max_size=12)
RULES = st.builds(WindowRules, st.integers(1, 5), st.integers(1, 8), st.integers(0, 8))


def simulate_queue(files: list[DataFileMeta], rules: WindowRules) -> tuple[list[DataFileMeta], list[DataFileMeta]]:
    """Run Java's loop over its queue: return the candidates that it picks and the rest of the queue."""
    queue = [(f.min_sequence_number, f) for f in files]
    heapq.heapify(queue)
    candidates: list[DataFileMeta] = []
    total = number = 0
    while queue:
        polled = heapq.heappop(queue)[1]
        candidates.append(polled)
        total += polled.file_size
        number += 1
        if number >= rules.min_files:
            return candidates, [f for _, f in sorted(queue)]
        if total >= rules.target_bytes * 2:
            total -= candidates.pop(0).file_size
            number -= 1
    return [], candidates


@given(SIZES, RULES)
def test_the_window_slides_as_javas_queue_does(sizes, rules):
    files = [file(f"f{i}", size=size, first=i) for i, size in enumerate(sizes)]
    picked, left = Candidates(files[::-1]).pick_window(rules)
    assert ([*picked], [*left.files]) == simulate_queue(files, rules)
    assert not picked or [f.min_sequence_number for f in picked] == list(
        range(picked[0].min_sequence_number, picked[-1].min_sequence_number + 1)
    ), "neighbours, in order"


@given(SIZES, RULES, st.sets(st.integers(0, 11)))
def test_a_full_pick_excludes_large_first_files_and_small_gains(sizes, rules, marks):
    files = [file(f"f{i}", size=size, first=i) for i, size in enumerate(sizes)]
    marked = {f"f{i}" for i in marks}
    picked, _ = Candidates(files).pick_full(rules, marked)
    assert list(picked) == files[len(files) - len(picked) :], "a suffix"
    assert not picked or picked[0].file_size < rules.small_bytes or picked[0].file_name in marked
    assert {f.file_name for f in files} & marked <= {f.file_name for f in picked}
    everything, _ = Candidates(files).pick_full(evolve(rules, rewrite_all=True))
    assert list(everything) == files


def entry(kind: FileKind, meta: DataFileMeta) -> ManifestEntry:
    return ManifestEntry(kind, KEY, 0, 1, meta)


def with_keys(meta: DataFileMeta, first: int, last: int) -> DataFileMeta:
    return evolve(meta, min_key=serialize((first,), KEY_TYPES), max_key=serialize((last,), KEY_TYPES))


def is_overtaken(late: DataFileMeta, left: int, keys: tuple[int, int] = (3, 7)) -> bool:
    """Whether a compaction of keys 3 to 7 and numbers up to 9, with 2 deletes of which `left` stay, minds this file."""
    before = with_keys(file("a", 0, first=5, last=9, deletes=2), 3, 7)
    after = with_keys(file("b", 4, first=5, last=9, deletes=left), 3, 7)
    entries = (entry(FileKind.DELETE, before), entry(FileKind.ADD, after))
    change = Change(CommitKind.COMPACT, entries, drops_deletes=frozenset({(KEY, 0)} if left < 2 else ()))
    assert bool(find_dropped_deletes(change)) == (left < 2)
    live = [before, with_keys(late, *keys)]
    try:
        check_dropped_deletes([entry(FileKind.ADD, f) for f in live], change, KEY_TYPES)
    except CommitConflict:
        return True
    return False


def test_only_older_rows_of_others_prevent_a_compaction_that_drops_deletes():
    assert is_overtaken(file("late", 0, first=9, last=12), left=0)
    assert not is_overtaken(file("late", 0, first=10, last=12), left=0), "newer than every delete"
    assert not is_overtaken(file("late", 0, first=1, last=12), left=2), "the deletes are still there"


@pytest.mark.parametrize(("keys", "expected"), [((1, 3), True), ((4, 5), True), ((7, 9), True), ((1, 2), False)])
def test_older_rows_that_another_writer_compacted_prevent_it_if_their_keys_can_be_the_deleted_ones(keys, expected):
    assert is_overtaken(file("late", 4, first=1, last=12), 0, keys) is expected
    assert not is_overtaken(file("late", 4, first=10, last=12), 0, keys), "newer than every delete"


LOWER = [("newer below", 4, 9, True), ("equal below", 4, 5, True), ("older below", 4, 4, False),
         ("older above", 1, 9, True), ("newer above", 1, 10, False), ("of the same level", 2, 7, False)]  # fmt: skip


@pytest.mark.parametrize(("level", "number", "refused"), [case[1:] for case in LOWER], ids=[case[0] for case in LOWER])
def test_a_compaction_keeps_newer_records_on_smaller_levels(level: int, number: int, refused: bool) -> None:
    change = Change(
        CommitKind.COMPACT,
        (
            entry(FileKind.DELETE, with_keys(file("a", 0, first=5, last=9), 3, 7)),
            entry(FileKind.ADD, with_keys(file("b", 2, first=5, last=9), 3, 7)),
        ),
    )

    def is_refused(low: int, high: int) -> bool:
        try:
            check_level_order(
                [entry(FileKind.ADD, with_keys(file("other", level, first=number), low, high))], change, KEY_TYPES
            )
        except CommitConflict:
            return True
        return False

    assert is_refused(7, 8) is refused
    assert not is_refused(8, 9), "other keys"


def test_the_order_of_levels_is_checked_without_decoding_the_keys_of_newer_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[bytes] = []

    def decode(key: bytes, types: list[DataType]) -> Comparable:
        decoded.append(key)
        return to_comparable_key(key, types)

    monkeypatch.setattr(sorted_run, "to_comparable_key", decode)
    entries = (
        entry(FileKind.DELETE, with_keys(file("a", 0, first=50, last=59), 0, 99)),
        *(entry(FileKind.ADD, with_keys(file(f"b{i}", 2, first=50, last=59), 10 * i, 10 * i + 9)) for i in range(5)),
    )
    change = Change(CommitKind.COMPACT, entries)
    older = [entry(FileKind.ADD, with_keys(file(f"o{i}", 3, first=i, last=i), 0, 99)) for i in range(9)]
    check_level_order(older, change, KEY_TYPES)
    assert not decoded
    newer = [entry(FileKind.ADD, with_keys(file(f"n{i}", 3, first=90), 50 + i, 50 + i)) for i in range(3)]
    check_level_order([*older, *newer], change, KEY_TYPES)
    assert len(decoded) == 2 * (5 + 3), "the keys of each file once"


def test_a_compaction_depends_on_the_files_in_which_it_looked_keys_up() -> None:
    above = with_keys(file("above", 5), 1, 9)
    replaced, added = with_keys(file("a", 0, first=5), 3, 7), with_keys(file("b", 2, first=5), 3, 7)
    compacted = CompactIncrement([replaced], [added], looked_up=["above"])
    change = compact_change([CommitMessage(KEY, 0, 1, "bucket-0", compact=compacted)])
    check_conflicts([entry(FileKind.ADD, f) for f in (replaced, above)], change, KEY_TYPES)
    with pytest.raises(CommitConflict, match="was computed from are not in the table") as refused:
        check_conflicts([entry(FileKind.ADD, replaced)], change, KEY_TYPES)
    assert refused.value.files == ("above",)


def test_deletes_that_were_merged_and_not_dropped_need_no_older_row() -> None:
    before, after = with_keys(file("a", 0, first=5, last=9, deletes=2), 3, 7), with_keys(file("b", 4, deletes=1), 3, 7)
    older = with_keys(file("older", 5, first=1), 3, 7)
    entries = (entry(FileKind.DELETE, before), entry(FileKind.ADD, after))
    live = [entry(FileKind.ADD, f) for f in (before, older)]
    check_dropped_deletes(live, Change(CommitKind.COMPACT, entries), KEY_TYPES)
    dropped = Change(CommitKind.COMPACT, entries, drops_deletes=frozenset({(KEY, 0)}))
    with pytest.raises(CommitConflict):
        check_dropped_deletes(live, dropped, KEY_TYPES)
    known = evolve(dropped, looked_up=((KEY, 0, "older"),))  # its rows are marked in a deletion vector
    check_dropped_deletes(live, known, KEY_TYPES)


def test_combined_compactions_depend_on_no_file_that_they_made() -> None:
    first = CompactIncrement([file("a")], [file("b", 2)], looked_up=["above"])
    second = CompactIncrement([file("c")], [file("d", 1)], looked_up=["b", "above", "other"])
    assert join_compactions(first, second)[0].looked_up == ("above", "other")
    assert join_compactions(first, evolve(second, drops_deletes=True))[0].drops_deletes
