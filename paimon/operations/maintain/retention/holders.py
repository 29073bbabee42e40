"""Who holds files: the snapshots, tags and long-lived changelogs of every branch.

Law: whatever cannot be read stops the work, because it may hold anything; only what went away meanwhile holds nothing.
Source: `OrphanFilesClean.safelyGetAllSnapshots`, `ExpireSnapshotsImpl.findSkippingTags`, `TagManager.doClean`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import evolve, frozen

from paimon.domain.errors import CorruptTable
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import MAIN_BRANCH, TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.read.changes.history import changelog_ids, find_changelog
from paimon.operations.read.schemas import latest_schema, schema_ids
from paimon.operations.read.snapshots import (
    earliest_snapshot_id,
    find_snapshot,
    latest_snapshot,
    snapshots,
    tags,
)
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

_BRANCH = "branch-"


class Held(Enum):
    """What a holder needs of its snapshot."""

    ALL = "the state and the changelog"
    STATE = "the state"
    CHANGES = "the changelog, or the delta that stands for it"


@frozen(eq=False)
class Holder:
    """A snapshot whose files stay as long as the file at `path` is there; `table` is the table on its branch."""

    table: TableDefinition
    snapshot: Snapshot
    path: str
    held: Held


def branch_directories(engine: Engine, paths: TablePaths) -> list[str]:
    """Return the names of all directories of branches, also of those that are incomplete: they may hold files."""
    found = [s for s in engine.files.list(paths.branches) if s.is_directory and s.name.startswith(_BRANCH)]
    return [s.name.removeprefix(_BRANCH) for s in found]


def branch_names(engine: Engine, paths: TablePaths) -> list[str]:
    """Return the branches but main, by name: those with a schema, which alone can be opened."""
    found = branch_directories(engine, paths)
    return [name for name in found if schema_ids(engine, TablePaths(paths.root, name))]


def unfinished_branches(engine: Engine, table: TableDefinition) -> list[FileStatus]:
    """Return the directories of branches that hold no state: their making or deletion was cut short."""
    found = [s for s in engine.files.list(table.paths.branches) if s.is_directory]
    return [s for s in found if s.name.startswith(f".{_BRANCH}") or _is_unfinished(engine, table, s.name)]


def _is_unfinished(engine: Engine, table: TableDefinition, directory: str) -> bool:
    if not directory.startswith(_BRANCH):
        return False
    return _is_bare(engine, TablePaths(table.location, directory.removeprefix(_BRANCH)))


def all_branches(engine: Engine, table: TableDefinition) -> list[TableDefinition]:
    """The table as each of its branches sees it, but those that hold nothing at all; CorruptTable as `on_branch`."""
    names = [MAIN_BRANCH, *branch_directories(engine, table.paths)]
    seen = (table if name == table.branch else if_held(engine, table, name) for name in names)
    return [branch for branch in seen if branch is not None]


def if_held(engine: Engine, table: TableDefinition, name: str) -> TableDefinition | None:
    """The table on a branch; None for one that holds nothing, perhaps because it is being deleted just now."""
    paths = TablePaths(table.location, name)
    if _is_bare(engine, paths):
        return None
    try:
        return on_branch(engine, table, name)
    except CorruptTable:
        if _is_bare(engine, paths):
            return None
        raise


def _is_bare(engine: Engine, paths: TablePaths) -> bool:
    """Whether a branch is only what is left of one that was deleted, or never made."""
    if latest_schema(engine, paths) is not None:
        return False
    return not any(engine.files.list(directory) for directory in (paths.snapshots, paths.tags, paths.changelogs))


def on_branch(engine: Engine, table: TableDefinition, name: str) -> TableDefinition:
    """The table as a branch other than its own sees it; CorruptTable where that has no schema."""
    paths = TablePaths(table.location, name)
    schema = latest_schema(engine, paths)
    if schema is None:
        raise CorruptTable(
            paths.metadata_root, "is a branch without a schema", hint="delete the branch, or restore its schema files"
        )
    return evolve(table, paths=paths, schema=schema, options=TableOptions.of(schema.options))


def all_holders(engine: Engine, tables: Iterable[TableDefinition]) -> list[Holder]:
    """Everything that holds files, seen from these branches."""
    found: list[Holder] = []
    for table in tables:
        # First what may turn into something else (snapshots into changelogs), then what it turns into.
        found += [Holder(table, s, table.paths.snapshot(s.id), Held.ALL) for s in snapshots(engine, table.paths)]
        found += _tag_holders(engine, table)
        found += changelog_holders(engine, table)
    return found


def near_holders(engine: Engine, table: TableDefinition, first: int, last: int) -> list[Holder]:
    """Those that can hold what the snapshots from `first` up to, not including, `last` held.

    These are: the tags on them, the nearest snapshot or tag before and after, the newest snapshot, and everything on
    other branches. A file that an earlier tag or a later snapshot has, the nearest one has too.
    """
    tagged = sorted(_tag_holders(engine, table), key=lambda holder: holder.snapshot.id)
    before = [h for h in tagged if h.snapshot.id < first]
    after = [h for h in tagged if h.snapshot.id >= last]
    found = [h for h in tagged if first <= h.snapshot.id < last] + before[-1:]
    standing = _standing(engine, table, first, last)
    found += [Holder(table, s, table.paths.snapshot(s.id), Held.ALL) for s in standing.values()]
    nearest = min((i for i in standing if i >= last), default=None)
    found += [h for h in after[:1] if nearest is None or h.snapshot.id < nearest]
    others = [t for t in all_branches(engine, table) if t.branch != table.branch]
    return found + all_holders(engine, others)


def _standing(engine: Engine, table: TableDefinition, first: int, last: int) -> dict[int, Snapshot]:
    """The newest snapshot, those that stand between the two ids, and their neighbours."""
    earliest = earliest_snapshot_id(engine, table.paths) or 1
    ids = [*range(max(earliest, first - 1), last), max(earliest, last)]
    read = [*(find_snapshot(engine, table.paths, i) for i in ids), latest_snapshot(engine, table.paths)]
    found = {s.id: s for s in read if s is not None}
    if ids[-1] not in found and ids[-1] < max(found, default=0):  # it expired just now, and who follows it counts
        found |= {s.id: s for s in snapshots(engine, table.paths)}
    return found


def _tag_holders(engine: Engine, table: TableDefinition) -> list[Holder]:
    found = tags(engine, table.paths)
    return [Holder(table, tag.snapshot, table.paths.tag(tag.name), Held.STATE) for tag in found]


def changelog_holders(engine: Engine, table: TableDefinition) -> list[Holder]:
    """The long-lived changelogs of one branch."""
    found = ((i, find_changelog(engine, table.paths, i)) for i in changelog_ids(engine, table.paths))
    return [Holder(table, s, table.paths.changelog(i), Held.CHANGES) for i, s in found if s is not None]


def shows_delta(snapshot: Snapshot) -> bool:
    """Whether the delta of a changelog without changelog files may be read as changes."""
    return snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE)
