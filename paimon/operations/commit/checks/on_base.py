"""A change as it is seen from each base that it is tried on: what it takes away there, and whether it fits.

Law: looked at anew on each base; nothing is written before every check has passed. Source:
`FileStoreCommitImpl.tryCommitOnce`.
"""

from __future__ import annotations

from attrs import evolve

from paimon.domain.commit.conflicts.files import check_conflicts, needs_check, without_known
from paimon.domain.commit.conflicts.overtaken import check_overtaken, forgotten_through
from paimon.domain.commit.conflicts.vectors import check_vectors
from paimon.domain.commit.entries import Change
from paimon.domain.commit.overwrite import PartitionFilter, overwriting, partitions_of_spec, partitions_written
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.operations.commit.after.remembered import check_still_there
from paimon.operations.commit.attempt import ChangeOn
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.checks.strict import SafeSnapshot
from paimon.operations.commit.request import CommitRequest
from paimon.ports.engine import Engine


class Fitting:
    """The change on each base, after all checks that its kind asks for; what `Attempts.publish` takes."""

    def __init__(
        self, engine: Engine, table: TableDefinition, request: CommitRequest, change_on: ChangeOn, safe: SafeSnapshot
    ) -> None:
        self._engine = engine
        self._table = table
        self._request = request
        self._change_on = change_on
        self._safe = safe
        self._key_types = [f.type for f in table.schema.key_fields]
        self._looked_back = False
        self.index_before: str | None = None

    def __call__(self, base: CommitBase) -> Change:
        """The change as it is to be published on this base.

        Raises
        ------
        CommitConflict
            It does not fit.
        CommitOverwritten
            See `check_still_there`.
        """
        engine, table, request = self._engine, self._table, self._request
        if not self._looked_back:
            check_still_there(engine, table, base.snapshot)
            self._looked_back = True
        change = self._change_on(base)
        self._safe.check(engine, table, base.snapshot, change, request.commit_user)
        if needs_check(change, request.check_conflicts or _discards(table, change)):
            live = base.live_beside(change)
            check_conflicts(live, change, self._key_types)
            check_vectors(live, base.index_files, change, table.is_bucketed)
        self.index_before = base.snapshot.index_manifest if base.snapshot else None
        return change


def appended(table: TableDefinition, change: Change) -> ChangeOn:
    """What was written, on each base."""
    if not _discards(table, change):
        return lambda _: change

    def on(base: CommitBase) -> Change:
        return evolve(change, entries=without_known(change.entries, base.live_beside(change)))

    return on


def _discards(table: TableDefinition, change: Change) -> bool:
    return table.options.commit_discard_duplicate_files and change.kind is CommitKind.APPEND


def compacted_beside(change: Change, inline: bool) -> ChangeOn:
    """A writer's own compaction can be lost without harm; one apart, beside many writers, is not held up."""
    if not inline or not forgotten_through(change):
        return lambda _: change

    def on(base: CommitBase) -> Change:
        check_overtaken(base.live(change.partitions.__contains__), change)
        return change

    return on


def overwritten(table: TableDefinition, request: CommitRequest, change: Change) -> ChangeOn:
    """What was written in the place of the partitions that the request means, on each base."""
    dynamic = request.dynamic_overwrite
    if request.partitions is not None:
        meant = PartitionFilter(table.schema.partition_fields, only=request.partitions)
    else:
        meant = partitions_written(change) if dynamic else partitions_of_spec(table, request.overwrite or {})
    meant.check_holds(change)
    postpone = table.options.bucket == POSTPONED
    return lambda base: overwriting(change, base.live(meant), base.index_files, meant, postpone)
