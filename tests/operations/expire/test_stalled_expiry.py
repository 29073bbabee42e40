"""An expiry that stalls and continues after others expired the same snapshots deletes no referenced file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from support.case_lists import mark_products
from support.expiry_table import ExpiryTable

from paimon.domain.errors import CorruptTable, NotFound
from paimon.operations.expire.expire_changelogs import expire_changelogs
from paimon.operations.read.changes.history import (
    is_unreferenced,
    list_changelog_file_ids,
    list_changelog_ids,
    list_history,
    read_earliest_changelog_hint,
)
from paimon.operations.refs.rollback import roll_back
from paimon.operations.refs.tags import create_tag
from paimon.operations.table_context import TableContext
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied

OPTIONS = {"changelog-producer": "input", "snapshot.num-retained.max": "20", "changelog.num-retained.max": "30"}
COUNT = 6
HISTORY = list(range(1, COUNT + 1))
LOST_REPLIES = (None, Fault.REPLY_EXISTS, Fault.REPLY_UNKNOWN)


def create_history() -> ExpiryTable:
    """A table of some snapshots, each with a changelog."""
    w = ExpiryTable.new(OPTIONS)
    for number in range(COUNT):
        w.append(number)
    return w


class Stalls:
    """A plan: at the first occurrence of an operation, others act. The operation itself has the fault."""

    def __init__(self, at: Callable[[str, str], bool], others: Callable[[], object], fault: Fault | None) -> None:
        self.at, self.others, self.fault = at, others, fault
        self.is_done = False

    def __call__(self, operation: str, path: str) -> Fault | None:
        if self.is_done or not self.at(operation, path):
            return None
        self.is_done = True
        self.others()
        return self.fault


def expire_with_stall(
    w: ExpiryTable, at: Callable[[str, str], bool], others: Callable[[ExpiryTable], object], fault: Fault | None
) -> bool:
    """Expire all but one snapshot, stalling once; whether that took place."""
    other = w.with_files(w.engine.files)
    plan = Stalls(at, lambda: others(other), fault)
    with contextlib.suppress(ProcessDied):
        w.with_files(FaultyFiles(w.engine.files, plan)).expire(1)
    return plan.is_done


def expire_everything(w: ExpiryTable) -> None:
    w.expire(1)
    w.expire_changes(1)


def puts(changelog_id: int) -> Callable[[str, str], bool]:
    return lambda operation, path: operation == "put_if_absent" and path.endswith(f"/changelog-{changelog_id}")


def files(w: ExpiryTable) -> list[int]:
    return list(list_changelog_file_ids(TableContext(w.engine, w.table)))


def list_changelog_history(w: ExpiryTable) -> list[int]:
    """The complete history with all its files."""
    w.reads()
    return [s.id for s in list_history(TableContext(w.engine, w.table))]


def each_operation(others: Callable[[ExpiryTable], object]) -> Iterator[ExpiryTable]:
    """The state after the stall before each of the operations."""
    number = 0
    while True:
        w, countdown = create_history(), iter(range(-number, 10**6))
        if not expire_with_stall(w, lambda *_, countdown=countdown: next(countdown) == 0, others, None):  # type: ignore[misc]
            return
        yield w
        number += 1


def test_concurrent_changelog_expiry_is_no_error() -> None:
    """At any point of the stall: files that others deleted stay deleted, and the next expiry finds a valid table."""
    seen = 0
    for w in each_operation(expire_everything):
        assert list_changelog_history(w) == files(w) + [COUNT]
        w.append(9)
        expire_everything(w)
        assert list_changelog_history(w) == [COUNT, COUNT + 1]
        seen += 1
    assert seen > COUNT


def test_a_changelog_that_others_rely_on_is_retained() -> None:
    """At any point of the stall: a process that finds our changelog deletes the snapshot. We retain the changelog."""
    for w in each_operation(lambda other: other.expire(1)):
        assert list_changelog_history(w) == HISTORY
        assert files(w) == HISTORY[:-1]


@pytest.mark.parametrize(("reply", "late"), mark_products(LOST_REPLIES, [1, 3, COUNT - 2]))
def test_a_lost_reply_has_no_effect(late: int, reply: Fault | None) -> None:
    w = create_history()
    assert expire_with_stall(w, puts(late), expire_everything, reply)
    assert files(w) == [COUNT - 1]
    w = create_history()
    assert expire_with_stall(w, puts(late), lambda other: other.expire(1), reply)
    assert list_changelog_history(w) == HISTORY


@pytest.mark.parametrize("late", [1, COUNT - 2])
def test_a_death_before_the_check_leaves_an_unreferenced_changelog_without_effect(late: int) -> None:
    w = create_history()
    assert expire_with_stall(w, puts(late), expire_everything, Fault.DIE_AFTER)
    assert files(w) == [late, COUNT - 1]
    assert is_unreferenced(TableContext(w.engine, w.table), late)
    assert list_changelog_history(w) == [COUNT - 1, COUNT]
    with pytest.raises(NotFound, match="first available changes are those of"):
        list_history(TableContext(w.engine, w.table), after=late - 1)
    w.append(9)
    w.expire(1, everything=True)
    w.remove_orphan_files()
    w.expire_changes(9)
    assert files(w) == [COUNT - 1, COUNT]
    assert list_changelog_history(w) == [COUNT - 1, COUNT, COUNT + 1]


def test_a_changelog_with_a_missing_file_is_not_unreferenced() -> None:
    w = create_history()
    w.expire(1)
    w.expire_changes(4)
    lacking = list_changelog_ids(TableContext(w.engine, w.table))[0]
    (snapshot,) = list_history(TableContext(w.engine, w.table), lacking - 1, lacking)
    assert snapshot.changelog_manifest_list is not None
    w.engine.files.delete([w.table.paths.manifest(snapshot.changelog_manifest_list)])
    assert lacking in list_changelog_ids(TableContext(w.engine, w.table))
    w.append(9)
    with pytest.raises(CorruptTable, match="does not exist"):
        w.with_files(w.engine.files).remove_orphan_files()
    with pytest.raises(CorruptTable, match="does not exist"):
        w.with_files(w.engine.files).expire(1, everything=True)


def test_the_hint_remains_after_all_changelogs_expired_until_a_rollback() -> None:
    w = create_history()
    w.expire(1)
    expire_changelogs(w.context, delete_all=True)
    assert (files(w), read_earliest_changelog_hint(TableContext(w.engine, w.table))) == ([], COUNT)
    create_tag(w.context, "before")
    w.append(7)
    w.append(8)
    w.expire(1)
    expire_changelogs(w.context, delete_all=True)
    assert read_earliest_changelog_hint(TableContext(w.engine, w.table)) == COUNT + 2
    roll_back(w.context, tag="before")
    assert read_earliest_changelog_hint(TableContext(w.engine, w.table)) == COUNT + 1
    assert list_changelog_history(w) == [COUNT]


@pytest.mark.parametrize("leaves_hint", [False, True], ids=["ours", "as Java does"])
def test_a_rollback_corrects_the_hint(leaves_hint: bool) -> None:
    """A rollback frees ids for reuse. The new snapshots are not expired. Java leaves the hint; expiry repairs it."""
    w = create_history()
    w.expire(3)  # changelogs 1 to 3
    w.expire_changes(1)
    before = read_earliest_changelog_hint(TableContext(w.engine, w.table))
    roll_back(w.context, 4)
    if leaves_hint:
        w.engine.files.replace(f"{w.table.paths.changelogs}/EARLIEST", b"9")
    for number in range(3):
        w.append(number)
    w.expire(1)
    first = read_earliest_changelog_hint(TableContext(w.engine, w.table))
    assert first is not None and (leaves_hint or first == before) and first <= 4
    assert list_changelog_history(w) == [*list_changelog_ids(TableContext(w.engine, w.table)), 7]
