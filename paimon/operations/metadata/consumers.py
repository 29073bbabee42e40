"""Read the consumers of a table, and the next snapshot of each.

Invariant: the smallest of these snapshots and all later ones do not expire. A file that cannot be read is an error, and
never means that there is no consumer.

Source: `ConsumerManager`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.json_text import DETAIL_FILE, load_object
from paimon.domain.maintenance.snapshot_expiry import NOT_REFERENCED
from paimon.domain.paths import TablePaths, check_segment, join_path
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

_PREFIX = "consumer-"
_TRIES, _WAIT_MILLIS = 5, 100
"""Java writes these files in place, so a reader may see half of one for a moment."""


def read_consumers(context: TableContext) -> Mapping[str, int]:
    """Return the next snapshot id of each consumer, by consumer name."""
    found = {consumer_name(s): _next_snapshot(context.engine, s.path) for s in consumer_statuses(context)}
    return {name: next_id for name, next_id in found.items() if next_id is not None}


def earliest_consumer_snapshot(context: TableContext) -> int:
    """Return the smallest next snapshot id of all consumers; `NOT_REFERENCED` without consumers."""
    return min(read_consumers(context).values(), default=NOT_REFERENCED)


def read_consumer(context: TableContext, name: str) -> int | None:
    """Return the next snapshot id of a consumer; None if the consumer does not exist."""
    return _next_snapshot(context.engine, consumer_path(context.paths, name))


def list_consumer_files(context: TableContext) -> Mapping[str, str]:
    """Return the path of each consumer file, by consumer name."""
    return {consumer_name(status): status.path for status in consumer_statuses(context)}


def consumer_statuses(context: TableContext) -> list[FileStatus]:
    """Return the status of each consumer file."""
    found = context.files.list(context.paths.consumers)
    return [s for s in found if s.name.startswith(_PREFIX) and not s.is_directory]


def consumer_name(status: FileStatus) -> str:
    """Return the name of the consumer that a file belongs to."""
    return status.name.removeprefix(_PREFIX)


def consumer_path(paths: TablePaths, name: str) -> str:
    """Return the path of the file of a consumer."""
    return join_path(paths.consumers, _PREFIX + check_segment(name, "consumer name"))


def _next_snapshot(engine: Engine, path: str) -> int | None:
    """Read the next snapshot id of a consumer file, with retries, because Java writes it in place."""
    for attempt in range(_TRIES):
        try:
            return load_object(engine.files.read(path, DETAIL_FILE.max_bytes), path).integer("nextSnapshot")
        except NotFound:
            return None  # deleted after the listing
        except CorruptTable:
            if attempt == _TRIES - 1:
                raise
            engine.clock.sleep_millis(_WAIT_MILLIS)
    raise AssertionError
