"""Create, rename, delete and fast-forward branches.

A branch is a second history of a table in its own directory, over the same data files.

Invariant: a new branch is visible only when all files of its state exist; a branch that a crash left incomplete is
completed by the same call. On storage that can move directories, each change is one step. Java lists every directory
`branch-<name>`, so a branch is created under a hidden name. On other storage its schemas are written first and deleted
last. A directory without a schema is not listed, and the removal of orphan files deletes it. The deletion of a branch
removes metadata only.

A fast-forward replaces the history in an order in which readers see the old state or the new. A reader finds the latest
snapshot by the LATEST hint and the ids that follow it, or as the largest id of a listing. So one step switches the
state, and nothing before or after it may change what either way finds. With the last id of the old history `o` and that
of the new one `n`:

    n > o    put snapshot n, then the hint n             a reader that begins at o stops there: o + 1 does not exist
    n = o    replace snapshot n                          the old and the new file have the same name
    n < o    replace snapshot n, then the hint n,        a reader that begins at n still follows n + 1, … to o
             delete snapshot n + 1, …, o, ascending      the first deletion switches; a listing finds o until the last

Then the older snapshots are replaced, and what only the old history had is deleted. Each step compares files, so that a
call after a crash does what is left. Schemas are copied before, because the new state needs them. A reader may see new
columns, without values, before the switch.

Source: `FileSystemBranchManager`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import AlreadyExists, CommitConflict, InvalidRequest, NotFound, did_you_mean
from paimon.domain.json_text import SCHEMA_FILE, SNAPSHOT_FILE
from paimon.domain.paths import MAIN_BRANCH, TablePaths, join_path
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot, snapshot_to_json
from paimon.domain.text_checks import check_text
from paimon.domain.undo import undo_on_failure
from paimon.domain.whitespace import is_blank
from paimon.operations.commit.history import forget_own_commit, replace_records
from paimon.operations.expire.references import list_branch_names
from paimon.operations.metadata.metadata_files import delete_files, flush_found, put_file
from paimon.operations.metadata.schemas import on_same_table, schema_ids
from paimon.operations.metadata.snapshots import (
    find_snapshot,
    list_branch_directories,
    load_tag,
    read_hint,
    snapshot_ids,
    snapshots,
    tag_names,
    tags,
    write_hint,
)
from paimon.operations.read.changes.history import find_changelog, list_changelog_file_ids
from paimon.operations.refs.rollback import delete_changelogs, drop_changelog
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import finished_once_begun
from paimon.ports.engine import Engine
from paimon.ports.files import Directories


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


@finished_once_begun()
@on_same_table
def create_branch(context: TableContext, name: str, tag: str | None = None, exist_ok: bool = False) -> None:
    """Create a branch of a tag's snapshot, else an empty one; `exist_ok` leaves an existing one as it is."""
    _check_name(name)
    target = TablePaths(context.table.location, name)
    wanted = _read_branch_files(context, target, tag)
    is_there = name in list_branch_directories(context.engine, context.paths)
    if is_there:
        if exist_ok and not _is_incomplete(context.engine, target, wanted):
            return
        if not _is_incomplete(context.engine, target, wanted):
            raise AlreadyExists("branch", name, hint="delete it first, or choose another name")
    if is_there or not isinstance(context.files, Directories):
        _put_files(context.engine, name, wanted)
    else:
        _put_directory(context.engine, context.files, target, wanted)
    if tag is not None and not _is_tag_unchanged(context, tag, wanted[target.tag(tag)]):
        delete_branch(context, name)
        raise NotFound("tag", tag, hint="it was deleted or replaced during the call, so its files may be gone")


def _put_files(engine: Engine, name: str, wanted: Mapping[str, bytes]) -> None:
    """Write the files of a branch in order; files with the same content may exist."""
    for path, data in wanted.items():
        if not put_file(engine.files, path, data):
            raise AlreadyExists("branch", name, hint="another process created it during the call")


