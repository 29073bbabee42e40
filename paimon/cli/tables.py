"""Commands about tables: `init`, `create`, `ls`, `show`, `drop`, `truncate`, `rename` and `partitions`.

Invariant: to create a table that exists is an error, or with --if-not-exists does nothing. `drop` and `truncate` ask
before they delete, and take the name of one table only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import frozen

from paimon.catalog import Catalog
from paimon.cli.arguments import (
    Commands,
    add_catalog,
    add_command,
    add_confirmation,
    add_option,
    add_output,
    add_table,
    add_warehouse,
    confirm_loss,
    locate_table,
    open_catalog,
    open_data_table,
    parse_names,
    parse_options,
)
from paimon.cli.inputs import FILE_HELP, FORMATS, open_inputs
from paimon.cli.output import TERMINAL_ROWS, print_records
from paimon.cli.table_overview import count_known_rows, show_table
from paimon.domain.errors import AlreadyExists, CorruptTable, InvalidRequest, NotFound, PaimonError
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import type_from_json
from paimon.table import Table


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    init = add_command(commands, "init", "create a warehouse with a database", "paimon init lake")
    init.add_argument("path", metavar="WAREHOUSE", help="path or URL of the warehouse")
    add_catalog(init)
    init.add_argument("--database", default="default", help="name of the database (default: default)")
    init.set_defaults(run=_create_warehouse)
    create = add_command(
        commands,
        "create",
        "create a table",
        'paimon create lake/default.db/orders --columns "id INT NOT NULL, amount DOUBLE" '
        "--primary-key id --option bucket=2",
    )
    add_table(create)
    columns = create.add_mutually_exclusive_group(required=True)
    columns.add_argument("--columns", metavar="DDL", help='columns as SQL, such as "id BIGINT NOT NULL, name STRING"')
    columns.add_argument("-s", "--schema", metavar="FILE", help="JSON file with the fields, keys and options")
    columns.add_argument("--like", metavar="FILE", help=f"file whose columns the table gets: {FILE_HELP}")
    create.add_argument("--format", choices=FORMATS, help="format of the --like file (default: by its extension)")
    create.add_argument("--primary-key", metavar="A,B", help="columns of the primary key")
    create.add_argument("--partition-by", metavar="A,B", help="partition columns")
    create.add_argument("--comment", help="comment of the table")
    create.add_argument(
        "--if-not-exists", action="store_true", help="succeed if the table exists already, and leave it unchanged"
    )
    add_option(create, "table option, such as bucket=4; can be repeated")
    create.set_defaults(run=_create_table)
    listing = add_command(commands, "ls", "list the databases and tables of a warehouse", "paimon ls lake")
    listing.add_argument(
        "path", nargs="?", metavar="WAREHOUSE", help="path or URL of the warehouse (default: $PAIMON_WAREHOUSE)"
    )
    add_warehouse(listing)
    add_output(listing)
    listing.set_defaults(run=_list_tables)
    settings = add_command(
        commands, "config", "list the settings of commands, and where they come from", "paimon config"
    )
    add_warehouse(settings)
    add_output(settings)
    settings.set_defaults(run=_list_settings, lists_settings=True)
    show = add_command(
        commands,
        "show",
        "show the schema, the options and the files of a table, by partition, bucket and level",
        "paimon show lake/default.db/orders",
    )
    add_table(show)
    add_output(show)
    show.set_defaults(run=lambda arguments: show_table(open_data_table(arguments), arguments.output))
    _add_drop_and_rename(commands)


def _list_settings(arguments: argparse.Namespace) -> None:
    print_records((setting.to_record() for setting in arguments.settings), arguments.output, "settings")


def _add_drop_and_rename(commands: Commands) -> None:
    drop = add_command(
        commands, "drop", "delete a table with all its files", "paimon drop lake/default.db/orders --yes"
    )
    add_table(drop)
    drop.add_argument("--if-exists", action="store_true", help="succeed if there is no such table")
    add_confirmation(drop)
    drop.set_defaults(run=_drop_table)
    truncate = add_command(
        commands, "truncate", "delete all rows of a table", "paimon truncate lake/default.db/orders --yes"
    )
    add_table(truncate)
    add_confirmation(truncate)
    add_output(truncate)
    truncate.set_defaults(run=_truncate_table)
    rename = add_command(
        commands, "rename", "give a table another name", "paimon rename lake/default.db/orders default.sales"
    )
    add_table(rename)
    rename.add_argument("new_name", metavar="NEW", help="new name, as database.table or as table")
    rename.set_defaults(run=_rename_table)
    partitions = add_command(
        commands, "partitions", "list the partitions of a table", "paimon partitions lake/default.db/orders"
    )
    add_table(partitions)
    add_output(partitions)
    partitions.set_defaults(run=_list_partitions)


def _create_warehouse(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, arguments.path)
    catalog.create_database(arguments.database, exist_ok=True)
    print(f"{catalog.warehouse}: database {arguments.database!r} is ready")


def _create_table(arguments: argparse.Namespace) -> None:
    warehouse, name = locate_table(arguments)
    if arguments.format and not arguments.like:
        raise InvalidRequest(
            "Option --format needs --like, because it is the format of that file.",
            subject="format",
            hint="leave out --format",
        )
    declared = _declare_table(arguments)
    catalog = open_catalog(arguments, warehouse)
    catalog.create_database(name.partition(".")[0], exist_ok=True)
    try:
        table = catalog.create_table(
            name,
            declared.columns,
            primary_keys=parse_names(arguments.primary_key) or declared.primary_keys,
            partition_keys=parse_names(arguments.partition_by) or declared.partition_keys,
            options={**declared.options, **parse_options(arguments.option)},
            comment=arguments.comment or declared.comment,
            exist_ok=arguments.if_not_exists,
        )
    except AlreadyExists as error:
        raise AlreadyExists(error.kind, error.name, hint="pass --if-not-exists to use the existing one") from error
    print(f"{table.location}: {table!r} is ready")


def _declare_table(arguments: argparse.Namespace) -> _DeclaredTable:
    if arguments.schema is not None:
        return _read_declared_table(arguments.schema)
    if arguments.columns is not None:
        return _DeclaredTable(arguments.columns)
    return _DeclaredTable(open_inputs([arguments.like], arguments.format).schema)


@frozen(eq=False)
class _DeclaredTable:
    """The declaration of a new table, as `create_table` takes it."""

    columns: str | pa.Schema
    primary_keys: Sequence[str] = ()
    partition_keys: Sequence[str] = ()
    options: Mapping[str, str] = {}
    comment: str | None = None


def _read_declared_table(path: str) -> _DeclaredTable:
    """Read the declaration of a table from a JSON file, which pypaimon's terminal prints and takes.

    Its members are ``fields``, ``primaryKeys``, ``partitionKeys``, ``options`` and ``comment``.
    """
    try:
        found = json.loads(Path(path).read_text("utf8"))
        columns = arrow_schema([_parse_field(number, field, path) for number, field in enumerate(found["fields"])])
        return _DeclaredTable(
            columns,
            [str(name) for name in found.get("primaryKeys") or ()],
            [str(name) for name in found.get("partitionKeys") or ()],
            {str(key): str(value) for key, value in (found.get("options") or {}).items()},
            found.get("comment") or None,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, CorruptTable) as error:
        raise InvalidRequest(
            f"File {path!r} is no schema of a table: {error}",
            subject=path,
            hint='write {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}], "primaryKeys": ["id"]}',
        ) from error


def _parse_field(number: int, field: Mapping[str, Any], path: str) -> DataField:
    kind = type_from_json(field["type"], path)
    return DataField(int(field.get("id", number)), str(field["name"]), kind, field.get("description"))


def _list_tables(arguments: argparse.Namespace) -> None:
    warehouse = arguments.path or arguments.warehouse
    if not warehouse:
        raise InvalidRequest("The command needs a warehouse.", hint="run paimon ls PATH, or set PAIMON_WAREHOUSE")
    catalog = open_catalog(arguments, warehouse)
    databases = catalog.databases()
    if not databases and not arguments.catalog and catalog.engine.files.status(catalog.warehouse) is None:
        raise NotFound(
            "warehouse", catalog.warehouse, hint=f"check the path, or create the warehouse: paimon init {warehouse}"
        )
    records, errors = [], []
    for name in (f"{database}.{table}" for database in databases for table in catalog.tables(database)):
        try:
            records.append(_summarize_table(name, catalog.table(name)))
        except PaimonError as error:  # the other tables are listed before the first error is raised
            errors.append(error)
    print_records(records, arguments.output, f"tables of {catalog.warehouse}", TERMINAL_ROWS)
    empty = [database for database in databases if not catalog.tables(database)]
    if empty and arguments.output == "table":
        print(f"databases without tables: {', '.join(empty)}")
    if errors:
        raise errors[0]


def _summarize_table(name: str, table: Table) -> dict[str, object]:
    snapshot = table.snapshot()
    return {
        "table": name,
        "columns": len(table.table_schema.fields),
        "primary key": ", ".join(table.primary_keys),
        "partitioned by": ", ".join(table.partition_keys),
        "snapshot": None if snapshot is None else snapshot.id,
        "records": None if snapshot is None else snapshot.total_record_count,
        "rows": count_known_rows(table, snapshot),
    }


def _drop_table(arguments: argparse.Namespace) -> None:
    warehouse, name = locate_table(arguments)
    catalog = open_catalog(arguments, warehouse)
    if name.partition(".")[2] in _find_tables(catalog, name):
        confirm_loss(f"Delete table {name} with all its files?", has_agreed=arguments.yes)
    try:
        catalog.drop_table(name)
    except NotFound:
        if not arguments.if_exists:
            raise
        print(f"there is no table {name}")
    else:
        print(f"{name} is dropped")


def _find_tables(catalog: Catalog, name: str) -> list[str]:
    """Return the tables of the database of a table; none if there is no such database."""
    try:
        return catalog.tables(name.partition(".")[0])
    except NotFound:
        return []


def _truncate_table(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    confirm_loss(f"Delete all rows of {table.name}?", has_agreed=arguments.yes)
    done = table.overwrite(table.arrow_schema.empty_table(), {})
    print_records([{"table": table.name, "snapshots": list(done.snapshot_ids)}], arguments.output)


def _rename_table(arguments: argparse.Namespace) -> None:
    warehouse, name = locate_table(arguments)
    new = arguments.new_name if "." in arguments.new_name else f"{name.partition('.')[0]}.{arguments.new_name}"
    open_catalog(arguments, warehouse).rename_table(name, new)
    print(f"{name} is now {new}")


def _list_partitions(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    columns = ["partition", "record_count", "file_count", "file_size_in_bytes", "last_update_time"]
    rows = table.system_table("partitions").scan(columns=columns).to_arrow().sort_by("partition").to_pylist()
    print_records(rows, arguments.output, f"partitions of {table.name}", TERMINAL_ROWS)
