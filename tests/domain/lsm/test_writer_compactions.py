"""The combined result of the compactions of one writer in one bucket, and which append files it joins."""

from __future__ import annotations

import heapq

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.commit.conflicts.dropped_deletes import check_dropped_deletes, find_dropped_deletes
from paimon.domain.commit.entries import Change
from paimon.domain.commit.increments import files_after, join_compactions
from paimon.domain.commit.message import CompactIncrement, DataIncrement
from paimon.domain.errors import CommitConflict
from paimon.domain.maintenance.append_window import Candidates, WindowRules
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.row.binary_row import serialize
from paimon.domain.snapshot.snapshot import CommitKind

KEY = serialize((), ())


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
        dropped += gone
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


def is_overtaken(late: DataFileMeta, left: int) -> bool:
    """Whether a compaction of sequence numbers up to 9, with 2 deletes of which `left` stay, minds this file."""
    before, after = file("a", 0, first=5, last=9, deletes=2), file("b", 4, first=5, last=9, deletes=left)
    change = Change(CommitKind.COMPACT, (entry(FileKind.DELETE, before), entry(FileKind.ADD, after)))
    assert bool(find_dropped_deletes(change)) == (left < 2)
    try:
        check_dropped_deletes([entry(FileKind.ADD, f) for f in (before, late)], change)
    except CommitConflict:
        return True
    return False


def test_only_older_level_0_rows_of_others_prevent_a_compaction_that_drops_deletes():
    assert is_overtaken(file("late", 0, first=9, last=12), left=0)
    assert not is_overtaken(file("late", 0, first=10, last=12), left=0), "newer than every delete"
    assert not is_overtaken(file("late", 4, first=1, last=12), left=0), "the compaction had read it"
    assert not is_overtaken(file("late", 0, first=1, last=12), left=2), "the deletes are still there"
