"""What the processes of the simulated world do: the public verbs of a table, and what they were told.

Law: an actor believes only what it was told. A writer owns its keys: each of its commits raises all of them to a new
version, so that every state of the table says up to which commit of each writer it goes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from enum import Enum

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.errors import AlreadyExists, CommitUncertain, NotFound, PaimonError
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import IntType
from paimon.table import Table
from paimon.testing.world.plan import HOUR_MILLIS, Role

KEYS = 3
"""Keys of each writer; one of them is deleted in every third commit."""
COLUMNS = "id INT NOT NULL, version INT, writer INT"


class Told(Enum):
    """What an actor was told of its work."""

    DONE = "done"
    REFUSED = "refused"
    UNCERTAIN = "uncertain"
    DIED = "died"


@frozen
class Deed:
    """One piece of work: who, its number from 1, what was told, and what of."""

    actor: str
    number: int
    told: Told
    detail: str = ""


@frozen(eq=False)
class Actor:
    """One process that may die and come back.

    Parameters
    ----------
    open_table : callable
        A fresh process: nothing is remembered.
    note : callable
        Keeps deeds for the judgement.
    """

    name: str
    number: int
    role: Role
    turns: int
    open_table: Callable[[], Table]
    note: Callable[[Deed], None]
    chance: random.Random = field(repr=False)

    def run(self) -> None:
        """All of its work."""
        for turn in range(1, self.turns + 1):
            try:
                detail = _WORK[self.role](self, turn)
            except CommitUncertain as error:
                self.note(Deed(self.name, turn, Told.UNCERTAIN, str(error)))
            except PaimonError as error:
                self.note(Deed(self.name, turn, Told.REFUSED, f"{type(error).__name__}: {error}"))
            else:
                self.note(Deed(self.name, turn, Told.DONE, detail))


def version_rows(writer: int, version: int) -> dict[int, int]:
    """What the keys of a writer say after its commit of this number: versions by key, without the deleted."""
    keys = range(writer * KEYS, (writer + 1) * KEYS)
    return {key: version for key in keys if not _deletes(key, version)} if version else {}


def _deletes(key: int, version: int) -> bool:
    return version % 3 == 2 and key % KEYS == 0


def _rows(actor: Actor, version: int, table: Table) -> pa.Table:
    keys = list(range(actor.number * KEYS, (actor.number + 1) * KEYS))
    kinds = ["-D" if _deletes(key, version) else "+I" for key in keys]
    columns: Mapping[str, pa.Array] = {
        "id": pa.array(keys, pa.int32()),
        "version": pa.array([version] * KEYS, pa.int32()),
        "writer": pa.array([actor.number] * KEYS, pa.int32()),
        "kind": pa.array(kinds),
    }
    return pa.table(dict(columns))


def _write(actor: Actor, turn: int) -> str:
    """One commit; what an earlier life of the process was not told is asked for again, under the same identifier."""
    table = actor.open_table()
    done = table.write(_rows(actor, turn, table), kind_column="kind", commit_user=actor.name, identifier=turn)
    return f"snapshots {done.snapshot_ids}"


def _stream(actor: Actor, turn: int) -> str:
    table = actor.open_table()
    builder = table.new_stream_write_builder(actor.name)
    with builder.new_write() as writer:
        writer.write(_rows(actor, turn, table), "kind")
        done = builder.new_commit().commit(turn, writer.prepare_commit())
    return f"snapshots {done.snapshot_ids}"


def _compact(actor: Actor, turn: int) -> str:
    done = actor.open_table().compact(full=actor.chance.random() < 0.7)
    return f"snapshots {done.snapshot_ids}"


def _expire(actor: Actor, turn: int) -> str:
    most = actor.chance.randint(1, 3)
    table = actor.open_table()
    gone = table.maintain.expire_snapshots(retain_min=1, retain_max=most, older_than=table.engine.clock.now_millis())
    return f"{gone.snapshots} snapshots"


def _clean(actor: Actor, turn: int) -> str:
    table = actor.open_table()
    gone = table.maintain.remove_orphans(table.engine.clock.now_millis() - 25 * HOUR_MILLIS)
    return f"{gone.num_rows} files"


def _tag(actor: Actor, turn: int) -> str:
    table = actor.open_table()
    if turn > 1 and actor.chance.random() < 0.5:
        table.tags.delete(f"{actor.name}-{turn - 1}")
        return "deleted one"
    try:
        made = table.tags.create(f"{actor.name}-{turn}")
    except (NotFound, AlreadyExists) as error:
        return str(error)
    return f"of snapshot {made.snapshot.id}"


def _change(actor: Actor, turn: int) -> str:
    actor.open_table().alter(AddColumn(f"c{actor.number}_{turn}", IntType()))
    return "one column more"


def _read(actor: Actor, turn: int) -> str:
    table = actor.open_table()
    scan = table.scan(["id", "version"])
    snapshot = scan.plan().snapshot
    rows = scan.to_arrow()
    versions = dict(zip(rows["id"].to_pylist(), rows["version"].to_pylist(), strict=True))
    return f"{0 if snapshot is None else snapshot.id} {sorted(versions.items())} {rows.num_rows - len(versions)}"


_WORK: Mapping[Role, Callable[[Actor, int], str]] = {
    Role.WRITER: _write,
    Role.STREAMER: _stream,
    Role.COMPACTOR: _compact,
    Role.EXPIRER: _expire,
    Role.CLEANER: _clean,
    Role.TAGGER: _tag,
    Role.CHANGER: _change,
    Role.READER: _read,
}
