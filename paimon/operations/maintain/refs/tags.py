"""Tags: names that keep snapshots.

Law: a tag stands only if what it names stood after it was written, so expiry and tagging may happen at the same time.
When the last tag of a gone snapshot goes, the files that nobody else has go too, after it. Source: `TagManager`,
`TagDeletion`, `SuccessFileTagCallback`.
"""

from __future__ import annotations

from contextlib import suppress

from attrs import evolve

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, StorageError
from paimon.domain.json_text import DETAIL_FILE, SNAPSHOT_FILE, dump_json, load_object
from paimon.domain.maintenance.retention.tags import AutoTags, expired_tags, local_iso
from paimon.domain.options.validate import check_stored_options
from paimon.domain.paths import TablePaths, join
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.json import tag_to_json
from paimon.domain.snapshot.snapshot import Snapshot, Tag
from paimon.domain.texts import check_text
from paimon.domain.whitespace import is_blank
from paimon.operations.maintain.retention.holders import Holder, changelog_holders, near_holders
from paimon.operations.maintain.retention.leavings import of_tag, remove
from paimon.operations.maintain.zones import local_millis
from paimon.operations.read.snapshots import (
    find_snapshot,
    find_tag,
    first_snapshot,
    latest_snapshot,
    load_snapshot,
    load_tag,
    tag_names,
    tags,
)
from paimon.ports.engine import Engine
from paimon.ports.files import PutOutcome

_SUCCESS_FILES = "tag-success-file"


def create_tag(
    engine: Engine,
    table: TableDefinition,
    name: str,
    snapshot_id: int | None = None,
    retained_millis: int | None = None,
    exist_ok: bool = False,
) -> Tag:
    """Name a snapshot (by default the latest).

    Parameters
    ----------
    snapshot_id : int, optional
        A snapshot, or one that has expired and another tag keeps.
    retained_millis : int, optional
        Time to live; by default `tag.default-time-retained`, and without that for ever.
    exist_ok : bool
        Answer the tag that is there rather than raise.

    Raises
    ------
    AlreadyExists
        There is a tag of this name.
    NotFound
        No such snapshot (any more).
    InvalidRequest
        The name cannot be one.
    Unsupported
        The table names callbacks for tags.
    """
    path = _tag_path(table.paths, name)
    if engine.files.status(path) is not None:
        if exist_ok:
            return load_tag(engine, table.paths, name)
        raise AlreadyExists("tag", name, hint="replace it, or take another name")
    tag = _new_tag(engine, table, name, snapshot_id, retained_millis)
    check_stored_options(table.options.values, ("tag.callbacks",))
    _check_auto(engine, table, tag)
    data = tag_to_json(tag)
    if engine.files.put_if_absent(path, data) is not PutOutcome.CREATED and _content(engine, path) != data:
        if exist_ok:
            return load_tag(engine, table.paths, name)
        raise AlreadyExists("tag", name, hint="somebody made it just now")
    if not _stands(engine, table, tag):
        engine.files.delete([path])
        raise NotFound("snapshot", str(tag.snapshot.id), hint="it expired just now; tag a later one")
    _write_success_file(engine, table, name)
    return tag


def first_reaching(
    engine: Engine, table: TableDefinition, millis: int | None, watermark: int | None = None
) -> Snapshot:
    """The first state, of a snapshot or a tag, of a commit time or (without one) of a watermark that is at least this.

    Raises
    ------
    NotFound
        None has come so far.
    """
    wanted = (millis if millis is not None else watermark) or 0

    def mark(snapshot: Snapshot) -> int | None:
        return snapshot.time_millis if millis is not None else snapshot.watermark

    def reaches(snapshot: Snapshot) -> bool:
        reached = mark(snapshot)
        return reached is not None and reached >= wanted

    tagged = sorted((tag.snapshot for tag in tags(engine, table.paths)), key=lambda s: s.id)
    states = [*filter(reaches, tagged)][:1]
    live = first_snapshot(engine, table.paths, reaches)
    states += [] if live is None else [live]
    if not states:
        what = "committed at" if millis is not None else "with a watermark of"
        raise NotFound(f"a snapshot {what} or after", str(wanted), hint="see table.snapshots()")
    return min(states, key=lambda s: (mark(s) or 0, s.id))


def replace_tag(
    engine: Engine,
    table: TableDefinition,
    name: str,
    snapshot_id: int | None = None,
    retained_millis: int | None = None,
) -> Tag:
    """Let a tag name another snapshot, or live as long from now on; NotFound where there is no such tag or snapshot."""
    old = load_tag(engine, table.paths, name)
    tag = _new_tag(engine, table, name, snapshot_id, retained_millis)
    _overwrite(engine, table.paths.tag(name), tag_to_json(tag))
    if not _stands(engine, table, tag):
        _overwrite(engine, table.paths.tag(name), tag_to_json(old))
        raise NotFound("snapshot", str(tag.snapshot.id), hint="it expired just now; tag a later one")
    if not old.snapshot.is_same(tag.snapshot):
        _clean_after(engine, table, old.snapshot)
    return tag


def rename_tag(engine: Engine, table: TableDefinition, name: str, to: str) -> Tag:
    """Give a tag another name; NotFound, AlreadyExists."""
    tag = load_tag(engine, table.paths, name)
    source, target = table.paths.tag(name), _tag_path(table.paths, to)
    taken = AlreadyExists("tag", to, hint="delete one of the two, or take another name")
    if engine.files.status(target) is not None:
        raise taken
    data = engine.files.read(source, SNAPSHOT_FILE.max_bytes)
    if engine.files.put_if_absent(target, data) is not PutOutcome.CREATED and _content(engine, target) != data:
        raise taken
    engine.files.delete([source, *_success_files(table.paths, name)])
    return evolve(tag, name=to)


