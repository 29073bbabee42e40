"""Arguments and questions of several commands, and their defaults of `paimon/adapters/settings.py`.

Invariant: an argument has the same name and meaning in every command. Each help text ends with an example that runs as
written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest
from paimon.engines import WAREHOUSE, Setting, location_of, open_table, open_warehouse, read_settings
from paimon.system_table import SystemTable
from paimon.table import Table

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = Any


def add_command(commands: Commands, name: str, help_text: str, example: str) -> argparse.ArgumentParser:
    """Add a command; `help_text` is a sentence without a stop, `example` a command line that runs."""
    return commands.add_parser(
        name,
        help=help_text,
        description=help_text,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_command_group(commands: Commands, name: str, help_text: str, example: str) -> Commands:
    """Add a command with subcommands; `help_text` has no full stop, and `example` runs as written."""
    parser = add_command(commands, name, help_text, example)
    return parser.add_subparsers(title="verbs", metavar="VERB", required=True)


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the TABLE argument and `--warehouse`."""
    parser.add_argument("table", metavar="TABLE", help="path of a table, or database.table with --warehouse")
    add_warehouse(parser)


def add_warehouse(parser: argparse.ArgumentParser) -> None:
    """Add `--warehouse`; `complete_arguments` sets its default."""
    parser.add_argument(
        "-w",
        "--warehouse",
        metavar="PATH",
        help="warehouse that contains database.table (default: $PAIMON_WAREHOUSE)",
    )
    add_catalog(parser)


def add_catalog(parser: argparse.ArgumentParser) -> None:
    """Add `--catalog`; `complete_arguments` sets its default."""
    parser.add_argument(
        "--catalog",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="catalog option, such as metastore=jdbc; can be repeated (default: $PAIMON_CATALOG)",
    )


def add_output(parser: argparse.ArgumentParser, *more: str, has_format: bool = False) -> None:
    """Add `--output` with formats after `table` and `json`; also as pypaimon's `--format` where free."""
    names = ("-o", "--output") if has_format else ("-o", "--output", "--format")
    parser.add_argument(
        *names,
        dest="output",
        choices=["table", "json", *more],
        default="table",
        help="output format (default: table)",
    )


def add_option(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add `--option KEY=VALUE`, which can be repeated."""
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help=help_text)


def parse_options(pairs: Sequence[str]) -> dict[str, str]:
    """Parse texts of the form `KEY=VALUE`."""
    for pair in pairs:
        if "=" not in pair:
            raise InvalidRequest(
                f"Argument {pair!r} must have the form KEY=VALUE.", subject=pair, hint="an example is bucket=4"
            )
    return {key.strip(): value.strip() for key, _, value in (pair.partition("=") for pair in pairs)}


def parse_names(text: str | None) -> list[str] | None:
    """Parse a list of names that are separated by commas; None stays None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def is_table_path(name: str) -> bool:
    """Return whether a TABLE argument is a path rather than database.table."""
    if "/" in name or os.sep in name:
        return True
    try:
        return Path(name.partition("$")[0]).is_dir()
    except OSError:  # too long for a file
        return False


def open_table_or_system_table(arguments: argparse.Namespace) -> Table | SystemTable:
    """Open the table or system table that TABLE names."""
    options = parse_options(getattr(arguments, "option", []))
    if arguments.catalog or (arguments.warehouse and not is_table_path(arguments.table)):
        warehouse, name = locate_table(arguments)
        return open_catalog(arguments, warehouse).open(name, options)
    return open_table(arguments.table, options)


def locate_table(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the warehouse of TABLE and its name: ``database.table``, or a path below a database directory."""
    if arguments.warehouse and not is_table_path(arguments.table):
        return arguments.warehouse, arguments.table
    *parents, database, table = location_of(arguments.table).split("/")
    if not parents or not database.endswith(".db"):
        raise InvalidRequest(
            f"Path {arguments.table!r} is not in a database directory.",
            subject=arguments.table,
            hint="write WAREHOUSE/DATABASE.db/TABLE, or database.table with --warehouse",
        )
    return "/".join(parents), f"{database.removesuffix('.db')}.{table}"


def open_catalog(arguments: argparse.Namespace, warehouse: str) -> Catalog:
    """Open the catalog of a warehouse with the options of `--catalog`."""
    return open_warehouse(warehouse, parse_options(arguments.catalog))


def open_data_table(arguments: argparse.Namespace) -> Table:
    """Open the table that TABLE names."""
    table = open_table_or_system_table(arguments)
    if isinstance(table, SystemTable):
        raise InvalidRequest(
            f"Table {arguments.table!r} is a system table, which this command does not take.",
            subject=arguments.table,
            hint="leave out the $ part",
        )
    return table


def complete_arguments(arguments: argparse.Namespace) -> None:
    """Set the warehouse and the catalog options of a parsed command from its configuration file or the environment.

    Arguments that the command does not have are left out. Options of the command line have precedence.
    """
    inherited = read_settings(arguments.config, arguments.profile)
    if getattr(arguments, "lists_settings", False):
        arguments.settings = _list_settings(arguments, inherited)
    values = {setting.name: setting.value for setting in inherited}
    if hasattr(arguments, "warehouse") and arguments.warehouse is None:
        arguments.warehouse = values.get(WAREHOUSE)
    if hasattr(arguments, "catalog"):
        options = [f"{name}={value}" for name, value in values.items() if name != WAREHOUSE]
        arguments.catalog = options + arguments.catalog


def _list_settings(arguments: argparse.Namespace, inherited: list[Setting]) -> list[Setting]:
    """Return the effective settings of a parsed command, by name; its arguments have priority."""
    effective = {setting.name: setting for setting in inherited}
    if arguments.warehouse is not None:
        effective[WAREHOUSE] = Setting(WAREHOUSE, arguments.warehouse, "--warehouse")
    for name, _, value in (pair.partition("=") for pair in arguments.catalog):
        effective[name.strip()] = Setting(name.strip(), value.strip(), "--catalog")
    return [effective[name] for name in sorted(effective)]


def add_confirmation(parser: argparse.ArgumentParser) -> None:
    """Add `--yes`, with which neither `confirm` nor `confirm_loss` asks."""
    parser.add_argument("--yes", action="store_true", help="do not ask for a confirmation")


def confirm(question: str, has_agreed: bool) -> None:
    """Ask the user on a terminal before a change that cannot be undone; InvalidRequest if the user does not agree.

    Scripts are not asked, and nothing is asked if `has_agreed` (``--yes``). `question` describes the change and its
    consequences.
    """
    if has_agreed or not _is_terminal():
        return
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidRequest("Nothing was changed.", hint="type y, or pass --yes")


def confirm_loss(question: str, has_agreed: bool) -> None:
    """Ask the user on a terminal before data is lost, as `confirm` does; without a terminal, require ``--yes``."""
    if not has_agreed and not _is_terminal():
        raise InvalidRequest(
            "The command deletes data, and there is no terminal to ask on.", subject="yes", hint="pass --yes"
        )
    confirm(question, has_agreed)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
