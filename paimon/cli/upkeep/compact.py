"""`paimon compact`: the files of a table, merged and put together.

Law: one commit, or none where nothing is to do; how many buckets are done is told on the way.
"""

from __future__ import annotations

import argparse

from attrs import evolve

from paimon.cli.arguments import Commands, add_option, add_output, add_table, command, opened_table
from paimon.cli.output import print_records
from paimon.cli.progress import TerminalObserver


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    compact = command(
        commands,
        "compact",
        "merge and put together the files of a table",
        "paimon compact lake/default.db/orders --full",
    )
    add_table(compact)
    compact.add_argument("--full", action="store_true", help="everything, not only what the table's options ask for")
    compact.add_argument("--where", metavar="CONDITION", help="SQL condition over partition columns")
    add_option(compact, "a table option for this compaction alone")
    add_output(compact)
    compact.set_defaults(run=_compact)


def _compact(given: argparse.Namespace) -> None:
    table = opened_table(given)
    with TerminalObserver() as watching:
        watched = evolve(table, engine=evolve(table.engine, observer=watching))
        done = watched.compact(full=given.full, where=given.where)
    record = {
        "snapshot": done.snapshot_ids[0] if done.snapshot_ids else None,
        "buckets": done.buckets,
        "files before": done.files_before,
        "files after": done.files_after,
        "records": done.rows,
    }
    print_records([record], given.output, f"compaction of {table.name}")
