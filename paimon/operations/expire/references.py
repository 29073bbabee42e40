"""The references of a table: the snapshots, tags and decoupled changelogs of all branches.

Invariant: a reference that cannot be read stops the work, because it may need any file. Only a reference that has
disappeared needs no files.

Source: `OrphanFilesClean.safelyGetAllSnapshots`, `ExpireSnapshotsImpl.findSkippingTags`, `TagManager.doClean`.
"""

# No file has a counter of its users. Who deletes files reads the references that may need them, and each reference
# says what it needs of its snapshot:
#
#                                state (base + delta lists,    changelog files   delta as changes, if there
#                                index, statistics)                              are no changelog files
#     snapshot file     ALL      yes                           yes               yes (a part of the state)
#     tag               STATE    yes                           no                no
#     changelog file    CHANGES  no                            yes               yes
#
# Two kinds of work need references:
#
# - Expiry and the deletion of a tag know which snapshots go, say S3 to S6 of S1 to S20. The files of these can be
#   needed by few others (`read_nearby_references`): a data file lives for an interval of snapshots. If a snapshot after
#   S6 needs it, then S7 does, too, and if a tag before S3 needs it, then the nearest one does. So these two neighbours,
#   the tags in between, the newest snapshot and all other branches are enough, however long the history is.
# - The removal of orphan files looks at any file, so it reads all references (`read_all_references`).
#
# Writers and expiry run concurrently. Two orders make this safe without a lock: an object is deleted before the
# references are read that decide about its files (so a tag that is created at the same time either is seen, or does not
# find its snapshot); and snapshots are read before changelogs, because expiry makes the one into the other. If a
# reference disappears while its metadata is read, all references are read again (`find_referenced_files`).

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import evolve, frozen

from paimon.domain.errors import CorruptTable
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import MAIN_BRANCH, TablePaths
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.metadata.schemas import latest_schema, schema_ids
from paimon.operations.metadata.snapshots import (
    earliest_snapshot_id,
    find_snapshot,
    latest_snapshot,
    list_branch_directories,
    snapshots,
    tags,
)
from paimon.operations.read.changes.history import find_changelog, list_changelog_ids
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

_BRANCH = "branch-"


class ReferencedPart(Enum):
    """What a reference needs of its snapshot."""

    ALL = "the state and the changelog"
    STATE = "the state"
    CHANGES = "the changelog, or the delta that replaces it"


@frozen(eq=False)
class Reference:
    """A snapshot whose files are needed as long as a file exists."""

    # the table on the branch of the reference
    context: TableContext
    snapshot: Snapshot
    # the file whose existence keeps the reference
    path: str
    # what the reference needs of the snapshot
    part: ReferencedPart


def list_branch_names(engine: Engine, paths: TablePaths) -> list[str]:
    """Return the names of the branches other than main that have a schema; only these can be opened."""
    found = list_branch_directories(engine, paths)
    return [name for name in found if schema_ids(engine, TablePaths(paths.root, name))]


def list_unfinished_branches(context: TableContext) -> list[FileStatus]:
    """Return the directories of branches without a state, whose creation or deletion was interrupted."""
    found = [s for s in context.files.list(context.paths.branches) if s.is_directory]
    return [s for s in found if s.name.startswith(f".{_BRANCH}") or _is_unfinished(context, s.name)]


def _is_unfinished(context: TableContext, directory: str) -> bool:
    if not directory.startswith(_BRANCH):
        return False
    return _has_no_content(context.engine, TablePaths(context.table.location, directory.removeprefix(_BRANCH)))


def read_branches(context: TableContext) -> list[TableContext]:
    """Return the context of each branch that has content; CorruptTable if such a branch has no schema."""
    names = [MAIN_BRANCH, *list_branch_directories(context.engine, context.paths)]
    seen = (context if name == context.table.branch else find_branch(context, name) for name in names)
    return [branch for branch in seen if branch is not None]


