"""Updates and deletes of rows by the names of pypaimon.

Source: `pypaimon.write.table_update`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import define

import paimon
from paimon.compat.commit_message import CommitMessage, delete_errors, from_paimon_messages, row_id_errors
from paimon.compat.data_types import arrow_schema_of
from paimon.compat.merge_into import merge_into
from paimon.compat.predicate import Predicate, PredicateBuilder, to_paimon_predicate
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.rows import InternalRow, named_values
from paimon.compat.stored_table import StoredTable
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField

if TYPE_CHECKING:
    from paimon.builders.row_updates import RowShard
    from paimon.builders.row_updates import TableUpdate as PaimonTableUpdate


def check_assignments(
    assignments: Mapping[str, Any], read_columns: Sequence[str], names: Sequence[str], partition_keys: Sequence[str]
) -> None:
    """Check the assignments of `update_by_predicate` as pypaimon does."""
    if not assignments:
        raise ValueError("assignments must not be empty.")
    calls = any(callable(value) for value in assignments.values())
    if read_columns and not calls:
        raise ValueError("read_columns requires a callable assignment.")
    if calls and any(_is_array(value) for value in assignments.values()):
        raise ValueError("Callable assignments cannot be combined with Arrow array assignments.")
    if calls and not read_columns:
        raise ValueError("Callable assignments require read_columns.")
    for name in read_columns:
        if name not in names:
            raise ValueError(f"Read column {name} is not in table schema.")
    for name in assignments:
        if name not in names:
            raise ValueError(f"Column {name} is not in table schema.")
        if name in partition_keys:
            raise ValueError(f"update_by_predicate does not support updating partition column '{name}'.")


class AssignedColumns:
    """The new columns of rows, computed for one group of rows after the other."""

    def __init__(self, assignments: Mapping[str, Any], fields: Sequence[DataField]) -> None:
        kinds = arrow_schema_of([field for field in fields if field.name in assignments])
        self._kinds = {name: kinds.field(name).type for name in assignments}
        self._assignments = assignments
        self._rows = 0

    def compute(self, rows: pa.Table) -> pa.Table:
        """Return the new columns of the next rows."""
        first, self._rows = self._rows, self._rows + rows.num_rows
        columns = {name: self._fill(name, value, first, rows) for name, value in self._assignments.items()}
        return pa.table(columns)

    def check_all_used(self) -> None:
        """Check that no array has more values than there were rows."""
        for value in self._assignments.values():
            if _is_array(value) and len(value) != self._rows:
                raise _length_error(len(value), f"{self._rows}")

    def _fill(self, name: str, value: Any, first: int, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        kind = self._kinds[name]
        if callable(value):
            value = value(rows)
            if not _is_array(value):
                raise ValueError(f"Callable assignment for {name} must return a pyarrow.Array or pyarrow.ChunkedArray.")
            if len(value) != rows.num_rows:
                raise _length_error(len(value), f"{rows.num_rows}")
            return value.cast(kind)
        if _is_array(value):
            part = value.slice(first, rows.num_rows)
            if len(part) != rows.num_rows:
                raise _length_error(len(value), f"at least {first + rows.num_rows}")
            return part.cast(kind)
        return pa.repeat(pa.scalar(value.as_py() if isinstance(value, pa.Scalar) else value, kind), rows.num_rows)


def _is_array(value: object) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray)


def _length_error(given: int, rows: str) -> ValueError:
    return ValueError(f"Assignment array length must match matched row count: {given} != {rows}.")


def to_map_columns(rows: pa.Table, fields: Sequence[DataField]) -> pa.Table:
    """Return rows whose columns of type MAP are maps."""
    kinds = {field.name: arrow_type(field.type) for field in fields}
    for place, name in enumerate(rows.column_names):
        kind = kinds.get(name)
        if kind is not None and pa.types.is_map(kind):
            column = rows.column(place).combine_chunks()
            if pa.types.is_list(column.type) and pa.types.is_list(column.type.value_type):
                rows = rows.set_column(place, name, _pairs_to_map(column, kind, name))
            elif pa.types.is_struct(column.type):
                rows = rows.set_column(place, name, _structs_to_map(column, kind))
    return rows


def _pairs_to_map(column: pa.ListArray, kind: pa.MapType, name: str) -> pa.MapArray:
    pairs = column.flatten()
    if pairs.null_count or (not pc.all(pc.equal(pc.list_value_length(pairs), 2)).as_py() and len(pairs)):
        raise ValueError(f"Column {name} has lists that are no pairs of a key and a value.")
    values = pairs.flatten()
    keys = values.take(pa.array(np.arange(0, len(values), 2)))
    items = values.take(pa.array(np.arange(1, len(values), 2)))
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return _build_map(lengths, keys, items, kind, column.is_null())


def _structs_to_map(column: pa.StructArray, kind: pa.MapType) -> pa.MapArray:
    present = column.drop_null()
    children = [present.field(i) for i in range(present.type.num_fields)]
    if any(child.null_count for child in children):
        raise ValueError(
            "Cannot coerce schema-less dict input with null values to map type, because a missing key looks the same. "
            "Pass an array of map type, or lists of pairs."
        )
    count, rows = len(children), len(present)
    keys = pa.array([field.name for field in present.type] * rows)
    order = np.arange(rows * count).reshape(count, rows).T.ravel()
    cast = [child.cast(kind.item_type) for child in children]
    items = pa.concat_arrays(cast).take(pa.array(order)) if cast else pa.array([], kind.item_type)
    lengths = np.where(column.is_null().to_numpy(zero_copy_only=False), 0, count)
    return _build_map(lengths, keys, items, kind, column.is_null())


def _build_map(
    lengths: np.ndarray, keys: pa.Array, items: pa.Array, kind: pa.MapType, nulls: pa.BooleanArray
) -> pa.MapArray:
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    built = pa.MapArray.from_arrays(offsets, keys.cast(kind.key_type), items.cast(kind.item_type)).cast(kind)
    return pc.if_else(nulls, pa.scalar(None, kind), built) if pc.any(nulls).as_py() else built


class ShardTableUpdator(PeerClass):
    """Read a part of the rows and write columns of all of them; made by `TableUpdate.new_shard_updator`."""

    def __init__(self, shard: RowShard, table: StoredTable) -> None:
        self.table = table
        self._shard = shard
        self._batches: list[pa.RecordBatch] = []

    def arrow_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows of the part."""
        return self._shard.to_arrow_batch_reader()

    def update_by_arrow_batch(self, data: pa.RecordBatch) -> None:
        """Take the new columns of the next rows, in the order of the reader."""
        self._batches.append(data)

    def prepare_commit(self) -> list[CommitMessage]:
        """Return the messages to commit."""
        if not self._batches:
            return []
        return from_paimon_messages(self._shard.update(pa.Table.from_batches(self._batches)), self.table)


