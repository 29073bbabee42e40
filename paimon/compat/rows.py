"""Rows as pypaimon writes and returns them one by one.

Source: `pypaimon.table.row`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from paimon.compat.data_types import DataField

ROW_KIND_COLUMN = "_row_kind"


class RowKind(Enum):
    """The kind of a change."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def is_add(self) -> bool:
        """Return whether the row exists after the change."""
        return self in (RowKind.INSERT, RowKind.UPDATE_AFTER)

    def to_string(self) -> str:
        """Return ``+I``, ``-U``, ``+U`` or ``-D``."""
        return ("+I", "-U", "+U", "-D")[self.value]

    @staticmethod
    def from_string(kind_str: str) -> RowKind:
        """Return the kind of its text."""
        for kind in RowKind:
            if kind.to_string() == kind_str:
                return kind
        raise ValueError(f"Unknown row kind string: {kind_str}")

    @classmethod
    def is_add_byte(cls, byte: int) -> bool:
        """Return whether the row exists after the change of this number."""
        return cls(byte).is_add()


class InternalRow:
    """A row whose values have positions."""

    def get_field(self, pos: int) -> Any:
        """Return the value at a position."""
        raise NotImplementedError

    def get_row_kind(self) -> RowKind:
        """Return the kind of the change."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class GenericRow(InternalRow):
    """A row of values."""

    def __init__(self, values: list[Any], fields: list[DataField], row_kind: RowKind = RowKind.INSERT) -> None:
        self.values = values
        self.fields = fields
        self.row_kind = row_kind

    def to_dict(self) -> dict[str, Any]:
        """Return the values by the names of the fields."""
        return {field.name: value for field, value in zip(self.fields, self.values, strict=False)}

    def get_field(self, pos: int) -> Any:
        """Return the value at a position."""
        if pos >= len(self.values):
            raise IndexError(f"Position {pos} is out of bounds for row arity {len(self.values)}")
        return self.values[pos]

    def get_row_kind(self) -> RowKind:
        """Return the kind of the change."""
        return self.row_kind

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GenericRow) and (self.values, self.row_kind) == (other.values, other.row_kind)

    def __hash__(self) -> int:
        return hash(tuple(map(str, self.values)))

    def __repr__(self) -> str:
        return f"GenericRow({self.row_kind.name}, {self.to_dict()!r})"


class OffsetRow(InternalRow):
    """A row of a result, as `TableRead.to_iterator` returns it."""

    def __init__(self, row_tuple: tuple[Any, ...] | None, offset: int, arity: int) -> None:
        self.row_tuple = row_tuple or ()
        self.offset = offset
        self.arity = arity
        self.row_kind_byte = 0

    def replace(self, row_tuple: tuple[Any, ...]) -> OffsetRow:
        """Take the values of another row, and return this one."""
        if self.offset + self.arity > len(row_tuple):
            raise ValueError(f"Offset {self.offset} plus arity {self.arity} is out of row length {len(row_tuple)}")
        self.row_tuple = row_tuple
        return self

    def set_row_kind_byte(self, row_kind_byte: int) -> None:
        """Set the kind of the change by its number."""
        self.row_kind_byte = row_kind_byte

    def get_field(self, pos: int) -> Any:
        """Return the value at a position."""
        if pos >= self.arity:
            raise IndexError(f"Position {pos} is out of bounds for arity {self.arity}")
        return self.row_tuple[self.offset + pos]

    def get_row_kind(self) -> RowKind:
        """Return the kind of the change."""
        return RowKind(self.row_kind_byte)

    def __len__(self) -> int:
        return self.arity


def named_values(row: object, names: Sequence[str]) -> tuple[dict[str, Any], RowKind]:
    """Return the values of a row to write by column, and its kind."""
    if isinstance(row, Mapping):
        return dict(row), RowKind.INSERT
    if isinstance(row, GenericRow) and row.fields:
        return row.to_dict(), row.row_kind
    if isinstance(row, InternalRow):
        values = [row.get_field(i) for i in range(len(row))]
        kind = row.get_row_kind()
    elif isinstance(row, Sequence) and not isinstance(row, str | bytes):
        values, kind = list(row), RowKind.INSERT
    else:
        raise TypeError(f"write_row takes a mapping, a sequence or a row, not {type(row).__name__}")
    if len(values) != len(names):
        raise ValueError(f"The row has {len(values)} values, and there are {len(names)} columns to write")
    return dict(zip(names, values, strict=True)), kind
