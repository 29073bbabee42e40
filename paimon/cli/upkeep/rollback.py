"""`paimon rollback`: an earlier state becomes the latest.

Law: exactly one target is named; what is forgotten on the way is told. A person at a terminal is asked first.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, opened_table
from paimon.cli.output import print_records
from paimon.cli.upkeep.verbs import confirm, verb


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    parser = verb(
        commands,
        "rollback",
        "make an earlier state the latest, and forget everything after it: snapshots, changelogs and tags",
        "paimon rollback lake/default.db/orders --tag year-end",
        _rollback,
    )
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--snapshot", type=int, metavar="ID", help="a snapshot, or one that a tag keeps")
    to.add_argument("--tag", metavar="NAME", help="a tag")
    to.add_argument("--timestamp", metavar="TIME", help="the last snapshot at or before this time")
    parser.add_argument("--yes", action="store_true", help="do not ask on a terminal")


def _rollback(given: argparse.Namespace) -> None:
    table = opened_table(given)
    latest = table.snapshot()
    if latest is not None:
        target = f"snapshot {given.snapshot}" if given.snapshot is not None else given.tag or given.timestamp
        confirm(
            f"{table.name} is at snapshot {latest.id}. Roll back to {target}? Later snapshots, changelogs and tags are "
            "deleted, and this cannot be undone.",
            is_agreed=given.yes,
        )
    done = table.maintain.rollback_to(given.snapshot, tag=given.tag, timestamp=given.timestamp)
    record = {
        "snapshot": done.snapshot_id,
        "snapshots forgotten": done.snapshots,
        "changelogs forgotten": done.changelogs,
        "tags forgotten": ", ".join(done.tags),
    }
    print_records([record], given.output)
