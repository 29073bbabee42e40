"""The command `paimon maintain`: do the maintenance that is due for the tables of a warehouse.

Invariant: an error of one table or action does not stop the others; the exit code is 1 if there was one.
"""

from __future__ import annotations

import argparse

from attrs import evolve

from paimon.cli.arguments import Commands, add_command, add_output, add_warehouse, open_catalog
from paimon.cli.output import print_rows
from paimon.cli.terminal import TerminalObserver
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.markup import format_count


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    parser = add_command(
        commands,
        "maintain",
        "compact tables and expire their tags, partitions, consumers, snapshots and changelogs, as far as it is due",
        "paimon maintain lake --database shop --dry-run",
    )
    parser.add_argument(
        "path", nargs="?", metavar="WAREHOUSE", help="path or URL of the warehouse (default: $PAIMON_WAREHOUSE)"
    )
    add_warehouse(parser)
    parser.add_argument("-d", "--database", metavar="NAME", help="only the tables of this database (default: all)")
    parser.add_argument("--full", action="store_true", help="compact each bucket into one sorted run")
    parser.add_argument("--orphans", action="store_true", help="also delete orphan files older than a day")
    parser.add_argument("--dry-run", action="store_true", help="only count what is due")
    add_output(parser)
    parser.set_defaults(run=_maintain)


def _maintain(arguments: argparse.Namespace) -> None:
    warehouse = arguments.path or arguments.warehouse
    if not warehouse:
        raise InvalidRequest("The command needs a warehouse.", hint="run paimon maintain PATH, or set PAIMON_WAREHOUSE")
    catalog = open_catalog(arguments, warehouse)
    given = {"full": arguments.full, "orphans": arguments.orphans, "dry_run": arguments.dry_run}
    with TerminalObserver() as observer:
        watched = evolve(catalog, engine=evolve(catalog.engine, observer=observer))
        report = watched.maintain(arguments.database, **given)
    print_rows(report.to_reader(), arguments.output)
    failed = report.num_rows - report["error"].null_count
    if failed:
        raise StorageError(
            warehouse, f"{format_count(failed, 'action')} failed", hint="the column 'error' of the report says why"
        )
