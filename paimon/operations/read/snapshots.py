"""Finding and reading snapshots and tags.

Law: a hint is only a place to start: it may be missing, stale, wrong or ahead, and the answer is the same, only
slower. Files may vanish while we look (expiry goes upwards, rollback downwards), so a listed snapshot that is gone is
no error. Snapshots are never cached, because ids are used again after a rollback. Source: `SnapshotManager`,
`HintFileUtils`, `TagManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paimon.domain.errors import CorruptTable, NotFound, StorageError, did_you_mean
from paimon.domain.json_text import HINT_FILE, SNAPSHOT_FILE
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.json import parse_hint, snapshot_from_json, tag_from_json
from paimon.domain.snapshot.snapshot import NO_WATERMARK, Snapshot, Tag
from paimon.ports.engine import Engine

_WALK = 64
_TRIES = 3
_PREFIX = "snapshot-"
_TAG_PREFIX = "tag-"
"""What Java stores for a watermark that is not there."""


def load_snapshot(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot:
    """The snapshot of this id.

    Raises
    ------
    NotFound
        It does not exist (any more); the hint names the available range.
    CorruptTable
        The file is truncated or holds another id.
    """
    found = find_snapshot(engine, paths, snapshot_id)
    if found is None:
        raise NotFound("snapshot", str(snapshot_id), hint=_available(snapshot_ids(engine, paths)))
    return found


def find_snapshot(engine: Engine, paths: TablePaths, snapshot_id: int) -> Snapshot | None:
    """The snapshot of this id; None where its file does not exist."""
    return stored_snapshot(engine, paths.snapshot(snapshot_id), snapshot_id)


def stored_snapshot(engine: Engine, path: str, snapshot_id: int) -> Snapshot | None:
    """The snapshot in a file, which must be that of this id; None where there is no such file."""
    try:
        data = engine.files.read(path, SNAPSHOT_FILE.max_bytes)
    except NotFound:
        return None
    snapshot = snapshot_from_json(data, path)
    if snapshot.id != snapshot_id:
        raise CorruptTable(path, f"holds snapshot {snapshot.id}")
    return snapshot


def snapshot_ids(engine: Engine, paths: TablePaths) -> tuple[int, ...]:
    """Ids of all snapshot files, ascending, by listing."""
    return ids_in(engine, paths.snapshots, _PREFIX)


def ids_in(engine: Engine, directory: str, prefix: str) -> tuple[int, ...]:
    """The numbers that follow a prefix in the file names of a directory, ascending."""
    names = (status.name for status in engine.files.list(directory))
    texts = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return tuple(sorted(int(text) for text in texts if text.isdecimal() and len(text) <= 18))


def latest_snapshot(engine: Engine, paths: TablePaths) -> Snapshot | None:
    """The newest snapshot; None for a table without one.

    Walks up from the LATEST hint; where the hint does not help, by listing.
    """
    hint = read_hint(engine, paths.latest_hint)
    found = None if hint is None else find_snapshot(engine, paths, hint)
    for _ in range(_WALK if found is not None else 0):
        assert found is not None
        following = find_snapshot(engine, paths, found.id + 1)
        if following is None:
            return found
        found = following
    return _newest_listed(engine, paths)


def _newest_listed(engine: Engine, paths: TablePaths) -> Snapshot | None:
    for _ in range(_TRIES):
        ids = snapshot_ids(engine, paths)
        found = find_snapshot(engine, paths, ids[-1]) if ids else None
        if found is not None or not ids:
            return found
    raise StorageError(paths.snapshots, "lists a newest snapshot that cannot be found", hint="try again")


def earliest_snapshot_id(engine: Engine, paths: TablePaths) -> int | None:
    """The smallest id that still has a snapshot; None for a table without one."""
    hint = hinted_earliest(engine, paths)
    if hint is not None:
        return hint
    ids = snapshot_ids(engine, paths)
    return ids[0] if ids else None


def hinted_earliest(engine: Engine, paths: TablePaths) -> int | None:
    """What the EARLIEST hint says, if that snapshot is there."""
    hint = read_hint(engine, paths.earliest_hint)
    return hint if hint is not None and engine.files.status(paths.snapshot(hint)) is not None else None


def snapshots(engine: Engine, paths: TablePaths) -> list[Snapshot]:
    """All snapshots that exist, oldest first."""
    found = (find_snapshot(engine, paths, snapshot_id) for snapshot_id in snapshot_ids(engine, paths))
    return [snapshot for snapshot in found if snapshot is not None]


def snapshot_before(engine: Engine, paths: TablePaths, timestamp_millis: int) -> Snapshot | None:
    """The last snapshot committed at or before a time; None where all are later (commit times must ascend with ids)."""
    return _last(engine, paths, lambda snapshot: snapshot.time_millis <= timestamp_millis)


def snapshot_of_watermark(engine: Engine, paths: TablePaths, watermark: int) -> Snapshot | None:
    """The first snapshot whose watermark has reached `watermark`; None where none has."""
    return first_snapshot(engine, paths, lambda snapshot: _watermark(snapshot) >= watermark)


def first_snapshot(engine: Engine, paths: TablePaths, reaches: Callable[[Snapshot], bool]) -> Snapshot | None:
    """The first for which `reaches`, which must hold from some id on; None where it holds for none."""
    below = _last(engine, paths, lambda snapshot: not reaches(snapshot))
    ids = snapshot_ids(engine, paths)
    after = [snapshot_id for snapshot_id in ids if below is None or snapshot_id > below.id]
    return find_snapshot(engine, paths, after[0]) if after else None


def _watermark(snapshot: Snapshot) -> int:
    return NO_WATERMARK if snapshot.watermark is None else snapshot.watermark


def _last(engine: Engine, paths: TablePaths, holds: Callable[[Snapshot], bool]) -> Snapshot | None:
    """The last snapshot for which `holds`, by bisection: it must hold for a prefix of the ids."""
    ids = list(snapshot_ids(engine, paths))
    best: Snapshot | None = None
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        snapshot = find_snapshot(engine, paths, ids[middle])
        if snapshot is None:  # gone since it was listed
            del ids[middle]
            high -= 1
        elif holds(snapshot):
            best, low = snapshot, middle + 1
        else:
            high = middle
    return best


def tag_names(engine: Engine, paths: TablePaths) -> tuple[str, ...]:
    """Names of all tags, in the order of their names."""
    files = (status for status in engine.files.list(paths.tags) if not status.is_directory)
    return tuple(sorted(f.name.removeprefix(_TAG_PREFIX) for f in files if f.name.startswith(_TAG_PREFIX)))


def load_tag(engine: Engine, paths: TablePaths, name: str) -> Tag:
    """The tag of this name; NotFound names the nearest one."""
    found = find_tag(engine, paths, name)
    if found is None:
        raise NotFound("tag", name, hint=did_you_mean(name, tag_names(engine, paths)))
    return found


def find_tag(engine: Engine, paths: TablePaths, name: str) -> Tag | None:
    """The tag of this name; None where its file does not exist."""
    path = paths.tag(name)
    try:
        data = engine.files.read(path, SNAPSHOT_FILE.max_bytes)
    except NotFound:
        return None
    return tag_from_json(name, data, path)


def tags(engine: Engine, paths: TablePaths) -> list[Tag]:
    """All tags, in the order of their names; an unreadable one is an error, never "no tag"."""
    found = (find_tag(engine, paths, name) for name in tag_names(engine, paths))
    return [tag for tag in found if tag is not None]


def read_hint(engine: Engine, path: str) -> int | None:
    """The id that a hint file holds; None where there is no such file, or none that can be read as a hint."""
    try:
        return parse_hint(engine.files.read(path, HINT_FILE.max_bytes))
    except (NotFound, StorageError, CorruptTable):
        return None


def _available(ids: Sequence[int]) -> str:
    if not ids:
        return "the table has no snapshot"
    return f"available are {ids[0]} to {ids[-1]}"