_ROW_ID = "_ROW_ID"


@define
class PendingChange:
    """A change of rows that a commit makes."""

    run: Callable[[paimon.Table, Mapping[str, str] | None], object]

    def is_empty(self) -> bool:
        """Return False: whether rows change is known after the commit."""
        return False


def run_pending_changes(
    table: paimon.Table,
    changes: Sequence[PendingChange],
    messages: Sequence[object],
    properties: Mapping[str, str] | None,
) -> None:
    """Make one change of rows."""
    if len(changes) > 1 or messages:
        refuse("one commit of several updates, or of an update and rows", "commit each of them")
    changes[0].run(table, properties)


class TableUpdate(PeerClass):
    """The base of `BatchTableUpdate` and `StreamTableUpdate`."""

    def __init__(self, table: StoredTable, commit_user: str) -> None:
        self.table = table
        self.commit_user = commit_user
        self.update_cols: list[str] | None = None
        self.projection: list[str] | None = None

    def new_predicate_builder(self) -> PredicateBuilder:
        """Return the builder of predicates on the columns of the table."""
        return PredicateBuilder(self.table.fields)

    def with_update_type(self, update_cols: Sequence[str]) -> Self:
        """Update these columns alone."""
        unknown = [name for name in update_cols if name not in self.table.field_names]
        if unknown:
            raise ValueError(f"Column {unknown[0]} is not in table schema.")
        self.update_cols = list(dict.fromkeys(update_cols))
        return self

    def with_read_projection(self, projection: Sequence[str]) -> Self:
        """Read these columns in `new_shard_updator`."""
        self.projection = list(projection)
        return self

    def new_shard_updator(self, shard_num: int, total_shard_count: int) -> ShardTableUpdator:
        """Return a part of the rows, to read them and write columns of all of them."""
        self._check_evolves("new_shard_updator", "call Table.update of the package paimon")
        columns = self.table.field_names if self.projection is None else self.projection
        return ShardTableUpdator(self._open().shard(shard_num, total_shard_count, columns), self.table)

    @property
    def _evolves(self) -> bool:
        return bool(self.table.options.data_evolution_enabled())

    def _check_evolves(self, method: str, instead: str) -> None:
        if not self._evolves:
            raise ValueError(f"{method} requires 'data-evolution.enabled' = 'true'. Otherwise, {instead}.")

    def _open(self) -> PaimonTableUpdate:
        return self.table.inner.new_batch_write_builder(self.commit_user).new_update()

    def _update_by_row_id(self, rows: pa.Table) -> list[CommitMessage]:
        self._check_evolves(
            "update_by_arrow_with_row_id", "call upsert_by_arrow_with_key, or Table.merge of the package paimon"
        )
        if _ROW_ID not in rows.column_names:
            raise ValueError(f"Input data must contain {_ROW_ID} column.")
        mapped = to_map_columns(rows, self.table.inner.table_schema.fields)
        with row_id_errors():
            return from_paimon_messages(self._open().update_by_row_id(mapped, self.update_cols), self.table)

    def _upsert(self, rows: pa.Table, keys: Sequence[str]) -> list[Any]:
        self._check_upsert(rows, keys)
        rows = to_map_columns(rows, self.table.inner.table_schema.fields)
        if self._evolves:
            return from_paimon_messages(self._open().upsert_by_keys(rows, keys, self.update_cols), self.table)
        updated = [n for n in (self.update_cols or rows.column_names) if n not in keys]

        def run(target: paimon.Table, properties: Mapping[str, str] | None) -> None:
            merge = target.merge(rows, on=list(keys))
            if updated:
                merge = merge.when_matched_update({name: f'source."{name}"' for name in updated})
            merge.when_not_matched_insert_all().execute(properties=properties)

        return [PendingChange(run)]

    def _check_upsert(self, rows: pa.Table, keys: Sequence[str]) -> None:
        """Check what pypaimon checks before an upsert."""
        if not keys:
            raise ValueError("upsert_keys must not be empty.")
        for key in keys:
            if key not in self.table.field_names:
                raise ValueError(f"upsert_key '{key}' is not in table schema fields: {self.table.field_names}")
            if key not in rows.column_names:
                raise ValueError(f"upsert_key '{key}' is not in input data columns: {rows.column_names}")
        missing = [name for name in self.table.partition_keys if name not in rows.column_names]
        if missing:
            raise ValueError(f"Input data must contain all partition key columns. Missing: {missing}")
        if not rows.num_rows:
            raise ValueError("Input data is empty.")

    def _upsert_rows(self, rows: Any, keys: Sequence[str]) -> list[Any]:
        several = [rows] if isinstance(rows, InternalRow) else rows
        given = [named_values(row, self.table.field_names)[0] for row in several]
        if not given:
            raise ValueError("rows must not be empty.")
        names = list(dict.fromkeys(name for row in given for name in row))
        fields = [field for field in self.table.inner.table_schema.fields if field.name in names]
        return self._upsert(pa.Table.from_pylist(given, schema=arrow_schema_of(fields)), keys)

    def _update_by_predicate(
        self, predicate: Predicate | None, assignments: Mapping[str, Any], read_columns: Sequence[str] | None
    ) -> list[Any]:
        if self._evolves:
            return self._update_matches(predicate, assignments, read_columns or ())
        functions = [name for name, value in assignments.items() if callable(value)]
        if functions:
            refuse(f"a function for column {functions[0]}", "pass SQL text to Table.update of the package paimon")
        values = {name: _as_sql_value(value) for name, value in assignments.items()}
        where = _where(predicate)

        return [PendingChange(lambda table, properties: table.update(values, where, properties=properties))]

    def _update_matches(
        self, predicate: Predicate | None, assignments: Mapping[str, Any], read_columns: Sequence[str]
    ) -> list[CommitMessage]:
        check_assignments(assignments, read_columns, self.table.field_names, self.table.partition_keys)
        columns = AssignedColumns(assignments, self.table.inner.table_schema.fields)
        where = None if predicate is None else to_paimon_predicate(predicate)
        messages = self._open().update_by_function(columns.compute, list(dict.fromkeys(read_columns)), where)
        try:
            columns.check_all_used()
        except ValueError:
            self.table.inner.new_batch_write_builder(self.commit_user).new_commit().abort(messages)
            raise
        return from_paimon_messages(messages, self.table)

    def _delete_by_predicate(self, predicate: Predicate | None) -> list[Any]:
        where = _where(predicate)
        if not self._evolves:
            return [PendingChange(lambda table, properties: table.delete(where, properties=properties))]
        with delete_errors():
            return from_paimon_messages(self._open().delete_where(where), self.table)

    def _delete_by_row_id(self, row_ids: Sequence[int]) -> list[CommitMessage]:
        self._check_evolves("delete_by_row_id", "call delete_by_predicate")
        if any(row_id is None for row_id in row_ids):
            raise ValueError(f"{_ROW_ID} value must not be null.")
        with delete_errors(), row_id_errors():
            return from_paimon_messages(self._open().delete_by_row_id(row_ids), self.table)

    def _merge_into(
        self, source: Any, on: Any, when_matched: Sequence[Any], when_not_matched: Sequence[Any]
    ) -> list[CommitMessage]:
        self._check_evolves("merge_into", "call Table.merge of the package paimon")
        return merge_into(self.table, self._open(), source, on, when_matched, when_not_matched)


