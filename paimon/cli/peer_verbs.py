"""Verbs of `paimon table` that only pypaimon's terminal has: `explain`, `drop-partition` and the changes of `alter`.

Invariant: each verb does what another command does with its own arguments; the help text names that command.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

from paimon.cli.alter import Change
from paimon.cli.arguments import Commands, add_command, add_output, add_table, open_data_table, parse_options
from paimon.cli.maintenance.verbs import add_confirmation, confirm_loss
from paimon.cli.output import print_records
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.schema.changes import RemoveOption, SetComment, SetOption

SECOND_NAMES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "create": (("-i", "--ignore-if-exists", "if_not_exists"),),
    "drop": (("-i", "--ignore-if-not-exists", "if_exists"),),
    "import": (("-i", "inputs"),),
    "read": (("-s", "columns"), ("-l", "limit"), ("-f", "output")),
    "list-partitions": (("-f", "output"),),
    "snapshot": (("-f", "output"),),
}
"""Names of arguments of pypaimon's terminal by verb; the last text of each is the argument that they set."""
_FLAGS = ("if_not_exists", "if_exists")


def add_second_names(verb: str, parser: argparse.ArgumentParser) -> None:
    """Add the names that pypaimon's terminal has for arguments of a verb."""
    for *names, target in SECOND_NAMES.get(verb, ()):
        if target in _FLAGS:
            parser.add_argument(*names, dest=target, action="store_true", help=argparse.SUPPRESS)
        elif target == "inputs":
            parser.add_argument(*names, dest=target, action="append", help=argparse.SUPPRESS)
        else:
            kind = int if target == "limit" else str
            parser.add_argument(*names, dest=target, type=kind, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def add_commands(commands: Commands) -> None:
    """Add the verbs to the group `paimon table`."""
    explain = add_command(
        commands, "explain", "print the plan of a read (paimon cat --explain)", "paimon table explain lake/d.db/orders"
    )
    add_table(explain)
    explain.add_argument("-s", "--select", metavar="A,B", help="columns to read")
    explain.add_argument("--where", metavar="CONDITION", help="SQL condition")
    explain.add_argument("-l", "--limit", type=int, metavar="N", help="largest number of rows")
    explain.set_defaults(run=_explain)
    drop = add_command(
        commands,
        "drop-partition",
        "delete the rows of partitions (paimon delete --where)",
        "paimon table drop-partition lake/d.db/orders -p day=2026-01-01 --yes",
    )
    add_table(drop)
    drop.add_argument(
        "-p",
        "--partition",
        action="append",
        required=True,
        metavar="A=1,B=2",
        help="values of partition columns; can be repeated",
    )
    add_confirmation(drop)
    add_output(drop)
    drop.set_defaults(run=_drop_partitions)
    _add_alter(commands)


def _add_alter(commands: Commands) -> None:
    alter = add_command(
        commands,
        "alter",
        "change a table with one verb (paimon alter)",
        "paimon table alter lake/d.db/orders add-column --name note --type STRING",
    )
    add_table(alter)
    alter.add_argument("-i", "--ignore-if-not-exists", action="store_true", help="succeed if there is no such table")
    add_output(alter)
    verbs = alter.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb, (names, positions, change) in _ALTER.items():
        parser = verbs.add_parser(verb)
        for short, name, is_required in names:
            parser.add_argument(short, f"--{name}", required=is_required)
        if positions:
            place = parser.add_mutually_exclusive_group()
            place.add_argument("--first", action="store_true")
            place.add_argument("--after", metavar="COLUMN")
        if verb == "alter-column":
            parser.add_argument("--allow-lossy", action="store_true", help="change the type even if values are lost")
        parser.set_defaults(run=_alter, change=change, allow_lossy=False)


def _explain(arguments: argparse.Namespace) -> None:
    columns = None if arguments.select is None else [name.strip() for name in arguments.select.split(",")]
    print(open_data_table(arguments).scan(columns, arguments.where, arguments.limit).explain())


def _drop_partitions(arguments: argparse.Namespace) -> None:
    partitions = [parse_options(text.split(",")) for text in arguments.partition]
    table = open_data_table(arguments)
    named = "; ".join(arguments.partition)
    confirm_loss(f"Delete all rows of {table.name} with {named}?", has_agreed=arguments.yes)
    ids = table.drop_partitions(*partitions)
    print_records([{"partitions": ", ".join(arguments.partition), "snapshots": list(ids)}], arguments.output)


def _alter(arguments: argparse.Namespace) -> None:
    changes: Sequence[Change] = arguments.change(arguments)
    try:
        table = open_data_table(arguments)
    except NotFound as error:
        if not arguments.ignore_if_not_exists or error.kind != "table":
            raise
        print_records([{"table": arguments.table, "changes": 0}], arguments.output)
        return
    altered = table.alter(*changes, allow_lossy=arguments.allow_lossy)
    record = {"table": altered.name, "schema": altered.table_schema.id, "changes": len(changes)}
    print_records([record], arguments.output)


def _add_column(arguments: argparse.Namespace) -> Sequence[Change]:
    comment = "" if arguments.comment is None else f" COMMENT {_quote(arguments.comment)}"
    return [f"ADD COLUMN {arguments.name} {arguments.type}{comment}{_place(arguments)}"]


def _alter_column(arguments: argparse.Namespace) -> Sequence[Change]:
    place = _place(arguments)
    parts = [
        None if arguments.type is None else f" TYPE {arguments.type}",
        None if arguments.comment is None else f" COMMENT {_quote(arguments.comment)}",
        place or None,
    ]
    found = [f"ALTER COLUMN {arguments.name}{part}" for part in parts if part is not None]
    if not found:
        raise InvalidRequest("The command needs a change.", hint="pass --type, --comment, --first or --after")
    return found


def _place(arguments: argparse.Namespace) -> str:
    if arguments.first:
        return " FIRST"
    return "" if arguments.after is None else f" AFTER {arguments.after}"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_NAME = ("-n", "name", True)
_ALTER: Mapping[str, tuple[Sequence[tuple[str, str, bool]], bool, Callable[[argparse.Namespace], Sequence[Change]]]] = {
    "set-option": ([("-k", "key", True), ("-v", "value", True)], False, lambda a: [SetOption(a.key, a.value)]),
    "remove-option": ([("-k", "key", True)], False, lambda a: [RemoveOption(a.key)]),
    "add-column": ([_NAME, ("-t", "type", True), ("-c", "comment", False)], True, _add_column),
    "drop-column": ([_NAME], False, lambda a: [f"DROP COLUMN {a.name}"]),
    "rename-column": ([_NAME, ("-m", "new-name", True)], False, lambda a: [f"RENAME COLUMN {a.name} TO {a.new_name}"]),
    "alter-column": ([_NAME, ("-t", "type", False), ("-c", "comment", False)], True, _alter_column),
    "update-comment": ([("-c", "comment", True)], False, lambda a: [SetComment(a.comment or None)]),
}
"""The changes of `paimon table alter`: their arguments, whether they have a position, and what they mean."""
