"""Tags that make themselves: by process time, by watermark, and after batch commits.

Law: everything follows from the tags and snapshots that are there, so whoever commits next goes on where the last one
stopped; an automatic tag that exists is left as it is. Source: `TagAutoCreation`, `TagBatchCreation`.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress

from paimon.domain.errors import NotFound
from paimon.domain.maintenance.retention.tags import AutoTags
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import NO_WATERMARK, Snapshot
from paimon.domain.snapshot.tag_periods import TagPeriods
from paimon.operations.maintain.refs.tags import create_tag, delete_tag, replace_tag
from paimon.operations.maintain.zones import local_millis
from paimon.operations.read.snapshots import (
    find_snapshot,
    find_tag,
    latest_snapshot,
    load_snapshot,
    snapshot_ids,
    tag_names,
    tags,
)
from paimon.ports.engine import Engine

_BATCH_PREFIX = "batch-write-"
_DAYS = TagPeriods.of(TableOptions.of({}))


def create_due_tags(engine: Engine, table: TableDefinition) -> list[str]:
    """Make the tags that are due by process time or watermark; answers their names."""
    if table.options.tag_automatic_creation not in ("process-time", "watermark"):
        return []
    rules = AutoTags.of(table.options)
    latest = latest_snapshot(engine, table.paths)
    auto = rules.auto(tag_names(engine, table.paths))
    newest, last = next(reversed(auto.items()), (None, None))
    made: list[str] = []
    if latest is None or not _is_due(engine, table, rules, latest, last):
        return made
    tagged = None if newest is None else find_tag(engine, table.paths, newest)
    after = 0 if tagged is None else tagged.snapshot.id
    ids = [i for i in snapshot_ids(engine, table.paths) if i > after]
    while (snapshot := _first_due(engine, table, rules, ids, last)) is not None:
        time = _time(engine, table, snapshot)
        assert time is not None
        last = rules.due_period(time, last)
        name = rules.periods.name_of(last)
        create_tag(engine, table, name, snapshot.id, exist_ok=True)
        made.append(name)
        ids = [i for i in ids if i > snapshot.id]
    _delete_surplus(engine, table, list(rules.auto(tag_names(engine, table.paths))))
    return made


def create_batch_tag(engine: Engine, table: TableDefinition, snapshot_id: int) -> list[str]:
    """Tag what a batch committed, under the option's name or that of the day, if the table asks for it; its name."""
    options = table.options
    if options.tag_automatic_creation != "batch":
        return []
    snapshot = load_snapshot(engine, table.paths, snapshot_id)
    time = local_millis(engine, snapshot.time_millis, options.get("sink.process-time-zone"))
    name = options.tag_batch_customized_name or _BATCH_PREFIX + _DAYS.name_of(time)
    if name in tag_names(engine, table.paths):
        replace_tag(engine, table, name, snapshot.id)
    else:
        create_tag(engine, table, name, snapshot.id)
    by_age = sorted(tags(engine, table.paths), key=lambda tag: (tag.snapshot.id, tag.name == name))
    _delete_surplus(engine, table, [tag.name for tag in by_age])
    return [name]


def _delete_surplus(engine: Engine, table: TableDefinition, oldest_first: list[str]) -> None:
    kept = table.options.tag_num_retained_max
    for name in oldest_first[: max(0, len(oldest_first) - kept)] if kept is not None else ():
        with suppress(NotFound):  # another process does the same
            delete_tag(engine, table, name)


def _first_due(
    engine: Engine, table: TableDefinition, rules: AutoTags, ids: list[int], last: int | None
) -> Snapshot | None:
    """The first snapshot that gets a tag: times rise with ids, so it is found by bisection."""

    def due(snapshot_id: int) -> bool:
        snapshot = find_snapshot(engine, table.paths, snapshot_id)
        return snapshot is not None and _is_due(engine, table, rules, snapshot, last)

    place = bisect_left(ids, True, key=due)
    return find_snapshot(engine, table.paths, ids[place]) if place < len(ids) else None


def _is_due(engine: Engine, table: TableDefinition, rules: AutoTags, snapshot: Snapshot, last: int | None) -> bool:
    time = _time(engine, table, snapshot)
    return time is not None and rules.is_due(time, last)


def _time(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> int | None:
    if table.options.tag_automatic_creation == "process-time":
        return local_millis(engine, snapshot.time_millis, table.options.get("sink.process-time-zone"))
    if snapshot.watermark is None or snapshot.watermark == NO_WATERMARK:
        return None
    return local_millis(engine, snapshot.watermark, table.options.get("sink.watermark-time-zone"))
