"""Read a stream in ranges between positions, which a driver stores: what comes next, and the splits of a range.

Invariant: the same range always returns the same splits, or an error. Rows are neither skipped nor returned in two
ranges, also when the driver starts again and asks for a range that it asked for before.
"""

# A position is a snapshot, whether its complete state or its changes are read, and how many of these splits are read.
# A stream that starts with the state of snapshot 3, in batches of two splits:
#
#     batch    from                    reads                                   to
#     1        3, state, 0 splits      s0, s1 of the state                     3, state, 2 splits
#     2        3, state, 2 splits      s2 of the state; c0 of the changes      4, changes, 1 split
#     3        4, changes, 1 split     c1; the changes of 5, which has one     6, changes, 0 splits
#
# `advance` finds the end of a batch, `plan_range` its splits, perhaps in another process after a restart. Both count
# the splits of a snapshot, so a position within a snapshot names its plan, and other splits are refused. A split has
# one file where none are merged, so that a limit holds to a file. Positions of earlier versions count undivided splits,
# which the plan that they name shows.
#
# A batch also ends before a snapshot that the stream must not read yet or at all (delayed, past its end), before other
# columns, with which the caller begins again, and before an OVERWRITE of dynamic buckets: tasks order the changes of
# a batch by bucket, and keys may be in another bucket after it.

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from paimon.domain.changelog.stream_start import Start
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.splits import DataSplit
from paimon.domain.scan.stream_position import StreamPosition, check_plan, check_table, identify_plan
from paimon.domain.scan.stream_tasks import BatchLimits, BatchSize, FollowedSplit, divide_by_file
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.domain.types.data_types import DataType
from paimon.operations.metadata.schemas import check_same_table, load_first_schema, load_schema
from paimon.operations.metadata.snapshots import latest_snapshot, load_snapshot
from paimon.operations.read.changes.history import find_snapshot_or_changelog
from paimon.operations.stream.start import Progress, SnapshotPlans, check_start, find_progressed_start, protect_start
from paimon.operations.table_context import TableContext


