"""Create a table together with its first rows, so that no reader sees it without them.

The rows are committed to a branch at the place of the table. The place has no schema of its own, so for readers there
is no table. Then the files of the branch are copied, its schema last:

    t/branch/branch-create-table-as-<uuid>/…   as in any branch; data and manifests are in t/
    t/snapshot/snapshot-1, …                   put if absent: of several creators one is first
    t/schema/schema-0                          put if absent: the table is visible
    t/branch/branch-create-table-as-<uuid>/    deleted, also those of creators that died or were later

A creator may die after its first put. The next one finds a snapshot without a schema, and the branch with the same
snapshot, and copies the rest.

Invariant: only files that another creator can complete are visible before the schema.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.errors import AlreadyExists
from paimon.domain.json_text import SCHEMA_FILE
from paimon.domain.paths import TablePaths, join_path
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.evolve import CREATION_PREFIX, TableDeclaration, create_table
from paimon.operations.metadata.metadata_files import delete_empty_directories, put_file
from paimon.operations.metadata.schemas import latest_schema
from paimon.operations.metadata.snapshots import list_branch_directories, list_ids, read_snapshot_file
from paimon.operations.refs.branches import list_tree, remove_tree, sort_for_copy
from paimon.ports.engine import Engine


@frozen
class FilledTable:
    """A table that a creator completed: its first schema, and its latest snapshot."""

    schema: TableSchema
    snapshot: Snapshot | None

    def is_declared_as(self, other: TableSchema) -> bool:
        """Return whether the schema is the same but for its time."""
        return evolve(self.schema, time_millis=other.time_millis) == other


def begin_filled_table(
    engine: Engine, paths: TablePaths, declaration: TableDeclaration
) -> tuple[TablePaths, TableSchema]:
    """Create the branch of a new table, and return it with its schema; errors as in `create_table`."""
    branch = name_creation_branch(engine, paths)
    return branch, create_table(engine, branch, declaration)


def name_creation_branch(engine: Engine, paths: TablePaths) -> TablePaths:
    """Return the paths of a branch that no other creator has."""
    return TablePaths(paths.root, f"{CREATION_PREFIX}{engine.ids.uuid()}")


def find_interrupted(engine: Engine, paths: TablePaths) -> TablePaths | None:
    """Return the branch whose copying began, and that is still there; None if there is none."""
    for name in list_branch_directories(engine, paths):
        branch = TablePaths(paths.root, name)
        if name.startswith(CREATION_PREFIX) and _has_begun(engine, branch, paths):
            return branch
    return None


def _has_begun(engine: Engine, branch: TablePaths, paths: TablePaths) -> bool:
    """Return whether the first file that is copied from the branch is there."""
    files = _list_in_copy_order(engine, branch)
    return bool(files) and _has_same(engine, files[0], _target_of(files[0], branch, paths))


def publish_filled_table(engine: Engine, branch: TablePaths, paths: TablePaths) -> FilledTable:
    """Copy the branch to the table, or finish such a copy; AlreadyExists if another process was first."""
    put: list[str] = []
    for path in _list_in_copy_order(engine, branch):
        target, data = _target_of(path, branch, paths), engine.files.read(path, SCHEMA_FILE.max_bytes)
        if path.rpartition("/")[2] in ("LATEST", "EARLIEST"):
            engine.files.replace(target, data)
            continue
        was_absent = engine.files.status(target) is None
        if not put_file(engine.files, target, data):
            engine.files.delete(put)
            discard_branch(engine, branch)
            raise AlreadyExists("table", paths.root, hint="another process created it during the call")
        put += [target] if was_absent else []
    schema = latest_schema(engine, branch)
    assert schema is not None
    ids = list_ids(engine, branch.snapshots, "snapshot-")
    return FilledTable(schema, read_snapshot_file(engine, branch.snapshot(ids[-1]), ids[-1]) if ids else None)


def delete_creation_branches(engine: Engine, paths: TablePaths) -> None:
    """Delete the branches of all creators, after the table exists; those that are not first fail."""
    for name in list_branch_directories(engine, paths):
        if name.startswith(CREATION_PREFIX):
            discard_branch(engine, TablePaths(paths.root, name))
    engine.files.delete([paths.branches])


def discard_branch(engine: Engine, branch: TablePaths) -> None:
    """Delete the metadata of a branch, and directories that are empty then."""
    remove_tree(engine, branch.metadata_root)
    delete_empty_directories(engine, branch.metadata_root)


def _list_in_copy_order(engine: Engine, branch: TablePaths) -> list[str]:
    """Return the files of a branch, snapshots and hints first, and schemas last."""
    files = sort_for_copy(list_tree(engine, branch.metadata_root))
    order = {"snapshot": 0, "schema": 2}
    return sorted(files, key=lambda path: (order.get(path.rsplit("/", 2)[1], 1), path.endswith(("LATEST", "EARLIEST"))))


def _target_of(path: str, branch: TablePaths, paths: TablePaths) -> str:
    return join_path(paths.metadata_root, path.removeprefix(branch.metadata_root).lstrip("/"))


def _has_same(engine: Engine, path: str, target: str) -> bool:
    if engine.files.status(target) is None:
        return False
    return engine.files.read(path, SCHEMA_FILE.max_bytes) == engine.files.read(target, SCHEMA_FILE.max_bytes)
