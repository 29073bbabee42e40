"""Incremental reads of a batch scan: which snapshots or tags they lie between, and what there is to read.

Law: between two tags (and wherever the mode is diff) the difference of two states is read; otherwise the changes of
each snapshot in between, unmerged, by the delta or the changelog. Source: `AbstractDataTableScan`,
`IncrementalDiffStartingScanner`, `IncrementalDeltaStartingScanner`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.changelog.between import Asked, Between, Bounds, asked, auto_tag_time, rules_of, snapshot_range
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import only_columns
from paimon.domain.scan.plan import Plan, ScanKind, ScanRequest
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.state_difference import difference_splits
from paimon.domain.schema.rules.files import LATEST_DELTA, check_scan
from paimon.domain.schema.rules.scans import scanned_buckets
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.changes.followed import followed_splits
from paimon.operations.read.changes.history import first_id, history
from paimon.operations.read.plan import plan
from paimon.operations.read.snapshots import latest_snapshot, load_snapshot, load_tag, snapshot_before, tag_names
from paimon.operations.read.time_travel import epoch_millis
from paimon.ports.engine import Engine


def between(engine: Engine, table: TableDefinition, *travel: object) -> Between | None:
    """The incremental read that the table's options ask for; None for an ordinary one.

    Raises
    ------
    InvalidRequest
        The options make no range.
    NotFound
        A snapshot or tag of the range does not exist.
    """
    wanted = asked(table.options)
    if table.options.scan_mode == LATEST_DELTA:
        return _latest_delta(engine, table, travel)
    if wanted is None:
        return None
    if any(way is not None for way in travel):
        raise InvalidRequest(
            f"{wanted.bounds.value} does not go with time travel", subject=wanted.bounds.value, hint="give one of them"
        )
    if wanted.bounds is Bounds.AUTO_TAG:
        return _to_auto_tag(engine, table, wanted.end)
    if wanted.bounds is Bounds.TIMES:
        return _between_times(engine, table, wanted)
    if {wanted.start, wanted.end} <= set(tag_names(engine, table.paths)):
        return _between_tags(engine, table, wanted)
    return _between_ids(engine, table, *snapshot_range(wanted))


def _latest_delta(engine: Engine, table: TableDefinition, travel: Sequence[object]) -> Between:
    """The rows that the latest snapshot appended; a compaction or an overwrite appended none."""
    check_scan(table.options)
    if any(way is not None for way in travel):
        raise InvalidRequest(
            f"scan.mode {LATEST_DELTA!r} does not go with time travel", subject="scan.mode", hint="give one of them"
        )
    latest = latest_snapshot(engine, table.paths)
    return Between(snapshots=() if latest is None else (latest,), shows_level_0=True)


def _between_ids(engine: Engine, table: TableDefinition, start: int, end: int) -> Between:
    mode = table.options.incremental_between_scan_mode
    if mode != "diff":
        rules = rules_of(mode, table.options.changelog_producer)
        return Between(snapshots=history(engine, table.paths, start, end), rules=rules)
    if start == end:
        return Between()
    earlier = load_snapshot(engine, table.paths, start) if start > 0 else None
    return Between(earlier, load_snapshot(engine, table.paths, end), difference=True)


def _between_tags(engine: Engine, table: TableDefinition, wanted: Asked) -> Between:
    start, end = (load_tag(engine, table.paths, name).snapshot for name in (wanted.start, wanted.end))
    if start.id > end.id:
        raise InvalidRequest(
            f"tag {wanted.end!r} is older than tag {wanted.start!r}", subject=wanted.bounds.value, hint="swap them"
        )
    if table.options.incremental_between_tag_to_snapshot:
        return _between_ids(engine, table, start.id, end.id)
    return Between(start, end, difference=True)


def _between_times(engine: Engine, table: TableDefinition, wanted: Asked) -> Between:
    start, end = (epoch_millis(engine, text) for text in (wanted.start, wanted.end))
    if start > end:
        raise InvalidRequest(f"{wanted.bounds.value} ends before its start", subject=wanted.bounds.value)
    last = snapshot_before(engine, table.paths, end)
    if last is None:
        return Between()
    first = snapshot_before(engine, table.paths, start)
    return _between_ids(engine, table, first_id(engine, table.paths) - 1 if first is None else first.id, last.id)


def _to_auto_tag(engine: Engine, table: TableDefinition, name: str) -> Between:
    time = auto_tag_time(name, table.options)
    if time is None:
        raise InvalidRequest(f"{name!r} is no name of an automatic tag", subject=Bounds.AUTO_TAG.value)
    end = load_tag(engine, table.paths, name).snapshot
    times = {other: auto_tag_time(other, table.options) for other in tag_names(engine, table.paths)}
    earlier = {other: at for other, at in times.items() if at is not None and at < time}
    if not earlier:
        return Between()
    previous = load_tag(engine, table.paths, max(earlier, key=lambda other: earlier[other]))
    return Between(previous.snapshot, end, difference=True)


def plan_between(engine: Engine, table: TableDefinition, read: Between, predicate: Predicate | None) -> Plan:
    """What an incremental read has to read."""
    last = read.end or (read.snapshots[-1] if read.snapshots else None)
    if not read.difference:
        # What batch reads hide of a state they hide of a range, too: a stream sees it.
        lowest = 1 if ReadRules.of(table, ScanKind.ALL).hides_level_0 and not read.shows_level_0 else 0
        splits = followed_splits(engine, table, read.snapshots, predicate, read.rules, lowest)
        return Plan(last, table.schema.id, splits)
    # Only by key and partition: of a changed row one side alone may match, and still both must be compared.
    keyed = bool(table.schema.primary_keys)
    stable = table.schema.primary_keys if keyed else table.schema.names
    skip = None if predicate is None else only_columns(predicate, stable)
    before, after = (_state(engine, table, snapshot, skip) for snapshot in (read.start, read.end))
    return Plan(last, table.schema.id, difference_splits(before.splits, after.splits, keyed))


def _state(engine: Engine, table: TableDefinition, snapshot: Snapshot | None, predicate: Predicate | None) -> Plan:
    return plan(engine, table, ScanRequest(snapshot, predicate, scanned_buckets(table.schema, table.options)))
