"""The verbs that copy tables to other names and warehouses, and make tables of files that other systems wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported
from paimon.operations.refs.clone_table import ClonedTable
from paimon.operations.write.migrate_files import MigratedTable
from paimon.verbs.arguments import parse_assignments
from paimon.verbs.verb import Column, Command, Confirmation, Flag, Parameter, Rows, Type, Verb, VerbCatalog, keep_rows


def copy(  # noqa: PLR0913, PLR0917  (the parameters of the method)
    catalog: VerbCatalog,
    source: str,
    target: str,
    where: str | None,
    warehouse: str | None,
    snapshot: int | None,
    tag: str | None,
    dry_run: bool,
) -> ClonedTable:
    """Copy a table with its files."""
    return catalog.clone_table(
        source, target, where=where, warehouse=warehouse, snapshot=snapshot, tag=tag, dry_run=dry_run
    )


def clone(  # noqa: PLR0913, PLR0917  (the parameters of Java's procedure)
    catalog: VerbCatalog,
    database: str | None,
    table: str | None,
    target_database: str | None,
    target_table: str | None,
    target_warehouse: str | None,
    where: str | None,
    snapshot: int | None,
    tag: str | None,
    dry_run: bool,
) -> Rows:
    """Copy a table, the tables of a database, or all tables; a failure stops only the copy of one table."""
    if table is None and (target_table, where, snapshot, tag) != (None, None, None, None):
        raise InvalidRequest(
            "The arguments 'target_table', 'where', 'snapshot' and 'tag' need the argument 'table'.",
            subject="table",
            hint="name the table",
        )
    if database is None and (table, target_database) != (None, None):
        raise InvalidRequest("The argument 'database' is missing.", subject="database", hint="name the database")
    given: dict[str, Any] = {"where": where, "snapshot": snapshot, "tag": tag, "dry_run": dry_run}
    given["warehouse"] = _read_warehouse(target_warehouse)
    if table is not None:
        names = target_database or database, target_table or table
        return _to_rows(catalog.clone_table(f"{database}.{table}", ".".join(map(str, names)), **given))
    rows: list[Mapping[str, object]] = []
    listed = catalog.tables(database)
    for name in listed if database is None else [f"{database}.{bare}" for bare in listed]:
        own, _, bare = name.partition(".")
        rows += _clone_or_report(catalog, name, f"{target_database or own}.{bare}", given)
    return rows


def _clone_or_report(catalog: VerbCatalog, source: str, target: str, given: Mapping[str, Any]) -> Rows:
    try:
        return _to_rows(catalog.clone_table(source, target, **given))
    except PaimonError as error:
        row = dict.fromkeys(("snapshot", "files", "bytes", "rows"))
        return [{"source": source, "target": target, **row, "error": str(error)}]


def _read_warehouse(conf: str | None) -> str | None:
    """Return the warehouse in Java's ``warehouse=…``, or a plain path."""
    if conf is None or "=" not in conf or "/" in conf.partition("=")[0]:
        return conf
    options = parse_assignments(conf, "target_catalog_conf")
    others = sorted(options.keys() - {"warehouse"})
    if others or not options:
        raise Unsupported(f"option {others[0]!r} of target_catalog_conf", hint="give warehouse=PATH alone")
    return options["warehouse"]


def migrate_table(  # noqa: PLR0913, PLR0917  (the parameters of Java's procedure)
    catalog: VerbCatalog,
    format: str | None,
    source: str,
    target: str,
    options: str | None,
    delete_origin: bool,
    partition_types: str | None,
    dry_run: bool,
) -> MigratedTable:
    """Make an append table of the files of a directory."""
    return catalog.migrate_table(
        source,
        target,
        format=format,
        options=parse_assignments(options or "", "options"),
        delete_origin=delete_origin,
        partition_types=partition_types,
        dry_run=dry_run,
    )


def _ask_delete(_: VerbCatalog, given: Mapping[str, Any]) -> str | None:
    if given["dry_run"] or not given["delete_origin"]:
        return None
    return f"Delete the files of {given['source']} after they are copied?"


def _to_rows(done: ClonedTable) -> Rows:
    sizes = {"files": done.files, "bytes": done.bytes, "rows": done.rows}
    return [{"source": done.source, "target": done.target, "snapshot": done.snapshot_id, **sizes, "error": None}]


def _to_file_rows(done: MigratedTable) -> Rows:
    return [
        {
            "source": file.source,
            "partition": file.partition,
            "rows": file.rows,
            "bytes": file.size_bytes,
            "snapshot": done.snapshot_id,
        }
        for file in done.files
    ]


