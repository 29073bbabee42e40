"""The command that prints changes as they come: `follow`.

Law: each batch is printed, and flushed, before more is asked for; so a consumer's progress never runs ahead of what was
printed. It ends by itself only where `--until` or `--idle-timeout` says so.
"""

from __future__ import annotations

import argparse
import sys

import pyarrow as pa

from paimon.cli.arguments import Commands, add_option, add_table, command, names_of, opened_table
from paimon.cli.output import print_rows

_INTERVAL = "continuous.discovery-interval"


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    follow = command(
        commands,
        "follow",
        "print the changes of a table soon after they are committed: it looks for snapshots at an interval",
        "paimon follow lake/default.db/orders --from earliest --idle-timeout '0 s'",
    )
    add_table(follow)
    follow.add_argument(
        "--from", dest="start", metavar="SNAPSHOT",
        help="begin with the changes of this snapshot, of the 'earliest', or after the 'latest' "
        "(default: the rows of the latest state come first)",
    )  # fmt: skip
    follow.add_argument("--consumer", metavar="NAME", help="record progress under this name, and go on there")
    follow.add_argument("--columns", metavar="A,B", help="columns to print, in order; a.b is a nested field")
    follow.add_argument("--where", metavar="CONDITION", help="only changes of rows where this is true")
    follow.add_argument("--until", type=int, metavar="SNAPSHOT", help="end after this snapshot")
    follow.add_argument("--idle-timeout", metavar="AGE", help="end after so long without a snapshot, such as '1 min'")
    follow.add_argument(
        "--interval",
        metavar="AGE",
        help="look for new snapshots so often, such as '1 s': changes are printed up to so much later "
        f"(default: the table's {_INTERVAL}, or 10 s)",
    )
    add_option(follow, "a table option for this call alone")
    follow.add_argument("-o", "--output", choices=["json", "csv"], default="json", help="how to print (default: json)")
    follow.set_defaults(run=_follow)


def _follow(given: argparse.Namespace) -> None:
    start = int(given.start) if given.start is not None and given.start.isdecimal() else given.start
    if given.interval is not None:
        given.option.append(f"{_INTERVAL}={given.interval}")
    table = opened_table(given)
    if sys.stderr.isatty():
        millis = table.definition.options.continuous_discovery_interval_millis
        print(f"looking for snapshots every {millis / 1000:g} s (--interval); Ctrl-C ends", file=sys.stderr)
    with table.follow(
        start, given.consumer, columns=names_of(given.columns), where=given.where, until=given.until,
        idle_timeout=given.idle_timeout,
    ) as batches:  # fmt: skip
        if given.output == "csv":
            print_rows(pa.RecordBatchReader.from_batches(batches.arrow_schema, batches), "csv")
            return
        for batch in batches:
            print_rows(pa.RecordBatchReader.from_batches(batch.schema, [batch]), "json")
            sys.stdout.flush()

