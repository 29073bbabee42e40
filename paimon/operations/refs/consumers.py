"""Set and delete consumers.

Invariant: the smallest next snapshot of all consumers and all later ones do not expire. A file that cannot be read is
an error, and never means that there is no consumer.

Source: `ConsumerManager`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest, NotFound, did_you_mean
from paimon.domain.json_text import dump_json
from paimon.domain.paths import STATE_SUFFIX
from paimon.domain.text_checks import match_whole
from paimon.operations.metadata.consumers import consumer_name, consumer_path, consumer_statuses
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import earliest_snapshot_id, latest_snapshot
from paimon.operations.metadata.storage_time import OlderThan, find_newest_metadata_millis, read_storage_millis
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import finished_once_begun
from paimon.ports.files import FileStatus
from paimon.ports.observer import report_event


@finished_once_begun()
@on_same_table
def reset_consumer(context: TableContext, name: str, next_snapshot: int) -> None:
    """Set the next snapshot of a consumer, which may be the one after the newest; create the consumer if necessary.

    Raises `NotFound` if the snapshot expired during the call; the consumer file was written then.
    """
    latest = latest_snapshot(context)
    last = latest.id + 1 if latest else 1
    first = earliest_snapshot_id(context) or 1
    if not isinstance(next_snapshot, int) or not first <= next_snapshot <= last:
        raise InvalidRequest(
            f"Consumer {name!r} cannot start at snapshot {next_snapshot}",
            subject=name,
            hint=f"give a snapshot id from {first} to {last}",
        )
    record_consumer(context, name, next_snapshot)
    # Expiry reads the consumers and then deletes snapshots: a reset between the two must be reported.
    if next_snapshot < last and context.files.status(context.paths.snapshot(next_snapshot)) is None:
        raise NotFound(
            "snapshot", str(next_snapshot), hint=f"it expired during the call; set consumer {name!r} to a later one"
        )


def record_consumer(context: TableContext, name: str, next_snapshot: int) -> None:
    """Write the id of the snapshot that a consumer reads next, in place of an earlier value."""
    with context.files.create(consumer_path(context.paths, name)) as file:
        file.write(dump_json({"nextSnapshot": next_snapshot}))


def forget_consumer(context: TableContext, name: str) -> None:
    """Delete the file of a consumer, if it exists."""
    context.files.delete([consumer_path(context.paths, name)])


@finished_once_begun()
@on_same_table
def delete_consumer(context: TableContext, name: str) -> None:
    """Delete a consumer and its state; if there is none, the hint of `NotFound` names the most similar one."""
    path = consumer_path(context.paths, name)
    if context.files.status(path) is None:
        known = [consumer_name(s) for s in consumer_statuses(context)]
        raise NotFound("consumer", name, hint=did_you_mean(name, known) or "the table has no consumers")
    context.files.delete([path, path + STATE_SUFFIX])


@finished_once_begun()
@on_same_table
def clear_consumers(context: TableContext, including: str = ".*", excluding: str | None = None) -> list[str]:
    """Delete the consumers whose whole name matches the regular expression `including` and not `excluding`."""
    found = consumer_statuses(context)
    names = pa.array([consumer_name(status) for status in found], pa.string())
    wanted = match_whole(names, including, "including")
    if excluding is not None:
        wanted = pc.and_not(wanted, match_whole(names, excluding, "excluding"))
    matching = [status for status, is_wanted in zip(found, wanted.to_pylist(), strict=True) if is_wanted]
    context.files.delete([s.path for s in matching])
    return [consumer_name(s) for s in matching]


def expire_consumers(context: TableContext, older_than: OlderThan) -> list[str]:
    """Delete the consumers whose file is old by the storage's clock, and return their names."""
    found = consumer_statuses(context)
    old = _select_old(found, older_than, read_storage_millis(context)) if found else []
    context.files.delete([s.path for s in old])
    if old:
        report_event(context.engine.observer, "expiry", context.table.location, kind="consumer", deleted=len(old))
    return [consumer_name(s) for s in old]


def find_old_consumers(context: TableContext, older_than: OlderThan) -> list[FileStatus]:
    """Return the files of the consumers that `expire_consumers` would delete; nothing is changed."""
    found = consumer_statuses(context)
    return _select_old(found, older_than, find_newest_metadata_millis(context)) if found else []


def _select_old(found: Sequence[FileStatus], older_than: OlderThan, now_millis: int | None) -> list[FileStatus]:
    """Return the files that are old; without the present time of the storage none is."""
    if now_millis is None:
        return []
    before = older_than.to_moment_millis(now_millis)
    return [s for s in found if s.modified_millis is not None and s.modified_millis < before]
