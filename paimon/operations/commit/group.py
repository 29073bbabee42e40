"""Publish the additions of several threads as one snapshot.

Invariant: each member gets its own outcome: published, its own error, or none, after which it commits alone. A member
whose files a snapshot may contain is never told otherwise.
"""

# A commit of ten rows costs a few milliseconds of CPU, and twice as many of waits for the disk. Threads that commit to
# one table at the same time would wait for each other. Instead, the first one leads, and those that come while it waits
# for the lock of the table, or publishes, form the next group:
#
#     thread 1   files  [lead: 1          ]                 files  …
#     thread 2     files  wait             [lead: 2 3 4    ]  files  …
#     thread 3      files   wait            taken by 2        files  …
#     thread 4        files  wait           taken by 2        files  …
#     snapshots                          5                6
#
# A program with one thread always leads a group of itself, which is a commit as any other.
#
# The leader plans the change of each member on the same base, as if it were alone, and joins those that fit. A conflict
# is the outcome of that member only; after another error, a member commits alone. Members may have written the same
# keys with the same sequence numbers. A member whose rows would lose against earlier ones gets LateRowsFound, as if
# these had been committed before it.
#
# Which commits may share is decided in `paimon.domain.commit.sharing`: plain additions under a user that `Table.write`
# made up, which no one looks for later. The snapshot has the user of its first member. An error that is about the
# snapshot (CommitUncertain) has that user, the id and the uuid, and the files of the member alone, so that each member
# resolves its own. The last commit of the process, which the next one looks for, is recorded with the files of all.
#
# If the leader fails, what is known of the snapshot decides:
#
#     CommitUncertain, or the table is gone and the snapshot stays    each member gets this error: its files must stay
#     others were first too often (CommitConflict)                    the same, because each waited as long
#     StorageError, which a flush may have raised                     members whose files it flushed get it, too
#     an interrupt, or an unexpected error, after the put began       each member gets CommitUncertain
#     any other failure                                               nothing is published: members commit alone
#
# A second flush of a file cannot replace one that failed: Linux marks the pages as written, and then it succeeds.

from __future__ import annotations

from functools import partial

from attrs import define, evolve, field

from paimon.domain.commit.conflicts.other_commits import LateRowsFound
from paimon.domain.commit.entries import Change
from paimon.domain.commit.plan_change import Intent, plan_change
from paimon.domain.commit.request import CommitRequest
from paimon.domain.commit.sharing import can_share_snapshot, check_order, join_changes, join_requests
from paimon.domain.errors import (
    CommitConflict,
    CommitUncertain,
    PaimonError,
    StorageError,
    TableDropped,
    TableReplaced,
)
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.attempts import Published, publish_change, publish_source
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.history import record_own_commit
from paimon.operations.table_context import TableContext
from paimon.ports.commit_groups import TakeMembers

_MOST_MEMBERS = 100
"""How many members one snapshot has at most: their changes are in memory together."""


@define(eq=False)
class Member:
    """The change of one caller, and its outcome; without one the caller commits alone."""

    context: TableContext
    intent: Intent
    published: Published | None = None
    error: Exception | None = None