_WHERE = Parameter(
    "where", Type.TEXT, "a condition on partition columns",
    flag=Flag(metavar="CONDITION", help="copy only the partitions that this SQL condition selects"),
)  # fmt: skip
_SNAPSHOT = Parameter("snapshot", Type.INTEGER, "the snapshot to copy (default: the latest)", flag=Flag(metavar="ID"))
_TAG = Parameter("tag", Type.TEXT, "the tag to copy, instead of a snapshot", flag=Flag(metavar="NAME"))
_DRY_RUN = Parameter("dry_run", Type.BOOLEAN, "copy nothing, and show what would be copied", flag=Flag())
_CLONE_COLUMNS = (
    Column("source", pa.string()),
    Column("target", pa.string()),
    Column("snapshot", pa.int64()),
    Column("files", pa.int64()),
    Column("bytes", pa.int64()),
    Column("rows", pa.int64(), "records"),
)
COPY = Verb(
    "copy", "copy a table with its files to another name or warehouse", copy, _to_rows,
    (
        Parameter("source", Type.TEXT, "the table, as database.table", required=True, java="source_table"),
        Parameter("target", Type.TEXT, "the new table, as database.table", required=True, java="target_table"),
        _WHERE,
        Parameter("warehouse", Type.TEXT, "the warehouse of the new table (default: the same)"),
        _SNAPSHOT,
        _TAG,
        _DRY_RUN,
    ),
    _CLONE_COLUMNS, of_catalog=True, method="Catalog.clone_table",
)  # fmt: skip
CLONE = Verb(
    "clone", "copy a table, or all tables of a database, with their files to another name or warehouse", clone,
    keep_rows,
    (
        Parameter(
            "database", Type.TEXT, "the database (default: all)", flag=Flag("-d --database", "NAME"),
        ),
        Parameter("table", Type.TEXT, "the table, without its database (default: all)", flag=Flag(metavar="NAME")),
        Parameter("target_database", Type.TEXT, "the new database (default: the same name)", flag=Flag(metavar="NAME")),
        Parameter("target_table", Type.TEXT, "the new table (default: the same name)", flag=Flag(metavar="NAME")),
        Parameter(
            "target_warehouse", Type.TEXT, "the new warehouse, as 'warehouse=PATH' (default: the same)",
            java="target_catalog_conf", flag=Flag("--to", "WAREHOUSE", "the new warehouse (default: the same)"),
        ),
        _WHERE,
        _SNAPSHOT,
        _TAG,
        _DRY_RUN,
    ),
    (*_CLONE_COLUMNS, Column("error", pa.string())),
    Command(
        "clone", "lake --database default --table orders --target-table orders_copy", has_progress=True,
        takes_options=False,
    ),
    of_catalog=True,
)  # fmt: skip
MIGRATE_TABLE = Verb(
    "migrate_table", "make an append table of the Parquet, ORC or Avro files of a directory", migrate_table,
    _to_file_rows,
    (
        Parameter(
            "format", Type.TEXT, "'parquet', 'orc' or 'avro' (default: the ending of the file names)", java="connector",
            spark="source_type", flag=Flag("--file-format", "NAME"),
        ),
        Parameter(
            "source", Type.TEXT, "the directory", required=True, java="source_table", spark="table",
            flag=Flag(metavar="DIRECTORY", help="the directory of the files; day=2026-01-01 below it is a partition"),
        ),
        Parameter(
            "target", Type.TEXT, "the new table, as database.table", required=True, java="target_table",
            flag=Flag(metavar="TABLE"),
        ),
        Parameter("options", Type.TEXT, "options of the new table, such as 'file.format=orc'"),
        Parameter(
            "delete_origin", Type.BOOLEAN, "delete the files of the source after the table is complete",
            flag=Flag(),
        ),
        Parameter(
            "partition_types", Type.TEXT, "types of partition columns, such as 'day DATE, hour INT'",
            flag=Flag(metavar="COLUMNS"),
        ),
        _DRY_RUN,
    ),
    (
        Column("source", pa.string()),
        Column("partition", pa.string()),
        Column("rows", pa.int64(), "records"),
        Column("bytes", pa.int64()),
        Column("snapshot", pa.int64()),
    ),
    Command(
        "migrate", "lake --source events --target default.events --dry-run",
        more_help="""
The files are copied as they are. The source stays, unless --delete-origin is given. The copies have statistics from
the footers of the files. Files with different columns are refused, and nothing is created then.
""",
        confirmation=Confirmation.ON_TERMINAL, question=_ask_delete, has_progress=True, takes_options=False,
    ),
    of_catalog=True, method="Catalog.migrate_table",
)  # fmt: skip
TRANSFER_VERBS = (CLONE, COPY, MIGRATE_TABLE)
