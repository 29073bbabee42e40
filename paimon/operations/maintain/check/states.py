"""The states of a table, as a check finds them: what cannot be read is a fault, and the rest is looked at all the same.

Law: snapshots follow each other without a gap; hints are at most behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from attrs import field, frozen

from paimon.domain.errors import CorruptTable, NotFound, PaimonError, StorageError, Unsupported
from paimon.domain.json_text import HINT_FILE
from paimon.domain.maintenance.health.fault import Fault, FaultKind
from paimon.domain.paths import MAIN_BRANCH
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.json import parse_hint
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.lineage import stray_snapshots
from paimon.operations.maintain.retention.holders import Held, branch_directories, if_held
from paimon.operations.read.changes.history import changelog_ids, find_changelog
from paimon.operations.read.schemas import load_schema
from paimon.operations.read.snapshots import find_snapshot, load_tag, snapshot_ids, tag_names
from paimon.ports.engine import Engine


@frozen(eq=False)
class State:
    """One state that something names.

    Parameters
    ----------
    path : str
        The file that names it.
    name : str
        ``snapshot 7``, ``tag release``, ``changelog 3``; with its branch where that is not main.
    is_end : bool
        The newest of its branch, or a tag: its entries are looked at one by one.
    """

    table: TableDefinition
    snapshot: Snapshot
    path: str
    name: str
    held: Held
    is_end: bool


@frozen(eq=False)
class Found:
    """States, the faults met on the way to them, and the branches with what is added to names of their states."""

    states: list[State] = field(factory=list)
    faults: list[Fault] = field(factory=list)
    branches: list[tuple[TableDefinition, str]] = field(factory=list)

    def attempt(self, path: str, states: Sequence[str], look: Callable[[], object]) -> bool:
        """Look, and keep what goes wrong as a fault; whether it went right."""
        try:
            look()
        except PaimonError as error:
            self.faults.append(fault_of(error, path, states))
            return False
        return True


def fault_of(error: PaimonError, path: str, states: Sequence[str]) -> Fault:
    """An error of reading, as a fault."""
    if isinstance(error, Unsupported):
        return Fault(FaultKind.UNCHECKED, path, error.message, states)
    missing = isinstance(error, NotFound) or isinstance(error.__cause__, NotFound)
    reason = error.reason if isinstance(error, CorruptTable | StorageError) else error.message
    at = error.path if isinstance(error, CorruptTable | StorageError) else path
    return Fault(FaultKind.MISSING if missing else FaultKind.UNREADABLE, at, reason, states)


def find_states(engine: Engine, table: TableDefinition) -> Found:
    """All states of all branches."""
    found = Found()
    for branch in [MAIN_BRANCH, *branch_directories(engine, table.paths)]:
        where = "" if branch == MAIN_BRANCH else f" of branch {branch}"
        try:
            seen = table if branch == table.branch else if_held(engine, table, branch)
        except PaimonError as error:
            found.faults.append(fault_of(error, table.paths.branch_directory(branch), [f"branch {branch}"]))
            continue
        if seen is None:  # directories that a process left which died as it made or deleted the branch
            continue
        found.branches.append((seen, where))
        _snapshots(engine, seen, where, found)
        _named(engine, seen, where, found)
    for state in found.states:
        schema_id = state.snapshot.schema_id
        paths = state.table.paths
        found.attempt(paths.schema(schema_id), [state.name], partial(load_schema, engine, paths, schema_id))
    return found


def _snapshots(engine: Engine, table: TableDefinition, where: str, found: Found) -> None:
    ids = _in_history(engine, table, where, found)
    for done, snapshot_id in enumerate(ids):
        path, name = table.paths.snapshot(snapshot_id), f"snapshot {snapshot_id}{where}"
        engine.observer.progress("checking snapshots", done, len(ids))

        def look(snapshot_id: int = snapshot_id, path: str = path, name: str = name) -> None:
            snapshot = find_snapshot(engine, table.paths, snapshot_id)
            if snapshot is not None:  # else it expired since it was listed
                found.states.append(State(table, snapshot, path, name, Held.ALL, snapshot_id == ids[-1]))

        found.attempt(path, [name], look)
    for missing in sorted(set(range(ids[0], ids[-1])) - set(ids)) if ids else []:
        if engine.files.status(table.paths.snapshot(missing)) is None:
            reason, name = f"is missing between snapshots {ids[0]} and {ids[-1]}", f"snapshot {missing}{where}"
            found.faults.append(Fault(FaultKind.GAP, table.paths.snapshot(missing), reason, [name]))
    truths = (ids[-1], ids[0]) if ids else (0, 0)
    hints = (table.paths.latest_hint, table.paths.earliest_hint)
    found.faults.extend(hint_faults(engine, zip(hints, truths, strict=True)))


def _in_history(engine: Engine, table: TableDefinition, where: str, found: Found) -> tuple[int, ...]:
    """The ids of all snapshots but those that lie astray, which are named."""
    ids = snapshot_ids(engine, table.paths)
    try:
        strays = {s.id for s in stray_snapshots(engine, table)}
    except PaimonError:  # what cannot be read is named where it is looked at for itself
        return ids
    for snapshot_id in strays:
        reason = "lies behind the history: its writer died before it could look"
        path, name = table.paths.snapshot(snapshot_id), f"snapshot {snapshot_id}{where}"
        found.faults.append(Fault(FaultKind.ASTRAY, path, reason, [name]))
    return tuple(i for i in ids if i not in strays)


def hint_faults(engine: Engine, hints: Iterable[tuple[str, int]]) -> Iterator[Fault]:
    """Those of some hints, each with the truth, that are ahead of it."""
    for path, truth in hints:
        try:
            told = parse_hint(engine.files.read(path, HINT_FILE.max_bytes))
        except NotFound:
            continue
        except (StorageError, CorruptTable) as error:
            yield Fault(FaultKind.HINT, path, error.reason)
            continue
        if told is not None and told > truth:
            yield Fault(FaultKind.HINT, path, f"says {told}, and the truth is {truth}")


def _named(engine: Engine, table: TableDefinition, where: str, found: Found) -> None:
    for tag in tag_names(engine, table.paths):
        path, name = table.paths.tag(tag), f"tag {tag}{where}"

        def look(tag: str = tag, path: str = path, name: str = name) -> None:
            snapshot = load_tag(engine, table.paths, tag).snapshot
            found.states.append(State(table, snapshot, path, name, Held.STATE, True))

        found.attempt(path, [name], look)
    for changelog_id in changelog_ids(engine, table.paths):
        path, name = table.paths.changelog(changelog_id), f"changelog {changelog_id}{where}"

        def find(changelog_id: int = changelog_id, path: str = path, name: str = name) -> None:
            snapshot = find_changelog(engine, table.paths, changelog_id)
            if snapshot is not None:
                found.states.append(State(table, snapshot, path, name, Held.CHANGES, False))

        found.attempt(path, [name], find)
