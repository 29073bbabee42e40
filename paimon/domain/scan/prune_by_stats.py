"""Prune files by their key statistics and value statistics.

The statistics of a file that was written under another schema are read by field id.

Invariant: A file is pruned only if its own statistics prove that no row is selected. A column that the file does not
have is null in all rows. A column whose type changed, or whose bounds are known to mislead, proves nothing.
Source: `SimpleStatsEvolution`, `KeyValueFileStoreScan`, `AppendOnlyFileStoreScan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.manifest.bounds import all_null, floating_bounds, read_bounds, without_bounds
from paimon.domain.manifest.entry_columns import EntryColumns, FileColumns, Integers, Mask
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.pruning_columnar import Bounds, may_match_mask
from paimon.domain.predicate.transform import columns_of
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow_arrays import from_numpy, make_scalar, to_numpy
from paimon.domain.types.data_types import DataField, DataType

_SEPARATOR = make_scalar("\x00", pa.string())

_NO_NAMES = make_scalar(-1, pa.int32())

Layout = Callable[[TableSchema, str | None], Sequence[DataField]]
"""Returns the columns of statistics, by the schema of the file and the column names stored with the statistics."""


def key_mask(
    entries: EntryColumns, predicate: Predicate, schema: TableSchema, schemas: Mapping[int, TableSchema]
) -> Mask:
    """Mark the files whose key statistics admit a predicate on key columns."""
    stats = entries.files.field("_KEY_STATS")
    return _match_mask(entries.files, stats, predicate, schema, schemas, lambda written, _: written.key_fields)


def value_mask(
    entries: EntryColumns, predicate: Predicate, schema: TableSchema, schemas: Mapping[int, TableSchema]
) -> Mask:
    """Mark the files whose value statistics admit the predicate."""
    return _match_mask(entries.files, entries.files.field("_VALUE_STATS"), predicate, schema, schemas, _value_layout)


def _value_layout(written: TableSchema, names: str | None) -> Sequence[DataField]:
    if names is None:
        return written.fields
    held = {f.name: f for f in written.fields}
    return [held.get(n) or DataField(-1, n, dt.VariantType()) for n in names.split(_SEPARATOR.as_py()) if n]


def _match_mask(
    files: FileColumns,
    stats: pa.StructArray,
    predicate: Predicate,
    schema: TableSchema,
    schemas: Mapping[int, TableSchema],
    layout: Layout,
) -> Mask:
    wanted = [f for f in schema.fields if f.name in columns_of(predicate)]
    types = {f.name: f.type for f in wanted}
    row_counts = _to_integers(files.field("_ROW_COUNT"))
    floating = any(isinstance(t, dt.FloatType | dt.DoubleType) for t in types.values())
    in_orc = _in_orc(files) if floating else np.zeros(len(files), dtype=bool)
    mask = np.ones(len(files), dtype=bool)
    for rows, schema_id, names in _group_by_layout(files):
        whole = len(rows) == len(files)
        part = stats if whole else stats.take(from_numpy(rows))
        held = layout(schemas[schema_id], names)
        columns = {
            column.name: bounds
            for column in wanted
            if (bounds := _bounds_in_layout(part, column, held, schemas[schema_id], row_counts[rows], in_orc[rows]))
            is not None
        }
        mask[rows] = may_match_mask(predicate, columns, types, row_counts[rows])
    return mask


def _in_orc(files: FileColumns) -> Mask:
    return to_numpy(pc.match_substring_regex(files.field("_FILE_NAME"), r"\.orc(\.|$)"))


def _group_by_layout(files: FileColumns) -> Iterator[tuple[Integers, int, str | None]]:
    """Yield the files by layout of their statistics: positions, schema id, and column names (None for all columns)."""
    schema_ids = _to_integers(files.field("_SCHEMA_ID"))
    lists = (files.field(name) for name in ("_VALUE_STATS_COLS", "_WRITE_COLS"))
    named = pc.coalesce(*(pc.binary_join(names, _SEPARATOR) for names in lists)).dictionary_encode()
    codes = _to_integers(named.indices.fill_null(_NO_NAMES))
    for schema_id in from_numpy(schema_ids).unique().to_pylist():
        for code in from_numpy(codes[schema_ids == schema_id]).unique().to_pylist():
            rows = np.flatnonzero((schema_ids == schema_id) & (codes == code))
            yield rows, schema_id, None if code < 0 else named.dictionary[code].as_py()


def _bounds_in_layout(
    stats: pa.StructArray,
    wanted: DataField,
    held: Sequence[DataField],
    written: TableSchema,
    row_counts: Integers,
    in_orc: Mask,
) -> Bounds | None:
    """Return the bounds of a column of the current schema in files of one layout; None if they are unknown."""
    if all(f.id != wanted.id for f in written.fields):
        return all_null(row_counts)
    found = [(i, f) for i, f in enumerate(held) if f.id == wanted.id]
    if not found or not keeps_order(found[0][1].type, wanted.type):
        return None
    position, column = found[0]
    bounds = read_bounds(stats, position, len(held), column.type)
    if isinstance(column.type, dt.CharType):
        # ORC pads CHAR in its statistics, but not in the rows that it returns.
        return without_bounds(bounds)
    return floating_bounds(bounds, in_orc) if isinstance(column.type, dt.FloatType | dt.DoubleType) else bounds


def keeps_order(stored: DataType, wanted: DataType) -> bool:
    """Return whether values of the type `stored`, read as the type `wanted`, keep their order and their ordinals."""
    if stored.with_nullable(True) == wanted.with_nullable(True):
        return True
    match stored, wanted:
        case dt.VarCharType(length=short), dt.VarCharType(length=long):
            return short <= long
        case dt.FloatType(), dt.DoubleType():
            return True
    ranks = {kind: rank for rank, kind in enumerate(dt.INTEGER_TYPES)}
    return type(stored) in ranks and type(wanted) in ranks and ranks[type(stored)] <= ranks[type(wanted)]


def _to_integers(array: pa.Array) -> Integers:
    return to_numpy(array).astype(np.int64, copy=False)
