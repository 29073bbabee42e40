"""The command `paimon rollback`: make an earlier snapshot the latest.

Invariant: exactly one target is given, and the command prints what was deleted. It asks first; without a terminal, it
needs --yes.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, open_data_table
from paimon.cli.maintenance.verbs import add_confirmation, add_table_command, confirm_loss
from paimon.cli.output import print_records


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    parser = add_table_command(
        commands,
        "rollback",
        "make an earlier snapshot the latest, and delete all later snapshots, changelogs and tags",
        "paimon rollback lake/default.db/orders --tag year-end",
        _rollback,
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--snapshot", type=int, metavar="ID", help="a snapshot, which may exist only through a tag")
    target.add_argument("--tag", metavar="NAME", help="the snapshot of a tag")
    target.add_argument("--timestamp", metavar="TIME", help="the latest snapshot at or before this time")
    add_confirmation(parser)


def _rollback(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    latest = table.snapshot()
    if latest is not None:
        target = (
            f"snapshot {arguments.snapshot}" if arguments.snapshot is not None else arguments.tag or arguments.timestamp
        )
        confirm_loss(
            f"{table.name} is at snapshot {latest.id}. Roll back to {target}? Later snapshots, changelogs and tags are "
            "deleted, and this cannot be undone.",
            has_agreed=arguments.yes,
        )
    done = table.maintain.rollback_to(arguments.snapshot, tag=arguments.tag, timestamp=arguments.timestamp)
    record = {
        "snapshot": done.snapshot_id,
        "snapshots forgotten": done.snapshots,
        "changelogs forgotten": done.changelogs,
        "tags forgotten": ", ".join(done.tags),
    }
    print_records([record], arguments.output)