@define(eq=False)
class _Group:
    """The members whose changes are published together; a `ChangeSource`."""

    leader: Member
    take: TakeMembers[Member]
    members: list[Member] = field(factory=list)
    planned: list[tuple[Member, Change]] = field(factory=list)
    in_doubt: Snapshot | None = None

    @property
    def request(self) -> CommitRequest:
        """The request of all planned members."""
        return join_requests([member.intent.request for member, _ in self.planned])

    def plan(self, base: CommitBase) -> Change:
        """Plan the change of each member, and join those that fit; raise the leader's error if none does."""
        taken = self.take(_MOST_MEMBERS - len(self.members))
        self.members += [member for member in taken if _is_of_table(member, self.leader)]
        self.planned = []
        for member in [m for m in self.members if m.error is None]:
            try:
                change = plan_change(member.intent, base)
                check_order(member.intent, [earlier for _, earlier in self.planned])
            except (CommitConflict, LateRowsFound) as error:
                member.error = error
            except PaimonError:  # of a member that commits alone, and raises it again
                if member is self.leader:
                    raise
            else:
                self.planned.append((member, change))
        self.members = [member for member, _ in self.planned]
        if not self.planned:
            assert self.leader.error is not None
            raise self.leader.error
        return self.planned[0][1] if len(self.planned) == 1 else join_changes([c for _, c in self.planned])

    def note_put(self, snapshot: Snapshot | None) -> None:
        """Note the snapshot that may be published from now on, or None."""
        self.in_doubt = snapshot

    def settle_published(self, published: Published) -> None:
        """Give each member the snapshot with its own change."""
        for member, change in self.planned:
            member.published = evolve(published, change=change)

    def settle_failed(self, error: PaimonError) -> None:
        """Give the error to the leader if it has none, and to the members that would get it alone, too."""
        if self.leader.error is None or not self.planned:
            self.leader.error = error
        for member in self._list_open_members():
            if isinstance(error, CommitUncertain):
                user, identifier, at, uuid = error.commit_user, error.identifier, error.snapshot_id, error.identity
                member.error = CommitUncertain(user, identifier, error.reason, snapshot_id=at, identity=uuid)
            elif isinstance(error, TableDropped | TableReplaced) and error.snapshot_id is not None:
                member.error = type(error)(error.name, error.snapshot_id)
            elif type(error) is CommitConflict:
                member.error = CommitConflict(error.message, hint=error.hint)
            elif isinstance(error, StorageError) and self._has_flushed(member):
                member.error = StorageError(error.path, error.reason, hint=error.hint)
        if isinstance(error, TableDropped | TableReplaced):
            self.in_doubt = None  # it was taken back, or does not exist
        self.settle_doubt()

    def settle_doubt(self) -> None:
        """Give the members CommitUncertain if a snapshot with their files may be published."""
        put = self.in_doubt
        for member in self._list_open_members() if put is not None else ():
            assert put is not None
            user, identifier, uuid = put.commit_user, put.commit_identifier, put.identity
            reason = f"the thread that published snapshot {put.id} failed"
            member.error = CommitUncertain(user, identifier, reason, snapshot_id=put.id, identity=uuid)

    def _has_flushed(self, member: Member) -> bool:
        """Whether a failed flush may have been that of a file of this member; its snapshot is certainly not there."""
        return self.in_doubt is None and bool(self.planned) and member.intent.request.flushes_files

    def _list_open_members(self) -> list[Member]:
        return [m for m in self.members if m is not self.leader and m.published is None and m.error is None]


def publish_in_group(
    context: TableContext, intent: Intent, operation: str | None, last_seen_id: int | None
) -> Published:
    """Publish the change of one caller, in a snapshot with those of other threads if it may share one.

    Errors are those of `publish_change`.
    """
    groups = context.engine.commit_groups
    if groups is None or context.engine.callbacks or not can_share_snapshot(intent):
        return publish_change(context, intent, operation, last_seen_id)
    member = Member(context, intent)
    groups.run(context.paths.snapshots, member, partial(_lead, member, operation))
    if member.error is not None:
        raise member.error
    return member.published or publish_change(context, intent, operation)


def _lead(leader: Member, operation: str | None, take: TakeMembers[Member]) -> None:
    group = _Group(leader, take)
    with undo_on_failure(group.settle_doubt):
        try:
            published = publish_source(leader.context, group, operation)
        except PaimonError as error:
            group.settle_failed(error)
            return
        if len(group.planned) > 1:
            record_own_commit(leader.context, published.request, published.snapshot, published.index_before)
        group.settle_published(published)


def _is_of_table(member: Member, leader: Member) -> bool:
    """Return whether a member sees the same table on the same storage; another one commits alone."""
    same_files = member.context.files is leader.context.files
    return member is leader or (same_files and member.context.table == leader.context.table)
