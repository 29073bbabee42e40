"""Commands about tables: `init`, `create`, `ls`, `show`.

Law: making what is there already is an error, or with --if-not-exists takes it as it is; nothing here deletes.
"""

from __future__ import annotations

import argparse

from paimon.cli.arguments import (
    Commands,
    add_catalog,
    add_option,
    add_output,
    add_table,
    add_warehouse,
    catalog_at,
    command,
    names_of,
    opened_table,
    options_of,
    place_of,
)
from paimon.cli.inputs import FILE_HELP, FORMATS, schema_of
from paimon.cli.output import print_records
from paimon.cli.picture import known_rows, show_table
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, PaimonError
from paimon.table import Table


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    init = command(commands, "init", "make a warehouse with a database", "paimon init lake")
    init.add_argument("path", metavar="WAREHOUSE", help="directory or URL of the warehouse")
    add_catalog(init)
    init.add_argument("--database", default="default", help="name of the database (default: default)")
    init.set_defaults(run=_init)
    create = command(
        commands,
        "create",
        "make a table",
        'paimon create lake/default.db/orders --columns "id BIGINT NOT NULL, amount DOUBLE" '
        "--primary-key id --option bucket=2",
    )
    add_table(create)
    columns = create.add_mutually_exclusive_group(required=True)
    columns.add_argument("--columns", metavar="DDL", help='a column list: "id BIGINT NOT NULL, name STRING"')
    columns.add_argument("--like", metavar="FILE", help=f"take the columns of a file: {FILE_HELP}")
    create.add_argument("--format", choices=FORMATS, help="format of the --like file, instead of its ending")
    create.add_argument("--primary-key", metavar="A,B", help="primary-key columns")
    create.add_argument("--partition-by", metavar="A,B", help="partition columns")
    create.add_argument("--comment", help="what the table is about")
    create.add_argument("--if-not-exists", action="store_true", help="no error if the table is there already")
    add_option(create, "a table option, such as bucket=4")
    create.set_defaults(run=_create)
    listing = command(commands, "ls", "list databases and tables of a warehouse", "paimon ls lake")
    listing.add_argument("path", nargs="?", metavar="WAREHOUSE", help="the warehouse (default: $PAIMON_WAREHOUSE)")
    add_warehouse(listing)
    add_output(listing)
    listing.set_defaults(run=_ls)
    show = command(
        commands,
        "show",
        "show a table: schema, options, partitions, files by bucket and level",
        "paimon show lake/default.db/orders",
    )
    add_table(show)
    add_output(show)
    show.set_defaults(run=lambda given: show_table(opened_table(given), given.output))


def _init(given: argparse.Namespace) -> None:
    catalog = catalog_at(given, given.path)
    catalog.create_database(given.database, exist_ok=True)
    print(f"{catalog.warehouse}: database {given.database!r} is ready")


def _create(given: argparse.Namespace) -> None:
    warehouse, name = place_of(given)
    if given.format and not given.like:
        raise InvalidRequest("--format is the format of a --like file", subject="format", hint="leave out --format")
    schema = given.columns if given.columns is not None else schema_of(given.like, given.format)
    catalog = catalog_at(given, warehouse)
    catalog.create_database(name.partition(".")[0], exist_ok=True)
    try:
        table = catalog.create_table(
            name,
            schema,
            primary_keys=names_of(given.primary_key) or [],
            partition_keys=names_of(given.partition_by) or [],
            options=options_of(given.option),
            comment=given.comment,
            exist_ok=given.if_not_exists,
        )
    except AlreadyExists as error:
        raise AlreadyExists(error.kind, error.name, hint="--if-not-exists takes the one that is there") from error
    print(f"{table.location}: {table!r} is ready")


def _ls(given: argparse.Namespace) -> None:
    warehouse = given.path or given.warehouse
    if not warehouse:
        raise InvalidRequest("no warehouse was named", hint="paimon ls PATH, or set PAIMON_WAREHOUSE")
    catalog = catalog_at(given, warehouse)
    databases = catalog.databases()
    if not databases and not given.catalog and catalog.engine.files.status(catalog.warehouse) is None:
        raise NotFound("warehouse", catalog.warehouse, hint=f"check the URL, or make it: paimon init {warehouse}")
    records, errors = [], []
    for name in (f"{database}.{table}" for database in databases for table in catalog.tables(database)):
        try:
            records.append(_summary(name, catalog.table(name)))
        except PaimonError as error:  # the others are shown all the same
            errors.append(error)
    print_records(records, given.output, f"tables of {catalog.warehouse}")
    empty = [database for database in databases if not catalog.tables(database)]
    if empty and given.output == "table":
        print(f"databases without tables: {', '.join(empty)}")
    if errors:
        raise errors[0]


def _summary(name: str, table: Table) -> dict[str, object]:
    snapshot = table.snapshot()
    return {
        "table": name,
        "columns": len(table.table_schema.fields),
        "primary key": ", ".join(table.primary_keys),
        "partitioned by": ", ".join(table.partition_keys),
        "snapshot": None if snapshot is None else snapshot.id,
        "records": None if snapshot is None else snapshot.total_record_count,
        "rows": known_rows(table, snapshot),
    }
