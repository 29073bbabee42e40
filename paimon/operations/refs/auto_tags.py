"""Create automatic tags: by process time, by watermark, and after batch commits.

Invariant: the tags that are due follow only from the existing tags and snapshots, so each commit continues where the
last one stopped. An automatic tag that exists is not changed.

Source: `TagAutoCreation`, `TagBatchCreation`.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress

from paimon.domain.errors import NotFound
from paimon.domain.maintenance.tag_expiry import AutoTags
from paimon.domain.options.table_options import TableOptions
from paimon.domain.snapshot.snapshot import NO_WATERMARK, Snapshot
from paimon.domain.snapshot.tag_periods import TagPeriods
from paimon.operations.compact.zones import to_local_millis
from paimon.operations.metadata.snapshots import (
    find_snapshot,
    find_tag,
    latest_snapshot,
    load_snapshot,
    snapshot_ids,
    tag_names,
    tags,
)
from paimon.operations.refs.tags import create_tag, delete_tag, replace_tag
from paimon.operations.table_context import TableContext

_BATCH_PREFIX = "batch-write-"
_DAYS = TagPeriods.of(TableOptions.of({}))


def create_due_tags(context: TableContext) -> None:
    """Create the tags that are due by process time or watermark."""
    if context.options.tag_automatic_creation not in ("process-time", "watermark"):
        return
    rules = AutoTags.of(context.options)
    latest = latest_snapshot(context)
    auto = rules.select_automatic(tag_names(context))
    newest, last = next(reversed(auto.items()), (None, None))
    if latest is None or not _is_due(context, rules, latest, last):
        return
    tagged = None if newest is None else find_tag(context, newest)
    after = 0 if tagged is None else tagged.snapshot.id
    ids = [i for i in snapshot_ids(context) if i > after]
    while (snapshot := _find_first_due(context, rules, ids, last)) is not None:
        time = _local_time(context, snapshot)
        assert time is not None
        last = rules.due_period(time, last)
        create_tag(context, rules.periods.format_name(last), snapshot.id, exist_ok=True)
        ids = [i for i in ids if i > snapshot.id]
    _delete_surplus(context, list(rules.select_automatic(tag_names(context))))


def create_batch_tag(context: TableContext, snapshot_id: int) -> None:
    """Tag the snapshot of a batch commit, if `tag.automatic-creation` is `batch`.

    The option `tag.batch.customized-name` or the day of the snapshot names the tag.
    """
    options = context.options
    if options.tag_automatic_creation != "batch":
        return
    snapshot = load_snapshot(context, snapshot_id)
    time = to_local_millis(context.engine, snapshot.time_millis, options.get("sink.process-time-zone"))
    name = options.tag_batch_customized_name or _BATCH_PREFIX + _DAYS.format_name(time)
    if name in tag_names(context):
        replace_tag(context, name, snapshot.id)
    else:
        create_tag(context, name, snapshot.id)
    by_age = sorted(tags(context), key=lambda tag: (tag.snapshot.id, tag.name == name))
    _delete_surplus(context, [tag.name for tag in by_age])


def _delete_surplus(context: TableContext, oldest_first: list[str]) -> None:
    """Delete the oldest tags beyond the number that `tag.num-retained-max` allows."""
    max_retained = context.options.tag_num_retained_max
    for name in oldest_first[: max(0, len(oldest_first) - max_retained)] if max_retained is not None else ():
        with suppress(NotFound):  # another process does the same
            delete_tag(context, name)


def _find_first_due(context: TableContext, rules: AutoTags, ids: list[int], last: int | None) -> Snapshot | None:
    """Return the first snapshot that gets a tag, by bisection, because times ascend with ids."""

    def is_due(snapshot_id: int) -> bool:
        """Return whether the snapshot exists and its period needs a tag."""
        snapshot = find_snapshot(context, snapshot_id)
        return snapshot is not None and _is_due(context, rules, snapshot, last)

    position = bisect_left(ids, True, key=is_due)
    return find_snapshot(context, ids[position]) if position < len(ids) else None


def _is_due(context: TableContext, rules: AutoTags, snapshot: Snapshot, last: int | None) -> bool:
    time = _local_time(context, snapshot)
    return time is not None and rules.is_due(time, last)


def _local_time(context: TableContext, snapshot: Snapshot) -> int | None:
    """Return the local time of a snapshot that decides its period; None without a watermark."""
    if context.options.tag_automatic_creation == "process-time":
        return to_local_millis(context.engine, snapshot.time_millis, context.options.get("sink.process-time-zone"))
    if snapshot.watermark is None or snapshot.watermark == NO_WATERMARK:
        return None
    return to_local_millis(context.engine, snapshot.watermark, context.options.get("sink.watermark-time-zone"))
