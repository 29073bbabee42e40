"""Commands about a table's history: `snapshots`.

Law: snapshots are told in their order, each with the tags that keep it; times are in UTC.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, add_output, add_table, command, opened_table
from paimon.cli.output import print_records
from paimon.domain.partition.text import plain_text
from paimon.domain.types.data_types import TimestampType


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
            "time": utc(s.time_millis),
            "rows": s.total_record_count,
            "change": s.delta_record_count,
            "schema": s.schema_id,
            "user": s.commit_user,
            "tags": ", ".join(names.get(s.id, [])),
        }
        for s in table.snapshots()
    ]
    print_records(records, given.output, f"snapshots of {table.name}")


def utc(millis: int) -> str:
    """An instant as text."""
    return plain_text(millis * 1_000_000, TimestampType(precision=3)) + "Z"
