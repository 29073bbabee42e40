"""The groups `paimon db`, `paimon catalog` and `paimon table`: commands by the names of pypaimon's terminal.

Invariant: a command of `paimon table` is one of the other commands under a second name, with the same arguments and
the names that pypaimon has for them. Its other verbs do what another command does; the help text names that command.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paimon.cli import changes, history, rows, tables
from paimon.cli.alter import Change
from paimon.cli.arguments import (
    Commands,
    add_command,
    add_command_group,
    add_confirmation,
    add_output,
    add_table,
    add_warehouse,
    confirm_loss,
    open_catalog,
    open_data_table,
)
from paimon.cli.maintenance import add_verb
from paimon.cli.output import print_records
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.markup import format_count
from paimon.domain.schema.changes import RemoveOption, SetComment, SetOption
from paimon.verbs.file_verbs import DROP_PARTITION, MARK_PARTITION_DONE, PURGE_FILES
from paimon.verbs.index_verbs import CREATE_GLOBAL_INDEX, DROP_GLOBAL_INDEX
from paimon.verbs.reference_verbs import ROLLBACK
from paimon.verbs.repair_verbs import REPAIR_VERBS

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


def _add_second_names(verb: str, parser: argparse.ArgumentParser) -> None:
    """Add the names that pypaimon's terminal has for arguments of a verb."""
    for *names, target in SECOND_NAMES.get(verb, ()):
        if target in _FLAGS:
            parser.add_argument(*names, dest=target, action="store_true", help=argparse.SUPPRESS)
        elif target == "inputs":
            parser.add_argument(*names, dest=target, action="append", help=argparse.SUPPRESS)
        else:
            kind = int if target == "limit" else str
            parser.add_argument(*names, dest=target, type=kind, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def _add_peer_verbs(commands: Commands) -> None:
    """Add the verbs to the group `paimon table`."""
    explain = add_command(
        commands, "explain", "print the plan of a read (paimon cat --explain)", "paimon table explain lake/d.db/orders"
    )
    add_table(explain)
    explain.add_argument("-s", "--select", metavar="A,B", help="columns to read")
    explain.add_argument("--where", metavar="CONDITION", help="SQL condition")
    explain.add_argument("-l", "--limit", type=int, metavar="N", help="largest number of rows")
    explain.set_defaults(run=_explain_read)
    for verb in (
        DROP_PARTITION,
        MARK_PARTITION_DONE,
        PURGE_FILES,
        *REPAIR_VERBS,
        CREATE_GLOBAL_INDEX,
        DROP_GLOBAL_INDEX,
    ):
        add_verb(commands, verb)
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
        parser.set_defaults(run=_alter_table, change=change, allow_lossy=False)


def _explain_read(arguments: argparse.Namespace) -> None:
    columns = None if arguments.select is None else [name.strip() for name in arguments.select.split(",")]
    print(open_data_table(arguments).scan(columns, arguments.where, arguments.limit).explain())


def _alter_table(arguments: argparse.Namespace) -> None:
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
    return [f"ADD COLUMN {arguments.name} {arguments.type}{comment}{_format_place(arguments)}"]


def _alter_column(arguments: argparse.Namespace) -> Sequence[Change]:
    place = _format_place(arguments)
    parts = [
        None if arguments.type is None else f" TYPE {arguments.type}",
        None if arguments.comment is None else f" COMMENT {_quote(arguments.comment)}",
        place or None,
    ]
    found = [f"ALTER COLUMN {arguments.name}{part}" for part in parts if part is not None]
    if not found:
        raise InvalidRequest("The command needs a change.", hint="pass --type, --comment, --first or --after")
    return found


def _format_place(arguments: argparse.Namespace) -> str:
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
ALIASES: Mapping[str, str] = {
    "cat": "read",
    "create": "create",
    "delete": "delete",
    "drop": "drop",
    "partitions": "list-partitions",
    "rename": "rename",
    "rollback": "rollback",
    "show": "get",
    "snapshots": "snapshot",
    "update": "update",
    "write": "import",
}
"""The names of commands in `paimon table`."""


class _AliasedCommands:
    """Adds commands to a group under their second names, and leaves out those that have none."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self.parsers: dict[str, argparse.ArgumentParser] = {}

    def add_parser(self, name: str, **arguments: Any) -> argparse.ArgumentParser:
        """Return the parser of a command; one that belongs to no group for a command without a second name."""
        if name not in ALIASES:
            return argparse.ArgumentParser(name)
        alias = ALIASES[name]
        texts = {key: str(text).replace(f"paimon {name} ", f"paimon table {alias} ") for key, text in arguments.items()}
        texts["epilog"] = texts["epilog"].replace(" --option bucket=2", "")  # with the longer name it would not fit
        texts["help"] = f"{arguments['help']} (paimon {name})"
        texts = {"help": texts["help"], "epilog": texts["epilog"]}
        self.parsers[alias] = self._commands.add_parser(alias, **{**arguments, **texts})
        return self.parsers[alias]


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    group = add_command_group(
        commands,
        "table",
        "the commands of tables by the names of pypaimon: read, get, create, import, drop, rename and others",
        "paimon table read lake/default.db/orders --limit 5",
    )
    aliased = _AliasedCommands(group)
    second_names: Any = aliased
    for module in (tables, rows, changes, history):
        module.add_commands(second_names)
    add_verb(second_names, ROLLBACK)
    for verb, parser in aliased.parsers.items():
        _add_second_names(verb, parser)
    _add_peer_verbs(group)
    _add_databases(commands)
    _add_catalog(commands)


def _add_catalog(commands: Commands) -> None:
    verbs = add_command_group(
        commands, "catalog", "list the databases of a warehouse: list-dbs", "paimon catalog list-dbs --warehouse lake"
    )
    listing = add_command(
        verbs, "list-dbs", "list the databases (paimon db list)", "paimon catalog list-dbs --warehouse lake"
    )
    add_warehouse(listing)
    add_output(listing)
    listing.set_defaults(run=_list_databases)


def _add_databases(commands: Commands) -> None:
    verbs = add_command_group(
        commands,
        "db",
        "manage the databases of a warehouse: list, create, get, list-tables, alter, drop",
        "paimon db create shop --warehouse lake",
    )
    listing = add_command(verbs, "list", "list the databases of a warehouse", "paimon db list --warehouse lake")
    add_warehouse(listing)
    add_output(listing)
    listing.set_defaults(run=_list_databases)
    for name, help_text, run in (
        ("create", "create a database", _create_database),
        ("get", "print the name and the number of tables of a database", _describe_database),
        ("list-tables", "list the tables of a database", _list_tables),
        ("alter", "change the properties of a database in a JDBC catalog", _alter_database),
        ("drop", "delete a database", _drop_database),
    ):
        parser = add_command(verbs, name, help_text, f"paimon db {name} shop --warehouse lake")
        parser.add_argument("database", metavar="DATABASE", help="name of the database")
        add_warehouse(parser)
        add_output(parser)
        parser.set_defaults(run=run)
        if name == "alter":
            parser.add_argument("-s", "--set", metavar="JSON", help='properties to set, such as \'{"owner": "ann"}\'')
            parser.add_argument("-r", "--remove", nargs="+", default=[], metavar="KEY", help="properties to remove")
        if name == "create":
            parser.add_argument("-p", "--properties", metavar="JSON", help="properties (JDBC catalogs)")
            parser.add_argument("-i", "--ignore-if-exists", action="store_true", help="succeed if it exists already")
        if name == "drop":
            parser.add_argument(
                "-i", "--ignore-if-not-exists", action="store_true", help="succeed if it does not exist"
            )
            parser.add_argument("--cascade", action="store_true", help="also delete its tables with all their files")
            add_confirmation(parser)


def _get_warehouse(arguments: argparse.Namespace) -> str:
    if not arguments.warehouse:
        raise InvalidRequest("The command needs a warehouse.", hint="pass --warehouse PATH, or set PAIMON_WAREHOUSE")
    return str(arguments.warehouse)


def _list_databases(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, _get_warehouse(arguments))
    records = [{"database": name, "tables": len(catalog.tables(name))} for name in catalog.databases()]
    print_records(records, arguments.output, f"databases of {catalog.warehouse}")


def _describe_database(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, _get_warehouse(arguments))
    tables_of_database = catalog.tables(arguments.database)
    print_records([{"database": arguments.database, "tables": len(tables_of_database)}], arguments.output)


def _list_tables(arguments: argparse.Namespace) -> None:
    names = open_catalog(arguments, _get_warehouse(arguments)).tables(arguments.database)
    print_records([{"table": name} for name in names], arguments.output, f"tables of {arguments.database}")


def _create_database(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, _get_warehouse(arguments))
    properties = _parse_properties(arguments.properties)
    catalog.create_database(arguments.database, properties=properties, exist_ok=arguments.ignore_if_exists)
    print_records([{"database": arguments.database, "created": True}], arguments.output)


def _alter_database(arguments: argparse.Namespace) -> None:
    properties = _parse_properties(arguments.set) or {}
    if not properties and not arguments.remove:
        raise InvalidRequest("The command needs a change.", hint="pass --set JSON, or --remove KEY")
    catalog = open_catalog(arguments, _get_warehouse(arguments))
    catalog.alter_database(arguments.database, properties, remove=arguments.remove)
    print_records([{"database": arguments.database, "changed": True}], arguments.output)


def _parse_properties(text: str | None) -> dict[str, str] | None:
    """Return the properties in a JSON object; None where none is given."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidRequest(f"Properties {text!r} are not a JSON object.", hint='write \'{"owner": "ann"}\'')
    return {str(key): str(value) for key, value in found.items()}


def _drop_database(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, _get_warehouse(arguments))
    if arguments.database in catalog.databases():
        tables = len(catalog.tables(arguments.database))
        if arguments.cascade or not tables:
            question = f"Delete database {arguments.database} with {format_count(tables, 'table')}?"
            confirm_loss(question, has_agreed=arguments.yes)
    catalog.drop_database(arguments.database, cascade=arguments.cascade, missing_ok=arguments.ignore_if_not_exists)
    print_records([{"database": arguments.database, "dropped": True}], arguments.output)
