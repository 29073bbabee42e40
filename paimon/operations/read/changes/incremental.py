"""Find the range of an incremental batch read, and plan it.

Invariant: between two tags, and with mode `diff`, the difference of two states is read. Otherwise the changes of each
snapshot of the range are read, not merged, from the delta or the changelog. Source: `AbstractDataTableScan`,
`IncrementalDiffStartingScanner`, `IncrementalDeltaStartingScanner`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.changelog.incremental_range import (
    Between,
    Bounds,
    IncrementalOptions,
    get_follow_rules,
    parse_auto_tag_time,
    parse_incremental_options,
    parse_snapshot_range,
)
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import restrict_to_columns
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.scan_plan import Plan, ScanKind, ScanRequest
from paimon.domain.scan.state_difference import difference_splits
from paimon.domain.schema.rules.files import LATEST_DELTA, check_scan
from paimon.domain.schema.rules.scans import select_scanned_buckets
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.snapshots import latest_snapshot, load_snapshot, load_tag, snapshot_before, tag_names
from paimon.operations.read.changes.followed import plan_followed_splits
from paimon.operations.read.changes.history import find_first_id, list_history
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.time_travel import to_epoch_millis
from paimon.operations.table_context import TableContext


def find_incremental_range(context: TableContext, *travel: object) -> Between | None:
    """Return the range of the incremental read that the table's options request; None for an ordinary read.

    `travel` are the time travel arguments, None where not given. An incremental read cannot be combined with them.
    """
    wanted = parse_incremental_options(context.options)
    if context.options.scan_mode == LATEST_DELTA:
        return _find_latest_delta(context, travel)
    if wanted is None:
        return None
    if any(way is not None for way in travel):
        raise InvalidRequest(
            f"Option {wanted.bounds.value!r} cannot be combined with time travel",
            subject=wanted.bounds.value,
            hint="use one of them",
        )
    if wanted.bounds is Bounds.AUTO_TAG:
        return _up_to_auto_tag(context, wanted.end)
    if wanted.bounds is Bounds.TIMES:
        return _between_times(context, wanted)
    if {wanted.start, wanted.end} <= set(tag_names(context)):
        return _between_tags(context, wanted)
    return _between_ids(context, *parse_snapshot_range(wanted))


def _find_latest_delta(context: TableContext, travel: Sequence[object]) -> Between:
    """Return the rows that the latest snapshot appended; a compaction or an overwrite appends none."""
    check_scan(context.options)
    if any(way is not None for way in travel):
        raise InvalidRequest(
            f"Option 'scan.mode' {LATEST_DELTA!r} cannot be combined with time travel",
            subject="scan.mode",
            hint="use one of them",
        )
    latest = latest_snapshot(context)
    return Between(snapshots=() if latest is None else (latest,), shows_level_0=True)


def _between_ids(context: TableContext, start: int, end: int) -> Between:
    mode = context.options.incremental_between_scan_mode
    if mode != "diff":
        rules = get_follow_rules(mode, context.options.changelog_producer)
        return Between(snapshots=list_history(context, start, end), rules=rules)
    if start == end:
        return Between()
    earlier = load_snapshot(context, start) if start > 0 else None
    return Between(earlier, load_snapshot(context, end), difference=True)


def _between_tags(context: TableContext, wanted: IncrementalOptions) -> Between:
    start, end = (load_tag(context, name).snapshot for name in (wanted.start, wanted.end))
    if start.id > end.id:
        raise InvalidRequest(
            f"Tag {wanted.end!r} is older than tag {wanted.start!r}", subject=wanted.bounds.value, hint="swap them"
        )
    if context.options.incremental_between_tag_to_snapshot:
        return _between_ids(context, start.id, end.id)
    return Between(start, end, difference=True)


def _between_times(context: TableContext, wanted: IncrementalOptions) -> Between:
    start, end = (to_epoch_millis(context.engine, text) for text in (wanted.start, wanted.end))
    if start > end:
        raise InvalidRequest(
            f"Option {wanted.bounds.value!r} ends at {wanted.end!r}, before its start {wanted.start!r}",
            subject=wanted.bounds.value,
            hint="swap the two times",
        )
    last = snapshot_before(context, end)
    if last is None:
        return Between()
    first = snapshot_before(context, start)
    return _between_ids(context, find_first_id(context) - 1 if first is None else first.id, last.id)


def _up_to_auto_tag(context: TableContext, name: str) -> Between:
    time = parse_auto_tag_time(name, context.options)
    if time is None:
        raise InvalidRequest(
            f"Tag {name!r} is not the name of an automatic tag",
            subject=Bounds.AUTO_TAG.value,
            hint="give a tag that 'tag.automatic-creation' created, such as '2026-01-31'",
        )
    end = load_tag(context, name).snapshot
    times = {other: parse_auto_tag_time(other, context.options) for other in tag_names(context)}
    earlier = {other: tag_time for other, tag_time in times.items() if tag_time is not None and tag_time < time}
    if not earlier:
        return Between()
    previous = load_tag(context, max(earlier, key=lambda other: earlier[other]))
    return Between(previous.snapshot, end, difference=True)


def plan_incremental_read(context: TableContext, read: Between, predicate: Predicate | None) -> Plan:
    """Plan an incremental read; the snapshot of the plan is the last one of the range.

    The predicate skips only files that cannot contain matching rows.
    """
    last = read.end or (read.snapshots[-1] if read.snapshots else None)
    if not read.difference:
        # Batch reads skip level 0 of a range as they do of a state; only stream scans return it.
        lowest = 1 if ReadRules.of(context.table, ScanKind.ALL).hides_level_0 and not read.shows_level_0 else 0
        splits = plan_followed_splits(context, read.snapshots, predicate, read.rules, lowest)
        # Batch reads see postponed rows after the compaction that moves them to their buckets.
        return Plan(last, context.schema.id, tuple(split for split in splits if split.bucket >= 0))
    # Only by key and partition: if one version of a row matches, the other is needed for the comparison.
    keyed = bool(context.schema.primary_keys)
    stable = context.schema.primary_keys if keyed else context.schema.names
    skip = None if predicate is None else restrict_to_columns(predicate, stable)
    before, after = (_plan_state(context, snapshot, skip) for snapshot in (read.start, read.end))
    return Plan(last, context.schema.id, difference_splits(before.splits, after.splits, keyed))


def _plan_state(context: TableContext, snapshot: Snapshot | None, predicate: Predicate | None) -> Plan:
    return plan_scan(context, ScanRequest(snapshot, predicate, select_scanned_buckets(context.schema, context.options)))
