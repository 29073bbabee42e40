"""The commands `drop`, `truncate`, `rename` and `partitions`.

Invariant: `drop` and `truncate` ask before they delete, and take the name of one table only.
"""

from __future__ import annotations

import argparse

from paimon.catalog import Catalog
from paimon.cli.arguments import (
    Commands,
    add_command,
    add_output,
    add_table,
    locate_table,
    open_catalog,
    open_data_table,
)
from paimon.cli.maintenance.verbs import add_confirmation, confirm_loss
from paimon.cli.output import print_records
from paimon.domain.errors import NotFound


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    drop = add_command(
        commands, "drop", "delete a table with all its files", "paimon drop lake/default.db/orders --yes"
    )
    add_table(drop)
    drop.add_argument("--if-exists", action="store_true", help="succeed if there is no such table")
    add_confirmation(drop)
    drop.set_defaults(run=_drop)
    truncate = add_command(
        commands, "truncate", "delete all rows of a table", "paimon truncate lake/default.db/orders --yes"
    )
    add_table(truncate)
    add_confirmation(truncate)
    add_output(truncate)
    truncate.set_defaults(run=_truncate)
    rename = add_command(
        commands, "rename", "give a table another name", "paimon rename lake/default.db/orders default.sales"
    )
    add_table(rename)
    rename.add_argument("new_name", metavar="NEW", help="new name, as database.table or as table")
    rename.set_defaults(run=_rename)
    partitions = add_command(
        commands, "partitions", "list the partitions of a table", "paimon partitions lake/default.db/orders"
    )
    add_table(partitions)
    add_output(partitions)
    partitions.set_defaults(run=_partitions)


def _drop(arguments: argparse.Namespace) -> None:
    warehouse, name = locate_table(arguments)
    catalog = open_catalog(arguments, warehouse)
    if name.partition(".")[2] in _list_tables(catalog, name):
        confirm_loss(f"Delete table {name} with all its files?", has_agreed=arguments.yes)
    try:
        catalog.drop_table(name)
    except NotFound:
        if not arguments.if_exists:
            raise
        print(f"there is no table {name}")
    else:
        print(f"{name} is dropped")


def _list_tables(catalog: Catalog, name: str) -> list[str]:
    """Return the tables of the database of a table; none if there is no such database."""
    try:
        return catalog.tables(name.partition(".")[0])
    except NotFound:
        return []


def _truncate(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    confirm_loss(f"Delete all rows of {table.name}?", has_agreed=arguments.yes)
    done = table.overwrite(table.arrow_schema.empty_table(), {})
    print_records([{"table": table.name, "snapshots": list(done.snapshot_ids)}], arguments.output)


def _rename(arguments: argparse.Namespace) -> None:
    warehouse, name = locate_table(arguments)
    new = arguments.new_name if "." in arguments.new_name else f"{name.partition('.')[0]}.{arguments.new_name}"
    open_catalog(arguments, warehouse).rename_table(name, new)
    print(f"{name} is now {new}")


def _partitions(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    columns = ["partition", "record_count", "file_count", "file_size_in_bytes", "last_update_time"]
    rows = table.system_table("partitions").scan(columns=columns).to_arrow().sort_by("partition").to_pylist()
    print_records(rows, arguments.output, f"partitions of {table.name}")
