"""CommitCallback: the port through which another system, such as a metastore or a scheduler, learns of each commit.

Suite: `paimon.testing.contracts.callbacks`.

Invariant: a callback runs after the snapshot is visible, and its failure never makes a published commit fail. Source:
`CommitCallback`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import frozen

from paimon.domain.commit.entries import Change
from paimon.domain.commit.message import CommitMessage
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot


@frozen(eq=False)
class CommitEvent:
    """A commit that is published.

    Parameters
    ----------
    table : TableDefinition
        The table with its options, including those named ``commit.callback.<name>.param``.
    commit_user : str
        The user of the commit.
    identifier : int
        The commit identifier.
    messages : tuple of CommitMessage
        The prepared files. Empty if the retry knew only the commit identifier.
    snapshot : Snapshot, optional
        The snapshot of the commit. None if an earlier attempt published it and it has expired.
    change : Change, optional
        The added and deleted files. None if an earlier attempt published the commit.
    repeated : bool
        Whether an earlier attempt published the commit, so that its callbacks may have run before.
    """

    table: TableDefinition
    commit_user: str
    identifier: int
    messages: tuple[CommitMessage, ...] = ()
    snapshot: Snapshot | None = None
    change: Change | None = None
    repeated: bool = False

    @property
    def partitions(self) -> tuple[Mapping[str, object], ...]:
        """The changed partitions by column name, in the order of their encoded rows; none without partition keys."""
        rows = self.change.partitions if self.change else {m.partition for m in self.messages}
        fields = self.table.schema.partition_fields
        types = [f.type for f in fields]
        return tuple(
            dict(zip([f.name for f in fields], deserialize(row, types), strict=True)) for row in sorted(rows) if fields
        )


@frozen(eq=False)
class PartitionDoneEvent:
    """A partition that is marked as done by the action ``custom``.

    Parameters
    ----------
    table : TableDefinition
        The table with its options.
    directory : str
        The directory of the partition below the table, such as ``day=2026-01-01``.
    partition : mapping of str to object
        The value of each partition column.
    """

    table: TableDefinition
    directory: str
    partition: Mapping[str, object]


class CommitCallback(Protocol):
    """A function that is called once for each published commit.

    Any callable with one positional parameter is a callback.
    """

    def __call__(self, event: CommitEvent, /) -> None:
        """Handle one published commit.

        The process that committed calls its callbacks one after the other, in the order of registration. It calls them
        in the thread of the commit, and in the order of the snapshots. If a process dies between the commit and the
        call, the retry of the same commit user and commit identifier calls again with `repeated` set. A callback is
        therefore called at least once, also after later commits, and must be idempotent.

        Parameters
        ----------
        event : CommitEvent
            The published commit.

        Raises
        ------
        Exception
            Any error is reported as a RuntimeWarning. The commit stays published, and the other callbacks run.
        """


class PartitionDoneCallback(Protocol):
    """A function that is called for each partition that the action ``custom`` marks as done.

    It is registered like a `CommitCallback`, and the option `partition.mark-done-action.custom.class` names it. Commits
    of the table that it is registered with call it, too, with a `CommitEvent`.
    """

    def __call__(self, event: PartitionDoneEvent, /) -> None:
        """Handle one partition that is marked as done.

        The process that marks the partitions calls one after the other, in its own thread. A partition that is marked
        again is handled again, so the callback must be idempotent.

        Parameters
        ----------
        event : PartitionDoneEvent
            The partition.

        Raises
        ------
        Exception
            Any error ends the call that marks the partition.
        """
