"""Choose the snapshot of a read, or the range of an incremental one, and the schema in which its rows are shown.

Invariant: at most one kind of time travel is requested. A read of an older snapshot uses the schema of that snapshot
with the current options. Source: `TimeTravelUtil`, `CoreOptions.StartupMode`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from attrs import evolve, frozen

from paimon.domain.changelog.incremental_range import (
    Between,
    Bounds,
    IncrementalOptions,
    get_follow_rules,
    parse_auto_tag_time,
    parse_incremental_options,
    parse_snapshot_range,
)
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.schema.rules.files import LATEST_DELTA, check_scan
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.domain.text_checks import show_value
from paimon.operations.metadata.schemas import explain_missing_table, load_schema
from paimon.operations.metadata.snapshots import (
    confirm_opened_table,
    find_expiry,
    latest_snapshot,
    load_snapshot,
    load_tag,
    snapshot_before,
    snapshot_ids,
    snapshot_of_watermark,
    snapshots,
    tag_names,
)
from paimon.operations.read.changes.history import find_first_id, list_history
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine


@frozen(hash=False)
class PinnedTable:
    """A table at one snapshot."""

    # with the schema in which rows are returned, perhaps not that of the snapshot
    table: TableDefinition
    # None for an empty table
    snapshot: Snapshot | None
    # read only files created at this time or later, by the clocks of their writers
    made_since_millis: int | None = None


def pin_snapshot(
    context: TableContext,
    snapshot: int | None = None,
    tag: str | None = None,
    timestamp: int | str | datetime | None = None,
) -> PinnedTable:
    """Choose the snapshot of a read by the arguments, otherwise by the table's `scan.*` options, otherwise the latest.

    `timestamp` selects the latest snapshot at or before this time; see `to_epoch_millis`. Raises `TableDropped` or
    `TableReplaced` if the table that was opened does not exist any more.
    """
    with explain_missing_table(context):
        pinned = _pin(context, snapshot, tag, timestamp)
    confirm_opened_table(context, pinned.snapshot)
    return pinned


def _pin(
    context: TableContext, snapshot: int | None, tag: str | None, timestamp: int | str | datetime | None
) -> PinnedTable:
    given = {"snapshot": snapshot, "tag": tag, "timestamp": timestamp}
    requested: dict[str, object] = {k: v for k, v in given.items() if v is not None}
    if not requested:
        check_scan(context.options)
        requested = _read_options(context.options.values)
    if len(requested) > 1:
        raise InvalidRequest(
            f"More than one kind of time travel: {', '.join(sorted(requested))}", hint="use exactly one of them"
        )
    if not requested:
        compacted = context.options.scan_mode == "compacted-full"
        found = find_newest_compacted(context) if compacted else latest_snapshot(context)
        return PinnedTable(context.table, found)
    ((way, value),) = requested.items()
    if way in _MADE_SINCE:
        return _pin_files_since(context, way, parse_integer(value, f"scan.{way}-millis"))
    travelled = _TRAVELS[way](context, value)
    return PinnedTable(_load_table_at_schema(context, travelled.schema_id), travelled)


def selects_newest(context: TableContext, *travel: object) -> bool:
    """Return whether neither the arguments of time travel nor options of the table select an older snapshot."""
    is_given = any(value is not None for value in travel)
    return not is_given and not _read_options(context.options.values) and context.options.scan_mode != "compacted-full"


def load_pinned_table(context: TableContext, snapshot_id: int | None, schema_id: int) -> PinnedTable:
    """Load a state that was chosen before, perhaps in another process; snapshot id None is the empty table.

    Rows are returned in schema `schema_id`. Raises `SnapshotExpired` if the snapshot has expired since.
    """
    table = _load_table_at_schema(context, schema_id)
    if snapshot_id is None:
        return PinnedTable(table, None)
    try:
        return PinnedTable(table, load_snapshot(context, snapshot_id))
    except NotFound as error:
        expired = find_expiry(context, snapshot_id, context.paths.snapshot(snapshot_id))
        if expired is None:
            raise
        raise expired from error


def find_newest_compacted(context: TableContext) -> Snapshot | None:
    """Return the newest snapshot of a (full, if options ask for them) compaction, else the latest."""
    options = context.options
    every = options.full_compaction_delta_commits
    at_intervals = every is not None or options.changelog_producer == "full-compaction"
    for snapshot in reversed(tuple(snapshots(context))):
        number = snapshot.commit_identifier
        if snapshot.commit_kind is CommitKind.COMPACT and not (
            at_intervals and number % (every or 1) and number != BATCH_COMMIT_IDENTIFIER
        ):
            return snapshot
    return latest_snapshot(context)


def _pin_files_since(context: TableContext, way: str, millis: int) -> PinnedTable:
    """Return the latest state restricted to files created since a time.

    With `scan.creation-time-millis`, return the first state after that time if an earlier one exists.
    """
    earlier = snapshot_before(context, millis - 1) if way == _CREATION else None
    if earlier is not None:
        later = [i for i in snapshot_ids(context) if i > earlier.id][:1]
        if later:
            found = load_snapshot(context, later[0])
            return PinnedTable(_load_table_at_schema(context, found.schema_id), found)
    local = millis + context.engine.clock.local_offset_millis(millis)
    return PinnedTable(context.table, latest_snapshot(context), local)


def _read_options(options: Mapping[str, str]) -> dict[str, object]:
    return {way: options[key] for key, way in _OPTION_WAYS.items() if key in options}


def _load_table_at_schema(context: TableContext, schema_id: int) -> TableDefinition:
    if schema_id == context.schema.id:
        return context.table
    old = load_schema(context.engine, context.paths, schema_id)
    return evolve(context.table, schema=evolve(old, options=context.schema.options))


def _find_by_id(context: TableContext, value: object) -> Snapshot:
    return load_snapshot(context, parse_integer(value, "snapshot"))


def _find_by_tag(context: TableContext, value: object) -> Snapshot:
    return load_tag(context, str(value)).snapshot


def _find_by_timestamp(context: TableContext, value: object) -> Snapshot:
    millis = to_epoch_millis(context.engine, value)
    found = snapshot_before(context, millis)
    if found is None:
        raise NotFound(
            "snapshot at or before",
            _format_instant(millis),
            hint="use a later time; the system table 'snapshots' lists all",
        )
    return found


def _find_by_watermark(context: TableContext, value: object) -> Snapshot:
    watermark = parse_integer(value, "scan.watermark")
    found = snapshot_of_watermark(context, watermark)
    if found is None:
        raise NotFound("snapshot with a watermark of at least", str(watermark), hint="use a smaller watermark")
    return found


def _find_by_version(context: TableContext, value: object) -> Snapshot:
    text = str(value)
    try:
        return load_tag(context, text).snapshot
    except NotFound:
        if text.startswith("watermark-"):
            return _find_by_watermark(context, text.removeprefix("watermark-"))
        if text.isdigit():
            return _find_by_id(context, text)
        raise


_TRAVELS: Mapping[str, Callable[[TableContext, object], Snapshot]] = {
    "snapshot": _find_by_id,
    "tag": _find_by_tag,
    "timestamp": _find_by_timestamp,
    "watermark": _find_by_watermark,
    "version": _find_by_version,
}

_OPTION_WAYS = {
    "scan.snapshot-id": "snapshot",
    "scan.tag-name": "tag",
    "scan.timestamp-millis": "timestamp",
    "scan.timestamp": "timestamp",
    "scan.watermark": "watermark",
    "scan.version": "version",
    "scan.file-creation-time-millis": "file-creation-time",
    "scan.creation-time-millis": "creation-time",
}
_MOST_DIGITS = 20
_CREATION = "creation-time"
_MADE_SINCE = ("file-creation-time", _CREATION)


def parse_integer(value: object, what: str) -> int:
    """Return an integer of any type, or of a text."""
    try:
        return int(str(value))
    except ValueError as error:
        raise InvalidRequest(f"{what} {show_value(value)} is not an integer", subject=what) from error


def to_epoch_millis(engine: Engine, value: object) -> int:
    """Convert milliseconds, or an ISO time that is local unless it has a zone, to epoch milliseconds."""
    if isinstance(value, datetime) and value == value:  # NaT of pandas is none
        moment = value
    else:
        if isinstance(value, int):
            return value
        text = str(value)
        if text.lstrip("-").isdigit() and len(text) <= _MOST_DIGITS:
            return int(text)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidRequest(
                f"Timestamp {text!r} is neither milliseconds since the epoch nor an ISO date and time",
                subject="timestamp",
                hint="use the form '2026-01-31 23:59:59'",
            ) from error
    if moment.tzinfo is not None:
        return round(moment.timestamp() * 1000)
    as_utc = round(moment.replace(tzinfo=UTC).timestamp() * 1000)
    return as_utc - engine.clock.local_offset_millis(as_utc)


def _format_instant(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")


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
