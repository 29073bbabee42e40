"""Expiry that dies at any of its I/O operations: everything listed can be read, and a repeated call completes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import pytest
from attrs import evolve
from support.case_lists import mark_products
from support.expiry_table import ROOT, ExpiryTable, has_succeeded

from paimon.domain.errors import AlreadyExists, CorruptTable, NotFound, StorageError
from paimon.domain.options.table_options import TableOptions
from paimon.operations.refs.branches import create_branch, delete_branch, fast_forward
from paimon.operations.refs.consumers import reset_consumer
from paimon.operations.refs.rollback import roll_back
from paimon.operations.refs.tags import create_tag, delete_tag, rename_tag, replace_tag
from paimon.operations.table_context import TableContext
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied, plan_numbered_faults

Operation = Callable[[ExpiryTable], object]

EVERYWHERE = os.environ.get("PAIMON_EVERY_FAULT") == "1"
"""Ask for every fault point; otherwise about a dozen of each, spread evenly."""


def points(operations: int) -> list[int]:
    """The operations that fail."""
    step = 1 if EVERYWHERE else max(1, operations // 12)
    return list(range(operations % step, operations, step))


class Counted:
    """A plan without faults that counts the operations."""

    def __init__(self) -> None:
        self.operations = 0

    def __call__(self, operation: str, path: str) -> Fault | None:
        self.operations += 1
        return None


def operations_of(start: ExpiryTable, operation: Operation) -> int:
    """How many I/O operations it takes."""
    w, counted = start.copy_storage(), Counted()
    operation(w.with_files(FaultyFiles(w.engine.files, counted)))
    return counted.operations


def create_history(producer: str = "input", with_changelogs: bool = False) -> ExpiryTable:
    """A table with a history: tags on existing and expired snapshots, a branch, moved and replaced files."""
    options = {"changelog-producer": producer, "snapshot.num-retained.max": "20"}
    options |= {"changelog.num-retained.max": "30"} if with_changelogs else {}
    w = ExpiryTable.new(options)
    for number in range(4):
        w.append(number)
        w.compact(number)
        if number == 1:
            create_tag(w.context, "early")
            create_branch(w.context, "side", "early")
            create_tag(w.context, "branched")
    w.on_branch("side").append(1)
    w.expire(5)
    create_tag(w.context, "middle", 5)
    w.overwrite(9)
    w.append(1)
    create_tag(w.context, "late")
    return w


DATA = "/bucket-0/"
HINTS = ("LATEST", "EARLIEST")
OPERATIONS: dict[str, Operation] = {
    "expire": lambda w: w.expire(2),
    "expire looking everywhere": lambda w: w.expire(1, everything=True),
    "expire changelogs": lambda w: w.expire_changes(2),
    "expire branch": lambda w: w.on_branch("side").expire(1),
    "clean": lambda w: w.remove_orphan_files(),
    "create tag": lambda w: create_tag(w.context, "new"),
    "replace tag": lambda w: replace_tag(w.context, "early"),
    "rename tag": lambda w: rename_tag(w.context, "early", "earlier"),
    "delete tag": lambda w: delete_tag(w.context, "early"),
    "create branch": lambda w: create_branch(w.context, "new", "middle"),
    "delete branch": lambda w: delete_branch(w.context, "side"),
    "fast-forward": lambda w: fast_forward(w.context, "side"),
    "roll back": lambda w: roll_back(w.context, 6),
    "roll back to a gone snapshot": lambda w: roll_back(w.context, tag="early"),
    "reset consumer": lambda w: reset_consumer(TableContext(w.engine, w.table), "c", 6),
}


BEHIND_A_GAP = ("roll back to a gone snapshot",)
"""Places where a hint may name a snapshot that was just deleted. The next commit or a retry repairs it."""


def java_finds_the_latest(w: ExpiryTable) -> bool:
    """Java trusts the hint if the next snapshot file is absent. It does not check that its own snapshot exists."""
    hint = int(w.contents.get(f"{ROOT}/snapshot/LATEST", b"0"))
    return hint == 0 or any(f"{ROOT}/snapshot/snapshot-{i}" in w.contents for i in (hint, hint + 1))


def crashes(start: ExpiryTable, operation: Operation, fault: Fault) -> Iterator[ExpiryTable]:
    """The storage after a crash at each of the operations."""
    for number in points(operations_of(start, operation)):
        left = start.copy_storage()
        with contextlib.suppress(ProcessDied):
            operation(left.with_files(FaultyFiles(left.engine.files, plan_numbered_faults({number: fault}))))
        yield ExpiryTable(left.context.with_engine(left.copy_storage().engine))


@pytest.mark.parametrize(("name", "fault"), mark_products(sorted(OPERATIONS), [Fault.DIE_BEFORE, Fault.DIE_AFTER],
    always=["expire", "expire changelogs", "expire branch", "clean", "create tag", "delete branch", "fast-forward",
    "roll back"]))  # fmt: skip
def test_a_crash_leaves_a_table_that_can_be_read(name: str, fault: Fault) -> None:
    start, operation = create_history(with_changelogs=name == "expire changelogs"), OPERATIONS[name]
    done = start.copy_storage()
    operation(done)
    wanted = done.reads()
    for left in crashes(start, operation, fault):
        left.reads()
        assert name in BEHIND_A_GAP or java_finds_the_latest(left)
        try:
            operation(left)
        except (AlreadyExists, NotFound) as error:
            assert name in ("create tag", "rename tag", "delete tag", "create branch", "delete branch"), error
        after = left.reads()
        if name == "rename tag":  # after a crash during the last step both names may exist
            after.pop("main/early", None)
        assert {k: v for k, v in after.items() if k in wanted} == wanted
        left.remove_orphan_files()
        if name == "expire changelogs":
            assert left.reads().keys() == wanted.keys()
        else:
            assert left.list_shared_files() == left.reachable()


@pytest.mark.parametrize(
    ("name", "fault"),
    mark_products(
        ["expire", "expire looking everywhere", "clean", "delete tag", "expire branch"],
        [Fault.FAIL_BEFORE, Fault.FAIL_AFTER],
    ),
)
def test_a_storage_failure_is_reported_and_loses_no_files(name: str, fault: Fault) -> None:
    start, operation = create_history(), OPERATIONS[name]
    before = start.reads()
    for number in points(operations_of(start, operation)):
        left = start.copy_storage()
        with contextlib.suppress(StorageError, CorruptTable):
            operation(left.with_files(FaultyFiles(left.engine.files, plan_numbered_faults({number: fault}))))
        after = ExpiryTable(left.context.with_engine(left.copy_storage().engine)).reads()
        assert after == {state: before[state] for state in after}


def test_an_unreadable_reference_stops_every_deletion() -> None:
    """Without any list, manifest, tag or schema that is referenced, no data file is deleted."""
    start = create_history()
    free = set(start.copy_storage().remove_orphan_files())
    spoiled = [p for p in sorted(start.contents) if not p.startswith(ROOT + DATA) and not p.endswith(HINTS)]
    for place in points(len(spoiled)):
        w = start.copy_storage()
        w.contents[spoiled[place]] = b"\x00rubbish"
        before = {p for p in w.contents if p.startswith(ROOT + DATA)}
        has_succeeded(w.remove_orphan_files)
        assert {p for p in w.contents if p.startswith(ROOT + DATA)} >= before - free, spoiled[place]


def test_a_tag_created_during_expiry_is_refused_or_valid() -> None:
    """A tag that is created at any point of an expiry can be read afterwards."""
    start = create_history()
    for number in points(operations_of(start, OPERATIONS["expire"])):
        left = start.copy_storage()
        tagger = left.with_files(left.engine.files)
        made: list[bool] = []
        tag = partial(create_tag, tagger.context, "concurrent", 6)

        countdown = count(-number)

        def plan(
            operation: str, path: str, countdown: Iterator[int] = countdown, tag: Callable[[], object] = tag
        ) -> None:
            if next(countdown) == 0:
                made.append(has_succeeded(tag))  # noqa: B023

        OPERATIONS["expire"](left.with_files(FaultyFiles(left.engine.files, plan)))
        assert ("main/concurrent" in tagger.reads()) == made[0]


def test_a_consumer_references_unread_snapshots() -> None:
    w = create_history()
    reset_consumer(TableContext(w.engine, w.table), "slow", 7)
    w.expire(1)
    assert min(int(name.split("/")[1]) for name in w.reads() if name.startswith("main/") and name[5].isdigit()) == 7
    only_changes = {**w.table.options.values, "consumer.changelog-only": "true"}
    w = ExpiryTable(w.context.with_table(evolve(w.table, options=TableOptions.of(only_changes))))
    w.expire(1)
    assert [name for name in w.reads() if name.startswith("main/") and name[5].isdigit()] == ["main/10"]
