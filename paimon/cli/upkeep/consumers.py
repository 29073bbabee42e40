"""`paimon consumer`: who follows a table, and from where.

Law: forgetting a consumer deletes no data; it only stops holding back the expiry of what it had yet to read.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import Commands, opened_table
from paimon.cli.output import print_records
from paimon.cli.upkeep.verbs import AGE_HELP, moment, noun, verb


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    verbs = noun(
        commands,
        "consumer",
        "consumers hold back the expiry of what they have yet to read: list, reset, delete, clear, expire",
        "paimon consumer reset lake/default.db/orders dashboard 12",
    )
    verb(verbs, "list", "list the consumers of a table", "paimon consumer list lake/default.db/orders", _list)
    reset = verb(
        verbs,
        "reset",
        "let a consumer, new or not, go on from a snapshot",
        "paimon consumer reset lake/default.db/orders dashboard 12",
        _reset,
    )
    reset.add_argument("name", metavar="NAME", help="the consumer")
    reset.add_argument("snapshot", type=int, metavar="SNAPSHOT", help="the snapshot that it reads next")
    delete = verb(
        verbs, "delete", "forget a consumer", "paimon consumer delete lake/default.db/orders dashboard", _delete
    )
    delete.add_argument("name", metavar="NAME", help="the consumer")
    clear = verb(
        verbs,
        "clear",
        "forget the consumers whose names match",
        "paimon consumer clear lake/default.db/orders --including 'test-.*'",
        _clear,
    )
    clear.add_argument("--including", default=".*", metavar="REGEX", help="these (default: all)")
    clear.add_argument("--excluding", metavar="REGEX", help="but not these")
    expire = verb(
        verbs,
        "expire",
        "forget the consumers that made no progress",
        "paimon consumer expire lake/default.db/orders '7 d'",
        _expire,
    )
    expire.add_argument("older_than", metavar="AGE", help=f"for so long: {AGE_HELP}")


def _list(given: argparse.Namespace) -> None:
    table = opened_table(given)
    records = [{"consumer": name, "next snapshot": at} for name, at in table.consumers.items()]
    print_records(records, given.output, f"consumers of {table.name}")


def _reset(given: argparse.Namespace) -> None:
    opened_table(given).consumers.reset(given.name, given.snapshot)
    print_records([{"consumer": given.name, "next snapshot": given.snapshot}], given.output)


def _delete(given: argparse.Namespace) -> None:
    opened_table(given).consumers.delete(given.name)
    print_records([{"consumer": given.name, "deleted": True}], given.output)


def _clear(given: argparse.Namespace) -> None:
    gone = opened_table(given).consumers.clear(given.including, given.excluding)
    print_records([{"consumer": name, "deleted": True} for name in gone], given.output, "consumers forgotten")


def _expire(given: argparse.Namespace) -> None:
    gone = opened_table(given).consumers.expire(moment(given.older_than))
    print_records([{"consumer": name, "deleted": True} for name in gone], given.output, "consumers forgotten")