class BatchTableUpdate(TableUpdate):
    """Update and delete rows; made by `BatchWriteBuilder.new_update`."""

    def update_by_arrow_with_row_id(self, table: pa.Table) -> list[CommitMessage]:
        """Return the messages that set columns of the rows whose ids are in the column `_ROW_ID`."""
        return self._update_by_row_id(table)

    def update_by_arrow_batches_with_row_id(self, tables: Iterable[pa.Table]) -> list[CommitMessage]:
        """Return the messages that set columns of rows; as `update_by_arrow_with_row_id` with all tables together."""
        given = list(tables)
        return self._update_by_row_id(pa.concat_tables(given)) if given else []

    def upsert_by_arrow_with_key(self, table: pa.Table, upsert_keys: Sequence[str]) -> list[Any]:
        """Return the messages that update the rows with the same keys, and insert the others."""
        return self._upsert(table, upsert_keys)

    def upsert_by_key(self, rows: Any, upsert_keys: Sequence[str]) -> list[Any]:
        """Return the messages that update or insert rows."""
        return self._upsert_rows(rows, upsert_keys)

    def update_by_predicate(
        self,
        predicate: Predicate | None,
        assignments: Mapping[str, Any],
        read_columns: Sequence[str] | None = None,
    ) -> list[Any]:
        """Return the messages that set columns of the rows where a predicate is true."""
        return self._update_by_predicate(predicate, assignments, read_columns)

    def delete_by_predicate(self, predicate: Predicate | None) -> list[Any]:
        """Return the message that deletes the rows where a predicate is true."""
        return self._delete_by_predicate(predicate)

    def delete_by_row_id(self, row_ids: Sequence[int]) -> list[Any]:
        """Return the messages that delete rows by their ids."""
        return self._delete_by_row_id(row_ids)

    def merge_into(self, source: Any, *, on: Any, when_matched: Any = (), when_not_matched: Any = ()) -> list[Any]:
        """Return the messages that merge rows of a source into a table with data evolution."""
        return self._merge_into(source, on, when_matched, when_not_matched)


