"""Which snapshot a read means, and at which schema.

Law: at most one way of travelling is given; a travelled read takes the schema of its snapshot with today's options.
Source: `TimeTravelUtil`, `CoreOptions.StartupMode`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.schema.rules.files import check_scan
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon.operations.read.schemas import load_schema
from paimon.operations.read.snapshots import (
    latest_snapshot,
    load_snapshot,
    load_tag,
    snapshot_before,
    snapshot_ids,
    snapshot_of_watermark,
    snapshots,
)
from paimon.ports.engine import Engine


@frozen(hash=False)
class PinnedTable:
    """A table at one snapshot (None: an empty table) and the schema that its rows are shown in.

    `made_since_millis`: only files made since then are meant, by the wall clock of their writers.
    """

    table: TableDefinition
    snapshot: Snapshot | None
    made_since_millis: int | None = None


def pin(
    engine: Engine,
    table: TableDefinition,
    snapshot: int | None = None,
    tag: str | None = None,
    timestamp: int | str | datetime | None = None,
) -> PinnedTable:
    """The table at the snapshot that the arguments, else the table's `scan.*` options, name; else the latest.

    Raises
    ------
    InvalidRequest
        More than one way of travelling, or one that makes no sense.
    NotFound
        No such snapshot or tag.
    """
    given = {"snapshot": snapshot, "tag": tag, "timestamp": timestamp}
    asked: dict[str, object] = {k: v for k, v in given.items() if v is not None}
    if not asked:
        check_scan(table.options)
        asked = _from_options(table.options.values)
    if len(asked) > 1:
        raise InvalidRequest(
            f"more than one way of time travel: {', '.join(sorted(asked))}", hint="give exactly one of them"
        )
    if not asked:
        compacted = table.options.scan_mode == "compacted-full"
        found = newest_compacted(engine, table) if compacted else latest_snapshot(engine, table.paths)
        return PinnedTable(table, found)
    ((way, value),) = asked.items()
    if way in _MADE_SINCE:
        return _made_since(engine, table, way, _whole_number(value, f"scan.{way}-millis"))
    travelled = _TRAVELS[way](engine, table, value)
    return PinnedTable(_at_schema(engine, table, travelled.schema_id), travelled)


def pinned_at(engine: Engine, table: TableDefinition, snapshot_id: int | None, schema_id: int) -> PinnedTable:
    """A state that was pinned before, perhaps in another process; no snapshot: the empty table.

    Raises
    ------
    NotFound
        The snapshot expired meanwhile.
    """
    found = None if snapshot_id is None else load_snapshot(engine, table.paths, snapshot_id)
    return PinnedTable(_at_schema(engine, table, schema_id), found)


def newest_compacted(engine: Engine, table: TableDefinition) -> Snapshot | None:
    """The newest snapshot of a compaction, of a full one where these are made at intervals; else the latest."""
    options = table.options
    every = options.full_compaction_delta_commits
    at_intervals = every is not None or options.changelog_producer == "full-compaction"
    for snapshot in reversed(tuple(snapshots(engine, table.paths))):
        number = snapshot.commit_identifier
        if snapshot.commit_kind is CommitKind.COMPACT and not (
            at_intervals and number % (every or 1) and number != BATCH_COMMIT_IDENTIFIER
        ):
            return snapshot
    return latest_snapshot(engine, table.paths)


def _made_since(engine: Engine, table: TableDefinition, way: str, millis: int) -> PinnedTable:
    """The latest state's files made since a time; by `scan.creation-time-millis` rather the first state after it."""
    earlier = snapshot_before(engine, table.paths, millis - 1) if way == _CREATION else None
    if earlier is not None:
        later = [i for i in snapshot_ids(engine, table.paths) if i > earlier.id][:1]
        if later:
            found = load_snapshot(engine, table.paths, later[0])
            return PinnedTable(_at_schema(engine, table, found.schema_id), found)
    local = millis + engine.clock.local_offset_millis(millis)
    return PinnedTable(table, latest_snapshot(engine, table.paths), local)


def _from_options(options: Mapping[str, str]) -> dict[str, object]:
    return {way: options[key] for key, way in _OPTION_WAYS.items() if key in options}


def _at_schema(engine: Engine, table: TableDefinition, schema_id: int) -> TableDefinition:
    if schema_id == table.schema.id:
        return table
    old = load_schema(engine, table.paths, schema_id)
    return evolve(table, schema=evolve(old, options=table.schema.options))


def _by_id(engine: Engine, table: TableDefinition, value: object) -> Snapshot:
    return load_snapshot(engine, table.paths, _whole_number(value, "snapshot"))


def _by_tag(engine: Engine, table: TableDefinition, value: object) -> Snapshot:
    return load_tag(engine, table.paths, str(value)).snapshot


def _by_timestamp(engine: Engine, table: TableDefinition, value: object) -> Snapshot:
    millis = epoch_millis(engine, value)
    found = snapshot_before(engine, table.paths, millis)
    if found is None:
        raise NotFound("snapshot at or before", _instant(millis), hint="ask for a later time; see table.snapshots()")
    return found


def _by_watermark(engine: Engine, table: TableDefinition, value: object) -> Snapshot:
    watermark = _whole_number(value, "scan.watermark")
    found = snapshot_of_watermark(engine, table.paths, watermark)
    if found is None:
        raise NotFound("snapshot with a watermark of at least", str(watermark))
    return found


def _by_version(engine: Engine, table: TableDefinition, value: object) -> Snapshot:
    text = str(value)
    try:
        return load_tag(engine, table.paths, text).snapshot
    except NotFound:
        if text.startswith("watermark-"):
            return _by_watermark(engine, table, text.removeprefix("watermark-"))
        if text.isdigit():
            return _by_id(engine, table, text)
        raise


_TRAVELS: Mapping[str, Callable[[Engine, TableDefinition, object], Snapshot]] = {
    "snapshot": _by_id,
    "tag": _by_tag,
    "timestamp": _by_timestamp,
    "watermark": _by_watermark,
    "version": _by_version,
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
_CREATION = "creation-time"
_MADE_SINCE = ("file-creation-time", _CREATION)


def _whole_number(value: object, what: str) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise InvalidRequest(f"{what} {value!r} is not a whole number", subject=what) from error


def epoch_millis(engine: Engine, value: object) -> int:
    """A time that a person gave (milliseconds, ISO text in local time unless it says otherwise, datetime)."""
    if isinstance(value, datetime):
        moment = value
    else:
        text = str(value)
        if text.lstrip("-").isdigit():
            return int(text)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidRequest(
                f"timestamp {text!r} is neither epoch milliseconds nor ISO date and time",
                subject="timestamp",
                hint="write it as '2026-01-31 23:59:59'",
            ) from error
    if moment.tzinfo is not None:
        return round(moment.timestamp() * 1000)
    as_utc = round(moment.replace(tzinfo=UTC).timestamp() * 1000)
    return as_utc - engine.clock.local_offset_millis(as_utc)


def _instant(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")