class StreamRanges:
    """A stream whose position the caller stores; None is the position of a stream that has not begun.

    A new stream starts at `start`, unless its consumer has progressed further. The predicate skips files, not rows.
    """

    def __init__(
        self,
        context: TableContext,
        start: Start,
        columns: tuple[str, ...],
        progress: Progress,
        predicate: Predicate | None = None,
    ) -> None:
        self._context = context
        self._start = start
        self._columns = columns
        self._progress = progress
        self._plans = SnapshotPlans(context, predicate)
        self._through: int | None = None
        self._protects = False
        self._is_table_checked = False
        self._planned: tuple[tuple[int, bool], _Plan] | None = None
        self._counted: tuple[tuple[StreamPosition | None, StreamPosition | None], int] | None = None

    def end_at_latest(self) -> None:
        """End the stream at the snapshot that is the latest one now."""
        self._through = self.find_latest()

    def advance(self, position: StreamPosition | None, limits: BatchLimits) -> StreamPosition | None:
        """Return the end of the next batch; the unchanged position if there is nothing to read.

        Raises `NotFound` if the next snapshot has expired or the history was rewritten. Raises `InvalidRequest` if the
        columns of the table changed and everything before is read.
        """
        check_same_table(self._context)
        start = position or self._begin()
        if start is None:
            return position
        self._protect(start)
        self._check_source(start)
        reached, used = start, BatchSize()
        while (snapshot := self._find_next(reached)) is not None:
            is_first = reached == start
            if self._changes_columns(snapshot):
                if is_first:
                    raise self._schema_error(snapshot)
                break
            if self._moves_keys(snapshot) and not is_first:
                break
            if not limits.are_given:
                reached = reached.after(snapshot)
                continue
            splits, plan = self._plan(reached, snapshot).divide_for(reached)
            rest = splits[reached.splits :]
            count = limits.count_within(rest, used)
            if count < len(rest):
                return reached.within(snapshot, reached.splits + count, plan) if count else reached
            for split in rest:
                used = used.plus(split)
            reached = reached.after(snapshot)
        return reached

    def plan_range(self, start: StreamPosition | None, end: StreamPosition | None) -> list[FollowedSplit]:
        """Return the splits between two positions; InvalidRequest if a half-read snapshot's splits changed."""
        found: list[FollowedSplit] = []
        if end is None:
            return found
        reached = end.start if start is None else start
        self._check_source(end)
        while reached.is_before(end):
            snapshot = self._load_next(reached)
            is_last = reached.is_in_same_plan(end)
            splits, plan = self._plan(reached, snapshot).divide_for(end if is_last else reached)
            check_plan(reached, plan)
            stop = end.splits if is_last else len(splits)
            found += [FollowedSplit(split, reached.is_state) for split in splits[reached.splits : stop]]
            if is_last:
                break
            reached = reached.after(snapshot)
        return found

    def can_grow(self, end: StreamPosition) -> bool:
        """Return whether later snapshots can add rows to a batch with this end; limits or new columns end others."""
        return self._find_next(end) is None

    def has_rows(self, start: StreamPosition | None, end: StreamPosition | None, minimum: int) -> bool:
        """Return whether a range has at least so many stored rows, before merging."""
        if self._counted is None or self._counted[0] != (start, end):
            splits = [followed.split for followed in self.plan_range(start, end)]
            self._counted = (start, end), sum(f.row_count for s in splits for f in (*s.before_files, *s.files))
        return self._counted[1] >= minimum

    def find_latest(self) -> int:
        """Return the id of the newest snapshot; 0 if the table has none."""
        latest = latest_snapshot(self._context)
        return 0 if latest is None else latest.id

    def record(self, position: StreamPosition | None) -> None:
        """Record that everything before a position is processed; without a consumer this has no effect."""
        if position is not None and not position.is_state:
            self._progress.record(position.snapshot_id)

    def _begin(self) -> StreamPosition | None:
        found = find_progressed_start(self._context, self._start, self._progress)
        if found is None:
            return None
        protect_start(self._context, found, self._progress)
        self._protects = True
        created_millis = load_first_schema(self._context.engine, self._context.paths).time_millis
        return StreamPosition.starting(found.next_id, found.state, created_millis)

    def _check_source(self, position: StreamPosition) -> None:
        """Check that a position belongs to the table, and that what was read is still in its history."""
        if not self._is_table_checked:
            self._check_table(position)
            self._is_table_checked = True
        if position.last_id:
            try:
                self._plans.check_history((position.last_id, position.last_identity))
            except NotFound:
                self._check_table(position)
                raise

    def _check_next(self, position: StreamPosition) -> None:
        """Check that the changes of a position exist or come next."""
        try:
            check_start(self._context, position.snapshot_id, latest_snapshot(self._context))
        except NotFound:
            self._check_table(position)
            raise

    def _check_table(self, position: StreamPosition) -> None:
        created_millis = load_first_schema(self._context.engine, self._context.paths).time_millis
        check_table(position, self._context.table.table_name, created_millis)

    def _protect(self, position: StreamPosition) -> None:
        """Protect what comes next after a restart, and keep the consumer alive while the stream waits."""
        if self._protects:
            self._progress.refresh()
        elif position.is_state:
            self._progress.protect_state(position.snapshot_id)
        else:
            self._progress.record(position.snapshot_id)
        self._protects = True

    def _find_next(self, position: StreamPosition) -> Snapshot | None:
        """Return the snapshot of a position; None if it does not exist yet, or if the stream ends before it."""
        if self._through is not None and position.snapshot_id > self._through and not position.is_state:
            self._check_next(position)
            return None
        if position.is_state:
            return self._load_next(position)
        found = find_snapshot_or_changelog(self._context, position.snapshot_id)
        if found is None:
            self._check_next(position)
            return None
        is_excluded = self._plans.is_delayed(found) or self._plans.is_past_bound(found)
        return None if is_excluded or self._is_state_past_bound(position) else found

    def _is_state_past_bound(self, position: StreamPosition) -> bool:
        """Return whether the state at the start was past the bound already, so that no change is read."""
        is_first = position.start_is_state and position.snapshot_id == position.start_id + 1
        if not is_first or self._context.options.scan_bounded_watermark is None:
            return False
        state = find_snapshot_or_changelog(self._context, position.start_id)
        return state is not None and self._plans.is_past_bound(state)

    def _load_next(self, position: StreamPosition) -> Snapshot:
        if position.is_state:
            return load_snapshot(self._context, position.snapshot_id)
        found = find_snapshot_or_changelog(self._context, position.snapshot_id)
        if found is None:
            self._check_next(position)
            return load_snapshot(self._context, position.snapshot_id)
        return found

    def _plan(self, position: StreamPosition, snapshot: Snapshot) -> _Plan:
        """Return the splits of a snapshot; those of the last one are kept."""
        key = (snapshot.id, position.is_state)
        if self._planned is None or self._planned[0] != key:
            plan: Callable[[Snapshot], tuple[DataSplit, ...]]
            plan = self._plans.plan_state if position.is_state else self._plans.plan_changes
            self._planned = (key, _Plan(plan(snapshot), self._context.options.data_evolution_enabled))
        return self._planned[1]

    def _moves_keys(self, snapshot: Snapshot) -> bool:
        """Return whether keys can be in other buckets from a snapshot on, so that a batch must not contain both."""
        is_dynamic = self._context.table.bucket_mode is BucketMode.DYNAMIC
        return is_dynamic and snapshot.commit_kind is CommitKind.OVERWRITE

    def _changes_columns(self, snapshot: Snapshot) -> bool:
        if snapshot.schema_id <= self._context.schema.id:
            return False
        newer = load_schema(self._context.engine, self._context.paths, snapshot.schema_id)
        before, after = _describe_columns(self._context.schema), _describe_columns(newer)
        if set(self._columns) == set(before):  # all columns are read, so new ones would be missed
            return before != after
        return any(after.get(name) != before[name] for name in self._columns)

    def _schema_error(self, snapshot: Snapshot) -> InvalidRequest:
        newer = load_schema(self._context.engine, self._context.paths, snapshot.schema_id)
        before, after = _describe_columns(self._context.schema), _describe_columns(newer)
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        return InvalidRequest(
            f"The columns of table {self._context.table.table_name!r} changed in snapshot {snapshot.id}: "
            f"{', '.join(changed)}. All changes before it were read.",
            subject=next(iter(changed), None),
            hint="start the query again with the same checkpoint: it continues with the new columns",
        )


@frozen
class _Plan:
    """The splits of a snapshot; the files of one row are read together with data evolution."""

    splits: tuple[DataSplit, ...]
    has_evolution: bool

    def divide_for(self, position: StreamPosition) -> tuple[tuple[DataSplit, ...], str]:
        """Return the splits that a position counts, and the text that identifies them."""
        splits, identity = self.splits, identify_plan(self.splits)
        if not self.has_evolution and position.plan != identity:
            splits = tuple(part for split in splits for part in divide_by_file(split))
            identity = identify_plan(splits)
        check_plan(position, identity)
        return splits, identity


def _describe_columns(schema: TableSchema) -> dict[str, tuple[int, DataType]]:
    return {f.name: (f.id, f.type) for f in schema.fields}
