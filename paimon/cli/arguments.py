"""Arguments that several commands share, and what they mean.

Law: an argument has the same name and meaning in every command; each help ends with an example that runs as written.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest
from paimon.engines import connect, location_of, open_table
from paimon.system_table import SystemTable
from paimon.table import Table

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = Any


def command(commands: Commands, name: str, help_text: str, example: str) -> argparse.ArgumentParser:
    """A subcommand whose help ends with an example that runs as written."""
    return commands.add_parser(
        name,
        help=help_text,
        description=help_text,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_table(parser: argparse.ArgumentParser) -> None:
    """The TABLE argument and `--warehouse`."""
    parser.add_argument("table", metavar="TABLE", help="a table's path, or database.table with --warehouse")
    add_warehouse(parser)


def add_warehouse(parser: argparse.ArgumentParser) -> None:
    """`--warehouse`, by default PAIMON_WAREHOUSE."""
    parser.add_argument(
        "-w",
        "--warehouse",
        default=os.environ.get("PAIMON_WAREHOUSE"),
        metavar="PATH",
        help="the warehouse that database.table is looked up in (default: $PAIMON_WAREHOUSE)",
    )
    add_catalog(parser)


def add_catalog(parser: argparse.ArgumentParser) -> None:
    """`--catalog`, by default the words of PAIMON_CATALOG."""
    parser.add_argument(
        "--catalog",
        action="append",
        default=os.environ.get("PAIMON_CATALOG", "").split(),
        metavar="KEY=VALUE",
        help="an option of the warehouse's catalog, such as metastore=jdbc; may be repeated (default: $PAIMON_CATALOG)",
    )


def add_output(parser: argparse.ArgumentParser, *more: str) -> None:
    """`--output`."""
    parser.add_argument(
        "-o", "--output", choices=["table", "json", *more], default="table", help="how to print (default: table)"
    )


def add_option(parser: argparse.ArgumentParser, help_text: str) -> None:
    """`--option KEY=VALUE`, many times."""
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help=help_text)


def options_of(pairs: Sequence[str]) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping."""
    for pair in pairs:
        if "=" not in pair:
            raise InvalidRequest(f"{pair!r} is not KEY=VALUE", subject=pair, hint="write --option bucket=4")
    return {key.strip(): value.strip() for key, _, value in (pair.partition("=") for pair in pairs)}


def names_of(text: str | None) -> list[str] | None:
    """A comma list of names; None stays None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def is_path(name: str) -> bool:
    """Whether a TABLE argument is a path rather than database.table."""
    return "/" in name or os.sep in name or Path(name.partition("$")[0]).is_dir()


def opened(given: argparse.Namespace) -> Table | SystemTable:
    """The table, or system table, that TABLE names."""
    options = options_of(getattr(given, "option", []))
    if given.catalog or (given.warehouse and not is_path(given.table)):
        warehouse, name = place_of(given)
        return catalog_at(given, warehouse).open(name, options)
    return open_table(given.table, options)


def place_of(given: argparse.Namespace) -> tuple[str, str]:
    """The warehouse, and ``database.table``, that TABLE names."""
    if given.warehouse and not is_path(given.table):
        return given.warehouse, given.table
    *parents, database, table = location_of(given.table).split("/")
    if not parents or not database.endswith(".db"):
        raise InvalidRequest(
            f"{given.table!r} is no place for a table",
            subject=given.table,
            hint="write WAREHOUSE/DATABASE.db/TABLE, or database.table with --warehouse",
        )
    return "/".join(parents), f"{database.removesuffix('.db')}.{table}"


def catalog_at(given: argparse.Namespace, warehouse: str) -> Catalog:
    """The catalog of a warehouse, with the options of `--catalog`."""
    options: dict[str, Any] = {**options_of(given.catalog)}
    return connect(warehouse, **options)


def opened_table(given: argparse.Namespace) -> Table:
    """The table that TABLE names; InvalidRequest for a system table."""
    table = opened(given)
    if isinstance(table, SystemTable):
        raise InvalidRequest(f"{given.table!r} is a system table", subject=given.table, hint="leave out the $ part")
    return table
