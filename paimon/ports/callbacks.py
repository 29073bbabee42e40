"""CommitCallback: somebody who wants to know of each commit once it stands, such as a metastore or a scheduler.

Contract: called after a snapshot became visible, by the process that committed it, in the order of the snapshots; what
it raises is told as a warning and never makes a published commit a failure. Where a process died between the commit and
the call, the next try of the same (user, identifier) calls again: a callback may see a commit more than once.
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
    """A commit that stands.

    Parameters
    ----------
    table : TableDefinition
        The table, with its options (``commit.callback.<name>.param`` among them).
    commit_user, identifier
        Whose commit it is.
    messages : tuple of CommitMessage
        What the writers prepared; empty where only the identifier was asked for.
    snapshot : Snapshot, optional
        What it became; None where it took place before and its snapshot has expired.
    change : Change, optional
        What the snapshot changed, file by file; None where it took place before.
    repeated : bool
        It took place before, and its callbacks may have been called then.
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
        """The partitions touched, as column values, in the order of their rows."""
        rows = self.change.partitions if self.change else {m.partition for m in self.messages}
        fields = self.table.schema.partition_fields
        types = [f.type for f in fields]
        return tuple(
            dict(zip([f.name for f in fields], deserialize(row, types), strict=True)) for row in sorted(rows) if fields
        )


class CommitCallback(Protocol):
    """See the module's contract."""

    def __call__(self, event: CommitEvent, /) -> None: ...
