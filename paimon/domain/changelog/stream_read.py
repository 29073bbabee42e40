"""Decide what a stream scan reads of each snapshot.

Without a changelog producer, the changes are the files that an APPEND added, each record as it was written. With one,
the changes are the changelog files. COMPACT and ANALYZE change no row.

Invariant: an OVERWRITE is skipped unless an option says that streams read it.

Source: `DataTableStreamScan`, `DeltaFollowUpScanner`, `ChangelogFollowUpScanner`.
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
    """Rules that decide which files of a snapshot are read as its changes."""

    # whether the table has a changelog producer
    has_producer: bool
    # whether an OVERWRITE returns the rows it removes as -D and the rows it adds as +I
    shows_replaced_rows: bool = False
    # whether an OVERWRITE returns only the rows that it adds
    shows_added_rows: bool = False

    @classmethod
    def of(cls, table: TableDefinition) -> FollowRules:
        """Return a table's rules; refuse `streaming-read-overwrite` if the producer reports overwrites itself."""
        options, keyed = table.options, bool(table.schema.primary_keys)
        producer = options.changelog_producer
        shows_replaced_rows = keyed and options.streaming_read_overwrite
        if shows_replaced_rows and producer in ("lookup", "full-compaction"):
            raise InvalidRequest(
                f"Option 'streaming-read-overwrite' cannot be combined with changelog producer {producer!r}",
                subject="streaming-read-overwrite",
                hint="remove the option",
            )
        shows_added_rows = not keyed and options.streaming_read_append_overwrite
        return cls(producer != "none", shows_replaced_rows, shows_added_rows)

    def get_change(self, snapshot: Snapshot) -> Change:
        """Return which files of a snapshot hold its changes."""
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            if self.shows_replaced_rows:
                return Change.REPLACED
            return Change.DELTA if self.shows_added_rows else Change.NOTHING
        if self.has_producer:
            return Change.NOTHING if snapshot.changelog_manifest_list is None else Change.CHANGELOG
        return Change.DELTA if snapshot.commit_kind is CommitKind.APPEND else Change.NOTHING
