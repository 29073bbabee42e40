"""Commands about the history of a table: `follow`, `snapshots`, and `outcome` of a commit in doubt.

Invariant: snapshots are printed in ascending order, each with its tags; times are in UTC. `follow` prints and flushes
each batch before it reads the next, so a consumer never records changes that were not printed.
"""

from __future__ import annotations

import argparse
import sys

import pyarrow as pa

from paimon.cli.arguments import Commands, add_command, add_option, add_output, add_table, open_data_table, parse_names
from paimon.cli.output import TERMINAL_ROWS, print_records, print_rows
from paimon.cli.table_overview import count_known_rows
from paimon.domain.partition.partition_text import format_utc
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.read.plan import get_recorded_row_count

_INTERVAL = "continuous.discovery-interval"


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    _add_follow(commands)
    snapshots = add_command(
        commands, "snapshots", "list the snapshots of a table", "paimon snapshots lake/default.db/orders"
    )
    add_table(snapshots)
    add_output(snapshots)
    snapshots.set_defaults(run=_snapshots)
    outcome = add_command(
        commands,
        "outcome",
        "print the status of a commit: committed, not committed, open (a request can still publish it), or unknown",
        "paimon outcome lake/default.db/orders --user job --identifier 7",
    )
    add_table(outcome)
    add_output(outcome)
    outcome.add_argument("--user", required=True, help="commit user")
    outcome.add_argument("--identifier", type=int, help="commit identifier (default: the batch commit of the user)")
    outcome.add_argument("--snapshot", type=int, metavar="ID", help="snapshot that the commit tried to publish")
    outcome.add_argument("--uuid", help="UUID of that snapshot, from the error message")
    outcome.set_defaults(run=_outcome)


def _add_follow(commands: Commands) -> None:
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


def _outcome(arguments: argparse.Namespace) -> None:
    commit_identifier = BATCH_COMMIT_IDENTIFIER if arguments.identifier is None else arguments.identifier
    found = open_data_table(arguments).outcome(
        arguments.user, commit_identifier, snapshot=arguments.snapshot, identity=arguments.uuid
    )
    record = {"outcome": found.status.value, "snapshots": ", ".join(map(str, found.snapshot_ids))}
    print_records([record], arguments.output)


def _snapshots(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    names: dict[int, list[str]] = {}
    for name, tag in table.tags.items():
        names.setdefault(tag.snapshot.id, []).append(name)
    snapshots = table.snapshots()
    records = [
        {
            "snapshot": s.id,
            "kind": s.commit_kind.value,
            "time": format_utc(s.time_millis),
            "records": s.total_record_count,
            "records change": s.delta_record_count,
            "rows": count_known_rows(table, s) if s is snapshots[-1] else get_recorded_row_count(table.definition, s),
            "schema": s.schema_id,
            "user": s.commit_user,
            "tags": ", ".join(names.get(s.id, [])),
        }
        for s in snapshots
    ]
    print_records(records, arguments.output, f"snapshots of {table.name}", TERMINAL_ROWS, shows_last=True)
