"""Reading a table's schema files.

Law: a schema file never changes, but a table may be dropped and made anew under the same path; so the file is read
each time, and only what was made of these very bytes is kept. Whoever reads many files loads each schema once.
Source: `SchemaManager`.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.json_text import SCHEMA_FILE
from paimon.domain.paths import TablePaths
from paimon.domain.schema.json import schema_from_json
from paimon.domain.schema.table_schema import TableSchema
from paimon.ports.engine import Engine

_PREFIX = "schema-"
_PLACE_BYTES = 600
"""What the cache's own containers take for one value."""


def schema_ids(engine: Engine, paths: TablePaths) -> tuple[int, ...]:
    """The ids of all schemas of the branch, ascending; empty where there is no table."""
    names = (status.name for status in engine.files.list(paths.schemas) if not status.is_directory)
    numbers = (n.removeprefix(_PREFIX) for n in names if n.startswith(_PREFIX))
    return tuple(sorted(int(n) for n in numbers if n.isascii() and n.isdecimal() and len(n) < 19))


def load_schema(engine: Engine, paths: TablePaths, schema_id: int) -> TableSchema:
    """One schema by its id.

    Raises
    ------
    NotFound
        There is no schema of this id.
    CorruptTable, Unsupported
        Its file is broken, or of a version that is not known.
    """
    path = paths.schema(schema_id)
    try:
        data = engine.files.read(path, SCHEMA_FILE.max_bytes)
    except NotFound as error:
        raise NotFound("schema", path, hint="the table was dropped, or its directory is incomplete") from error
    kept = engine.cache.get(path)
    if isinstance(kept, tuple) and kept[0] == data:
        return _same(kept[1])
    schema = schema_from_json(data, path)
    if schema.id != schema_id:
        raise CorruptTable(path, f"holds the schema of id {schema.id}")
    engine.cache.put(path, (data, schema), _PLACE_BYTES + 8 * len(data))
    return schema


def _same(kept: object) -> TableSchema:
    assert isinstance(kept, TableSchema)
    return kept


def load_schemas(engine: Engine, paths: TablePaths, ids: Iterable[int]) -> dict[int, TableSchema]:
    """Several schemas by id, each read once."""
    return {schema_id: load_schema(engine, paths, schema_id) for schema_id in sorted(set(ids))}


def latest_schema(engine: Engine, paths: TablePaths) -> TableSchema | None:
    """The newest schema, None where there is no table; one that is dropped meanwhile is none either."""
    ids = schema_ids(engine, paths)
    while ids:
        try:
            return load_schema(engine, paths, ids[-1])
        except NotFound:
            listed, ids = ids, schema_ids(engine, paths)
            if listed == ids:
                raise
    return None
