"""Create, rename, delete and fast-forward branches.

A branch is a second history of a table in its own directory, over the same data files.

Invariant: a new branch is visible only when all files of its state exist; a branch that a crash left incomplete is
completed by the same call. On storage that can move directories, each change is one step. Java lists every directory
`branch-<name>`, so a branch is created under a hidden name. On other storage its schemas are written first and deleted
last. A directory without a schema is not listed, and the removal of orphan files deletes it. The deletion of a branch
removes metadata only.

Source: `FileSystemBranchManager`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, did_you_mean
from paimon.domain.json_text import SCHEMA_FILE, SNAPSHOT_FILE
from paimon.domain.paths import MAIN_BRANCH, TablePaths, join_path
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import snapshot_to_json
from paimon.domain.text_checks import check_text
from paimon.domain.undo import undo_on_failure
from paimon.domain.whitespace import is_blank
from paimon.operations.expire.references import list_branch_names
from paimon.operations.metadata.put_file import put_file
from paimon.operations.metadata.schemas import on_same_table, schema_ids
from paimon.operations.metadata.snapshots import list_branch_directories, load_tag, snapshot_ids
from paimon.operations.refs.replace_history import copy_file, replace_history
from paimon.operations.refs.rollback import drop_changelog
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import finished_once_begun
from paimon.ports.engine import Engine
from paimon.ports.files import Directories


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
