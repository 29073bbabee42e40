"""An expirer that stalls, and goes on when others have expired what it was about to: nothing that went comes back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from retention_world import World

from paimon.domain.errors import CorruptTable, NotFound
from paimon.operations.maintain.refs.rollback import roll_back
from paimon.operations.maintain.refs.tags import create_tag
from paimon.operations.maintain.retention.expire_changelogs import expire_changelogs
from paimon.operations.read.changes.history import changelog_files, changelog_ids, changelogs_from, history, is_stray
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied

OPTIONS = {"changelog-producer": "input", "snapshot.num-retained.max": "20", "changelog.num-retained.max": "30"}
COUNT = 6
HISTORY = list(range(1, COUNT + 1))
LOST_REPLIES = (None, Fault.SAYS_EXISTS, Fault.TELLS_NOTHING)


def grown() -> World:
    """A table of some snapshots, each with a changelog."""
    w = World.new(OPTIONS)
    for number in range(COUNT):
        w.append(number)
    return w


class Stalls:
    """A plan: at an operation, the first time, others act; the operation itself has the fault."""

    def __init__(self, at: Callable[[str, str], bool], others: Callable[[], object], fault: Fault | None) -> None:
        self.at, self.others, self.fault = at, others, fault
        self.is_done = False

    def __call__(self, operation: str, path: str) -> Fault | None:
        if self.is_done or not self.at(operation, path):
            return None
        self.is_done = True
        self.others()
        return self.fault


def stalled(w: World, at: Callable[[str, str], bool], others: Callable[[World], object], fault: Fault | None) -> bool:
    """Expire all but one snapshot, stalling once; whether that took place."""
    other = w.through(w.engine.files)
    plan = Stalls(at, lambda: others(other), fault)
    with contextlib.suppress(ProcessDied):
        w.through(FaultyFiles(w.engine.files, plan)).expire(1)
    return plan.is_done


def expire_everything(w: World) -> None:
    w.expire(1)
    w.expire_changes(1)


def puts(changelog_id: int) -> Callable[[str, str], bool]:
    return lambda operation, path: operation == "put_if_absent" and path.endswith(f"/changelog-{changelog_id}")


def files(w: World) -> list[int]:
    return list(changelog_files(w.engine, w.table.paths))


def told(w: World) -> list[int]:
    """The history from its beginning, all of whose files are there."""
    w.reads()
    return [s.id for s in history(w.engine, w.table.paths)]


def each_operation(others: Callable[[World], object]) -> Iterator[World]:
    """What is left where the stall is before any of the operations, one by one."""
    number = 0
    while True:
        w, turns = grown(), iter(range(-number, 10**6))
        if not stalled(w, lambda *_, turns=turns: next(turns) == 0, others, None):  # type: ignore[misc]
            return
        yield w
        number += 1


def test_others_that_expire_the_changelogs_too_stop_nobody() -> None:
    """Wherever the stall is: what others let expire stays away, and the next expiry finds a sound table."""
    seen = 0
    for w in each_operation(expire_everything):
        assert told(w) == files(w) + [COUNT]
        w.append(9)
        expire_everything(w)
        assert told(w) == [COUNT, COUNT + 1]
        seen += 1
    assert seen > COUNT


def test_others_that_rely_on_the_changelog_keep_it() -> None:
    """Wherever the stall is: who finds our changelog deletes the snapshot because of it, so it is not taken back."""
    for w in each_operation(lambda other: other.expire(1)):
        assert told(w) == HISTORY
        assert files(w) == HISTORY[:-1]


@pytest.mark.parametrize("reply", LOST_REPLIES)
@pytest.mark.parametrize("late", [1, 3, COUNT - 2])
def test_a_reply_that_is_lost_changes_nothing(late: int, reply: Fault | None) -> None:
    w = grown()
    assert stalled(w, puts(late), expire_everything, reply)
    assert files(w) == [COUNT - 1]
    w = grown()
    assert stalled(w, puts(late), lambda other: other.expire(1), reply)
    assert told(w) == HISTORY


@pytest.mark.parametrize("late", [1, COUNT - 2])
def test_a_death_before_the_look_leaves_a_stray_that_holds_nobody_up(late: int) -> None:
    w = grown()
    assert stalled(w, puts(late), expire_everything, Fault.DIES_AFTER)
    assert files(w) == [late, COUNT - 1]
    assert is_stray(w.engine, w.table.paths, late)
    assert told(w) == [COUNT - 1, COUNT]
    with pytest.raises(NotFound, match="changes begin at"):
        history(w.engine, w.table.paths, after=late - 1)
    w.append(9)
    w.expire(1, everything=True)
    w.clean()
    w.expire_changes(9)
    assert files(w) == [COUNT - 1, COUNT]
    assert told(w) == [COUNT - 1, COUNT, COUNT + 1]


def test_a_sound_changelog_that_lacks_a_file_is_no_stray() -> None:
    w = grown()
    w.expire(1)
    w.expire_changes(4)
    lacking = changelog_ids(w.engine, w.table.paths)[0]
    (snapshot,) = history(w.engine, w.table.paths, lacking - 1, lacking)
    assert snapshot.changelog_manifest_list is not None
    w.engine.files.delete([w.table.paths.manifest(snapshot.changelog_manifest_list)])
    assert lacking in changelog_ids(w.engine, w.table.paths)
    w.append(9)
    with pytest.raises(CorruptTable, match="does not exist"):
        w.through(w.engine.files).clean()
    with pytest.raises(CorruptTable, match="does not exist"):
        w.through(w.engine.files).expire(1, everything=True)


def test_the_hint_stays_when_all_changelogs_have_gone_until_a_rollback() -> None:
    w = grown()
    w.expire(1)
    expire_changelogs(w.engine, w.table, delete_all=True)
    assert (files(w), changelogs_from(w.engine, w.table.paths)) == ([], COUNT)
    create_tag(w.engine, w.table, "before")
    w.append(7)
    w.append(8)
    w.expire(1)
    expire_changelogs(w.engine, w.table, delete_all=True)
    assert changelogs_from(w.engine, w.table.paths) == COUNT + 2
    roll_back(w.engine, w.table, tag="before")
    assert changelogs_from(w.engine, w.table.paths) == COUNT + 1
    assert told(w) == [COUNT]


@pytest.mark.parametrize("leaves_hint", [False, True], ids=["ours", "as Java does"])
def test_a_rollback_makes_the_hint_true_again(leaves_hint: bool) -> None:
    """Ids are used again after it: what is written then has not expired; Java leaves the hint, and expiry mends it."""
    w = grown()
    w.expire(3)  # changelogs 1 to 3
    w.expire_changes(1)
    before = changelogs_from(w.engine, w.table.paths)
    roll_back(w.engine, w.table, 4)
    if leaves_hint:
        w.engine.files.replace(f"{w.table.paths.changelogs}/EARLIEST", b"9")
    for number in range(3):
        w.append(number)
    w.expire(1)
    first = changelogs_from(w.engine, w.table.paths)
    assert first is not None and (leaves_hint or first == before) and first <= 4
    assert told(w) == [*changelog_ids(w.engine, w.table.paths), 7]
