"""The command that prints the changes of new snapshots: `follow`.

Invariant: each batch is printed and flushed before the next is read, so a consumer never records changes that were not
printed. The command ends only by `--until`, by `--idle-timeout` or by an interrupt.
"""

from __future__ import annotations

import argparse
import sys

import pyarrow as pa

from paimon.cli.arguments import Commands, add_command, add_option, add_table, open_data_table, parse_names
from paimon.cli.output import print_rows

_INTERVAL = "continuous.discovery-interval"


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    follow = add_command(
        commands,
        "follow",
        "print the changes of new snapshots as they are committed; the table is checked at an interval",
        "paimon follow lake/default.db/orders --from earliest --idle-timeout '0 s'",
    )
    add_table(follow)
    follow.add_argument(
        "--from",
        dest="start",
        metavar="SNAPSHOT",
        help="start with the changes of this snapshot or of the 'earliest', or after the 'latest' "
        "(default: start with the rows of the latest snapshot)",
    )
    follow.add_argument(
        "--consumer",
        metavar="NAME",
        help="name of a consumer that records the progress; a later call continues from there",
    )
    follow.add_argument("--columns", metavar="A,B", help="columns to print, in order; a.b is a nested field")
    follow.add_argument("--where", metavar="CONDITION", help="SQL condition on the rows whose changes are printed")
    follow.add_argument("--until", type=int, metavar="SNAPSHOT", help="end after the changes of this snapshot")
    follow.add_argument(
        "--idle-timeout", metavar="TIME", help="end after this time without a new snapshot, such as '1 min'"
    )
    follow.add_argument(
        "--interval",
        metavar="TIME",
        help="time between two checks for new snapshots, such as '1 s'; changes are printed up to this much later "
        f"(default: the table's {_INTERVAL}, or 10 s)",
    )
    add_option(follow, "table option for this command only; can be repeated")
    follow.add_argument("-o", "--output", choices=["json", "csv"], default="json", help="output format (default: json)")
    follow.set_defaults(run=_follow)


def _follow(arguments: argparse.Namespace) -> None:
    start = int(arguments.start) if arguments.start is not None and arguments.start.isdecimal() else arguments.start
    if arguments.interval is not None:
        arguments.option.append(f"{_INTERVAL}={arguments.interval}")
    table = open_data_table(arguments)
    if sys.stderr.isatty():
        millis = table.definition.options.continuous_discovery_interval_millis
        print(f"looking for new snapshots every {millis / 1000:g} s (--interval); Ctrl-C ends", file=sys.stderr)
    with table.follow(
        start,
        arguments.consumer,
        columns=parse_names(arguments.columns),
        where=arguments.where,
        until=arguments.until,
        idle_timeout=arguments.idle_timeout,
    ) as batches:
        if arguments.output == "csv":
            print_rows(pa.RecordBatchReader.from_batches(batches.arrow_schema, batches), "csv")
            return
        for batch in batches:
            print_rows(pa.RecordBatchReader.from_batches(batch.schema, [batch]), "json")
            sys.stdout.flush()
