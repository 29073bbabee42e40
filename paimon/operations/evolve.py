"""Create a table and change its schema.

Invariant: a schema becomes visible by one `put_if_absent` of its file. If another writer is first, the call starts
again from the newest schema. An unknown outcome is determined by a read of the file.

Source: `SchemaManager.createTable`, `commitChanges`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.errors import (
    AlreadyExists,
    InvalidRequest,
    NotFound,
    PaimonError,
    PaimonWarning,
    StorageError,
    TableDropped,
    TableReplaced,
)
from paimon.domain.identifier import parse_identifier
from paimon.domain.manifest.type_fit import find_type_changes, find_wider_types
from paimon.domain.merge.aggregate.check import check_aggregates, check_function_names
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_options
from paimon.domain.paths import TablePaths
from paimon.domain.schema.change_columns import OPTIONS_OF_CHANGES
from paimon.domain.schema.change_options import find_merge_changes
from paimon.domain.schema.changes import (
    AddColumn,
    RemoveOption,
    SchemaChange,
    SetColumnType,
    SetOption,
    apply_changes,
    find_protected_columns,
)
from paimon.domain.schema.declare import declare_schema
from paimon.domain.schema.external_paths import check_external_places
from paimon.domain.schema.parse_changes import parse_schema_changes
from paimon.domain.schema.rules.layout import explain_key_scope
from paimon.domain.schema.table_schema import TableSchema, schema_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.text_checks import check_text
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataField
from paimon.operations.metadata.manifests import find_deletion_files, read_data_manifests, read_live_columns
from paimon.operations.metadata.metadata_files import delete_files, put_file
from paimon.operations.metadata.schemas import check_same_table, latest_schema, load_schema, on_same_table, schema_ids
from paimon.operations.metadata.snapshots import find_history, latest_snapshot
from paimon.operations.metadata.type_proof import check_stored_values
from paimon.operations.table_context import TableContext
from paimon.ports.cancellation import finished_once_begun, shielded
from paimon.ports.engine import Engine


def check_rows_merged(context: TableContext, snapshot: Snapshot, options: Sequence[str]) -> None:
    """Refuse an option change while rows are unmerged or marked deleted; name an option and the command."""
    has_vectors = any(find_deletion_files(context, snapshot).values())
    if has_vectors or (context.schema.primary_keys and _has_unmerged_files(context, snapshot)):
        name = context.table.table_name
        raise InvalidRequest(
            f"Option {options[0]!r} changes how the rows of table {name!r} are merged, and some are not merged yet",
            subject=options[0],
            hint=f"run CALL sys.compact('{name}'), or compact(full=True), while no other process writes",
        )


def _has_unmerged_files(context: TableContext, snapshot: Snapshot) -> bool:
    """Return whether a bucket has files on level 0, or on several levels."""
    live = read_live_columns(context, read_data_manifests(context, snapshot))
    levels = live.number("_LEVEL")
    buckets = np.column_stack([live.partitions, live.buckets])
    of_levels = np.unique(np.column_stack([buckets, levels]), axis=0)
    return bool((levels == 0).any()) or len(of_levels) > len(np.unique(buckets, axis=0))


_ATTEMPTS = 20
WIDEN, CAST = "widen", "cast"
"""How a write with new columns changes the types of the others, too."""
CREATION_PREFIX = "create-table-as-"
"""The names of branches that become tables together with their rows; see `paimon.operations.refs.filled_tables`."""


@frozen
class TableDeclaration:
    """What the creator of a table declares."""

    fields: Sequence[DataField]
    # empty for an append table
    primary_keys: Sequence[str] = ()
    partition_keys: Sequence[str] = ()
    options: Mapping[str, str] = field(factory=dict)
    comment: str | None = None


def check_no_history(engine: Engine, paths: TablePaths) -> None:
    """Raise AlreadyExists if there is a file of a history, which a new table would take for its own."""
    left = find_history(engine, paths, CREATION_PREFIX)
    if left is not None:
        hint = f"it belongs to no table: repeat an interrupted CREATE TABLE AS, or delete the directory {paths.root!r}"
        raise AlreadyExists("file", left, hint=hint)


def create_table(
    engine: Engine, paths: TablePaths, declaration: TableDeclaration, allow_unknown_options: bool = False
) -> TableSchema:
    """Write the first schema of a new table; nothing is written if a column, key or option is not allowed.

    Raises `AlreadyExists` also if there are files of a history without a table: a drop leaves what an expiry writes
    meanwhile. `allow_unknown_options` stores options that are not in the registry.
    """
    d, now = declaration, engine.clock.now_millis()
    formats = engine.file_formats
    check_options(d.options, allow_unknown_options, formats)
    schema = declare_schema(d.fields, d.primary_keys, d.partition_keys, d.options, d.comment, now, formats)
    check_external_places(TableOptions.of(schema.options), paths.root)
    check_function_names(schema, TableOptions.of(schema.options))
    check_aggregates(schema, TableOptions.of(schema.options))
    is_there = bool(schema_ids(engine, paths))
    if not is_there:
        check_no_history(engine, paths)
    if is_there or not _put_schema(engine, paths, schema):
        hint = "if the catalog does not list it, its creation was interrupted: call catalog.repair_table"
        raise AlreadyExists("table", paths.root, hint=hint)
    return schema


def change_schema(
    context: TableContext, changes: Iterable[SchemaChange | str], allow_unknown_options: bool, allow_lossy: bool = False
) -> TableContext:
    """Apply changes in order to the newest schema of a table, write its next version, and return the table with it.

    Strings are clauses of ``ALTER TABLE``. `allow_lossy` permits type changes that lose stored values. Dynamic options
    stay in effect. A refused change leaves the schema unchanged. Warns if keys become unique only within a partition.
    """
    parsed: list[SchemaChange] = []
    for change in changes:
        parsed += parse_schema_changes(change) if isinstance(change, str) else [change]
    for option in (c for c in parsed if isinstance(c, SetOption)):
        if not isinstance(option.key, str):
            raise InvalidRequest(f"Option name {option.key!r} is not a text.", subject="option", hint="give a str")
        check_options({option.key: option.value}, allow_unknown_options, context.engine.file_formats)
    if allow_lossy:
        parsed = [evolve(c, allow_lossy=True) if isinstance(c, SetColumnType) else c for c in parsed]
    schema = alter_table(context, parsed)
    scope = explain_key_scope(schema)
    if scope is not None and explain_key_scope(context.schema) is None:
        warnings.warn(f"Table {context.table.table_name!r}: {scope}", PaimonWarning, stacklevel=3)
    return context.at_schema(schema)


@finished_once_begun()
@on_same_table
def alter_table(context: TableContext, changes: Sequence[SchemaChange]) -> TableSchema:
    """Write the next schema: the newest one with these changes in order; without a difference nothing is written.

    Statistics prove that stored values fit a type that holds less, before and after the schema is published. Raises
    `StorageError` if concurrent schema changes were published first too often.
    """
    set_options = [c for c in changes if isinstance(c, SetOption)]
    given = {check_text(c.key, "option"): c.value for c in set_options}
    check_options(given, allow_unknown=True, formats=context.engine.file_formats)
    for _ in range(_ATTEMPTS):
        newest = latest_schema(context.engine, context.paths)
        if newest is None:
            raise NotFound("table", context.table.location)
        changed = _build_next_schema(context, newest, changes)
        narrowed = _find_narrowed_columns(_apply_dynamic_rules(context, newest, changes), changed, changes)
        if changed == newest or (
            _publish_narrower(context, newest, changed, narrowed) if narrowed else _put_next_schema(context, changed)
        ):
            _update_catalog(context)
            return changed
    raise StorageError(
        context.paths.schemas, f"{_ATTEMPTS} concurrent schema changes were published first", hint="try again"
    )


def _find_narrowed_columns(
    newest: TableSchema, changed: TableSchema, changes: Sequence[SchemaChange]
) -> frozenset[int]:
    """Return the ids of the columns whose new type holds less than the old one, unless a loss is allowed."""
    if not any(isinstance(change, SetColumnType) for change in changes):
        return frozenset()
    ids_by_name = {f.name: f.id for f in newest.fields}
    narrowed = {ids_by_name[change.name] for change in find_type_changes(newest.fields, changed.fields)}
    return find_protected_columns(newest, changes) & narrowed


def _publish_narrower(
    context: TableContext, newest: TableSchema, changed: TableSchema, columns: frozenset[int]
) -> bool:
    """Publish a schema if all stored values fit; False if another writer was first.

    Where commits take a lock, none can come between. Elsewhere the files of such commits are checked afterwards, and
    the types are changed back if one does not fit.
    """
    with context.engine.snapshots.lock(context.paths):
        proven = latest_snapshot(context)
        check_stored_values(context, proven, changed, columns)
        if not _put_next_schema(context, changed):
            return False
        latest = latest_snapshot(context)
        try:
            check_stored_values(
                context, None if latest == proven else latest, changed, columns, "; the type was changed back"
            )
        except InvalidRequest:
            _restore_types(context, newest, columns)
            raise
    return True


def _restore_types(context: TableContext, before: TableSchema, columns: frozenset[int]) -> None:
    """Publish a schema in which the columns have their former types."""
    types = {f.id: f.type for f in before.fields if f.id in columns}
    for _ in range(_ATTEMPTS):
        newest = latest_schema(context.engine, context.paths)
        if newest is None:
            return
        fields = tuple(evolve(f, type=types.get(f.id, f.type)) for f in newest.fields)
        now = context.engine.clock.now_millis()
        if _put_schema(context.engine, context.paths, evolve(newest, fields=fields, id=newest.id + 1, time_millis=now)):
            _update_catalog(context)
            return
    raise StorageError(
        context.paths.schemas,
        f"{_ATTEMPTS} concurrent schema changes were published first",
        hint="change the type back",
    )


def _build_next_schema(context: TableContext, newest: TableSchema, changes: Sequence[SchemaChange]) -> TableSchema:
    """Return the schema after the newest one; the newest itself if nothing changes."""
    snapshot = latest_snapshot(context)
    # `apply_changes` reads the options that allow changes from the schema. Dynamic ones are there only for this call.
    with_dynamic = _apply_dynamic_rules(context, newest, changes)
    changed = apply_changes(with_dynamic, changes, snapshot is not None, context.engine.file_formats)
    if with_dynamic != newest:
        dynamic = {key for key, value in with_dynamic.options.items() if newest.options.get(key) != value}
        stored = {key: newest.options[key] for key in dynamic if key in newest.options}
        changed = evolve(changed, options={**{k: v for k, v in changed.options.items() if k not in dynamic}, **stored})
    if changed == newest:
        return newest
    merging = find_merge_changes(newest, changed, _list_touched_options(changes))
    if snapshot is not None and merging:
        check_rows_merged(context, snapshot, merging)
    check_function_names(changed, TableOptions.of(changed.options), TableOptions.of(newest.options))
    if _has_valid_aggregates(newest):
        check_aggregates(changed, TableOptions.of(changed.options))
    return evolve(changed, id=newest.id + 1, time_millis=context.engine.clock.now_millis())


def _apply_dynamic_rules(context: TableContext, newest: TableSchema, changes: Sequence[SchemaChange]) -> TableSchema:
    """Return the schema with the dynamic options of this handle that decide which changes of columns are allowed."""
    stored, given, touched = TableOptions.of(context.schema.options), context.options, _list_touched_options(changes)
    rules = {
        key: value
        for key in OPTIONS_OF_CHANGES
        if (value := given.get(key)) is not None and value != stored.get(key) and key not in touched
    }
    return evolve(newest, options={**newest.options, **rules}) if rules else newest


def _list_touched_options(changes: Sequence[SchemaChange]) -> list[str]:
    return [c.key for c in changes if isinstance(c, SetOption | RemoveOption)]


def build_catalog_properties(schema: TableSchema) -> dict[str, str]:
    """Return what a catalog stores about a table: its options and its keys."""
    keys = {
        "primary-key": schema.primary_keys,
        "partition": schema.partition_keys,
        "bucket-key": schema.bucket_keys,
    }
    return {**schema.options, **{key: ",".join(names) for key, names in keys.items() if names}}


def _update_catalog(context: TableContext) -> None:
    """Update the catalog with the newest schema, which another writer may have written; it stores no branches."""
    newest = (
        None
        if context.engine.tables is None or context.table.branch != "main"
        else latest_schema(context.engine, context.paths)
    )
    if context.engine.tables is not None and newest is not None:
        identifier = parse_identifier(context.table.table_name)
        context.engine.tables.update_table(identifier.database, identifier.table, build_catalog_properties(newest))


def _has_valid_aggregates(schema: TableSchema) -> bool:
    """Return whether the aggregate functions are valid; tables of other writers with invalid ones can be altered."""
    try:
        check_aggregates(schema, TableOptions.of(schema.options))
    except PaimonError:
        return False
    return True


def load_at_newest_schema(context: TableContext) -> TableContext:
    """Return the context of the table at its newest schema."""
    newest = latest_schema(context.engine, context.paths)
    if newest is None:
        raise NotFound("table", context.table.location)
    return context.at_schema(newest)


def plan_merged_schema(context: TableContext, given: pa.Schema, mode: bool | str = True) -> TableContext:
    """Return the table with the columns that only the data has, after its own columns, at a planned schema.

    In the modes `WIDEN` and `CAST`, columns that are no keys get the types of the data that hold all their values. Both
    are the same where values decide a merge (sequence fields, aggregates), because texts have another order.
    """
    schema = context.schema
    new_fields = fields_from_arrow(pa.schema([f for f in given if f.name not in schema.fields_by_name]))
    added = [AddColumn(f.name, f.type.with_nullable(True), comment=f.description) for f in new_fields]
    if mode is True:
        return plan_new_columns(context, added)
    keys = {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}
    known = fields_from_arrow(pa.schema([f for f in given if f.name in schema.fields_by_name and f.name not in keys]))
    options = context.options
    by_value = schema.primary_keys and (
        options.sequence_fields or options.merge_engine not in ("deduplicate", "first-row")
    )
    wider = find_wider_types(schema.fields, known, allows_casts=mode == CAST and not by_value)
    return plan_new_columns(context, [*(SetColumnType((name,), wider[name]) for name in wider), *added])


def plan_new_columns(context: TableContext, changes: Sequence[AddColumn | SetColumnType]) -> TableContext:
    """Return the table at a planned schema with these changes; the same context if there are none."""
    return context.at_schema(_build_next_schema(context, context.schema, changes)) if changes else context


def publish_schema(context: TableContext) -> bool:
    """Write a planned schema, and return whether the table has it now; another writer may have written an equal one."""
    schema = context.schema
    check_same_table(context)
    is_published = _put_next_schema(context, schema)
    if not is_published:
        stored = load_schema(context.engine, context.paths, schema.id)
        is_published = evolve(stored, time_millis=schema.time_millis) == schema
    if is_published:
        _update_catalog(context)
    return is_published


@shielded()
def _put_next_schema(context: TableContext, schema: TableSchema) -> bool:
    """Put a schema as `_put_schema`; delete it again if the table is another one by now, or none."""
    is_published = _put_schema(context.engine, context.paths, schema)
    if is_published:
        try:
            check_same_table(context)
        except (TableDropped, TableReplaced):
            latest = latest_snapshot(evolve(context, table=context.table.at_paths(context.paths)))
            if latest is None or latest.schema_id < schema.id:
                delete_files(context.engine, [context.paths.schema(schema.id)])
            raise
    return is_published


def _put_schema(engine: Engine, paths: TablePaths, schema: TableSchema) -> bool:
    """Return whether the schema was published; its content decides after "exists" by a retrying client."""
    return put_file(engine.files, paths.schema(schema.id), schema_to_json(schema))
