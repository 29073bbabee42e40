"""The keys and statistics of data files as texts, for many files at once.

Invariant: the result equals that of `file_texts.format_files`, which formats all files that this module cannot: those
of rare shapes, with bounds of nested types or of another type than today's, and with damaged rows.
"""

# Files whose texts are built alike are a group: their schema, statistics columns, written columns and numbers of stored
# fields are equal. In a group, each stored field is decoded for all files at once (`bounds.decode_field`), and becomes
# one column of texts. The text of a file is these columns joined, by name:
#
#     stored, as INT, STRING       decoded column by column     joined
#     1  'x'                       a: 1     b: x                {a=1, b=x}
#     2  null                      a: 2     b: null             {a=2, b=null}
#
# Numbers and text are cast by Arrow. Of other types, each distinct value is formatted once, as `row_texts` does.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.java_float_order import from_float_ordinals
from paimon.domain.manifest.bounds import decode_field
from paimon.domain.manifest.entry_columns import Integers, to_files
from paimon.domain.manifest.file_texts import TEXTS, find_shown_fields, find_stored_fields, format_files, has_type_of
from paimon.domain.partition.row_texts import JAVA_TEXTS, RowTexts, format_value
from paimon.domain.row.binary_row import to_decimal
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField, DataType

_FEWEST_FILES = 16
"""Groups of fewer files are formatted one by one."""
_INTEGERS = (dt.TinyIntType, dt.SmallIntType, dt.IntType, dt.BigIntType, dt.DateType, dt.TimeType)
_ROWS = ("_MIN_KEY", "_MAX_KEY")
_BOUNDS = ("_MIN_VALUES", "_MAX_VALUES")


def format_file_columns(
    records: pa.StructArray, table: TableDefinition, schemas: Mapping[int, TableSchema], texts: RowTexts
) -> pa.Table:
    """Return the texts of checked file records, which `file_texts.format_files` describes."""
    if texts != JAVA_TEXTS:
        return format_files(to_files(records), table, schemas, texts)
    parts: list[pa.Table] = []
    order: list[Integers] = []
    rest: list[Integers] = []
    for rows in _group_alike(records):
        alike = records if len(rows) == len(records) else records.take(from_numpy(rows))
        found = _format_alike(alike, table, schemas) if len(rows) >= _FEWEST_FILES else None
        if found is None:
            rest.append(rows)
        else:
            parts.append(pa.table(found, schema=TEXTS))
            order.append(rows)
    if rest:
        rows = np.sort(np.concatenate(rest))
        parts.append(format_files(to_files(records.take(from_numpy(rows))), table, schemas, texts))
        order.append(rows)
    joined = pa.concat_tables(parts)
    return joined if len(order) == 1 else joined.take(from_numpy(np.argsort(np.concatenate(order))))


def _group_alike(records: pa.StructArray) -> Iterator[Integers]:
    """Yield the positions of the files of each group, in ascending order."""
    stats = records.field("_VALUE_STATS")
    shapes = {
        "schema": records.field("_SCHEMA_ID"),
        "compacted": pc.greater(records.field("_LEVEL"), 0),
        "rows": pc.binary_join_element_wise(
            *(pc.binary_slice(array, 0, 4) for array in (*map(records.field, _ROWS), *map(stats.field, _BOUNDS))), b""
        ),
    }
    shapes |= {name: _encode_lists(records.field(name)) for name in ("_VALUE_STATS_COLS", "_WRITE_COLS")}
    shapes["row"] = from_numpy(np.arange(len(records)))
    keys = [name for name in shapes if name != "row"]
    for found in pa.table(shapes).group_by(keys, use_threads=False).aggregate([("row", "list")])["row_list"]:
        yield found.values.to_numpy()


def _encode_lists(names: pa.ListArray) -> pa.Array:
    """Return texts that are equal for equal lists only."""
    if names.null_count == len(names):
        return pa.nulls(len(names), pa.string())
    codes = names.values.dictionary_encode().indices.cast(pa.string())
    joined = pc.binary_join(pa.ListArray.from_arrays(names.offsets, codes), ",")
    return pc.if_else(names.is_valid(), joined, pa.scalar(None, pa.string()))


def _format_alike(
    records: pa.StructArray, table: TableDefinition, schemas: Mapping[int, TableSchema]
) -> list[pa.Array] | None:
    """Return the columns of the texts; None if these files must be formatted one by one."""
    first = to_files(records.slice(0, 1))[0]
    written = schemas[first.schema_id]
    keys = [_format_keys(records.field(name), table.get_bound_fields(first.level, written)) for name in _ROWS]
    columns = _format_stats(
        records,
        find_shown_fields(table.schema, first.value_stats_cols, first.write_cols),
        find_stored_fields(written, first.value_stats_cols, first.write_cols),
        {f.id for f in written.fields},
    )
    if columns is None or any(key is None for key in keys):
        return None
    names = sorted(columns)
    return [*keys, *(_join_by_name(names, [columns[name][i] for name in names], len(records)) for i in range(3))]