class StreamTableUpdate(TableUpdate):
    """Change rows under commit identifiers, in tables with data evolution; made by `StreamWriteBuilder.new_update`.

    Other tables are refused: their updates are made by the commit, so a commit that is repeated would make them again.
    """

    def __init__(self, table: StoredTable, commit_user: str) -> None:
        super().__init__(table, commit_user)
        self._check_evolves("An update with commit identifiers", "call new_batch_write_builder().new_update()")

    def update_by_arrow_with_row_id(self, table: pa.Table, commit_identifier: int) -> list[CommitMessage]:
        """Return the messages that set columns of rows by their ids; as in `BatchTableUpdate`."""
        return self._update_by_row_id(table)

    def upsert_by_arrow_with_key(
        self, table: pa.Table, upsert_keys: Sequence[str], commit_identifier: int
    ) -> list[CommitMessage]:
        """Return the messages that update or insert rows."""
        return self._upsert(table, upsert_keys)

    def upsert_by_key(self, rows: Any, upsert_keys: Sequence[str], commit_identifier: int) -> list[CommitMessage]:
        """Return the messages that update or insert rows."""
        return self._upsert_rows(rows, upsert_keys)

    def update_by_predicate(
        self,
        predicate: Predicate | None,
        assignments: Mapping[str, Any],
        commit_identifier: int,
        read_columns: Sequence[str] | None = None,
    ) -> list[CommitMessage]:
        """Return the messages that set columns of rows."""
        return self._update_by_predicate(predicate, assignments, read_columns)

    def delete_by_predicate(self, predicate: Predicate | None, commit_identifier: int) -> list[Any]:
        """Return the messages that delete the rows where a predicate is true; as in `BatchTableUpdate`."""
        return self._delete_by_predicate(predicate)

    def delete_by_row_id(self, row_ids: Sequence[int], commit_identifier: int) -> list[Any]:
        """Return the messages that delete rows by their ids; as in `BatchTableUpdate`."""
        return self._delete_by_row_id(row_ids)

    def merge_into(
        self, source: Any, *, on: Any, when_matched: Any = (), when_not_matched: Any = (), commit_identifier: int
    ) -> list[Any]:
        """Return the messages that merge rows of a source into a table."""
        return self._merge_into(source, on, when_matched, when_not_matched)


def _where(predicate: Predicate | None) -> Any:
    return "TRUE" if predicate is None else to_paimon_predicate(predicate)


def _as_sql_value(value: object) -> object:
    """Return a value as `paimon.Table.update` takes it: texts are SQL there."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return value.as_py() if isinstance(value, pa.Scalar) else value
