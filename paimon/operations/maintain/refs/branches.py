"""Branches: a second history of a table, in a directory of its own, over the same data files.

Law: a new branch shows its state only when everything that state needs is there; what a crash left half made is made
whole by asking again. Where the storage can move directories, a branch is made, renamed and deleted in one step: Java
lists every directory `branch-<name>`, so it is made under a hidden name. Elsewhere its schemas come first and go last.
A directory without a schema is not listed, and the orphan cleaner removes it. Deleting one removes metadata only.
Source: `FileSystemBranchManager`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, did_you_mean
from paimon.domain.json_text import SCHEMA_FILE, SNAPSHOT_FILE
from paimon.domain.paths import MAIN_BRANCH, TablePaths, join
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.json import snapshot_to_json
from paimon.domain.texts import check_text
from paimon.domain.whitespace import is_blank
from paimon.operations.file_deletion import delete_files
from paimon.operations.maintain.refs.rollback import forget_after, forget_changelogs, without_changelog
from paimon.operations.maintain.retention.holders import branch_directories, branch_names
from paimon.operations.read.schemas import schema_ids
from paimon.operations.read.snapshots import find_snapshot, load_tag, snapshot_ids, snapshots, tag_names
from paimon.operations.undo import undone_on_failure
from paimon.ports.engine import Engine
from paimon.ports.files import Directories, PutOutcome


def create_branch(
    engine: Engine, table: TableDefinition, name: str, tag: str | None = None, exist_ok: bool = False
) -> None:
    """Make a branch at a tag's state, or (without a tag) an empty one with the table's schemas.

    Raises
    ------
    AlreadyExists
        There is a branch of this name.
    NotFound
        There is no such tag.
    InvalidRequest
        The name cannot be one.
    """
    _check_name(name)
    target = TablePaths(table.location, name)
    wanted = _files_of_branch(engine, table, target, tag)
    is_there = name in branch_directories(engine, table.paths)
    if is_there:
        if exist_ok and not _is_half_made(engine, target, wanted):
            return
        if not _is_half_made(engine, target, wanted):
            raise AlreadyExists("branch", name, hint="delete it first, or take another name")
    if is_there or not isinstance(engine.files, Directories):
        _put_files(engine, name, wanted)
    else:
        _put_directory(engine, engine.files, target, wanted)
    if tag is not None and not _still_keeps(engine, table, tag, wanted[target.tag(tag)]):
        delete_branch(engine, table, name)
        raise NotFound("tag", tag, hint="it was deleted or replaced just now; its files may be gone")


def _put_files(engine: Engine, name: str, wanted: Mapping[str, bytes]) -> None:
    for path, data in wanted.items():
        outcome = engine.files.put_if_absent(path, data)
        if outcome is not PutOutcome.CREATED and engine.files.read(path, SCHEMA_FILE.max_bytes) != data:
            raise AlreadyExists("branch", name, hint="another process made it just now")


def _put_directory(
    engine: Engine, directories: Directories, target: TablePaths, wanted: Mapping[str, bytes]
) -> None:
    """Make the branch under a hidden name, and give it its own in one step."""
    hidden = _hidden(engine, target, "making")
    with undone_on_failure(lambda: directories.delete_directory(hidden)):
        for path, data in wanted.items():
            engine.files.put_if_absent(join(hidden, path.removeprefix(target.metadata_root).lstrip("/")), data)
        try:
            directories.move_directory(hidden, target.metadata_root)
        except AlreadyExists as error:
            raise AlreadyExists("branch", target.branch, hint="another process made it just now") from error


def _hidden(engine: Engine, paths: TablePaths, why: str) -> str:
    """Return a path beside a branch's directory that no listing takes for a branch."""
    parent, _, name = paths.metadata_root.rpartition("/")
    return join(parent, f".{name}.{engine.ids.uuid()}.{why}")


def delete_branch(engine: Engine, table: TableDefinition, name: str) -> None:
    """Remove a branch's metadata; its data files are orphans then, unless another branch has them.

    Raises
    ------
    NotFound
        There is no such branch.
    InvalidRequest
        It is the main branch, the one that is open, or one that scans fall back to.
    """
    _check_free(table, name, "deleted")
    if name not in branch_directories(engine, table.paths):
        _check_exists(engine, table, name)
    paths = TablePaths(table.location, name)
    if isinstance(engine.files, Directories):
        hidden = _hidden(engine, paths, "dropped")
        engine.files.move_directory(paths.metadata_root, hidden)
        engine.files.delete_directory(hidden)
        return
    for snapshot_id in reversed(snapshot_ids(engine, paths)):  # the newest first: what is left is a state it had
        engine.files.delete([paths.snapshot(snapshot_id)])
    _remove_tree(engine, paths.metadata_root)


