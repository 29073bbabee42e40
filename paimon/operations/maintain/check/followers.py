"""What followers of a table stand on: consumers, and long-lived changelogs without a gap.

Law: a consumer that cannot be read stops all expiry, so it is a fault; one that fell behind is said, and does no harm
to what is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paimon.domain.maintenance.health.fault import Fault, FaultKind
from paimon.domain.paths import join
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.maintain.check.states import Found, hint_faults
from paimon.operations.maintain.refs.consumers import consumer, consumer_files
from paimon.operations.read.changes.history import changelog_ids, first_id
from paimon.operations.read.snapshots import snapshot_ids
from paimon.ports.engine import Engine


def check_followers(engine: Engine, table: TableDefinition, where: str, found: Found) -> None:
    """Look at one branch; `where` names it where it is not main."""
    changelogs, snapshots = changelog_ids(engine, table.paths), snapshot_ids(engine, table.paths)
    _gaps(engine, table, where, found, changelogs, snapshots)
    if changelogs:
        hints = [join(table.paths.changelogs, name) for name in ("LATEST", "EARLIEST")]
        truths = (changelogs[-1], changelogs[0])
        found.faults.extend(hint_faults(engine, zip(hints, truths, strict=True)))
    last = snapshots[-1] if snapshots else 0
    for name, path in consumer_files(engine, table.paths).items():
        found.attempt(path, [f"consumer {name}{where}"], partial(_consumer, engine, table, found, name, path, last))


def _gaps(
    engine: Engine, table: TableDefinition, where: str, found: Found, ids: Sequence[int], snapshots: Sequence[int]
) -> None:
    if not ids:
        return
    end = max(ids[-1] + 1, snapshots[0] if snapshots else 0)
    for missing in sorted(set(range(ids[0], end)) - set(ids)):
        path = table.paths.changelog(missing)
        there = (path, table.paths.snapshot(missing))
        if all(engine.files.status(place) is None for place in there):  # else it was made since
            reason = f"is missing between changelog {ids[0]} and snapshot {end}: followers cannot pass"
            found.faults.append(Fault(FaultKind.GAP, path, reason, [f"changelog {missing}{where}"]))


def _consumer(engine: Engine, table: TableDefinition, found: Found, name: str, path: str, last: int) -> None:
    next_id = consumer(engine, table.paths, name)
    if next_id is None:
        return
    first = first_id(engine, table.paths) if last else 1
    if not first <= next_id <= last + 1:
        reason = f"reads snapshot {next_id} next, and there are {first} to {last}"
        found.faults.append(Fault(FaultKind.BEHIND, path, reason, [f"consumer {name}"]))
