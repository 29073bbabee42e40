"""What the processes of the simulated world do in one turn: the public verbs of a table.

Law: whatever a verb answers, refuses or raises is handed on as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Protocol

from paimon.domain.errors import AlreadyExists, NotFound
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import IntType
from paimon.scan import Scan
from paimon.table import Table
from paimon.testing.world.acting.deeds import Done, Named, Seen
from paimon.testing.world.acting.rows import commit_rows
from paimon.testing.world.plan import FLOOR_MILLIS, Role


class Worker(Protocol):
    """Who does it."""

    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def chance(self) -> random.Random: ...


Work = Callable[[Table, Worker, int], Done]
"""One turn of a worker on a table just opened, with the turn's number."""


def seen_by(scan: Scan, tag: str | None = None) -> Seen:
    """The state that a scan of `id` and `version` shows."""
    snapshot = scan.plan().snapshot
    rows = scan.to_arrow()
    versions = dict(zip(rows["id"].to_pylist(), rows["version"].to_pylist(), strict=True))
    return Seen(0 if snapshot is None else snapshot.id, versions, rows.num_rows - len(versions), tag)


def _write(table: Table, who: Worker, turn: int) -> Done:
    rows = commit_rows(who.number, turn)
    done = table.write(rows, kind_column="kind", commit_user=who.name, identifier=turn)
    return Done(f"snapshots {done.snapshot_ids}")


def _compact(table: Table, who: Worker, turn: int) -> Done:
    full = who.chance.random() < 0.5
    done = table.compact(full=full)
    return Done(f"{'full, ' if full else ''}snapshots {done.snapshot_ids}")


def _expire(table: Table, who: Worker, turn: int) -> Done:
    most = who.chance.randint(1, 3)
    now = table.engine.clock.now_millis()
    gone = table.maintain.expire_snapshots(retain_min=1, retain_max=most, older_than=now)
    if table.options.get("changelog.num-retained.max"):
        table.maintain.expire_changelogs(retain_min=1, retain_max=most, older_than=now)
    return Done(f"{gone.snapshots} snapshots, {gone.files} files")


def _clean(table: Table, who: Worker, turn: int) -> Done:
    gone = table.maintain.remove_orphans(table.engine.clock.now_millis() - FLOOR_MILLIS, dry_run=False)
    return Done(f"{gone.num_rows} files {gone['path'].to_pylist()[:3]}")


def _tag(table: Table, who: Worker, turn: int) -> Done:
    before, name = f"{who.name}-{turn - 1}", f"{who.name}-{turn}"
    choice = who.chance.random()
    if turn > 1 and choice < 0.4:
        try:
            files = table.tags.delete(before)
        except NotFound as error:
            return Done(str(error))
        return Done(f"deleted {before}, {files} files", named=Named(before))
    try:
        made = table.tags.replace(before) if turn > 1 and choice < 0.6 else table.tags.create(name)
    except (NotFound, AlreadyExists) as error:
        return Done(str(error))
    return Done(f"{made.name} names snapshot {made.snapshot.id}", named=Named(made.name, made.snapshot.id))


def _change(table: Table, who: Worker, turn: int) -> Done:
    column = f"c{who.number}_{turn}"
    table.alter(AddColumn(column, IntType()))
    return Done(f"column {column}")


def _read(table: Table, who: Worker, turn: int) -> Done:
    tags = list(table.tags) if who.chance.random() < 0.3 else []
    tag = who.chance.choice(tags) if tags else None
    scan = table.scan(["id", "version"]) if tag is None else table.scan(["id", "version"], tag=tag)
    seen = seen_by(scan, tag)
    return Done(f"snapshot {seen.snapshot}{f' of {tag}' if tag else ''} {sorted(seen.rows.items())[:12]}", seen)


WORK: Mapping[Role, Work] = {
    Role.WRITER: _write,
    Role.COMPACTOR: _compact,
    Role.EXPIRER: _expire,
    Role.CLEANER: _clean,
    Role.TAGGER: _tag,
    Role.CHANGER: _change,
    Role.READER: _read,
}
