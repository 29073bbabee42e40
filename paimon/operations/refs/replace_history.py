"""Replace the history of a branch by that of another one, in an order in which readers see the old state or the new.

A reader finds the latest snapshot by the LATEST hint and the ids that follow it, or as the largest id of a listing. So
one step switches the state, and nothing before or after it may change what either way finds. With the last id of the
old history `o` and that of the new one `n`:

    n > o    put snapshot n, then the hint n             a reader that begins at o stops there: o + 1 does not exist
    n = o    replace snapshot n                          the old and the new file have the same name
    n < o    replace snapshot n, then the hint n,        a reader that begins at n still follows n + 1, … to o
             delete snapshot n + 1, …, o, ascending      the first deletion switches; a listing finds o until the last

Then the older snapshots are replaced, and what only the old history had is deleted. Each step compares files, so that a
call after a crash does what is left.

Invariant: schemas are copied before, because the new state needs them. A reader may see new columns, without values,
before the switch.
"""

from __future__ import annotations

from paimon.domain.errors import CommitConflict, InvalidRequest, NotFound
from paimon.domain.json_text import SCHEMA_FILE, SNAPSHOT_FILE
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.history import forget_own_commit, replace_records
from paimon.operations.metadata.delete_files import delete_files
from paimon.operations.metadata.put_file import flush_found, put_file
from paimon.operations.metadata.schemas import schema_ids
from paimon.operations.metadata.snapshots import (
    find_snapshot,
    read_hint,
    snapshot_ids,
    snapshots,
    tag_names,
    tags,
    write_hint,
)
from paimon.operations.read.changes.history import find_changelog, list_changelog_file_ids
from paimon.operations.refs.rollback import delete_changelogs
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine


def replace_history(target: TableContext, source: TableContext, ids: tuple[int, ...]) -> None:
    """Replace the snapshots of a branch by `ids` of the other branch, from the first of them on.

    Raises `CommitConflict` if another process published a snapshot during the call, and `InvalidRequest` if the schemas
    of the other branch contradict a snapshot that stays. Nothing has changed then.
    """
    changed = [i for i in ids if not _is_same(find_snapshot(target, i), find_snapshot(source, i))]
    _check_schemas(source, target, min(changed, default=ids[-1] + 1))
    forget_own_commit(target)
    engine, old, new = target.engine, source.paths, target.paths
    for schema_id in schema_ids(engine, old):
        copy_file(engine, old.schema(schema_id), new.schema(schema_id))
    with engine.snapshots.lock(new):  # so that neither commits nor expiry read an intermediate state
        _switch(target, source, ids[-1])
        replace_records(source, target, ids[0])
        for snapshot_id in reversed(ids[:-1]):
            copy_file(engine, old.snapshot(snapshot_id), new.snapshot(snapshot_id))
        obsolete = [i for i in snapshot_ids(target) if i > ids[0] and i not in ids]
        delete_files(engine, [new.snapshot(i) for i in obsolete])
        hint = read_hint(engine, new.earliest_hint)
        if hint is not None and hint > ids[0]:
            write_hint(target, new.earliest_hint, ids[0])
    last_schema = schema_ids(engine, old)[-1]
    delete_files(engine, [new.schema(i) for i in schema_ids(engine, new) if i > last_schema])
    _replace_tags(target, source, ids[0])
    _delete_stale_changelogs(target, source, ids[0])


def _switch(target: TableContext, source: TableContext, last: int) -> None:
    """Make the last snapshot of the source the latest one; see the head of this module."""
    files, path = target.files, target.paths.snapshot(last)
    later = [i for i in snapshot_ids(target) if i > last]
    if later or find_snapshot(target, last) is not None:
        copy_file(target.engine, source.paths.snapshot(last), path)
    else:
        data = files.read(source.paths.snapshot(last), SNAPSHOT_FILE.max_bytes)
        if not put_file(files, path, data):
            raise CommitConflict(f"Another process published snapshot {last} during the fast-forward")
    write_hint(target, target.paths.latest_hint, last)
    for snapshot_id in later:
        files.delete([target.paths.snapshot(snapshot_id)])


def _is_same(one: Snapshot | None, other: Snapshot | None) -> bool:
    return one is not None and other is not None and one.is_same(other)


def _check_schemas(source: TableContext, target: TableContext, first: int) -> None:
    """Refuse to replace a schema that a snapshot before `first` was written with."""
    shared = set(schema_ids(source.engine, source.paths)) & set(schema_ids(target.engine, target.paths))
    other = {i for i in shared if _read_schema(source, i) != _read_schema(target, i)}
    needed = [s for s in snapshots(target) if s.id < first and s.schema_id in other] if other else []
    if needed:
        branch = source.paths.branch
        raise InvalidRequest(
            f"Snapshot {needed[0].id} needs schema {needed[0].schema_id}, which differs on branch {branch!r}",
            subject=branch,
            hint=f"expire the snapshots before {first} first",
        )


def _read_schema(context: TableContext, schema_id: int) -> bytes:
    return context.files.read(context.paths.schema(schema_id), SCHEMA_FILE.max_bytes)


def _replace_tags(target: TableContext, source: TableContext, first: int) -> None:
    """Delete the tags of the snapshots that were replaced, and copy those of the other branch."""
    own = tag_names(source)
    for tag in tags(target):
        if tag.snapshot.id >= first and not _is_same(find_snapshot(source, tag.snapshot.id), tag.snapshot):
            delete_files(target.engine, [target.paths.tag(tag.name)] if tag.name not in own else [])
    for name in own:
        copy_file(target.engine, source.paths.tag(name), target.paths.tag(name))


def _delete_stale_changelogs(target: TableContext, source: TableContext, first: int) -> None:
    """Delete the decoupled changelogs from the first one on that is not of the new history."""
    ids = [i for i in list_changelog_file_ids(target) if i >= first]
    stale = [i for i in ids if not _is_same(find_changelog(target, i), find_snapshot(source, i))]
    if stale:
        delete_changelogs(target, stale[0])


def copy_file(engine: Engine, source: str, target: str) -> None:
    """Copy a file, unless the target has the same content."""
    data = engine.files.read(source, SCHEMA_FILE.max_bytes)
    try:
        if engine.files.read(target, SCHEMA_FILE.max_bytes) == data:
            flush_found(engine.files, target)
            return
    except NotFound:
        pass
    with engine.files.create(target) as file:
        file.write(data)
