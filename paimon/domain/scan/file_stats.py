"""Which files may hold a selected row, by their key and value statistics.

Law: a file is left out only if its own statistics prove it; those of a file written under another schema are read by
field id, a column that it lacks is all null, and a column whose type has changed since, or whose bounds are known to
mislead, proves nothing. Source: `SimpleStatsEvolution`, `KeyValueFileStoreScan`, `AppendOnlyFileStoreScan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.manifest.bounds import all_null, bounds_of, floating_bounds, without_bounds
from paimon.domain.manifest.columns import EntryColumns, FileColumns, Integers, Mask
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
"""The columns of statistics rows, by the schema that wrote the file and the names that are stored with it."""


def key_mask(
    entries: EntryColumns, predicate: Predicate, schema: TableSchema, schemas: Mapping[int, TableSchema]
) -> Mask:
    """Marks the files whose key statistics leave room for a predicate over key columns."""
    stats = entries.files.field("_KEY_STATS")
    return _mask(entries.files, stats, predicate, schema, schemas, lambda written, _: written.key_fields)


def value_mask(
    entries: EntryColumns, predicate: Predicate, schema: TableSchema, schemas: Mapping[int, TableSchema]
) -> Mask:
    """Marks the files whose value statistics leave room for the predicate."""
    return _mask(entries.files, entries.files.field("_VALUE_STATS"), predicate, schema, schemas, _value_layout)


def _value_layout(written: TableSchema, names: str | None) -> Sequence[DataField]:
    if names is None:
        return written.fields
    held = {f.name: f for f in written.fields}
    return [held.get(n) or DataField(-1, n, dt.VariantType()) for n in names.split(_SEPARATOR.as_py()) if n]


def _mask(
    files: FileColumns,
    stats: pa.StructArray,
    predicate: Predicate,
    schema: TableSchema,
    schemas: Mapping[int, TableSchema],
    layout: Layout,
) -> Mask:
    wanted = [f for f in schema.fields if f.name in columns_of(predicate)]
    types = {f.name: f.type for f in wanted}
    row_counts = _numbers(files.field("_ROW_COUNT"))
    floating = any(isinstance(t, dt.FloatType | dt.DoubleType) for t in types.values())
    in_orc = _in_orc(files) if floating else np.zeros(len(files), dtype=bool)
    mask = np.ones(len(files), dtype=bool)
    for rows, schema_id, names in _groups(files):
        whole = len(rows) == len(files)
        part = stats if whole else stats.take(from_numpy(rows))
        held = layout(schemas[schema_id], names)
        columns = {
            column.name: bounds
            for column in wanted
            if (bounds := _bounds(part, column, held, schemas[schema_id], row_counts[rows], in_orc[rows])) is not None
        }
        mask[rows] = may_match_mask(predicate, columns, types, row_counts[rows])
    return mask


def _in_orc(files: FileColumns) -> Mask:
    return to_numpy(pc.match_substring_regex(files.field("_FILE_NAME"), r"\.orc(\.|$)"))


def _groups(files: FileColumns) -> Iterator[tuple[Integers, int, str | None]]:
    """Files with statistics of one layout: their positions, schema id, and names of the columns (None: all)."""
    schema_ids = _numbers(files.field("_SCHEMA_ID"))
    lists = (files.field(name) for name in ("_VALUE_STATS_COLS", "_WRITE_COLS"))
    named = pc.coalesce(*(pc.binary_join(names, _SEPARATOR) for names in lists)).dictionary_encode()
    codes = _numbers(named.indices.fill_null(_NO_NAMES))
    for schema_id in np.unique(schema_ids).tolist():
        for code in np.unique(codes[schema_ids == schema_id]).tolist():
            rows = np.flatnonzero((schema_ids == schema_id) & (codes == code))
            yield rows, schema_id, None if code < 0 else named.dictionary[code].as_py()


def _bounds(
    stats: pa.StructArray,
    wanted: DataField,
    held: Sequence[DataField],
    written: TableSchema,
    row_counts: Integers,
    in_orc: Mask,
) -> Bounds | None:
    """Bounds of a column of today in files of one layout; None where nothing is known."""
    if all(f.id != wanted.id for f in written.fields):
        return all_null(row_counts)
    found = [(i, f) for i, f in enumerate(held) if f.id == wanted.id]
    if not found or not keeps_order(found[0][1].type, wanted.type):
        return None
    position, column = found[0]
    bounds = bounds_of(stats, position, len(held), column.type)
    if isinstance(column.type, dt.CharType):
        # ORC pads CHAR in its statistics but not in what it reads back.
        return without_bounds(bounds)
    return floating_bounds(bounds, in_orc) if isinstance(column.type, dt.FloatType | dt.DoubleType) else bounds


def keeps_order(held: DataType, wanted: DataType) -> bool:
    """Whether reading values of the one type as the other changes neither their order nor what they sort by."""
    if held.with_nullable(True) == wanted.with_nullable(True):
        return True
    match held, wanted:
        case dt.VarCharType(length=short), dt.VarCharType(length=long):
            return short <= long
        case dt.FloatType(), dt.DoubleType():
            return True
    ranks = {kind: rank for rank, kind in enumerate(dt.INTEGER_TYPES)}
    return type(held) in ranks and type(wanted) in ranks and ranks[type(held)] <= ranks[type(wanted)]


def _numbers(array: pa.Array) -> Integers:
    return to_numpy(array).astype(np.int64, copy=False)
