"""The groups `paimon db`, `paimon catalog` and `paimon table`: commands by the names of pypaimon's terminal.

Invariant: a command of `paimon table` is one of the other commands under a second name, with the same arguments and the
names that pypaimon has for them; `paimon.cli.peer_verbs` has the verbs that no other command has.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from paimon.cli import changes, history, peer_verbs, rows, table_names, tables
from paimon.cli.arguments import Commands, add_command, add_output, add_warehouse, open_catalog
from paimon.cli.maintenance import rollback
from paimon.cli.maintenance.verbs import add_command_group, add_confirmation, confirm_loss
from paimon.cli.output import print_records
from paimon.domain.errors import InvalidRequest
from paimon.domain.markup import format_count

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
    for module in (tables, table_names, rows, changes, history, rollback):
        module.add_commands(second_names)
    for verb, parser in aliased.parsers.items():
        peer_verbs.add_second_names(verb, parser)
    peer_verbs.add_commands(group)
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
    listing.set_defaults(run=_list)


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
    listing.set_defaults(run=_list)
    for name, help_text, run in (
        ("create", "create a database", _create),
        ("get", "print the name and the number of tables of a database", _get),
        ("list-tables", "list the tables of a database", _list_tables),
        ("alter", "change the properties of a database in a JDBC catalog", _alter),
        ("drop", "delete a database", _drop),
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


def _warehouse(arguments: argparse.Namespace) -> str:
    if not arguments.warehouse:
        raise InvalidRequest("The command needs a warehouse.", hint="pass --warehouse PATH, or set PAIMON_WAREHOUSE")
    return str(arguments.warehouse)


def _list(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, _warehouse(arguments))
    records = [{"database": name, "tables": len(catalog.tables(name))} for name in catalog.databases()]
    print_records(records, arguments.output, f"databases of {catalog.warehouse}")


def _get(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, _warehouse(arguments))
    tables_of_database = catalog.tables(arguments.database)
    print_records([{"database": arguments.database, "tables": len(tables_of_database)}], arguments.output)


def _list_tables(arguments: argparse.Namespace) -> None:
    names = open_catalog(arguments, _warehouse(arguments)).tables(arguments.database)
    print_records([{"table": name} for name in names], arguments.output, f"tables of {arguments.database}")


def _create(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, _warehouse(arguments))
    properties = _parse_properties(arguments.properties)
    catalog.create_database(arguments.database, properties=properties, exist_ok=arguments.ignore_if_exists)
    print_records([{"database": arguments.database, "created": True}], arguments.output)


def _alter(arguments: argparse.Namespace) -> None:
    properties = _parse_properties(arguments.set) or {}
    if not properties and not arguments.remove:
        raise InvalidRequest("The command needs a change.", hint="pass --set JSON, or --remove KEY")
    catalog = open_catalog(arguments, _warehouse(arguments))
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


def _drop(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, _warehouse(arguments))
    if arguments.database in catalog.databases():
        tables = len(catalog.tables(arguments.database))
        if arguments.cascade or not tables:
            question = f"Delete database {arguments.database} with {format_count(tables, 'table')}?"
            confirm_loss(question, has_agreed=arguments.yes)
    catalog.drop_database(arguments.database, cascade=arguments.cascade, missing_ok=arguments.ignore_if_not_exists)
    print_records([{"database": arguments.database, "dropped": True}], arguments.output)
