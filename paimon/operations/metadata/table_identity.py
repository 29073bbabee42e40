"""Check that a table is still the one that was opened; another process may drop, rename or create it again.

A path says nothing about identity. A writer that holds an open table can publish into a directory that is no table any
more, or is another table of the same name. What identifies a table is the content of its first schema file: it never
changes, and an equal table that is created later has another `timeMillis` in it.

    opened:     schema/schema-0  {"id": 0, …, "timeMillis": 1764165541000}      its hash is `TableOrigin.digest`
    dropped:    schema/          no file
    replaced:   schema/schema-0  {"id": 0, …, "timeMillis": 1764165599000}      another hash

A commit lists the schema files in any case. The listing shows before the snapshot is published that there is no table,
and by size and time of the first file that it may be another table. Only then is the file read before. After the
snapshot is published the file is always read once, because the table may be replaced in between.

Invariant: the file is read from the storage each time. A cached object could be that of the dropped table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from paimon.domain.errors import NotFound, PaimonError, TableDropped, TableReplaced
from paimon.domain.identifier import parse_identifier
from paimon.domain.json_text import SCHEMA_FILE
from paimon.domain.paths import MAIN_BRANCH, TablePaths
from paimon.domain.schema.table_definition import TableOrigin
from paimon.domain.schema.table_schema import TableSchema
from paimon.operations.metadata.schemas import list_schema_files, read_schema
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def open_newest_schema(engine: Engine, paths: TablePaths) -> tuple[TableSchema, TableOrigin] | None:
    """Read the newest schema and what identifies the table; None if there is no table.

    Raises `NotFound` if the schema file is listed but cannot be found.
    """
    files = list_schema_files(engine, paths)
    while files:
        first, newest = min(files), max(files)
        try:
            data, schema = read_schema(engine, paths, newest)
            if first != newest:
                data, _ = read_schema(engine, paths, first)
            return schema, TableOrigin.of(first, data, files[first].modified_millis)
        except NotFound:
            listed, files = files, list_schema_files(engine, paths)
            if listed == files:
                raise
    return None


def list_schemas_of_table(context: TableContext) -> tuple[int, ...]:
    """Return the ids of the schemas, ascending, before a commit publishes.

    Raises `TableDropped` or `TableReplaced` if the opened table does not exist any more.
    """
    files = list_schema_files(context.engine, context.paths)
    origin = context.table.origin
    if origin is not None:
        first = files.get(origin.schema_id)
        if first is None or origin.may_have_changed(first.size, first.modified_millis):
            check_same_table(context)
    return tuple(files)


def check_table_exists(context: TableContext) -> None:
    """Check, where no snapshot is found, that there is a table at all."""
    if context.table.origin is not None and not list_schema_files(context.engine, context.paths):
        raise TableDropped(context.table.location)


def check_same_table(context: TableContext) -> None:
    """Check by one small read that the table is the one that was opened; in a catalog with entries also its entry.

    Raises `TableDropped` or `TableReplaced` if it is not.
    """
    origin, location = context.table.origin, context.table.location
    if origin is None:
        return
    try:
        data = context.files.read(context.paths.schema(origin.schema_id), SCHEMA_FILE.max_bytes)
    except NotFound:
        is_replaced = bool(list_schema_files(context.engine, context.paths))
        raise (TableReplaced if is_replaced else TableDropped)(location) from None
    if not origin.is_same_file(data):
        raise TableReplaced(location)
    if context.engine.tables is not None and context.table.branch == MAIN_BRANCH:
        name = parse_identifier(context.table.table_name)
        if not context.engine.tables.has_table(name.database, name.table):
            raise TableDropped(location)


def find_missing_table(context: TableContext) -> TableDropped | TableReplaced | None:
    """Return the error that says that the table is gone; None if it is there, or if this cannot be read."""
    try:
        check_same_table(context)
    except (TableDropped, TableReplaced) as error:
        return error
    except PaimonError:
        return None
    return None


@contextmanager
def explain_missing_table(context: TableContext) -> Iterator[None]:
    """Raise that the table is gone, if this is why a block fails."""
    try:
        yield
    except (TableDropped, TableReplaced):
        raise
    except PaimonError as error:
        missing = find_missing_table(context)
        if missing is not None:
            raise missing from error
        raise


def on_same_table(
    operation: Callable[Concatenate[TableContext, _Given], _Result],
) -> Callable[Concatenate[TableContext, _Given], _Result]:
    """Decorate an operation that must not run on another table than the one that was opened."""

    @wraps(operation)
    def run(context: TableContext, /, *given: _Given.args, **named: _Given.kwargs) -> _Result:
        check_same_table(context)
        with explain_missing_table(context):
            return operation(context, *given, **named)

    return run
