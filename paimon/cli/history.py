"""Commands about the history of a table: `snapshots`, and `outcome` of a commit in doubt.

Invariant: snapshots are printed in ascending order, each with its tags; times are in UTC. Nothing is changed.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, add_command, add_output, add_table, open_data_table
from paimon.cli.output import print_records
from paimon.cli.table_overview import count_known_rows
from paimon.domain.partition.partition_text import format_plain_text
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.types.data_types import TimestampType
from paimon.operations.read.row_count import get_recorded_row_count


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    snapshots = add_command(
        commands, "snapshots", "list the snapshots of a table", "paimon snapshots lake/default.db/orders"
    )
    add_table(snapshots)
    add_output(snapshots)
    snapshots.set_defaults(run=_snapshots)
    outcome = add_command(
        commands,
        "outcome",
        "print the status of a commit: committed, not committed, open (a request can still publish it), or unknown",
        "paimon outcome lake/default.db/orders --user job --identifier 7",
    )
    add_table(outcome)
    add_output(outcome)
    outcome.add_argument("--user", required=True, help="commit user")
    outcome.add_argument("--identifier", type=int, help="commit identifier (default: the batch commit of the user)")
    outcome.add_argument("--snapshot", type=int, metavar="ID", help="snapshot that the commit tried to publish")
    outcome.add_argument("--uuid", help="UUID of that snapshot, from the error message")
    outcome.set_defaults(run=_outcome)


def _outcome(arguments: argparse.Namespace) -> None:
    commit_identifier = BATCH_COMMIT_IDENTIFIER if arguments.identifier is None else arguments.identifier
    found = open_data_table(arguments).outcome(
        arguments.user, commit_identifier, snapshot=arguments.snapshot, identity=arguments.uuid
    )
    record = {"outcome": found.status.value, "snapshots": ", ".join(map(str, found.snapshot_ids))}
    print_records([record], arguments.output)


def _snapshots(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    names: dict[int, list[str]] = {}
    for name, tag in table.tags.items():
        names.setdefault(tag.snapshot.id, []).append(name)
    snapshots = table.snapshots()
    records = [
        {
            "snapshot": s.id,
            "kind": s.commit_kind.value,
            "time": format_utc(s.time_millis),
            "records": s.total_record_count,
            "records change": s.delta_record_count,
            "rows": count_known_rows(table, s) if s is snapshots[-1] else get_recorded_row_count(table.definition, s),
            "schema": s.schema_id,
            "user": s.commit_user,
            "tags": ", ".join(names.get(s.id, [])),
        }
        for s in snapshots
    ]
    print_records(records, arguments.output, f"snapshots of {table.name}")


def format_utc(millis: int) -> str:
    """Format a time in milliseconds since 1970 as text in UTC."""
    return format_plain_text(millis * 1_000_000, TimestampType(precision=3)) + "Z"
