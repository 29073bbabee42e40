"""Retention that dies at any of its I/O operations: what is there can be read, and doing it again finishes it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import pytest
from attrs import evolve
from retention_world import ROOT, World, attempted

from paimon.domain.errors import AlreadyExists, CorruptTable, NotFound, StorageError
from paimon.domain.options.table_options import TableOptions
from paimon.operations.maintain.refs.branches import create_branch, delete_branch, fast_forward
from paimon.operations.maintain.refs.consumers import reset_consumer
from paimon.operations.maintain.refs.rollback import roll_back
from paimon.operations.maintain.refs.tags import create_tag, delete_tag, rename_tag, replace_tag
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied, numbered

Deed = Callable[[World], object]

EVERYWHERE = os.environ.get("PAIMON_EVERY_FAULT") == "1"
"""Ask for every fault point; otherwise about a dozen of each, spread evenly."""


def points(operations: int) -> list[int]:
    """The operations that fail."""
    step = 1 if EVERYWHERE else max(1, operations // 12)
    return list(range(operations % step, operations, step))


class Counted:
    """A plan without faults that counts what it is asked."""

    def __init__(self) -> None:
        self.operations = 0

    def __call__(self, operation: str, path: str) -> Fault | None:
        self.operations += 1
        return None


def operations_of(start: World, deed: Deed) -> int:
    """How many I/O operations it takes."""
    w, counted = start.copied(), Counted()
    deed(w.through(FaultyFiles(w.engine.files, counted)))
    return counted.operations


def lived(producer: str = "input", keeps_changelogs: bool = False) -> World:
    """A table with a past: tags on living and gone snapshots, a branch, moved and replaced files."""
    options = {"changelog-producer": producer, "snapshot.num-retained.max": "20"}
    options |= {"changelog.num-retained.max": "30"} if keeps_changelogs else {}
    w = World.new(options)
    for number in range(4):
        w.append(number)
        w.compact(number)
        if number == 1:
            create_tag(w.engine, w.table, "early")
            create_branch(w.engine, w.table, "side", "early")
            create_tag(w.engine, w.table, "branched")
    w.on("side").append(1)
    w.expire(5)
    create_tag(w.engine, w.table, "middle", 5)
    w.overwrite(9)
    w.append(1)
    create_tag(w.engine, w.table, "late")
    return w


DATA = "/bucket-0/"
HINTS = ("LATEST", "EARLIEST")
DEEDS: dict[str, Deed] = {
    "expire": lambda w: w.expire(2),
    "expire looking everywhere": lambda w: w.expire(1, everything=True),
    "expire changelogs": lambda w: w.expire_changes(2),
    "expire branch": lambda w: w.on("side").expire(1),
    "clean": lambda w: w.clean(),
    "create tag": lambda w: create_tag(w.engine, w.table, "new"),
    "replace tag": lambda w: replace_tag(w.engine, w.table, "early"),
    "rename tag": lambda w: rename_tag(w.engine, w.table, "early", "earlier"),
    "delete tag": lambda w: delete_tag(w.engine, w.table, "early"),
    "create branch": lambda w: create_branch(w.engine, w.table, "new", "middle"),
    "delete branch": lambda w: delete_branch(w.engine, w.table, "side"),
    "fast-forward": lambda w: fast_forward(w.engine, w.table, "side"),
    "roll back": lambda w: roll_back(w.engine, w.table, 6),
    "roll back to a gone snapshot": lambda w: roll_back(w.engine, w.table, tag="early"),
    "reset consumer": lambda w: reset_consumer(w.engine, w.table.paths, "c", 6),
}


BEHIND_A_GAP = ("roll back to a gone snapshot",)
"""Where a hint may name a snapshot that was deleted just now; the next commit, or another try, mends it."""


def java_finds_the_latest(w: World) -> bool:
    """Java trusts the hint where no file of the next id stands, and does not look whether its own does."""
    hint = int(w.contents.get(f"{ROOT}/snapshot/LATEST", b"0"))
    return hint == 0 or any(f"{ROOT}/snapshot/snapshot-{i}" in w.contents for i in (hint, hint + 1))


def crashes(start: World, deed: Deed, fault: Fault) -> Iterator[World]:
    """The storage after the deed died at one of its operations, for each such operation."""
    for number in points(operations_of(start, deed)):
        left = start.copied()
        with contextlib.suppress(ProcessDied):
            deed(left.through(FaultyFiles(left.engine.files, numbered({number: fault}))))
        yield World(left.copied().engine, left.table)


@pytest.mark.parametrize("fault", [Fault.DIES, Fault.DIES_AFTER])
@pytest.mark.parametrize("name", sorted(DEEDS))
def test_a_crash_leaves_a_table_that_can_be_read(name: str, fault: Fault) -> None:
    start, deed = lived(keeps_changelogs=name == "expire changelogs"), DEEDS[name]
    done = start.copied()
    deed(done)
    wanted = done.reads()
    for left in crashes(start, deed, fault):
        left.reads()
        assert name in BEHIND_A_GAP or java_finds_the_latest(left)
        try:
            deed(left)
        except (AlreadyExists, NotFound) as told:
            assert name in ("create tag", "rename tag", "delete tag", "create branch", "delete branch"), told
        after = left.reads()
        if name == "rename tag":  # the last step before the crash may have left both names
            after.pop("main/early", None)
        assert {k: v for k, v in after.items() if k in wanted} == wanted
        left.clean()
        if name == "expire changelogs":
            assert left.reads().keys() == wanted.keys()
        else:
            assert left.stored() == left.reachable()


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.FAILS_AFTER])
@pytest.mark.parametrize("name", ["expire", "expire looking everywhere", "clean", "delete tag", "expire branch"])
def test_a_failure_of_storage_is_told_and_loses_nothing(name: str, fault: Fault) -> None:
    start, deed = lived(), DEEDS[name]
    before = start.reads()
    for number in points(operations_of(start, deed)):
        left = start.copied()
        with contextlib.suppress(StorageError, CorruptTable):
            deed(left.through(FaultyFiles(left.engine.files, numbered({number: fault}))))
        after = World(left.copied().engine, left.table).reads()
        assert after == {state: before[state] for state in after}


def test_what_may_hold_files_and_cannot_be_read_stops_everything() -> None:
    """Any list, manifest, tag or schema that somebody needs: not one data file goes."""
    start = lived()
    free = set(start.copied().clean())
    spoiled = [p for p in sorted(start.contents) if not p.startswith(ROOT + DATA) and not p.endswith(HINTS)]
    for place in points(len(spoiled)):
        w = start.copied()
        w.contents[spoiled[place]] = b"\x00rubbish"
        before = {p for p in w.contents if p.startswith(ROOT + DATA)}
        attempted(w.clean)
        assert {p for p in w.contents if p.startswith(ROOT + DATA)} >= before - free, spoiled[place]


def test_a_tag_made_while_its_snapshot_expires_is_refused_or_kept() -> None:
    """Wherever expiry stands when somebody tags: a tag that was made can be read for good."""
    start = lived()
    for number in points(operations_of(start, DEEDS["expire"])):
        left = start.copied()
        tagger = left.through(left.engine.files)
        made: list[bool] = []
        tag = partial(create_tag, tagger.engine, tagger.table, "meanwhile", 6)

        turns = count(-number)

        def plan(operation: str, path: str, turns: Iterator[int] = turns, tag: Callable[[], object] = tag) -> None:
            if next(turns) == 0:
                made.append(attempted(tag))  # noqa: B023

        DEEDS["expire"](left.through(FaultyFiles(left.engine.files, plan)))
        assert ("main/meanwhile" in tagger.reads()) == made[0]


def test_a_consumer_holds_what_it_has_yet_to_read() -> None:
    w = lived()
    reset_consumer(w.engine, w.table.paths, "slow", 7)
    w.expire(1)
    assert min(int(name.split("/")[1]) for name in w.reads() if name.startswith("main/") and name[5].isdigit()) == 7
    only_changes = {**w.table.options.values, "consumer.changelog-only": "true"}
    w = evolve(w, table=evolve(w.table, options=TableOptions.of(only_changes)))
    w.expire(1)
    assert [name for name in w.reads() if name.startswith("main/") and name[5].isdigit()] == ["main/10"]
