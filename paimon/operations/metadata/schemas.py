"""Read the schema files of a table, and check by the first one that a table is still the one that was opened."""

# A schema file never changes, but a table may be dropped and created again at the same path. So the file is read each
# time, and its decoded form is cached together with its bytes. A caller that reads many data files loads each schema
# once.
#
# A path says nothing about identity. A writer that holds an open table can publish into a directory that is no table
# any more, or is another table of the same name. What identifies a table is the content of its first schema file: an
# equal table that is created later has another `timeMillis` in it.
#
#     opened:     schema/schema-0  {"id": 0, …, "timeMillis": 1764165541000}      its hash is `TableOrigin.digest`
#     dropped:    schema/          no file
#     replaced:   schema/schema-0  {"id": 0, …, "timeMillis": 1764165599000}      another hash
#
# A commit lists the schema files in any case. Before the snapshot is published, the listing shows whether there is a
# table, and by size and time of the first file whether it may be another one. Only if it may be is the file read
# before. After the snapshot is published the file is always read once, because the table may be replaced in between.
# It is read from the storage each time: a cached object could be that of the dropped table.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from paimon.domain.errors import CorruptTable, NotFound, PaimonError, TableDropped, TableReplaced
from paimon.domain.identifier import parse_identifier
from paimon.domain.json_text import SCHEMA_FILE
from paimon.domain.paths import MAIN_BRANCH, TablePaths
from paimon.domain.schema.table_definition import TableOrigin
from paimon.domain.schema.table_schema import TableSchema, schema_from_json
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import shielded
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_PREFIX = "schema-"
_CACHE_ENTRY_BYTES = 600
"""Size of the containers of one cached value."""


def schema_ids(engine: Engine, paths: TablePaths) -> tuple[int, ...]:
    """Return the ids of all schemas of the branch, ascending; empty if there is no table."""
    return tuple(list_schema_files(engine, paths))


def list_schema_files(engine: Engine, paths: TablePaths) -> dict[int, FileStatus]:
    """Return the schema files of the branch by id, ascending; empty if there is no table."""
    files = (s for s in engine.files.list(paths.schemas) if not s.is_directory and s.name.startswith(_PREFIX))
    numbers = {file.name.removeprefix(_PREFIX): file for file in files}
    found = {int(n): file for n, file in numbers.items() if n.isascii() and n.isdecimal() and len(n) < 19}
    return dict(sorted(found.items()))


def load_schema(engine: Engine, paths: TablePaths, schema_id: int) -> TableSchema:
    """Read the schema of an id."""
    return read_schema(engine, paths, schema_id)[1]


def read_schema(engine: Engine, paths: TablePaths, schema_id: int) -> tuple[bytes, TableSchema]:
    """Read the file of a schema, and return its bytes too; see `load_schema`."""
    path = paths.schema(schema_id)
    try:
        data = engine.files.read(path, SCHEMA_FILE.max_bytes)
    except NotFound as error:
        raise NotFound("schema", path, hint="the table was dropped, or its directory is incomplete") from error
    cached = engine.cache.get(path)
    if isinstance(cached, tuple) and cached[0] == data:
        return data, _as_schema(cached[1])
    schema = schema_from_json(data, path)
    if schema.id != schema_id:
        raise CorruptTable(path, f"contains schema {schema.id}")
    engine.cache.put(path, (data, schema), _CACHE_ENTRY_BYTES + 8 * len(data))
    return data, schema


def _as_schema(cached: object) -> TableSchema:
    assert isinstance(cached, TableSchema)
    return cached


def load_schemas(context: TableContext, ids: Iterable[int]) -> dict[int, TableSchema]:
    """Read several schemas, each once even if `ids` repeats; the result ascends by id."""
    return {schema_id: load_schema(context.engine, context.paths, schema_id) for schema_id in sorted(set(ids))}


def load_first_schema(engine: Engine, paths: TablePaths) -> TableSchema:
    """Read the first schema of the branch. Its time differs after a table is dropped and created again."""
    ids = schema_ids(engine, paths)
    if not ids:
        raise NotFound("table", paths.root, hint="it was dropped: create it again, and start a new stream")
    return load_schema(engine, paths, ids[0])


def latest_schema(engine: Engine, paths: TablePaths) -> TableSchema | None:
    """Read the newest schema; None without a table, NotFound if a listed schema file is missing."""
    ids = schema_ids(engine, paths)
    while ids:
        try:
            return load_schema(engine, paths, ids[-1])
        except NotFound:
            listed, ids = ids, schema_ids(engine, paths)
            if listed == ids:
                raise
    return None


def open_newest_schema(engine: Engine, paths: TablePaths) -> tuple[TableSchema, TableOrigin] | None:
    """Read the newest schema and the table's origin; None without a table, NotFound if a file is missing."""
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
    """Return the schema ids before a commit publishes; TableDropped or TableReplaced if it is not the table."""
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
    """Check by a read that the table is the opened one, also its catalog entry: else dropped or replaced."""
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


@shielded()
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


def suggest_location(engine: Engine, location: str) -> str:
    """Return the hint for a path without a table: what the directory contains, or the nearest existing path."""
    inside = _list_directories(engine, location)
    if location.endswith(".db") or any(name.endswith(".db") for name in inside):
        names = [name for name in inside if location.endswith(".db") or name.endswith(".db")]
        return f"the directory contains {', '.join(names[:20]) or 'no table'}: give the path of a table"
    parent, _, name = location.rpartition("/")
    siblings = _list_directories(engine, parent)
    if name in siblings:
        return "a table directory contains schema/schema-0"
    above, _, database = parent.rpartition("/")
    near = get_close_matches(name, siblings, n=1)
    if near:
        return f"did you mean '{parent}/{near[0]}'?"
    if siblings and parent.endswith(".db"):
        return f"tables in {parent!r} are: {', '.join(siblings[:20])}"
    near = [] if siblings else get_close_matches(database, _list_directories(engine, above), n=1)
    if near:
        return f"did you mean '{above}/{near[0]}/{name}'?"
    if "." in name:
        return f"as a name, it needs a warehouse: paimon.connect(warehouse).table({name!r}), or --warehouse"
    return "check the path; 'paimon ls' lists the tables"


def _list_directories(engine: Engine, parent: str) -> list[str]:
    try:
        found = [status.path for status in engine.files.list(parent) if status.is_directory]
    except PaimonError:
        return []
    return sorted(path.rstrip("/").rpartition("/")[2] for path in found)
