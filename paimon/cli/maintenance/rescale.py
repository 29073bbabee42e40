"""The command `paimon rescale`.

Invariant: there is one commit, or none if all selected partitions have the number of buckets already. A terminal shows
how many buckets are read.
"""

from __future__ import annotations

import argparse

from attrs import evolve

from paimon.cli.arguments import Commands, open_data_table
from paimon.cli.maintenance.verbs import add_table_command
from paimon.cli.output import print_records
from paimon.cli.terminal import TerminalObserver

_DESCRIPTION = """
The partitions are rewritten in one commit, and the table option 'bucket' is set to the new number.
No row changes. Readers continue. Writers that started before are refused: start them again afterwards.
With --where, the other partitions keep their number; writes to them are refused until they are rescaled, too.
"""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    parser = add_table_command(
        commands,
        "rescale",
        "change the number of buckets of a table, and rewrite its partitions",
        "paimon rescale lake/default.db/orders --buckets 8",
        _rescale,
    )
    parser.description = f"{parser.description}\n{_DESCRIPTION}"
    parser.add_argument("--buckets", type=int, required=True, metavar="N", help="buckets of each partition afterwards")
    parser.add_argument("--where", metavar="CONDITION", help="SQL condition on partition columns")
    parser.add_argument("--dry-run", action="store_true", help="write nothing, and show what would be rewritten")


def _rescale(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    with TerminalObserver() as observer:
        watched = table.with_engine(evolve(table.engine, observer=observer))
        done = watched.rescale(arguments.buckets, arguments.where, dry_run=arguments.dry_run)
    record = {
        "snapshot": done.snapshot_ids[0] if done.snapshot_ids else None,
        "partitions": done.partitions,
        "files before": done.files_before,
        "files after": done.files_after,
        "records": done.rows,
    }
    print_records([record], arguments.output, f"rescale of {table.name} to {arguments.buckets} buckets")
