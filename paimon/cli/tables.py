"""Commands about tables: `init`, `create`, `ls` and `show`.

Invariant: to create a table that exists is an error, or with --if-not-exists does nothing. No command here deletes.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import (
    Commands,
    add_catalog,
    add_command,
    add_option,
    add_output,
    add_table,
    add_warehouse,
    locate_table,
    open_catalog,
    open_data_table,
    parse_names,
    parse_options,
)
from paimon.cli.declared_table import DeclaredTable, read_declared_table
from paimon.cli.inputs import FILE_HELP, FORMATS, read_schema
from paimon.cli.output import print_records
from paimon.cli.table_overview import count_known_rows, show_table
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, PaimonError
from paimon.table import Table


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    init = add_command(commands, "init", "create a warehouse with a database", "paimon init lake")
    init.add_argument("path", metavar="WAREHOUSE", help="path or URL of the warehouse")
    add_catalog(init)
    init.add_argument("--database", default="default", help="name of the database (default: default)")
    init.set_defaults(run=_init)
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
    create.set_defaults(run=_create)
    listing = add_command(commands, "ls", "list the databases and tables of a warehouse", "paimon ls lake")
    listing.add_argument(
        "path", nargs="?", metavar="WAREHOUSE", help="path or URL of the warehouse (default: $PAIMON_WAREHOUSE)"
    )
    add_warehouse(listing)
    add_output(listing)
    listing.set_defaults(run=_ls)
    show = add_command(
        commands,
        "show",
        "show the schema, the options and the files of a table, by partition, bucket and level",
        "paimon show lake/default.db/orders",
    )
    add_table(show)
    add_output(show)
    show.set_defaults(run=lambda arguments: show_table(open_data_table(arguments), arguments.output))


def _init(arguments: argparse.Namespace) -> None:
    catalog = open_catalog(arguments, arguments.path)
    catalog.create_database(arguments.database, exist_ok=True)
    print(f"{catalog.warehouse}: database {arguments.database!r} is ready")


def _create(arguments: argparse.Namespace) -> None:
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


def _declare_table(arguments: argparse.Namespace) -> DeclaredTable:
    if arguments.schema is not None:
        return read_declared_table(arguments.schema)
    if arguments.columns is not None:
        return DeclaredTable(arguments.columns)
    return DeclaredTable(read_schema(arguments.like, arguments.format))


def _ls(arguments: argparse.Namespace) -> None:
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
    print_records(records, arguments.output, f"tables of {catalog.warehouse}")
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