def rename_branch(engine: Engine, table: TableDefinition, name: str, to: str) -> None:
    """Give a branch another name; whoever writes to it meanwhile is not waited for.

    Raises
    ------
    NotFound, AlreadyExists
        There is no such branch; there is one of the new name.
    InvalidRequest
        It is the main branch, the one that is open, or one that scans fall back to; a name that cannot be one.
    """
    _check_free(table, name, "renamed")
    _check_name(to)
    _check_exists(engine, table, name)
    if to in branch_directories(engine, table.paths):
        hint = "delete it first (also where a renaming was cut short: nothing is lost), or take another name"
        raise AlreadyExists("branch", to, hint=hint)
    source, target = (TablePaths(table.location, branch).metadata_root for branch in (name, to))
    if isinstance(engine.files, Directories):
        engine.files.move_directory(source, target)
        return
    for path in _in_order(_tree(engine, source)):
        _copy(engine, path, join(target, path.removeprefix(source).lstrip("/")))
    _remove_tree(engine, source)


def fast_forward(engine: Engine, table: TableDefinition, name: str) -> int:
    """Let this branch (main, as a rule) go on as `name` did; answers the newest snapshot.

    What both have in common stays. The snapshots and tags that only this branch has after that are forgotten; their
    data are orphans then.

    Raises
    ------
    NotFound
        There is no such branch.
    InvalidRequest
        It has no snapshot, is the one that is open, or its schemas contradict snapshots that stay.
    """
    if name == table.branch:
        raise InvalidRequest(f"branch {name!r} cannot be fast-forwarded to itself", subject=name)
    if name != MAIN_BRANCH:
        _check_exists(engine, table, name)
    source, target = TablePaths(table.location, name), table.paths
    ids = snapshot_ids(engine, source)
    if not ids:
        raise InvalidRequest(f"branch {name!r} has no snapshot", subject=name, hint="write to it first")
    common = _newest_in_common(engine, source, target, ids)
    _check_schemas(engine, source, target, ids[0] if common is None else common + 1)
    _forget_own(engine, table, ids[0], common)
    for schema_id in schema_ids(engine, source):
        _copy(engine, source.schema(schema_id), target.schema(schema_id))
    for schema_id in [i for i in schema_ids(engine, target) if i > schema_ids(engine, source)[-1]]:
        delete_files(engine, [target.schema(schema_id)])
    for tag in tag_names(engine, source):
        _copy(engine, source.tag(tag), target.tag(tag))
    for snapshot_id in [i for i in ids if common is None or i > common]:
        _copy(engine, source.snapshot(snapshot_id), target.snapshot(snapshot_id))
    engine.files.replace(target.latest_hint, str(ids[-1]).encode())
    return ids[-1]


def _files_of_branch(
    engine: Engine, table: TableDefinition, target: TablePaths, tag: str | None
) -> Mapping[str, bytes]:
    """What a new branch consists of, in the order in which it is written: its snapshot last."""
    source = table.paths
    found: dict[str, bytes] = {}
    kept = None if tag is None else load_tag(engine, source, tag)
    for schema_id in schema_ids(engine, source):
        if kept is None or schema_id <= kept.snapshot.schema_id:
            found[target.schema(schema_id)] = engine.files.read(source.schema(schema_id), SCHEMA_FILE.max_bytes)
    if kept is not None:
        found[target.tag(kept.name)] = engine.files.read(source.tag(kept.name), SNAPSHOT_FILE.max_bytes)
        # Tags keep no changelog: it may expire while the branch is made.
        found[target.snapshot(kept.snapshot.id)] = snapshot_to_json(without_changelog(kept.snapshot))
    return found


def _still_keeps(engine: Engine, table: TableDefinition, tag: str, content: bytes) -> bool:
    try:
        return engine.files.read(table.paths.tag(tag), SNAPSHOT_FILE.max_bytes) == content
    except NotFound:
        return False