def _format_keys(rows: pa.BinaryArray, fields: Sequence[DataField]) -> pa.Array | None:
    """Return the texts of rows with the same number of fields, such as ``[a, b]``."""
    width = _read_width(rows)
    if not fields or width == 0:
        return pa.nulls(len(rows), pa.string())
    texts = [_format_field(rows, i, width, f.type) for i, f in enumerate(fields[:width])]
    if width > len(fields) or any(text is None for text in texts):
        return None
    return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*texts, ", "), "]", "")


def _format_stats(
    records: pa.StructArray, shown: Sequence[DataField], stored: Sequence[DataField], written_ids: set[int]
) -> dict[str, tuple[pa.Array, pa.Array, pa.Array]] | None:
    """Return the texts of the null count and of both bounds of each column."""
    stats = records.field("_VALUE_STATS")
    rows = [stats.field(name) for name in _BOUNDS]
    widths = [_read_width(array) for array in rows]
    if max(widths) > len(stored):
        return None
    places = {f.id: i for i, f in enumerate(stored[: min(widths)])}
    nulls = pa.repeat("null", len(records))
    found: dict[str, tuple[pa.Array, pa.Array, pa.Array]] = {}
    for column in shown:
        place = places.get(column.id)
        if place is None:
            found[column.name] = (
                nulls if column.id in written_ids else _to_texts(records.field("_ROW_COUNT")),
                nulls,
                nulls,
            )
            continue
        if not has_type_of(stored[place], column):
            return None
        low, high = (_format_field(r, place, w, column.type) for r, w in zip(rows, widths, strict=True))
        if low is None or high is None:
            return None
        found[column.name] = _to_texts(_read_counts(stats.field("_NULL_COUNTS"), place)), low, high
    return found


def _join_by_name(names: Sequence[str], columns: Sequence[pa.Array], length: int) -> pa.Array:
    """Join columns as ``{a=1, b=2}``."""
    if not names:
        return pa.repeat("{}", length)
    pieces: list[Any] = []
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        pieces += [f"{', ' if place else '{'}{name}=", column]
    return pc.binary_join_element_wise(*pieces, "}", "")


def _read_width(rows: pa.BinaryArray) -> int:
    """Return the number of fields of rows in which it is the same; a damaged number is larger than all others."""
    return int.from_bytes(rows[0].as_py()[:4], "big")


def _read_counts(counts: pa.ListArray, position: int) -> pa.Array:
    """Return one count of each list; null where the list is shorter."""
    offsets = counts.offsets.to_numpy()
    has_count = np.asarray(counts.is_valid()) & (np.diff(offsets) > position)
    return counts.values.take(from_numpy(np.where(has_count, offsets[:-1] + position, 0), has_count))


def _to_texts(numbers: pa.Array) -> pa.Array:
    return numbers.cast(pa.string()).fill_null("null")


def _format_field(rows: pa.BinaryArray, position: int, width: int, data_type: DataType) -> pa.Array | None:
    """Return the texts of one field of rows; None if they must be formatted one by one."""
    values, known, is_null = decode_field(rows, position, width, data_type)
    if not bool((known | is_null).all()):
        return None
    if bool(is_null.all()):
        return pa.repeat("null", len(rows))
    texts = _format_values(values, data_type)
    return texts if texts is None or bool(known.all()) else pc.if_else(from_numpy(known), texts, "null")


def _format_values(values: Any, data_type: DataType) -> pa.Array | None:
    if isinstance(data_type, _INTEGERS):
        return from_numpy(values).cast(pa.string())
    if isinstance(values, pa.Array):
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:  # not UTF-8
            if not isinstance(data_type, dt.BYTES_TYPES):
                return None
            return pa.array([format_value(v, data_type) for v in values.to_pylist()], pa.string())
    distinct, places = np.unique(values, return_inverse=True)
    texts = [format_value(v, data_type) for v in _to_internal(distinct, data_type)]
    return pa.array(texts, pa.string()).take(from_numpy(places.astype(np.int64)))


def _to_internal(ordinals: Any, data_type: DataType) -> list[Any]:
    """Return the internal values of ordinals."""
    if isinstance(data_type, dt.BooleanType):
        return [bool(v) for v in ordinals.tolist()]
    if isinstance(data_type, dt.FloatType | dt.DoubleType):
        return list(from_float_ordinals(ordinals).tolist())
    if isinstance(data_type, dt.DecimalType):
        return [to_decimal(v, data_type.scale) for v in ordinals.tolist()]
    return list(ordinals.tolist())
