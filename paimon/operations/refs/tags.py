"""Create, replace, rename, delete and expire tags, which protect snapshots from expiry, on request and automatically.

Invariant: after a tag is written, its snapshot is read again, so tags can be created while snapshots expire. After the
last tag of an expired snapshot is deleted, the files that only this tag referenced are deleted, too. The automatic tags
that are due follow only from the existing tags and snapshots, so each commit continues where the last one stopped.

Source: `TagManager`, `TagDeletion`, `SuccessFileTagCallback`, `TagAutoCreation`, `TagBatchCreation`.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress

from attrs import evolve

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound
from paimon.domain.json_text import DETAIL_FILE, SNAPSHOT_FILE, dump_json, load_object
from paimon.domain.maintenance.tag_expiry import AutoTags, expired_tags, format_local_time
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_stored_options
from paimon.domain.paths import TablePaths, join_path
from paimon.domain.snapshot.snapshot import NO_WATERMARK, Snapshot, Tag, tag_to_json
from paimon.domain.snapshot.tag_periods import TagPeriods
from paimon.domain.text_checks import check_text
from paimon.domain.whitespace import is_blank
from paimon.operations.expire.files_to_delete import delete_unreferenced_files, find_files_of_tag
from paimon.operations.expire.references import Reference, read_changelog_references, read_nearby_references
from paimon.operations.metadata.metadata_files import put_file
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import (
    find_first_snapshot,
    find_snapshot,
    find_tag,
    latest_snapshot,
    load_live_or_tagged,
    load_snapshot,
    load_tag,
    recent_tags,
    snapshot_ids,
    tag_names,
    tags,
)
from paimon.operations.metadata.storage_time import OlderThan, read_storage_millis, to_local_millis
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import finished_once_begun
from paimon.ports.engine import Engine
from paimon.ports.observer import report_event

_SUCCESS_FILES = "tag-success-file"


@finished_once_begun()
@on_same_table
def create_tag(
    context: TableContext,
    name: str,
    snapshot_id: int | None = None,
    retained_millis: float | None = None,
    exist_ok: bool = False,
) -> Tag:
    """Create a tag of a snapshot that exists or that another tag protects; by default of the latest snapshot.

    The time to live is by default `tag.default-time-retained`, and without that unlimited. With `exist_ok`, an existing
    tag is returned unchanged. Raises `Unsupported` if the table names callbacks for tags.
    """
    path = _tag_path(context.paths, name)
    if context.files.status(path) is not None:
        if exist_ok:
            return load_tag(context, name)
        raise AlreadyExists("tag", name, hint="replace it, or choose another name")
    tag = _new_tag(context, name, snapshot_id, retained_millis)
    check_stored_options(context.options.values, ("tag.callbacks",))
    _check_single_automatic_tag(context, tag)
    if not put_file(context.files, path, tag_to_json(tag)):
        if exist_ok:
            return load_tag(context, name)
        raise AlreadyExists("tag", name, hint="another process created it during the call")
    if not _is_snapshot_available(context, tag):
        context.files.delete([path])
        raise NotFound("snapshot", str(tag.snapshot.id), hint="it expired during the call; tag a later one")
    _write_success_file(context, name)
    return tag


def find_first_reaching(context: TableContext, millis: int | None, watermark: int | None = None) -> Snapshot:
    """Return the first snapshot or tag with a commit time, else a watermark, of at least a time."""
    wanted = (millis if millis is not None else watermark) or 0

    def mark(snapshot: Snapshot) -> int | None:
        """Return the commit time or the watermark of a snapshot."""
        return snapshot.time_millis if millis is not None else snapshot.watermark

    def reaches(snapshot: Snapshot) -> bool:
        """Return whether the snapshot has at least the wanted time or watermark."""
        reached = mark(snapshot)
        return reached is not None and reached >= wanted

    tagged = sorted((tag.snapshot for tag in tags(context)), key=lambda s: s.id)
    states = [*filter(reaches, tagged)][:1]
    live = find_first_snapshot(context, reaches)
    states += [] if live is None else [live]
    if not states:
        what = "committed at or after" if millis is not None else "with a watermark of at least"
        raise NotFound(f"snapshot {what}", str(wanted), hint="list them with table.snapshots()")
    return min(states, key=lambda s: (mark(s) or 0, s.id))


@finished_once_begun()
@on_same_table
def replace_tag(
    context: TableContext,
    name: str,
    snapshot_id: int | None = None,
    retained_millis: float | None = None,
) -> Tag:
    """Replace the snapshot of a tag, by default by the latest one, and its time to live, which starts now.

    The snapshot exists, or a tag protects it. The default time to live is `tag.default-time-retained`, else unlimited.
    """
    old = load_tag(context, name)
    tag = _new_tag(context, name, snapshot_id, retained_millis)
    _overwrite(context.engine, context.paths.tag(name), tag_to_json(tag))
    if not _is_snapshot_available(context, tag):
        _overwrite(context.engine, context.paths.tag(name), tag_to_json(old))
        raise NotFound("snapshot", str(tag.snapshot.id), hint="it expired during the call; tag a later one")
    if not old.snapshot.is_same(tag.snapshot):
        _delete_unreferenced_files(context, old.snapshot)
    return tag


@finished_once_begun()
@on_same_table
def rename_tag(context: TableContext, name: str, to: str) -> Tag:
    """Rename a tag."""
    tag = load_tag(context, name)
    source, target = context.paths.tag(name), _tag_path(context.paths, to)
    exists_error = AlreadyExists("tag", to, hint="delete one of the two, or choose another name")
    if context.files.status(target) is not None:
        raise exists_error
    if not put_file(context.files, target, context.files.read(source, SNAPSHOT_FILE.max_bytes)):
        raise exists_error
    context.files.delete([source, *_success_file_paths(context.paths, name)])
    return evolve(tag, name=to)


@finished_once_begun()
@on_same_table
def delete_tag(context: TableContext, name: str) -> int:
    """Delete a tag and the files that only it referenced; return how many data and metadata files were deleted."""
    tag = load_tag(context, name)
    context.files.delete([context.paths.tag(name), *_success_file_paths(context.paths, name)])
    return _delete_unreferenced_files(context, tag.snapshot)


def expire_tags(context: TableContext, older_than: OlderThan | None = None) -> list[str]:
    """Delete and return tags past their time to live; without one, the modification time counts."""
    expired = find_expired_tags(context, older_than)
    for name in expired:
        with suppress(NotFound):  # another process expires tags too
            delete_tag(context, name)
            report_event(context.engine.observer, "expiry", context.table.location, kind="tag", tag=name)
    return expired


def find_expired_tags(context: TableContext, older_than: OlderThan | None = None) -> list[str]:
    """Return the names of the tags that `expire_tags` would delete; nothing is changed."""
    found, now = recent_tags(context), context.engine.clock.now_millis()
    written: dict[str, int | None] = {}
    older = None
    if older_than is not None:
        storage_now = now if older_than.moment_millis is not None else read_storage_millis(context) or now
        older = to_local_millis(context.engine, older_than.to_moment_millis(storage_now))
        for status in context.files.list(context.paths.tags):
            millis = status.modified_millis
            written[status.name.removeprefix("tag-")] = (
                None if millis is None else to_local_millis(context.engine, millis)
            )
    local_now = to_local_millis(context.engine, now)
    again = (find_tag(context, name) for name in expired_tags(found, written, local_now, older))
    return expired_tags([tag for tag in again if tag is not None], written, local_now, older)


def _new_tag(context: TableContext, name: str, snapshot_id: int | None, retained_millis: float | None) -> Tag:
    snapshot = latest_snapshot(context) if snapshot_id is None else load_live_or_tagged(context, snapshot_id)
    if snapshot is None:
        raise NotFound("snapshot", "latest", hint="the table has no snapshot yet; write to it first")
    retained = context.options.tag_default_time_retained_millis if retained_millis is None else retained_millis
    if retained is None:
        return Tag(name, snapshot)
    if retained <= 0:
        raise InvalidRequest(f"Tag {name!r}: time to live must be positive, but is {retained} ms", subject=name)
    now = to_local_millis(context.engine, context.engine.clock.now_millis())
    return Tag(name, snapshot, format_local_time(now), retained / 1000)


def _tag_path(paths: TablePaths, name: str) -> str:
    if is_blank(check_text(name, "tag name")):
        raise InvalidRequest(f"Tag name {name!r} is blank", subject=name)
    if f"tag-{name}" == _SUCCESS_FILES:
        raise InvalidRequest(f"Tag name {name!r} is reserved for a directory", subject=name)
    return paths.tag(name)


def _check_single_automatic_tag(context: TableContext, tag: Tag) -> None:
    """Refuse a second automatic tag on one snapshot, because it would give automatic tags a wrong time."""
    if context.options.tag_automatic_creation not in ("process-time", "watermark"):
        return
    rules = AutoTags.of(context.options)
    if not rules.select_automatic([tag.name]):
        return
    for other in rules.select_automatic(tag_names(context)):
        found = find_tag(context, other)
        if found is not None and found.snapshot.id == tag.snapshot.id:
            raise InvalidRequest(
                f"Snapshot {tag.snapshot.id} has the automatic tag {other!r} already",
                subject=tag.name,
                hint="choose a name that is not a period of automatic tags",
            )


def _is_snapshot_available(context: TableContext, tag: Tag) -> bool:
    """Return whether the snapshot of a written tag, or another tag of it, still exists."""
    stored = find_snapshot(context, tag.snapshot.id)
    if stored is not None:
        return stored.is_same(tag.snapshot)
    others = (other for other in tags(context) if other.name != tag.name)
    return any(other.snapshot.is_same(tag.snapshot) for other in others)


def _delete_unreferenced_files(context: TableContext, snapshot: Snapshot) -> int:
    """Delete the files of an expired snapshot that nothing references after its tag, and return their number."""
    stored = find_snapshot(context, snapshot.id)
    if stored is not None and stored.is_same(snapshot):
        return 0
    files = find_files_of_tag(context, snapshot)

    def collect_references() -> list[Reference]:
        """Return the references that may need these files."""
        return [*read_nearby_references(context, snapshot.id, snapshot.id + 1), *read_changelog_references(context)]

    return delete_unreferenced_files(context, files, collect_references(), collect_references)


def _overwrite(engine: Engine, path: str, data: bytes) -> None:
    with engine.files.create(path) as file:
        file.write(data)


def _success_file_paths(paths: TablePaths, name: str) -> list[str]:
    return [join_path(paths.tags, _SUCCESS_FILES, f"{name}_SUCCESS")]


def _write_success_file(context: TableContext, name: str) -> None:
    """Write the success file of a tag, if `tag.create-success-file` is set."""
    if not context.options.tag_create_success_file:
        return
    (path,) = _success_file_paths(context.paths, name)
    write_success_file(context.engine, path)


def write_success_file(engine: Engine, path: str) -> None:
    """Write the marker of a finished tag or partition; a second call keeps the time of the first one."""
    now = engine.clock.now_millis()
    try:
        created = load_object(engine.files.read(path, DETAIL_FILE.max_bytes), path).integer("creationTime")
    except NotFound:
        created = now
    _overwrite(engine, path, dump_json({"creationTime": created, "modificationTime": now}))


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
    """Tag a batch commit's snapshot by its day or name if `tag.automatic-creation` is `batch`."""
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
