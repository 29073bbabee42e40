"""Commands about a table's history: `snapshots`, and `outcome` of a commit that was in doubt.

Law: snapshots are told in their order, each with the tags that keep it; times are in UTC. Nothing is changed.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, add_output, add_table, command, opened_table
from paimon.cli.output import print_records
from paimon.cli.picture import known_rows
from paimon.domain.partition.text import plain_text
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.types.data_types import TimestampType
from paimon.operations.read.row_count import row_count_of_snapshot


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    snapshots = command(
        commands, "snapshots", "list the snapshots of a table", "paimon snapshots lake/default.db/orders"
    )
    add_table(snapshots)
    add_output(snapshots)
    snapshots.set_defaults(run=_snapshots)
    outcome = command(
        commands,
        "outcome",
        "tell what became of a commit: committed, not committed, open (a put under way may still land), or unknown",
        "paimon outcome lake/default.db/orders --user job --identifier 7",
    )
    add_table(outcome)
    add_output(outcome)
    outcome.add_argument("--user", required=True, help="the commit user")
    outcome.add_argument("--identifier", type=int, help="the commit's identifier; without it, the user's batch commit")
    outcome.add_argument("--snapshot", type=int, metavar="ID", help="the snapshot that it was to become")
    outcome.add_argument("--uuid", help="and that snapshot's uuid, as the error told")
    outcome.set_defaults(run=_outcome)


def _outcome(given: argparse.Namespace) -> None:
    identifier = BATCH_COMMIT_IDENTIFIER if given.identifier is None else given.identifier
    found = opened_table(given).outcome(given.user, identifier, snapshot=given.snapshot, identity=given.uuid)
    record = {"outcome": found.fate.value, "snapshots": ", ".join(map(str, found.snapshot_ids))}
    print_records([record], given.output)


def _snapshots(given: argparse.Namespace) -> None:
    table = opened_table(given)
    names: dict[int, list[str]] = {}
    for name, tag in table.tags.items():
        names.setdefault(tag.snapshot.id, []).append(name)
    snapshots = table.snapshots()
    records = [
        {
            "snapshot": s.id,
            "kind": s.commit_kind.value,
            "time": utc(s.time_millis),
            "records": s.total_record_count,
            "records change": s.delta_record_count,
            "rows": known_rows(table, s) if s is snapshots[-1] else row_count_of_snapshot(table.definition, s),
            "schema": s.schema_id,
            "user": s.commit_user,
            "tags": ", ".join(names.get(s.id, [])),
        }
        for s in snapshots
    ]
    print_records(records, given.output, f"snapshots of {table.name}")


def utc(millis: int) -> str:
    """An instant as text."""
    return plain_text(millis * 1_000_000, TimestampType(precision=3)) + "Z"
