"""What a follower of a table reads of each snapshot.

Law: without a changelog producer the files that an APPEND added are the changes, each record as it was written; with
one only changelog files are. COMPACT and ANALYZE change no row. An OVERWRITE is passed over, unless an option says that
streams see it. Source: `DataTableStreamScan`, `DeltaFollowUpScanner`, `ChangelogFollowUpScanner`.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot


class Change(Enum):
    """Which files of a snapshot hold its changes."""

    NOTHING = "nothing"
    DELTA = "delta"
    CHANGELOG = "changelog"
    REPLACED = "replaced"


@frozen
class FollowRules:
    """What decides how a table is followed.

    Parameters
    ----------
    produces : bool
        The table has a changelog producer.
    shows_replaced : bool
        Rows that an OVERWRITE takes away are shown as -D, those that it brings as +I.
    shows_brought : bool
        Of an OVERWRITE the rows that it brings are shown.
    """

    produces: bool
    shows_replaced: bool = False
    shows_brought: bool = False

    @classmethod
    def of(cls, table: TableDefinition) -> FollowRules:
        """The rules of a table; InvalidRequest where its options contradict each other."""
        options, keyed = table.options, bool(table.schema.primary_keys)
        producer = options.changelog_producer
        replaced = keyed and options.streaming_read_overwrite
        if replaced and producer in ("lookup", "full-compaction"):
            raise InvalidRequest(
                f"streaming-read-overwrite does not go with changelog-producer {producer}",
                subject="streaming-read-overwrite",
                hint="leave the option out",
            )
        brought = not keyed and options.streaming_read_append_overwrite
        return cls(producer != "none", replaced, brought)

    def change_of(self, snapshot: Snapshot) -> Change:
        """What to read of one snapshot."""
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            if self.shows_replaced:
                return Change.REPLACED
            return Change.DELTA if self.shows_brought else Change.NOTHING
        if self.produces:
            return Change.NOTHING if snapshot.changelog_manifest_list is None else Change.CHANGELOG
        return Change.DELTA if snapshot.commit_kind is CommitKind.APPEND else Change.NOTHING