def _put_directory(engine: Engine, directories: Directories, target: TablePaths, wanted: Mapping[str, bytes]) -> None:
    """Write the branch under a hidden name, and move its directory to its name in one step."""
    hidden = _make_hidden_path(engine, target, "making")
    with undo_on_failure(lambda: directories.delete_directory(hidden)):
        for path, data in wanted.items():
            put_file(engine.files, join_path(hidden, path.removeprefix(target.metadata_root).lstrip("/")), data)
        try:
            directories.move_directory(hidden, target.metadata_root)
        except AlreadyExists as error:
            raise AlreadyExists("branch", target.branch, hint="another process created it during the call") from error


def _make_hidden_path(engine: Engine, paths: TablePaths, why: str) -> str:
    """Return a path next to the directory of a branch that no listing takes for a branch."""
    parent, _, name = paths.metadata_root.rpartition("/")
    return join_path(parent, f".{name}.{engine.ids.uuid()}.{why}")


@finished_once_begun()
@on_same_table
def delete_branch(context: TableContext, name: str) -> None:
    """Delete a branch's metadata; data files may become orphans. Main, open and fallback ones are refused."""
    _check_can_change(context.table, name, "deleted")
    if name not in list_branch_directories(context.engine, context.paths):
        _check_exists(context, name)
    paths = TablePaths(context.table.location, name)
    if isinstance(context.files, Directories):
        hidden = _make_hidden_path(context.engine, paths, "dropped")
        context.files.move_directory(paths.metadata_root, hidden)
        context.files.delete_directory(hidden)
        return
    # Newest first: the rest is always an earlier state of the branch.
    for snapshot_id in reversed(snapshot_ids(context.at_branch(name))):
        context.files.delete([paths.snapshot(snapshot_id)])
    remove_tree(context.engine, paths.metadata_root)


@finished_once_begun()
@on_same_table
def rename_branch(context: TableContext, name: str, to: str) -> None:
    """Rename a branch without waiting for its writers; main, open and fallback branches are refused."""
    _check_can_change(context.table, name, "renamed")
    _check_name(to)
    _check_exists(context, name)
    if to in list_branch_directories(context.engine, context.paths):
        hint = "delete it first (after an interrupted rename this loses nothing), or choose another name"
        raise AlreadyExists("branch", to, hint=hint)
    source, target = (TablePaths(context.table.location, branch).metadata_root for branch in (name, to))
    _move_tree(context, source, target)


def _move_tree(context: TableContext, source: str, target: str) -> None:
    """Move the metadata of a branch: in one step where the storage has directories, else file by file."""
    if isinstance(context.files, Directories):
        context.files.move_directory(source, target)
        return
    for path in sort_for_copy(list_tree(context.engine, source)):
        copy_file(context.engine, path, join_path(target, path.removeprefix(source).lstrip("/")))
    remove_tree(context.engine, source)


@finished_once_begun()
@on_same_table
def fast_forward(context: TableContext, name: str) -> int:
    """Replace the state of this branch (usually main) by that of branch `name`, and return the newest snapshot id.

    Common snapshots stay. Later snapshots and tags of this branch alone are deleted; their data files become orphans.
    Raises `CommitConflict` if another process published a snapshot during the call, and `InvalidRequest` if the schemas
    of the other branch contradict snapshots that stay.
    """
    if name == context.table.branch:
        raise InvalidRequest(f"Branch {name!r} cannot be fast-forwarded to itself", subject=name)
    if name != MAIN_BRANCH:
        _check_exists(context, name)
    branch = context.at_branch(name)
    ids = snapshot_ids(branch)
    if not ids:
        raise InvalidRequest(f"Branch {name!r} has no snapshot", subject=name, hint="write to it first")
    replace_history(context, branch, ids)
    return ids[-1]


