"""The command `paimon compact`.

Invariant: there is one commit, or none if no bucket needs a compaction. A terminal shows how many buckets are finished.
"""

from __future__ import annotations

import argparse

from attrs import evolve

from paimon.cli.arguments import Commands, add_command, add_option, add_output, add_table, open_data_table
from paimon.cli.output import print_records
from paimon.cli.terminal import TerminalObserver


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    compact = add_command(
        commands,
        "compact",
        "compact a table: merge its sorted runs, or combine its small files",
        "paimon compact lake/default.db/orders --full",
    )
    add_table(compact)
    compact.add_argument(
        "--full",
        action="store_true",
        help="compact each bucket into one sorted run, not only what the table options require",
    )
    compact.add_argument("--where", metavar="CONDITION", help="SQL condition on partition columns")
    compact.add_argument("--dry-run", action="store_true", help="write nothing, and show what would be compacted")
    add_option(compact, "table option for this command only; can be repeated")
    add_output(compact)
    compact.set_defaults(run=_compact)


def _compact(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    with TerminalObserver() as observer:
        watched = table.with_engine(evolve(table.engine, observer=observer))
        done = watched.compact(full=arguments.full, where=arguments.where, dry_run=arguments.dry_run)
    record = {
        "snapshot": done.snapshot_ids[0] if done.snapshot_ids else None,
        "buckets": done.buckets,
        "files before": done.files_before,
        "files after": done.files_after,
        "records": done.rows,
    }
    print_records([record], arguments.output, f"compaction of {table.name}")
