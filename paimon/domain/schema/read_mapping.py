"""How a file that was written under one schema is read under another.

Invariant: columns, and the fields of nested rows, are matched by **id**, never by name. A column that was dropped and
added again is new and reads as null. Values that the file has under an id are read with the current name and type.
Source: `FormatReaderMapping`, `SchemaEvolutionUtil`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType


@frozen
class FieldMapping:
    """The source of one column of a read."""

    # the column as the reader wants it
    wanted: DataField
    # the file's column, with the file's names and types; nested rows contain only the wanted fields. None: the file has
    # no part of the column, so every value is null, as in Java
    source: DataField | None
    # the values must be cast to the wanted type after reading, by `paimon.domain.columns.cast`
    needs_cast: bool


def map_fields(wanted: Sequence[DataField], file_fields: Sequence[DataField]) -> tuple[FieldMapping, ...]:
    """Map each wanted column to its source in a file, in the order wanted."""
    stored = {f.id: f for f in file_fields}
    return tuple(_map_field(column, stored.get(column.id)) for column in wanted)


def _map_field(wanted: DataField, stored: DataField | None) -> FieldMapping:
    if stored is None:
        return FieldMapping(wanted, None, False)
    if stored is wanted or stored == wanted:  # most files were written under today's schema
        return FieldMapping(wanted, stored, False)
    pruned = prune_type(stored.type, wanted.type)
    if pruned is None:
        return FieldMapping(wanted, None, False)
    if isinstance(pruned, dt.TimestampType | dt.LocalZonedTimestampType) and _needs_micros_at_most(pruned, wanted.type):
        # Microseconds are enough for the cast, and represent the times that nanoseconds do not.
        return FieldMapping(wanted, evolve(stored, type=evolve(pruned, precision=6)), True)
    return FieldMapping(wanted, evolve(stored, type=pruned), not has_same_values(pruned, wanted.type))


def _needs_micros_at_most(stored: dt.TimestampType | dt.LocalZonedTimestampType, wanted: DataType) -> bool:
    is_fine = isinstance(wanted, dt.TIMESTAMP_TYPES) and wanted.precision > 6
    return stored.precision > 6 and not is_fine and not isinstance(wanted, dt.CHARACTER_TYPES)


def prune_type(stored: DataType, wanted: DataType) -> DataType | None:
    """Remove the nested fields that the reader does not want from a file's type; None where nothing remains."""
    match stored, wanted:
        case dt.RowType(), dt.RowType():
            return _prune_row(stored, wanted)
        case dt.ArrayType(), dt.ArrayType():
            element = prune_type(stored.element, wanted.element)
            return None if element is None else evolve(stored, element=element)
        case dt.MapType(), dt.MapType():
            key, value = prune_type(stored.key, wanted.key), prune_type(stored.value, wanted.value)
            return None if key is None or value is None else evolve(stored, key=key, value=value)
    return stored


def _prune_row(stored: dt.RowType, wanted: dt.RowType) -> dt.RowType | None:
    wishes = {f.id: f for f in wanted.fields}
    pairs = [(f, prune_type(f.type, wishes[f.id].type)) for f in stored.fields if f.id in wishes]
    kept = [evolve(f, type=pruned) for f, pruned in pairs if pruned is not None]
    return evolve(stored, fields=tuple(kept)) if kept else None


def has_same_values(stored: DataType, wanted: DataType) -> bool:
    """Return whether values of one type are values of the other without a cast; nullability does not matter."""
    match stored, wanted:
        case dt.RowType(), dt.RowType():
            return len(stored.fields) == len(wanted.fields) and all(
                h.id == w.id and h.name == w.name and has_same_values(h.type, w.type)
                for h, w in zip(stored.fields, wanted.fields, strict=True)
            )
        case dt.ArrayType(), dt.ArrayType():
            return has_same_values(stored.element, wanted.element)
        case dt.MultisetType(), dt.MultisetType():
            return has_same_values(stored.element, wanted.element)
        case dt.VectorType(), dt.VectorType():
            return stored.length == wanted.length and has_same_values(stored.element, wanted.element)
        case dt.MapType(), dt.MapType():
            return has_same_values(stored.key, wanted.key) and has_same_values(stored.value, wanted.value)
    return stored.with_nullable(True) == wanted.with_nullable(True)