def find_branch(context: TableContext, name: str) -> TableContext | None:
    """Return the context of the table on a branch; None for a branch without content, which may be in deletion."""
    paths = TablePaths(context.table.location, name)
    if _has_no_content(context.engine, paths):
        return None
    try:
        return read_branch(context, name)
    except CorruptTable:
        if _has_no_content(context.engine, paths):
            return None
        raise


def _has_no_content(engine: Engine, paths: TablePaths) -> bool:
    """Return whether a branch has neither a schema nor a reference, because it was deleted or never completed."""
    if latest_schema(engine, paths) is not None:
        return False
    return not any(engine.files.list(directory) for directory in (paths.snapshots, paths.tags, paths.changelogs))


def read_branch(context: TableContext, name: str) -> TableContext:
    """Return the context of the table on another branch."""
    paths = TablePaths(context.table.location, name)
    schema = latest_schema(context.engine, paths)
    if schema is None:
        raise CorruptTable(
            paths.metadata_root,
            "is a branch without a schema",
            hint="delete the branch, or restore its schema files from a backup",
        )
    table = evolve(context.table.at_paths(paths), schema=schema, options=TableOptions.of(schema.options))
    return context.with_table(table)


def read_all_references(branches: Iterable[TableContext]) -> list[Reference]:
    """Return all references on these branches."""
    found: list[Reference] = []
    for branch in branches:
        # Snapshots first: they can become changelogs while this reads.
        found += [_to_snapshot_reference(branch, s) for s in snapshots(branch)]
        found += _tag_references(branch)
        found += read_changelog_references(branch)
    return found


def read_nearby_references(context: TableContext, first: int, last: int) -> list[Reference]:
    """Return the references that can need files of the snapshots from `first` to `last` (exclusive).

    These are the tags on them, the nearest snapshot or tag before and after, the newest snapshot, and all references of
    other branches. A file that an earlier tag or a later snapshot needs is also needed by the nearest one.
    """
    tagged = sorted(_tag_references(context), key=lambda reference: reference.snapshot.id)
    before = [h for h in tagged if h.snapshot.id < first]
    after = [h for h in tagged if h.snapshot.id >= last]
    found = [h for h in tagged if first <= h.snapshot.id < last] + before[-1:]
    existing = _read_snapshots_near(context, first, last)
    found += [_to_snapshot_reference(context, s) for s in existing.values()]
    nearest = min((i for i in existing if i >= last), default=None)
    found += [h for h in after[:1] if nearest is None or h.snapshot.id < nearest]
    others = [branch for branch in read_branches(context) if branch.paths.branch != context.paths.branch]
    return found + read_all_references(others)


def _read_snapshots_near(context: TableContext, first: int, last: int) -> dict[int, Snapshot]:
    """Return the existing snapshots between the two ids, their neighbours, and the newest snapshot."""
    earliest = earliest_snapshot_id(context) or 1
    ids = [*range(max(earliest, first - 1), last), max(earliest, last)]
    read = [
        *(find_snapshot(context, i) for i in ids),
        latest_snapshot(context),
    ]
    found = {s.id: s for s in read if s is not None}
    if ids[-1] not in found and ids[-1] < max(found, default=0):  # it expired during this read: find the next one
        found |= {s.id: s for s in snapshots(context)}
    return found


def _to_snapshot_reference(context: TableContext, snapshot: Snapshot) -> Reference:
    return Reference(context, snapshot, context.paths.snapshot(snapshot.id), ReferencedPart.ALL)


def _tag_references(context: TableContext) -> list[Reference]:
    found = tags(context)
    return [Reference(context, tag.snapshot, context.paths.tag(tag.name), ReferencedPart.STATE) for tag in found]


def read_changelog_references(context: TableContext) -> list[Reference]:
    """Return the references of the decoupled changelogs of one branch."""
    found = ((i, find_changelog(context, i)) for i in list_changelog_ids(context))
    return [
        Reference(context, s, context.paths.changelog(i), ReferencedPart.CHANGES) for i, s in found if s is not None
    ]


def can_read_delta(snapshot: Snapshot) -> bool:
    """Return whether the delta of a changelog without changelog files can be read as changes."""
    return snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE)