def delete_tag(engine: Engine, table: TableDefinition, name: str) -> int:
    """Delete a tag, and the files that only it kept; answers how many files. NotFound where there is no such tag."""
    tag = load_tag(engine, table.paths, name)
    engine.files.delete([table.paths.tag(name), *_success_files(table.paths, name)])
    return _clean_after(engine, table, tag.snapshot)


def expire_tags(engine: Engine, table: TableDefinition, older_than_millis: int | None = None) -> list[str]:
    """Delete the tags whose time to live is over; answers their names.

    Parameters
    ----------
    older_than_millis : int, optional
        Also delete tags made before this time (epoch milliseconds), those without a time to live by their files' age.
    """
    found = tags(engine, table.paths)
    made: dict[str, int | None] = {}
    if older_than_millis is not None:
        for status in engine.files.list(table.paths.tags):
            written = status.modified_millis
            made[status.name.removeprefix("tag-")] = None if written is None else local_millis(engine, written)
    older = None if older_than_millis is None else local_millis(engine, older_than_millis)
    gone = expired_tags(found, made, local_millis(engine, engine.clock.now_millis()), older)
    for name in gone:
        with suppress(NotFound):  # another process expires tags too
            delete_tag(engine, table, name)
    return gone


def _new_tag(
    engine: Engine, table: TableDefinition, name: str, snapshot_id: int | None, retained_millis: int | None
) -> Tag:
    snapshot = latest_snapshot(engine, table.paths) if snapshot_id is None else _snapshot(engine, table, snapshot_id)
    if snapshot is None:
        raise NotFound("snapshot", "latest", hint="the table has none yet; write to it first")
    retained = table.options.tag_default_time_retained_millis if retained_millis is None else retained_millis
    if retained is None:
        return Tag(name, snapshot)
    if retained <= 0:
        raise InvalidRequest(f"tag {name!r} cannot live {retained} ms", subject=name)
    now = local_millis(engine, engine.clock.now_millis())
    return Tag(name, snapshot, local_iso(now), retained / 1000)


def _snapshot(engine: Engine, table: TableDefinition, snapshot_id: int) -> Snapshot:
    found = find_snapshot(engine, table.paths, snapshot_id)
    if found is not None:
        return found
    tagged = (tag.snapshot for tag in tags(engine, table.paths) if tag.snapshot.id == snapshot_id)
    return next(tagged, None) or load_snapshot(engine, table.paths, snapshot_id)


def _tag_path(paths: TablePaths, name: str) -> str:
    if is_blank(check_text(name, "tag name")):
        raise InvalidRequest("a tag needs a name", subject=name)
    if f"tag-{name}" == _SUCCESS_FILES:
        raise InvalidRequest(f"tag name {name!r} belongs to a directory of the format", subject=name)
    return paths.tag(name)


def _check_auto(engine: Engine, table: TableDefinition, tag: Tag) -> None:
    """An automatic tag's name beside another on one snapshot would tell the automatic ones a wrong time."""
    if table.options.tag_automatic_creation not in ("process-time", "watermark"):
        return
    rules = AutoTags.of(table.options)
    if not rules.auto([tag.name]):
        return
    for other in rules.auto(tag_names(engine, table.paths)):
        found = find_tag(engine, table.paths, other)
        if found is not None and found.snapshot.id == tag.snapshot.id:
            raise InvalidRequest(
                f"snapshot {tag.snapshot.id} has the automatic tag {other!r} already",
                subject=tag.name,
                hint="take a name that is no period of automatic tags",
            )


def _stands(engine: Engine, table: TableDefinition, tag: Tag) -> bool:
    """Whether, after the tag was written, its snapshot (or another tag of it) was still there."""
    standing = find_snapshot(engine, table.paths, tag.snapshot.id)
    if standing is not None:
        return standing.is_same(tag.snapshot)
    others = (other for other in tags(engine, table.paths) if other.name != tag.name)
    return any(other.snapshot.is_same(tag.snapshot) for other in others)


def _clean_after(engine: Engine, table: TableDefinition, snapshot: Snapshot) -> int:
    standing = find_snapshot(engine, table.paths, snapshot.id)
    if standing is not None and standing.is_same(snapshot):
        return 0
    leavings = of_tag(engine, table, snapshot)

    def holders() -> list[Holder]:
        return [*near_holders(engine, table, snapshot.id, snapshot.id + 1), *changelog_holders(engine, table)]

    return remove(engine, table, leavings, holders(), holders)


def _overwrite(engine: Engine, path: str, data: bytes) -> None:
    with engine.files.create(path) as file:
        file.write(data)


def _content(engine: Engine, path: str) -> bytes:
    try:
        return engine.files.read(path, SNAPSHOT_FILE.max_bytes)
    except NotFound as error:
        raise StorageError(path, "the storage does not tell whether it was written", hint="try again") from error


def _success_files(paths: TablePaths, name: str) -> list[str]:
    return [join(paths.tags, _SUCCESS_FILES, f"{name}_SUCCESS")]


def _write_success_file(engine: Engine, table: TableDefinition, name: str) -> None:
    if not table.options.tag_create_success_file:
        return
    (path,) = _success_files(table.paths, name)
    now = engine.clock.now_millis()
    try:
        created = load_object(engine.files.read(path, DETAIL_FILE.max_bytes), path).integer("creationTime")
    except NotFound:
        created = now
    _overwrite(engine, path, dump_json({"creationTime": created, "modificationTime": now}))
