"""The commands of `paimon consumer`: list, reset, delete, clear and expire.

Invariant: to delete a consumer deletes no data. Snapshots that it had not read can expire afterwards.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, open_data_table
from paimon.cli.maintenance.verbs import AGE_HELP, add_command_group, add_table_command, parse_moment
from paimon.cli.output import print_records


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    verbs = add_command_group(
        commands,
        "consumer",
        "manage consumers, which protect unread snapshots from expiry: list, reset, delete, clear, expire",
        "paimon consumer reset lake/default.db/orders dashboard 12",
    )
    add_table_command(
        verbs, "list", "list the consumers of a table", "paimon consumer list lake/default.db/orders", _list
    )
    reset = add_table_command(
        verbs,
        "reset",
        "set the next snapshot of a consumer; create the consumer if it does not exist",
        "paimon consumer reset lake/default.db/orders dashboard 12",
        _reset,
    )
    reset.add_argument("name", metavar="NAME", help="name of the consumer")
    reset.add_argument("snapshot", type=int, metavar="SNAPSHOT", help="snapshot that the consumer reads next")
    delete = add_table_command(
        verbs, "delete", "delete a consumer", "paimon consumer delete lake/default.db/orders dashboard", _delete
    )
    delete.add_argument("name", metavar="NAME", help="name of the consumer")
    clear = add_table_command(
        verbs,
        "clear",
        "delete the consumers whose names match",
        "paimon consumer clear lake/default.db/orders --including 'test-.*'",
        _clear,
    )
    clear.add_argument(
        "--including", default=".*", metavar="REGEX", help="delete consumers with these names (default: all)"
    )
    clear.add_argument("--excluding", metavar="REGEX", help="keep consumers with these names")
    expire = add_table_command(
        verbs,
        "expire",
        "delete the consumers that made no progress for some time",
        "paimon consumer expire lake/default.db/orders '7 d'",
        _expire,
    )
    expire.add_argument("older_than", metavar="AGE", help=f"time since the last progress: {AGE_HELP}")


def _list(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    records = [{"consumer": name, "next snapshot": at} for name, at in table.consumers.items()]
    print_records(records, arguments.output, f"consumers of {table.name}")


def _reset(arguments: argparse.Namespace) -> None:
    open_data_table(arguments).consumers.reset(arguments.name, arguments.snapshot)
    print_records([{"consumer": arguments.name, "next snapshot": arguments.snapshot}], arguments.output)


def _delete(arguments: argparse.Namespace) -> None:
    open_data_table(arguments).consumers.delete(arguments.name)
    print_records([{"consumer": arguments.name, "deleted": True}], arguments.output)


def _clear(arguments: argparse.Namespace) -> None:
    gone = open_data_table(arguments).consumers.clear(arguments.including, arguments.excluding)
    print_records([{"consumer": name, "deleted": True} for name in gone], arguments.output, "deleted consumers")


def _expire(arguments: argparse.Namespace) -> None:
    gone = open_data_table(arguments).consumers.expire(parse_moment(arguments.older_than))
    print_records([{"consumer": name, "deleted": True} for name in gone], arguments.output, "deleted consumers")
