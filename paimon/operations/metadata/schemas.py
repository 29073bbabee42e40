"""Read the schema files of a table.

Invariant: a schema file never changes, but a table may be dropped and created again at the same path. So the file is
read each time, and its decoded form is cached together with its bytes. A caller that reads many data files loads each
schema once.

Source: `SchemaManager`.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.json_text import SCHEMA_FILE
from paimon.domain.paths import TablePaths
from paimon.domain.schema.schema_json import schema_from_json
from paimon.domain.schema.table_schema import TableSchema
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileStatus

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
    """Read the newest schema; None if there is no table, or if it is dropped during the read.

    Raises `NotFound` if the schema file is listed but cannot be found.
    """
    ids = schema_ids(engine, paths)
    while ids:
        try:
            return load_schema(engine, paths, ids[-1])
        except NotFound:
            listed, ids = ids, schema_ids(engine, paths)
            if listed == ids:
                raise
    return None
