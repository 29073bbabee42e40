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
    held = {f.id: f for f in file_fields}
    return tuple(_map_field(column, held.get(column.id)) for column in wanted)


def _map_field(wanted: DataField, held: DataField | None) -> FieldMapping:
    if held is None:
        return FieldMapping(wanted, None, False)
    if held is wanted or held == wanted:  # most files were written under today's schema
        return FieldMapping(wanted, held, False)
    pruned = prune_type(held.type, wanted.type)
    if pruned is None:
        return FieldMapping(wanted, None, False)
    if isinstance(pruned, dt.TimestampType | dt.LocalZonedTimestampType) and _needs_micros_at_most(pruned, wanted.type):
        # Microseconds are enough for the cast, and represent the times that nanoseconds do not.
        return FieldMapping(wanted, evolve(held, type=evolve(pruned, precision=6)), True)
    return FieldMapping(wanted, evolve(held, type=pruned), not has_same_values(pruned, wanted.type))


def _needs_micros_at_most(held: dt.TimestampType | dt.LocalZonedTimestampType, wanted: DataType) -> bool:
    is_fine = isinstance(wanted, dt.TIMESTAMP_TYPES) and wanted.precision > 6
    return held.precision > 6 and not is_fine and not isinstance(wanted, dt.CHARACTER_TYPES)


def prune_type(held: DataType, wanted: DataType) -> DataType | None:
    """Remove the nested fields that the reader does not want from a file's type; None where nothing remains."""
    match held, wanted:
        case dt.RowType(), dt.RowType():
            return _prune_row(held, wanted)
        case dt.ArrayType(), dt.ArrayType():
            element = prune_type(held.element, wanted.element)
            return None if element is None else evolve(held, element=element)
        case dt.MapType(), dt.MapType():
            key, value = prune_type(held.key, wanted.key), prune_type(held.value, wanted.value)
            return None if key is None or value is None else evolve(held, key=key, value=value)
    return held


def _prune_row(held: dt.RowType, wanted: dt.RowType) -> dt.RowType | None:
    wishes = {f.id: f for f in wanted.fields}
    pairs = [(f, prune_type(f.type, wishes[f.id].type)) for f in held.fields if f.id in wishes]
    kept = [evolve(f, type=pruned) for f, pruned in pairs if pruned is not None]
    return evolve(held, fields=tuple(kept)) if kept else None


def has_same_values(held: DataType, wanted: DataType) -> bool:
    """Return whether values of one type are values of the other without a cast; nullability does not matter."""
    match held, wanted:
        case dt.RowType(), dt.RowType():
            return len(held.fields) == len(wanted.fields) and all(
                h.id == w.id and h.name == w.name and has_same_values(h.type, w.type)
                for h, w in zip(held.fields, wanted.fields, strict=True)
            )
        case dt.ArrayType(), dt.ArrayType():
            return has_same_values(held.element, wanted.element)
        case dt.MultisetType(), dt.MultisetType():
            return has_same_values(held.element, wanted.element)
        case dt.VectorType(), dt.VectorType():
            return held.length == wanted.length and has_same_values(held.element, wanted.element)
        case dt.MapType(), dt.MapType():
            return has_same_values(held.key, wanted.key) and has_same_values(held.value, wanted.value)
    return held.with_nullable(True) == wanted.with_nullable(True)
