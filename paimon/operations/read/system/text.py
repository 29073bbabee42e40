"""Binary rows as the texts that system tables show.

Law: partitions stand in braces, written as SQL casts write them; keys in brackets and statistics, a map by column
name, sorted, show values as the format holds them (dates as day numbers, times as milliseconds). Source: `FilesTable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paimon.domain.partition.text import legacy_text, plain_text
from paimon.domain.row.binary_row import arity, deserialize
from paimon.domain.types.data_types import BYTES_TYPES, DataField, DataType


def row_text(row: bytes, fields: Sequence[DataField]) -> str:
    """A serialised partition as ``{a, b}``."""
    return f"{{{_values_text(plain_text, row, fields)}}}"


def key_text(row: bytes, fields: Sequence[DataField]) -> str | None:
    """A serialised key as ``[a, b]``; None for a table without a primary key."""
    return f"[{_values_text(legacy_text, row, fields)}]" if fields and arity(row) > 0 else None


def stats_text(values: Mapping[str, tuple[Any, DataType]]) -> str:
    """Values by column name as ``{a=1, b=2}``."""
    return map_text((name, _shown(legacy_text, *values[name])) for name in values)


def map_text(pairs: Iterable[tuple[str, object]]) -> str:
    """Pairs as Java prints a sorted map; None as ``null``."""
    return "{" + ", ".join(f"{k}={'null' if v is None else v}" for k, v in sorted(pairs)) + "}"


def _values_text(render: Any, row: bytes, fields: Sequence[DataField]) -> str:
    values = deserialize(row, [f.type for f in fields]) if fields else ()
    return ", ".join(_shown(render, v, f.type) for v, f in zip(values, fields, strict=False))


def _shown(render: Any, value: Any, data_type: DataType) -> str:
    if value is None:
        return "null"
    if isinstance(data_type, BYTES_TYPES):
        return plain_text(value, data_type)
    text: str = render(value, data_type)
    return text