def _is_half_made(engine: Engine, target: TablePaths, wanted: Mapping[str, bytes]) -> bool:
    """Whether the branch holds some of what it is to be made of, and nothing else."""
    held = {path: engine.files.read(path, SCHEMA_FILE.max_bytes) for path in _tree(engine, target.metadata_root)}
    return len(held) < len(wanted) and all(wanted.get(path) == data for path, data in held.items())


def _newest_in_common(engine: Engine, source: TablePaths, target: TablePaths, ids: tuple[int, ...]) -> int | None:
    for snapshot_id in reversed(ids):
        ours, theirs = find_snapshot(engine, target, snapshot_id), find_snapshot(engine, source, snapshot_id)
        if ours is not None and theirs is not None and ours.is_same(theirs):
            return snapshot_id
    return None


def _check_schemas(engine: Engine, source: TablePaths, target: TablePaths, first: int) -> None:
    """Refuse to put another schema in the place of one that a snapshot before `first` was written with."""
    shared = set(schema_ids(engine, source)) & set(schema_ids(engine, target))
    other = {i for i in shared if _schema_bytes(engine, source, i) != _schema_bytes(engine, target, i)}
    kept = [s for s in snapshots(engine, target) if s.id < first and s.schema_id in other] if other else []
    if kept:
        raise InvalidRequest(
            f"snapshot {kept[0].id} needs schema {kept[0].schema_id}, which is another on branch {source.branch!r}",
            subject=source.branch,
            hint=f"expire the snapshots before {first} first",
        )


def _schema_bytes(engine: Engine, paths: TablePaths, schema_id: int) -> bytes:
    return engine.files.read(paths.schema(schema_id), SCHEMA_FILE.max_bytes)


def _forget_own(engine: Engine, table: TableDefinition, first: int, common: int | None) -> None:
    """Forget what this branch has after the snapshot in common, else from the first of the other branch on."""
    earlier = [i for i in snapshot_ids(engine, table.paths) if i < first]
    last = common if common is not None else max(earlier, default=None)
    if last is not None:
        forget_after(engine, table, last)
    else:
        forget_after(engine, table, 0)
        engine.files.delete([table.paths.latest_hint, table.paths.earliest_hint])
    if common is None:
        forget_changelogs(engine, table, first)


def _copy(engine: Engine, source: str, target: str) -> None:
    data = engine.files.read(source, SCHEMA_FILE.max_bytes)
    try:
        if engine.files.read(target, SCHEMA_FILE.max_bytes) == data:
            return
    except NotFound:
        pass
    with engine.files.create(target) as file:
        file.write(data)


def _check_name(name: str) -> None:
    if is_blank(check_text(name, "branch name")) or name == MAIN_BRANCH or name.isdecimal():
        raise InvalidRequest(
            f"branch cannot be called {name!r}", subject=name, hint="take a name that is neither main nor a number"
        )


def _check_free(table: TableDefinition, name: str, done: str) -> None:
    if name in (MAIN_BRANCH, table.branch):
        raise InvalidRequest(f"branch {name!r} cannot be {done} from here", subject=name)
    if name in (table.options.scan_fallback_branch, table.options.get("scan.primary-branch")):
        raise InvalidRequest(
            f"branch {name!r} is what scans of this table fall back to", subject=name, hint="unset that option first"
        )


def _check_exists(engine: Engine, table: TableDefinition, name: str) -> None:
    names = branch_names(engine, table.paths)
    if name not in names:
        raise NotFound("branch", name, hint=did_you_mean(name, names))


def _in_order(paths: list[str]) -> list[str]:
    """Schemas first, then tags and the like, snapshots last: what is there can be read."""
    return sorted(paths, key=lambda path: ("/snapshot/" in path, "/schema/" not in path, path))


def _tree(engine: Engine, directory: str) -> list[str]:
    found: list[str] = []
    for status in engine.files.list(directory):
        if status.is_directory:
            found += _tree(engine, join(directory, status.name))
        elif not status.name.startswith("."):
            found.append(join(directory, status.name))
    return found


def _remove_tree(engine: Engine, directory: str) -> None:
    """Remove a branch's directory; its schemas go last, because a branch without one stops the cleaner."""
    paths = _tree(engine, directory)
    for path in sorted(paths, key=lambda path: "/schema/" in path):
        engine.files.delete([path])
    inner = {path.rpartition("/")[0] for path in paths} - {directory}
    engine.files.delete([*sorted(inner, key=len, reverse=True), directory])
