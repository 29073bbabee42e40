"""Actors that drop, rename and create the table of a simulation, and what holds for the commits of the others.

Invariant: a commit is acknowledged only if its snapshot was published while the table that its writer opened was there.
A table contains a snapshot of another table's writer only if that writer died, does not know the outcome, or named the
snapshot in its error. The same holds for a directory without a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

from attrs import field, frozen

from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.domain.errors import PaimonError
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot, snapshot_from_json
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.ports.engine import Engine
from paimon.table import Table
from paimon.testing.simulation.actions import Action, Outcome, WorkResult
from paimon.testing.simulation.simulation_plan import WRITERS, Role

WAREHOUSE, DATABASE, TABLE, OTHER_NAME = "/lake", "d", "t", "u"
_PATHS = TablePaths(f"{WAREHOUSE}/{DATABASE}.db/{TABLE}")
_LOST = "lost compaction"
_CERTAIN = {Outcome.DONE, Outcome.REFUSED}


def run_replacer(role: Role, engine: Engine, declaration: TableDeclaration) -> WorkResult:
    """Drop the table, create it, or rename it to the other name or back.

    Parameters
    ----------
    role : Role
        One of `REPLACERS`.
    engine : Engine
        The engine of the actor.
    declaration : TableDeclaration
        The table that a creator declares.

    Returns
    -------
    WorkResult
        What was done. Nothing to do is an error.
    """
    store = FileSystemCatalogStore(engine.files, WAREHOUSE)
    if role is Role.DROPPER:
        store.drop_table(DATABASE, TABLE)
        return WorkResult("dropped")
    if role is Role.CREATOR:
        engine.clock.sleep_millis(1)  # so that no two tables have equal schemas
        schema = create_table(engine, _PATHS, declaration)
        return WorkResult(f"created at {schema.time_millis}")
    names = (TABLE, OTHER_NAME) if store.has_table(DATABASE, TABLE) else (OTHER_NAME, TABLE)
    store.rename_table(DATABASE, names[0], DATABASE, names[1])
    return WorkResult(f"renamed {names[0]} to {names[1]}")


@frozen
class SnapshotPut:
    """A snapshot file that was put, and when."""

    snapshot: Snapshot
    time: int


@frozen(eq=False)
class TableTimes:
    """Which table was at its place at which logical time. A state machine.

    A table is identified by the hash of its first schema file without the line breaks that a rename by copies adds;
    None means no table.
    """

    presences: list[tuple[int, bytes | None]] = field(factory=list)
    copies: dict[bytes, bytes] = field(factory=dict)
    opened: list[tuple[str, int, bytes]] = field(factory=list)

    def observe(self, time: int, contents: Mapping[str, bytes]) -> None:
        """Note what is at the place."""
        table = identify_table(contents)
        if not self.presences or self.presences[-1][1] != table:
            self.presences.append((time, table))
        if table is not None:
            self.copies[sha256(contents[_PATHS.schema(0)]).digest()] = table

    def record_opened(self, actor: str, time: int, table: Table) -> None:
        """Note which table an actor opened.

        Parameters
        ----------
        actor : str
            The name of the actor.
        time : int
            The logical time.
        table : Table
            What it opened.
        """
        origin = table.definition.origin
        assert origin is not None
        self.opened.append((actor, time, self.copies.get(origin.digest, origin.digest)))

    def find_opened(self, actor: str, at: int) -> bytes | None:
        """Return the table that an actor had opened at a time; None for an actor that opens none."""
        tables = [table for name, time, table in self.opened if name == actor and time <= at]
        return tables[-1] if tables else None

    def was_there_after(self, table: bytes | None, time: int) -> bool:
        """Return whether a table was at the place at this time or later."""
        ends = [start for start, _ in self.presences[1:]] + [time + 1]
        return any(found == table and end > time for (_, found), end in zip(self.presences, ends, strict=True))


def identify_table(contents: Mapping[str, bytes]) -> bytes | None:
    """Return what identifies the table at the place; None for no table, and for a name that a rename reserved."""
    data = contents.get(_PATHS.schema(0), b"")
    return sha256(data.rstrip(b"\n")).digest() if data.startswith(b"{") else None


def check_replaced_tables(
    actions: Sequence[Action],
    puts: Sequence[SnapshotPut],
    times: TableTimes,
    contents: Mapping[str, bytes],
    open_table: Callable[[], Table],
) -> Iterator[str]:
    """Report the commits that contradict the invariant, and a table that cannot be read.

    Parameters
    ----------
    actions : sequence of Action
        All actions, in the order of their end.
    puts : sequence of SnapshotPut
        All snapshot files that were put.
    times : TableTimes
        Which table was there when, and which one each actor opened.
    contents : mapping of str to bytes
        The files at the end.
    open_table : callable
        Opens the table without faults.

    Yields
    ------
    str
        One sentence per violation.
    """
    attempts: dict[tuple[str, int], list[Action]] = {}
    for action in (a for a in actions if a.role in WRITERS):
        attempts.setdefault((action.actor, action.number), []).append(action)
    for (actor, number), made in attempts.items():
        times_put = [p.time for p in puts if (p.snapshot.commit_user, p.snapshot.commit_identifier) == (actor, number)]
        is_in_table = any(times.was_there_after(times.find_opened(actor, time), time) for time in times_put)
        if {a.outcome for a in made} <= _CERTAIN and made[-1].outcome is Outcome.DONE and not is_in_table:
            yield f"commit {number} of {actor} was acknowledged, and its table was gone before"
    table, is_foreign = identify_table(contents), False
    times_of = {p.snapshot.identity: p.time for p in reversed(puts)}  # a rename by copies puts snapshots again
    for path in sorted(p for p in contents if p.startswith(_PATHS.snapshots + "/snapshot-")):
        snapshot = snapshot_from_json(contents[path], path)
        made = attempts.get((snapshot.commit_user, snapshot.commit_identifier), [])
        if made and times.find_opened(snapshot.commit_user, times_of[snapshot.identity]) != table:
            is_foreign = True
            if all(_is_refused_whole(a, snapshot.id, table) for a in made):
                yield f"snapshot {snapshot.id} of {snapshot.commit_user} is left in another table, or in none"
    if table is not None and not is_foreign:
        yield from _check_readable(open_table)


def _is_refused_whole(action: Action, snapshot_id: int, table: bytes | None) -> bool:
    """Return whether the actor was told that nothing is left of its commit, or that another table has it.

    Only a drop can leave an acknowledged commit behind, in a directory without a table.
    """
    if action.outcome is Outcome.DONE:
        return table is not None and _LOST not in action.description
    return action.outcome is Outcome.REFUSED and f"snapshot {snapshot_id} " not in action.description


def _check_readable(open_table: Callable[[], Table]) -> Iterator[str]:
    try:
        table = open_table()
        table.scan().to_arrow()
        faults = table.maintain.check(deep=True).faults
    except PaimonError as error:
        yield f"the table cannot be read: {type(error).__name__}: {error}"
        return
    yield from (f"check: {fault}" for fault in faults if not fault.kind.is_harmless)