def _read_branch_files(context: TableContext, target: TablePaths, tag: str | None) -> Mapping[str, bytes]:
    """Return the content of the files of a new branch by path, in the order of writing: the snapshot is last."""
    source = context.paths
    found: dict[str, bytes] = {}
    tagged = None if tag is None else load_tag(context, tag)
    for schema_id in schema_ids(context.engine, source):
        if tagged is None or schema_id <= tagged.snapshot.schema_id:
            found[target.schema(schema_id)] = context.files.read(source.schema(schema_id), SCHEMA_FILE.max_bytes)
    if tagged is not None:
        found[target.tag(tagged.name)] = context.files.read(source.tag(tagged.name), SNAPSHOT_FILE.max_bytes)
        # Tags do not protect changelogs, so this one may expire while the branch is created.
        found[target.snapshot(tagged.snapshot.id)] = snapshot_to_json(drop_changelog(tagged.snapshot))
    return found


def _is_tag_unchanged(context: TableContext, tag: str, content: bytes) -> bool:
    """Return whether the tag file still has this content."""
    try:
        return context.files.read(context.paths.tag(tag), SNAPSHOT_FILE.max_bytes) == content
    except NotFound:
        return False


def _is_incomplete(engine: Engine, target: TablePaths, wanted: Mapping[str, bytes]) -> bool:
    """Return whether the branch has some of these files, not all, and no others."""
    existing = {
        path: engine.files.read(path, SCHEMA_FILE.max_bytes) for path in list_tree(engine, target.metadata_root)
    }
    return len(existing) < len(wanted) and all(wanted.get(path) == data for path, data in existing.items())


def _check_name(name: str) -> None:
    if is_blank(check_text(name, "branch name")) or name == MAIN_BRANCH or name.isdecimal():
        raise InvalidRequest(
            f"Branch name {name!r} is not allowed", subject=name, hint="choose a name that is neither main nor a number"
        )


def _check_can_change(table: TableDefinition, name: str, done: str) -> None:
    """Refuse to change the main branch, the open branch, or a branch that scans fall back to."""
    if name == MAIN_BRANCH:
        raise InvalidRequest(f"Branch {name!r} cannot be {done}", subject=name)
    if name == table.branch:
        raise InvalidRequest(f"Branch {name!r} is open and cannot be {done}", subject=name, hint="open the main branch")
    if name in (table.options.scan_fallback_branch, table.options.get("scan.primary-branch")):
        raise InvalidRequest(
            f"Branch {name!r} is the fallback of scans and cannot be {done}",
            subject=name,
            hint="unset that option first",
        )


def _check_exists(context: TableContext, name: str) -> None:
    names = list_branch_names(context.engine, context.paths)
    if name not in names:
        raise NotFound("branch", name, hint=did_you_mean(name, names) or "the table has only the branch 'main'")


def sort_for_copy(paths: list[str]) -> list[str]:
    """Sort schemas first, then tags and other files, snapshots last, so that each visible snapshot can be read."""
    return sorted(paths, key=lambda path: ("/snapshot/" in path, "/schema/" not in path, path))


def list_tree(engine: Engine, directory: str) -> list[str]:
    """List all files of a directory, recursively, without hidden files."""
    found: list[str] = []
    for status in engine.files.list(directory):
        if status.is_directory:
            found += list_tree(engine, join_path(directory, status.name))
        elif not status.name.startswith("."):
            found.append(join_path(directory, status.name))
    return found


def remove_tree(engine: Engine, directory: str) -> None:
    """Delete the directory of a branch, schemas last: the removal of orphan files skips a branch without a schema."""
    paths = list_tree(engine, directory)
    for path in sorted(paths, key=lambda path: "/schema/" in path):
        engine.files.delete([path])
    inner = {path.rpartition("/")[0] for path in paths} - {directory}
    engine.files.delete([*sorted(inner, key=len, reverse=True), directory])
