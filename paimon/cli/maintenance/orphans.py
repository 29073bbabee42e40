"""The command `paimon orphans`: list or delete orphan files.

Invariant: files are deleted only with --delete, and files younger than a day only with --allow-young as well. Then the
command asks on a terminal.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, open_data_table
from paimon.cli.maintenance.verbs import AGE_HELP, add_confirmation, add_table_command, confirm, parse_moment
from paimon.cli.output import console, print_rows
from paimon.domain.markup import format_count


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    parser = add_table_command(
        commands,
        "orphans",
        "list or delete orphan files, which no snapshot, tag or changelog of any branch references",
        "paimon orphans lake/default.db/orders --older-than '2 d' --delete",
        _orphans,
    )
    parser.add_argument("--delete", action="store_true", help="delete the files (default: only list them)")
    parser.add_argument(
        "--older-than", metavar="AGE", help=f"files that were last written earlier (default: 1 d): {AGE_HELP}"
    )
    parser.add_argument(
        "--allow-young",
        action="store_true",
        help="also delete files younger than a day, which running writers may be about to commit",
    )
    add_confirmation(parser)


def _orphans(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    if arguments.delete and arguments.allow_young:
        confirm(
            f"Files of {table.name} that are younger than a day may belong to writers that have not committed yet. "
            "Delete them?",
            has_agreed=arguments.yes,
        )
    found = table.maintain.remove_orphans(
        parse_moment(arguments.older_than), dry_run=not arguments.delete, allow_young=arguments.allow_young
    )
    print_rows(found.to_reader(), arguments.output)
    if arguments.output == "table":
        size = sum(found["size"].to_pylist())
        done = "deleted" if arguments.delete else "can be deleted (--delete)"
        console().print(f"{format_count(found.num_rows, 'file')}, {format_count(size, 'byte')} {done}", style="dim")
