"""Partitions, keys and statistics as the texts of system tables.

Invariant: partitions are in braces, with values as SQL casts write them. Keys are in brackets, and statistics are maps
sorted by column name. Both show values as the format stores them (dates as days, times as milliseconds). Source:
`FilesTable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from paimon.domain.partition.partition_text import format_legacy_text, format_plain_text
from paimon.domain.row.binary_row import deserialize, read_arity
from paimon.domain.types.data_types import BYTES_TYPES, DataField, DataType


@frozen
class RowTexts:
    """The texts of system tables as Java writes them; another form overrides its methods."""

    def format_partition(self, row: bytes, fields: Sequence[DataField]) -> str:
        """Format a serialized partition as ``{a, b}``."""
        return format_partition_row(row, fields)

    def format_key(self, row: bytes, fields: Sequence[DataField]) -> str | None:
        """Format a serialized key as ``[a, b]``; None for a table without a primary key."""
        return f"[{_format_values(format_value, row, fields)}]" if fields and read_arity(row) > 0 else None

    def format_stats(self, values: Mapping[str, tuple[Any, DataType]]) -> str:
        """Format values by column name as ``{a=1, b=2}``."""
        return _format_map((name, format_value(*values[name])) for name in values)

    def format_counts(self, counts: Mapping[str, int | None]) -> str:
        """Format counts by column name as ``{a=1, b=2}``."""
        return _format_map(counts.items())


JAVA_TEXTS = RowTexts()
"""The texts of the system tables of the package `paimon`."""


def format_partition_row(row: bytes, fields: Sequence[DataField]) -> str:
    """Format a serialized partition as ``{a, b}``."""
    return f"{{{_format_values(format_plain_text, row, fields)}}}"


def _format_map(pairs: Iterable[tuple[str, object]]) -> str:
    """Format pairs as Java prints a sorted map; None becomes ``null``."""
    return "{" + ", ".join(f"{k}={'null' if v is None else v}" for k, v in sorted(pairs)) + "}"


def _format_values(format_text: Any, row: bytes, fields: Sequence[DataField]) -> str:
    values = deserialize(row, [f.type for f in fields]) if fields else ()
    return ", ".join("null" if v is None else format_text(v, f.type) for v, f in zip(values, fields, strict=False))


def format_value(value: Any, data_type: DataType) -> str:
    """Format a value of a key or of statistics."""
    if value is None:
        return "null"
    if isinstance(data_type, BYTES_TYPES):
        return format_plain_text(value, data_type)
    return format_legacy_text(value, data_type)
