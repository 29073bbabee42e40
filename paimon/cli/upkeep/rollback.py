"""`paimon rollback`: an earlier state becomes the latest.

Law: exactly one target is named; what is forgotten on the way is told.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, opened_table
from paimon.cli.output import print_records
from paimon.cli.upkeep.verbs import verb


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


def _rollback(given: argparse.Namespace) -> None:
    done = opened_table(given).maintain.rollback_to(given.snapshot, tag=given.tag, timestamp=given.timestamp)
    record = {
        "snapshot": done.snapshot_id,
        "snapshots forgotten": done.snapshots,
        "changelogs forgotten": done.changelogs,
        "tags forgotten": ", ".join(done.tags),
    }
    print_records([record], given.output)
