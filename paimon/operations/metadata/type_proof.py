"""Prove by the statistics of files that stored values fit the types of their columns (see `domain.manifest.type_fit`).

Invariant: no data file is read. Without a change of a type to one that holds less, no manifest is read either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.errors import InvalidRequest
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.manifest.type_fit import TypeChange, UnsafeCast, find_type_changes, find_unsafe_cast
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import format_type
from paimon.operations.metadata.manifests import read_data_manifests, read_live_entries
from paimon.operations.metadata.schemas import latest_schema, load_schema
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext


class TypeProof:
    """Proves that columns of a schema fit the files of others: a state machine. `columns` limits it to ids."""

    def __init__(self, context: TableContext, schema: TableSchema, columns: frozenset[int] | None = None) -> None:
        self._context = context
        self._schema = schema
        self._fields = tuple(f for f in schema.fields if columns is None or f.id in columns)
        self._known: dict[int, tuple[Sequence[DataField], tuple[TypeChange, ...]]] = {}

    def find_unsafe_casts(self, files: Iterable[DataFileMeta]) -> Iterable[UnsafeCast]:
        """Yield the first column of each file whose values are not proven to fit."""
        for file in files:
            changes = self.find_changes(file.schema_id)
            unsafe = find_unsafe_cast(file, self._known[file.schema_id][0], changes) if changes else None
            if unsafe is not None:
                yield unsafe

    def find_changes(self, schema_id: int) -> tuple[TypeChange, ...]:
        """Return the columns of files of a schema whose values may not fit."""
        if schema_id == self._schema.id:
            return ()
        if schema_id not in self._known:
            own = self._context.schema
            schema = own if schema_id == own.id else load_schema(self._context.engine, self._context.paths, schema_id)
            self._known[schema_id] = (schema.fields, find_type_changes(schema.fields, self._fields))
        return self._known[schema_id][1]


def check_stored_values(
    context: TableContext, snapshot: Snapshot | None, schema: TableSchema, columns: frozenset[int], note: str = ""
) -> None:
    """Check by statistics that the values of all live files fit the columns of a schema.

    A file whose statistics do not show its values is refused, too. `note` is appended to the hint of the error.
    """
    if snapshot is None or not columns:
        return
    live = read_live_entries(context, read_data_manifests(context, snapshot))
    casts = TypeProof(context, schema, columns).find_unsafe_casts(entry.file for entry in live)
    cast = next(iter(casts), None)
    if cast is not None:
        wanted = format_type(cast.change.wanted.with_nullable(True))
        raise InvalidRequest(
            f"Column {cast.change.name!r} cannot become {wanted}: {cast.describe()}",
            subject=cast.change.name,
            hint=f"keep the type, or accept the loss: allow_lossy=True, ALLOW LOSSY in SQL, or --allow-lossy{note}",
        )


def check_restored_values(context: TableContext, target: Snapshot) -> None:
    """Check that the files of an older snapshot fit the current types, apart from those that are live now."""
    newest = latest_schema(context.engine, context.paths)
    if newest is None or newest.id == target.schema_id:
        return
    before = load_schema(context.engine, context.paths, target.schema_id)
    columns = frozenset(before.fields[c.position].id for c in find_type_changes(before.fields, newest.fields))
    latest = latest_snapshot(context)
    if not columns or latest is None:
        return
    live = {e.file.file_name for e in read_live_entries(context, read_data_manifests(context, latest))}
    restored = [e.file for e in read_live_entries(context, read_data_manifests(context, target))]
    casts = TypeProof(context, newest, columns).find_unsafe_casts(f for f in restored if f.file_name not in live)
    cast = next((found for found in casts if found.bound is not None), None)
    if cast is not None:
        wanted = format_type(cast.change.wanted.with_nullable(True))
        raise InvalidRequest(
            f"Snapshot {target.id} cannot be restored: {cast.change.name!r} is {wanted} now, but {cast.describe()}",
            subject=cast.change.name,
            hint="change the type of the column back first",
        )
