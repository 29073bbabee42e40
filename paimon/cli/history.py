"""Commands about a table's history: `snapshots`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from paimon.cli.arguments import Commands, add_output, add_table, command, opened_table
from paimon.cli.output import print_records


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    snapshots = command(
        commands, "snapshots", "list the snapshots of a table", "paimon snapshots lake/default.db/orders"
    )
    add_table(snapshots)
    add_output(snapshots)
    snapshots.set_defaults(run=_snapshots)


def _snapshots(given: argparse.Namespace) -> None:
    table = opened_table(given)
    names: dict[int, list[str]] = {}
    for name, tag in table.tags.items():
        names.setdefault(tag.snapshot.id, []).append(name)
    records = [
        {
            "snapshot": s.id,
            "kind": s.commit_kind.value,
            "time": datetime.fromtimestamp(s.time_millis / 1000, UTC).isoformat(sep=" ", timespec="milliseconds"),
            "rows": s.total_record_count,
            "change": s.delta_record_count,
            "schema": s.schema_id,
            "user": s.commit_user,
            "tags": ", ".join(names.get(s.id, [])),
        }
        for s in table.snapshots()
    ]
    print_records(records, given.output, f"snapshots of {table.name}")
