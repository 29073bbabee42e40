"""Consumers: who follows the table under a name, and which snapshot each reads next.

Law: snapshots from the smallest of these on do not expire. A file that cannot be read is an error, never "no consumer".
Source: `ConsumerManager`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, did_you_mean
from paimon.domain.json_text import DETAIL_FILE, dump_json, load_object
from paimon.domain.maintenance.retention.expiry import NOT_HELD
from paimon.domain.paths import TablePaths, join, segment
from paimon.operations.read.snapshots import earliest_snapshot_id, latest_snapshot
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

_PREFIX = "consumer-"
STATE_HOLDER = ".state"
"""What follows a consumer's name in that of a second one, which keeps a state that the first needs besides."""
_TRIES, _WAIT_MILLIS = 5, 100
"""Java writes these files in place, so a reader may see half of one for a moment."""


def consumers(engine: Engine, paths: TablePaths) -> Mapping[str, int]:
    """The snapshot that each consumer reads next, by name."""
    found = {_name(s): _next_snapshot(engine, s.path) for s in _files(engine, paths)}
    return {name: next_id for name, next_id in found.items() if next_id is not None}


def held_from(engine: Engine, paths: TablePaths) -> int:
    """The smallest snapshot that a consumer reads next; `NOT_HELD` without consumers."""
    return min(consumers(engine, paths).values(), default=NOT_HELD)


def reset_consumer(engine: Engine, paths: TablePaths, name: str, next_snapshot: int) -> None:
    """Let a consumer, new or not, go on from this snapshot.

    Raises
    ------
    InvalidRequest
        The snapshot has expired, or lies beyond the next one to come.
    """
    latest = latest_snapshot(engine, paths)
    last = latest.id + 1 if latest else 1
    first = earliest_snapshot_id(engine, paths) or 1
    if not isinstance(next_snapshot, int) or not first <= next_snapshot <= last:
        raise InvalidRequest(
            f"consumer {name!r} cannot go on from snapshot {next_snapshot}",
            subject=name,
            hint=f"take one from {first} to {last}",
        )
    record_consumer(engine, paths, name, next_snapshot)
    # Expiry looks for consumers and then removes snapshots: whoever comes in between must learn of it.
    if next_snapshot < last and engine.files.status(paths.snapshot(next_snapshot)) is None:
        raise NotFound("snapshot", str(next_snapshot), hint=f"it expired just now; consumer {name!r} waits for it")


def consumer(engine: Engine, paths: TablePaths, name: str) -> int | None:
    """The snapshot that a consumer reads next; None where there is none of this name."""
    return _next_snapshot(engine, _path(paths, name))


def consumer_files(engine: Engine, paths: TablePaths) -> Mapping[str, str]:
    """The file of each consumer, by name."""
    return {_name(status): status.path for status in _files(engine, paths)}


def record_consumer(engine: Engine, paths: TablePaths, name: str, next_snapshot: int) -> None:
    """Write how far a consumer has come, whatever was said of it before."""
    with engine.files.create(_path(paths, name)) as file:
        file.write(dump_json({"nextSnapshot": next_snapshot}))


def forget_consumer(engine: Engine, paths: TablePaths, name: str) -> None:
    """Remove a consumer, if it is there."""
    engine.files.delete([_path(paths, name)])


def delete_consumer(engine: Engine, paths: TablePaths, name: str) -> None:
    """Forget a consumer; NotFound where there is none of this name."""
    path = _path(paths, name)
    if engine.files.status(path) is None:
        known = [_name(s) for s in _files(engine, paths)]
        raise NotFound("consumer", name, hint=did_you_mean(name, known))
    engine.files.delete([path, path + STATE_HOLDER])


def clear_consumers(
    engine: Engine, paths: TablePaths, including: str = ".*", excluding: str | None = None
) -> list[str]:
    """Forget the consumers whose whole name matches one pattern and not the other; answers their names."""
    try:
        wanted, spared = re.compile(including), None if excluding is None else re.compile(excluding)
    except re.error as error:
        raise InvalidRequest(f"{error.pattern!r} is no regular expression: {error}", subject="including") from error
    gone = [s for s in _files(engine, paths) if wanted.fullmatch(_name(s))]
    gone = [s for s in gone if spared is None or not spared.fullmatch(_name(s))]
    engine.files.delete([s.path for s in gone])
    return [_name(s) for s in gone]


def expire_consumers(engine: Engine, paths: TablePaths, older_than_millis: int) -> list[str]:
    """Forget the consumers that made no progress since a time; answers their names."""
    old = [s for s in _files(engine, paths) if s.modified_millis is not None and s.modified_millis < older_than_millis]
    engine.files.delete([s.path for s in old])
    return [_name(s) for s in old]


def _files(engine: Engine, paths: TablePaths) -> list[FileStatus]:
    found = engine.files.list(paths.consumers)
    return [s for s in found if s.name.startswith(_PREFIX) and not s.is_directory]


def _name(status: FileStatus) -> str:
    return status.name.removeprefix(_PREFIX)


def _path(paths: TablePaths, name: str) -> str:
    return join(paths.consumers, _PREFIX + segment(name, "consumer name"))


def _next_snapshot(engine: Engine, path: str) -> int | None:
    for attempt in range(_TRIES):
        try:
            return load_object(engine.files.read(path, DETAIL_FILE.max_bytes), path).integer("nextSnapshot")
        except NotFound:
            return None  # forgotten since it was listed
        except CorruptTable:
            if attempt == _TRIES - 1:
                raise
            engine.clock.sleep_millis(_WAIT_MILLIS)
    raise AssertionError
