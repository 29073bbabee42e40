"""Making a table and changing its schema.

Law: a schema becomes visible by one `put_if_absent` of its file; whoever loses that race starts again from the
newest schema, and what nobody knows is looked up by reading the file. Source: `SchemaManager.createTable`,
`commitChanges`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from attrs import evolve

from paimon.domain.errors import AlreadyExists, NotFound, PaimonError, StorageError
from paimon.domain.identifier import parse_identifier
from paimon.domain.json_text import SCHEMA_FILE
from paimon.domain.merge.aggregate.check import check_aggregates
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_options
from paimon.domain.paths import TablePaths
from paimon.domain.schema.changes import AddColumn, SchemaChange, SetOption, apply_changes
from paimon.domain.schema.declare import declare
from paimon.domain.schema.json import schema_to_json
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.texts import check_text
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataField
from paimon.operations.read.schemas import latest_schema, load_schema
from paimon.operations.read.snapshots import latest_snapshot
from paimon.ports.engine import Engine
from paimon.ports.files import PutOutcome

_ATTEMPTS = 20


def create_table(
    engine: Engine,
    paths: TablePaths,
    fields: Sequence[DataField],
    primary_keys: Sequence[str],
    partition_keys: Sequence[str],
    options: Mapping[str, str],
    comment: str | None = None,
    allow_unknown_options: bool = False,
) -> TableSchema:
    """Write the first schema of a new table.

    Raises
    ------
    InvalidRequest, Unsupported
        A column, key or option that cannot be; nothing was written.
    AlreadyExists
        There is a table in this place.
    """
    check_options(options, allow_unknown_options)
    schema = declare(fields, primary_keys, partition_keys, options, comment, engine.clock.now_millis())
    check_aggregates(schema, TableOptions.of(schema.options))
    if latest_schema(engine, paths) is not None or not _put(engine, paths, schema):
        hint = "where a catalog does not list it, its making was cut short: catalog.repair_table takes it in"
        raise AlreadyExists("table", paths.root, hint=hint)
    return schema


def alter_table(engine: Engine, table: TableDefinition, changes: Sequence[SchemaChange]) -> TableSchema:
    """Write the next schema: the newest one with these changes, all or none; nothing new, nothing written.

    Raises
    ------
    InvalidRequest, NotFound, AlreadyExists, Unsupported
        A change that cannot be; nothing was written.
    """
    set_options = [c for c in changes if isinstance(c, SetOption)]
    check_options({check_text(c.key, "option"): c.value for c in set_options}, allow_unknown=True)
    for _ in range(_ATTEMPTS):
        newest = latest_schema(engine, table.paths)
        if newest is None:
            raise NotFound("table", table.location)
        changed = _next_schema(engine, table, newest, changes)
        if changed == newest or _put(engine, table.paths, changed):
            _tell(engine, table)
            return changed
    raise StorageError(table.paths.schemas, f"lost {_ATTEMPTS} races for the next schema", hint="try again")


def _next_schema(
    engine: Engine, table: TableDefinition, newest: TableSchema, changes: Sequence[SchemaChange]
) -> TableSchema:
    """The schema that follows the newest one; the newest itself where the changes change nothing."""
    has_snapshots = latest_snapshot(engine, table.paths) is not None
    changed = apply_changes(newest, changes, has_snapshots)
    if changed == newest:
        return newest
    if _can_merge(newest):
        check_aggregates(changed, TableOptions.of(changed.options))
    return evolve(changed, id=newest.id + 1, time_millis=engine.clock.now_millis())


def properties_of(schema: TableSchema) -> dict[str, str]:
    """What a catalog is told of a table: its options and keys."""
    keys = {
        "primary-key": schema.primary_keys, "partition": schema.partition_keys, "bucket-key": schema.bucket_keys
    }  # fmt: skip
    return {**schema.options, **{key: ",".join(names) for key, names in keys.items() if names}}


def _tell(engine: Engine, table: TableDefinition) -> None:
    """Tell the catalog what the newest schema says, which may be another's by now; of branches it keeps nothing."""
    newest = None if engine.tables is None or table.branch != "main" else latest_schema(engine, table.paths)
    if engine.tables is not None and newest is not None:
        identifier = parse_identifier(table.identifier)
        engine.tables.update_table(identifier.database, identifier.table, properties_of(newest))


def _can_merge(schema: TableSchema) -> bool:
    """Whether its aggregates are sound: others made tables where they are not, which may still be changed."""
    try:
        check_aggregates(schema, TableOptions.of(schema.options))
    except PaimonError:
        return False
    return True


def at_newest_schema(engine: Engine, table: TableDefinition) -> TableDefinition:
    """The table at its newest schema; NotFound where there is none any more."""
    newest = latest_schema(engine, table.paths)
    if newest is None:
        raise NotFound("table", table.location)
    return table.at_schema(newest)


def plan_merged_schema(engine: Engine, table: TableDefinition, given: pa.Schema) -> TableDefinition:
    """The table with the columns that only the data have added behind its own, at a schema that is not written yet.

    Parameters
    ----------
    table : TableDefinition
        The table at its newest schema.
    given : pa.Schema
        The columns of the data.

    Returns
    -------
    TableDefinition
        `table` itself where the data have no further columns; otherwise what `publish_schema` takes.

    Raises
    ------
    InvalidRequest, Unsupported
        A column whose type no table can hold.
    """
    fresh = fields_from_arrow(pa.schema([f for f in given if f.name not in table.schema.fields_by_name]))
    changes = [AddColumn(f.name, f.type.with_nullable(True), comment=f.description) for f in fresh]
    return table.at_schema(_next_schema(engine, table, table.schema, changes)) if changes else table


def publish_schema(engine: Engine, table: TableDefinition) -> bool:
    """Write a planned schema; whether the table has it now, which may be another writer's equal one."""
    schema = table.schema
    is_there = _put(engine, table.paths, schema)
    if not is_there:
        stored = load_schema(engine, table.paths, schema.id)
        is_there = evolve(stored, time_millis=schema.time_millis) == schema
    if is_there:
        _tell(engine, table)
    return is_there


def _put(engine: Engine, paths: TablePaths, schema: TableSchema) -> bool:
    """Whether the schema was published; False: someone else was first.

    Storage that tried again by itself says "exists" of our own file too, so the bytes decide.
    """
    path, data = paths.schema(schema.id), schema_to_json(schema)
    if engine.files.put_if_absent(path, data) is PutOutcome.CREATED:
        return True
    try:
        return engine.files.read(path, SCHEMA_FILE.max_bytes) == data
    except NotFound as error:
        raise StorageError(path, "the storage does not tell whether it was written", hint="try again") from error
