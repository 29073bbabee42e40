"""`paimon orphans`: files that nobody needs.

Law: files are only listed unless --delete is given, and young ones stay unless --allow-young is given too.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, opened_table
from paimon.cli.output import console, print_rows
from paimon.cli.upkeep.verbs import AGE_HELP, moment, verb


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    parser = verb(
        commands,
        "orphans",
        "list the files that no snapshot, tag or changelog of any branch needs, or delete them",
        "paimon orphans lake/default.db/orders --older-than '2 d' --delete",
        _orphans,
    )
    parser.add_argument("--delete", action="store_true", help="delete them (default: only list)")
    parser.add_argument("--older-than", metavar="AGE", help=f"last written before (default: 1 d): {AGE_HELP}")
    parser.add_argument(
        "--allow-young",
        action="store_true",
        help="delete also files younger than a day, which running writers may be about to commit",
    )


def _orphans(given: argparse.Namespace) -> None:
    found = opened_table(given).maintain.remove_orphans(
        moment(given.older_than), dry_run=not given.delete, allow_young=given.allow_young
    )
    print_rows(found.to_reader(), given.output)
    if given.output == "table":
        size = sum(found["size"].to_pylist())
        done = "deleted" if given.delete else "can be deleted (--delete)"
        console().print(f"{found.num_rows:,} files, {size:,} bytes {done}", style="dim")
