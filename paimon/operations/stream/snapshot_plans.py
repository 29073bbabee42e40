"""Plan the splits that a stream reads of each snapshot, and decide whether a snapshot may be read.

Invariant: if a snapshot has expired, the error says so, and never that a file is missing.
"""

from __future__ import annotations

from collections.abc import Callable

from paimon.domain.changelog.stream_read import FollowRules
from paimon.domain.changelog.stream_start import get_state_min_level
from paimon.domain.errors import NotFound, PaimonError
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.scan.scan_plan import ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.scans import select_scanned_buckets
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.snapshots import find_snapshot
from paimon.operations.read.changes.followed import plan_followed_splits
from paimon.operations.read.changes.history import find_first_id, find_snapshot_or_changelog
from paimon.operations.read.plan import plan_scan
from paimon.operations.stream.start import expired_start_error
from paimon.operations.table_context import TableContext


class SnapshotPlans:
    """Plan the snapshots of a stream; the predicate skips files, not rows."""

    def __init__(self, context: TableContext, predicate: Predicate | None) -> None:
        self._context = context
        self._predicate = predicate
        self._rules = FollowRules.of(context.table)

    def plan_state(self, state: Snapshot) -> tuple[DataSplit, ...]:
        """Return the splits of a complete state, without the levels whose rows a later changelog reports."""
        table, predicate = self._context.table, self._predicate
        request = ScanRequest(
            state,
            None if predicate is None else restrict_to_columns(predicate, self._context.schema.names),
            select_scanned_buckets(table.schema, table.options),
            min_level=get_state_min_level(table.options),
            shows_level_0=True,
        )
        return self._plan(state, lambda: plan_scan(self._context, request).splits)

    def plan_changes(self, snapshot: Snapshot) -> tuple[DataSplit, ...]:
        """Return the splits with the changes of a snapshot."""
        return self._plan(
            snapshot, lambda: plan_followed_splits(self._context, [snapshot], self._predicate, self._rules)
        )

    def is_past_bound(self, snapshot: Snapshot) -> bool:
        """Return whether the watermark of a snapshot is past `scan.bounded.watermark`."""
        bound, reached = self._context.options.scan_bounded_watermark, snapshot.watermark
        return bound is not None and reached is not None and reached > bound

    def is_delayed(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is younger than `streaming-read.snapshot.delay`."""
        delay = self._context.options.streaming_read_delay_millis
        return delay is not None and snapshot.time_millis > self._context.engine.clock.now_millis() - delay

    def check_history(self, last: tuple[int, str]) -> None:
        """Raise `NotFound` if a snapshot that was read, given by id and delta manifest list, was replaced."""
        now = find_snapshot(self._context, last[0])
        if now is not None and now.delta_manifest_list != last[1]:
            hint = (
                "the table was rolled back, fast-forwarded or created again since: start again at its latest state, "
                "with a new checkpoint if the stream has one"
            )
            raise NotFound("the followed snapshot", str(last[0]), hint=hint)

    def explain_error(self, snapshot_id: int, error: PaimonError) -> PaimonError:
        """Return the error of a read; if the snapshot has expired since, an error that says so."""
        if find_snapshot_or_changelog(self._context, snapshot_id) is not None:
            return error
        return expired_start_error(snapshot_id, find_first_id(self._context))

    def _plan(self, snapshot: Snapshot, planning: Callable[[], tuple[DataSplit, ...]]) -> tuple[DataSplit, ...]:
        try:
            return planning()
        except PaimonError as error:
            raise self.explain_error(snapshot.id, error) from error
