"""Find and read snapshots and tags.

Invariant: a hint is only a starting point. A missing, stale or wrong hint makes the read slower and does not change the
result. Files may disappear during a read (expiry deletes ascending ids, rollback descending ones), so a listed snapshot
that is gone is no error. A snapshot is never taken from a cache without its file, because ids are used again after a
rollback.

Source: `SnapshotManager`, `HintFileUtils`, `TagManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from paimon.domain.errors import CorruptTable, NotFound, PaimonError, SnapshotExpired, StorageError, did_you_mean
from paimon.domain.json_text import HINT_FILE, SNAPSHOT_FILE, STATISTICS_FILE, load_object
from paimon.domain.paths import MAIN_BRANCH, TablePaths, join_path
from paimon.domain.snapshot.snapshot import NO_WATERMARK, Snapshot, Tag, parse_hint, snapshot_from_json, tag_from_json
from paimon.domain.stats.table_statistics import TableStatistics
from paimon.operations.metadata.schemas import check_same_table, check_table_exists, find_missing_table
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

_MAX_HINT_STEPS = 64
_TRIES = 3
_PREFIX = "snapshot-"
_TAG_PREFIX = "tag-"
_BRANCH_PREFIX = "branch-"
_HISTORY = {
    "snapshot": _PREFIX,
    "tag": _TAG_PREFIX,
    "changelog": "changelog-",
    "last-commit": "commit-",
    "consumer": "consumer-",
}
"""The directories of a branch whose files with these prefixes a new table would take for its own."""
_RECENT = "recent snapshot"
_RECENT_BYTES = 4_000
"""The memory of a decoded snapshot without its texts."""
_CONFIRMED = "confirmed"
_CONFIRMED_BYTES = 1_000


def load_snapshot(context: TableContext, snapshot_id: int) -> Snapshot:
    """Read the snapshot of an id; if it does not exist (any more), the hint of `NotFound` names the range of ids."""
    found = find_snapshot(context, snapshot_id)
    if found is None:
        raise NotFound("snapshot", str(snapshot_id), hint=_describe_ids(snapshot_ids(context)))
    return found


def find_snapshot(context: TableContext, snapshot_id: int) -> Snapshot | None:
    """Read the snapshot of an id; None if there is no file."""
    return read_snapshot_file(context.engine, context.paths.snapshot(snapshot_id), snapshot_id)


def read_snapshot_file(engine: Engine, path: str, snapshot_id: int) -> Snapshot | None:
    """Read a snapshot file, which must contain the given id; None if there is no such file."""
    try:
        data = engine.files.read(path, SNAPSHOT_FILE.max_bytes)
    except NotFound:
        return None
    return _decode_snapshot(data, path, snapshot_id)


def _decode_snapshot(data: bytes, path: str, snapshot_id: int) -> Snapshot:
    snapshot = snapshot_from_json(data, path)
    if snapshot.id != snapshot_id:
        raise CorruptTable(path, f"contains snapshot {snapshot.id}")
    return snapshot


def snapshot_ids(context: TableContext) -> tuple[int, ...]:
    """List the ids of all snapshots, ascending; TableDropped if there are none for lack of the table."""
    ids = list_ids(context.engine, context.paths.snapshots, _PREFIX)
    if not ids:
        check_table_exists(context)
    return ids


def list_ids(engine: Engine, directory: str, prefix: str) -> tuple[int, ...]:
    """List the numbers, ascending, after a prefix such as `"snapshot-"` in the file names of a directory."""
    names = (status.name for status in engine.files.list(directory))
    texts = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return tuple(sorted(int(text) for text in texts if text.isdecimal() and len(text) <= 18))


def latest_snapshot(context: TableContext) -> Snapshot | None:
    """Read the newest snapshot, or None: from the LATEST hint upwards, or from a listing without a hint."""
    hint = read_hint(context.engine, context.paths.latest_hint)
    found = None if hint is None else _find_recent_snapshot(context, hint)
    for _ in range(_MAX_HINT_STEPS if found is not None else 0):
        assert found is not None
        following = find_snapshot(context, found.id + 1)
        if following is None:
            return found
        found = following
    return _read_newest_listed(context)


def _find_recent_snapshot(context: TableContext, snapshot_id: int) -> Snapshot | None:
    """Read a snapshot that is read again soon: its file is decoded once as long as it has the same bytes."""
    path, cache = context.paths.snapshot(snapshot_id), context.engine.cache
    try:
        data = context.engine.files.read(path, SNAPSHOT_FILE.max_bytes)
    except NotFound:
        return None
    cached = cache.get(context.paths.snapshots, _RECENT)
    if isinstance(cached, tuple) and cached[0] == data and cached[1].id == snapshot_id:
        snapshot: Snapshot = cached[1]
        return snapshot
    snapshot = _decode_snapshot(data, path, snapshot_id)
    cache.put(context.paths.snapshots, (data, snapshot), _RECENT_BYTES + 4 * len(data), _RECENT)
    return snapshot


def confirm_opened_table(context: TableContext, snapshot: Snapshot | None) -> None:
    """Check that a snapshot is one of the table that was opened; again only if another one was checked in between."""
    if snapshot is None:
        check_same_table(context)
        return
    checked, cache = (context.table.origin, snapshot.id, snapshot.identity), context.engine.cache
    if cache.get(context.paths.snapshots, _CONFIRMED) != checked:
        check_same_table(context)
        cache.put(context.paths.snapshots, checked, _CONFIRMED_BYTES, _CONFIRMED)


def _read_newest_listed(context: TableContext) -> Snapshot | None:
    """Read the newest snapshot of a listing, with retries if it disappears."""
    for _ in range(_TRIES):
        ids = snapshot_ids(context)
        found = find_snapshot(context, ids[-1]) if ids else None
        if found is not None or not ids:
            return found
    raise StorageError(context.paths.snapshots, "the newest listed snapshot does not exist", hint="try again")


def earliest_snapshot_id(context: TableContext) -> int | None:
    """Return the smallest id of an existing snapshot; None for a table without one."""
    hint = read_earliest_hint(context)
    if hint is not None:
        return hint
    ids = snapshot_ids(context)
    return ids[0] if ids else None


def read_earliest_hint(context: TableContext) -> int | None:
    """Return the id in the EARLIEST hint, if that snapshot exists."""
    hint = read_hint(context.engine, context.paths.earliest_hint)
    return hint if hint is not None and context.files.status(context.paths.snapshot(hint)) is not None else None


def snapshots(context: TableContext) -> list[Snapshot]:
    """Read all existing snapshots, oldest first."""
    found = (find_snapshot(context, snapshot_id) for snapshot_id in snapshot_ids(context))
    return [snapshot for snapshot in found if snapshot is not None]


def snapshot_before(context: TableContext, timestamp_millis: int) -> Snapshot | None:
    """Return the last snapshot at or before an epoch time, or None; commit times ascend with ids."""
    return _find_last(context, lambda snapshot: snapshot.time_millis <= timestamp_millis)


def snapshot_of_watermark(context: TableContext, watermark: int) -> Snapshot | None:
    """Return the first snapshot with a watermark of at least `watermark` (epoch milliseconds), or None."""
    return find_first_snapshot(context, lambda snapshot: _watermark_of(snapshot) >= watermark)


def snapshot_before_watermark(context: TableContext, watermark: int) -> Snapshot | None:
    """Return the last snapshot with a watermark of at most `watermark`, or none at all; else None."""
    found = _find_last(context, lambda snapshot: _watermark_of(snapshot) <= watermark)
    return None if found is None or _watermark_of(found) == NO_WATERMARK else found


def find_first_snapshot(context: TableContext, reaches: Callable[[Snapshot], bool]) -> Snapshot | None:
    """Return the first snapshot that fulfills a condition, which must stay true for all later ones."""
    below = _find_last(context, lambda snapshot: not reaches(snapshot))
    ids = snapshot_ids(context)
    after = [snapshot_id for snapshot_id in ids if below is None or snapshot_id > below.id]
    return find_snapshot(context, after[0]) if after else None


def _watermark_of(snapshot: Snapshot) -> int:
    return NO_WATERMARK if snapshot.watermark is None else snapshot.watermark


def _find_last(context: TableContext, condition: Callable[[Snapshot], bool]) -> Snapshot | None:
    """Return the last snapshot that meets a condition, which is true up to some id, by bisection."""
    ids = list(snapshot_ids(context))
    best: Snapshot | None = None
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        snapshot = find_snapshot(context, ids[middle])
        if snapshot is None:  # deleted after the listing
            del ids[middle]
            high -= 1
        elif condition(snapshot):
            best, low = snapshot, middle + 1
        else:
            high = middle
    return best


def tag_names(context: TableContext) -> tuple[str, ...]:
    """List the names of all tags, in alphabetical order."""
    return tuple(_list_tag_files(context))


def _list_tag_files(context: TableContext) -> dict[str, FileStatus]:
    """Return the file of each tag, in alphabetical order."""
    files = (status for status in context.files.list(context.paths.tags) if not status.is_directory)
    found = {f.name.removeprefix(_TAG_PREFIX): f for f in files if f.name.startswith(_TAG_PREFIX)}
    return dict(sorted(found.items()))


def load_tag(context: TableContext, name: str) -> Tag:
    """Read the tag of a name; if there is none, the hint of `NotFound` names the most similar one."""
    found = find_tag(context, name)
    if found is None:
        raise NotFound("tag", name, hint=did_you_mean(name, tag_names(context)) or "the table has no tags")
    return found


def find_tag(context: TableContext, name: str) -> Tag | None:
    """Read the tag of a name; None if there is no file."""
    path = context.paths.tag(name)
    try:
        data = context.files.read(path, SNAPSHOT_FILE.max_bytes)
    except NotFound:
        return None
    return tag_from_json(name, data, path)


def tags(context: TableContext) -> list[Tag]:
    """Read all tags, in alphabetical order; an unreadable tag is an error, and never means that there is no tag."""
    found = (find_tag(context, name) for name in tag_names(context))
    return [tag for tag in found if tag is not None]


def recent_tags(context: TableContext) -> list[Tag]:
    """Return all tags, reading changed files only; a replacement of equal size and time may be missed."""
    found, cache = list[Tag](), context.engine.cache
    for name, status in _list_tag_files(context).items():
        path, view = context.paths.tag(name), f"of {status.size} at {status.modified_millis}"
        tag = cache.get(path, view)
        if not isinstance(tag, Tag):
            tag = find_tag(context, name)
            if tag is not None and status.modified_millis is not None:
                cache.put(path, tag, _RECENT_BYTES + 4 * status.size, view)
        if tag is not None:
            found.append(tag)
    return found


def list_branch_directories(engine: Engine, paths: TablePaths) -> list[str]:
    """Return the names of all branch directories, also of incomplete branches, which may reference files."""
    found = [s for s in engine.files.list(paths.branches) if s.is_directory and s.name.startswith(_BRANCH_PREFIX)]
    return [s.name.removeprefix(_BRANCH_PREFIX) for s in found]


def find_history(engine: Engine, paths: TablePaths, ignored: str) -> str | None:
    """Return a file that belongs to the history of a branch; for main, also of others that lack the prefix `ignored`.

    None without one. Only directories that exist are listed.
    """
    existing = {status.name for status in engine.files.list(paths.metadata_root) if status.is_directory}
    has_branches = paths.branch == MAIN_BRANCH and "branch" in existing
    names = list_branch_directories(engine, paths) if has_branches else []
    places = [(join_path(paths.metadata_root, d), prefix) for d, prefix in _HISTORY.items() if d in existing]
    for branch in (TablePaths(paths.root, name) for name in names if not name.startswith(ignored)):
        places += [(branch.snapshots, _PREFIX), (branch.schemas, "schema-")]
    files = (s for place, prefix in places for s in engine.files.list(place) if s.name.startswith(prefix))
    return next((status.path for status in files if not status.is_directory), None)


def read_hint(engine: Engine, path: str) -> int | None:
    """Return the id in a hint file; None if there is no such file, or if it is not a valid hint."""
    try:
        return parse_hint(engine.files.read(path, HINT_FILE.max_bytes))
    except (NotFound, StorageError, CorruptTable):
        return None


@contextmanager
def report_expired(context: TableContext, snapshot_id: int) -> Iterator[None]:
    """Raise why the block misses a file: its snapshot expired, or its table was dropped; not CorruptTable."""
    try:
        yield
    except CorruptTable as error:
        missing = isinstance(error.__cause__, NotFound)
        expired = find_expiry(context, snapshot_id, error.path) if missing else None
        if expired is None:
            raise
        raise expired from error


def read_statistics(context: TableContext, snapshot: Snapshot | None) -> TableStatistics | None:
    """Read the statistics that a snapshot has or inherited; None if the table was not analyzed."""
    if snapshot is None or snapshot.statistics is None:
        return None
    path = context.paths.statistics(snapshot.statistics, context.paths.snapshot(snapshot.id))
    with report_expired(context, snapshot.id):
        try:
            data = context.files.read(path, STATISTICS_FILE.max_bytes)
        except NotFound as error:
            raise CorruptTable(path, f"does not exist, but snapshot {snapshot.id} references it") from error
    return TableStatistics.of(load_object(data, path, STATISTICS_FILE))


def find_expiry(
    context: TableContext, snapshot_id: int, path: str, delta_manifest_list: str | None = None
) -> PaimonError | None:
    """Return the error of a read that misses a file of a snapshot; None if neither an expiry nor a drop deleted it.

    `delta_manifest_list` is that of the snapshot. Another snapshot can have its id now: of a new table, or after a
    rollback.
    """
    gone = find_missing_table(context)
    if gone is not None:
        return gone
    current = None if delta_manifest_list is None else find_snapshot(context, snapshot_id)
    is_other = current is not None and current.delta_manifest_list != delta_manifest_list
    if not is_other and _is_state_kept(context, snapshot_id):
        return None
    return SnapshotExpired(
        f"Snapshot {snapshot_id} of table {context.table.table_name!r} expired while it was read: file {path} is "
        "deleted",
        hint="plan the scan again; raise 'snapshot.time-retained', or tag the snapshot, if reads take longer",
    )


def _is_state_kept(context: TableContext, snapshot_id: int) -> bool:
    """Return whether a snapshot, a decoupled changelog or a tag still keeps the files of a snapshot."""
    paths = (context.paths.snapshot(snapshot_id), context.paths.changelog(snapshot_id))
    if any(context.files.status(path) is not None for path in paths):
        return True
    return any(tag.snapshot.id == snapshot_id for tag in tags(context))


def write_hint(context: TableContext, path: str, snapshot_id: int) -> None:
    """Write a hint. If the storage refuses, for instance on a full disk, delete it, so that readers list instead."""
    try:
        context.files.replace(path, str(snapshot_id).encode())
    except StorageError:
        context.engine.observer.count("hint.write_failed", 1)
        with suppress(StorageError):
            context.files.delete([path])


def _describe_ids(ids: Sequence[int]) -> str:
    if not ids:
        return "the table has no snapshot"
    return f"available are {ids[0]} to {ids[-1]}"


@contextmanager
def check_unexpired(context: TableContext, snapshot: Snapshot | None, hint: str) -> Iterator[None]:
    """Raise SnapshotExpired if the block, which reads a snapshot, fails because that expired or was rolled back.

    `hint` states what the caller can do then. If the snapshot still exists, the error of the block is unchanged.
    """
    try:
        yield
    except (CorruptTable, StorageError) as error:
        found = None if snapshot is None else find_snapshot(context, snapshot.id)
        if snapshot is None or (found is not None and found.is_same(snapshot)):
            raise
        raise SnapshotExpired(
            f"Snapshot {snapshot.id} of table {context.table.table_name!r} expired, or was rolled back, while it was "
            "read",
            hint=f"{hint}; raise 'snapshot.time-retained' if this occurs often",
        ) from error


def load_live_or_tagged(context: TableContext, snapshot_id: int) -> Snapshot:
    """Read a snapshot, or the copy of it in a tag if it has expired; NotFound if there is none."""
    found = find_snapshot(context, snapshot_id)
    if found is not None:
        return found
    tagged = (tag.snapshot for tag in tags(context) if tag.snapshot.id == snapshot_id)
    return next(tagged, None) or load_snapshot(context, snapshot_id)
