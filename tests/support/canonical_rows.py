"""Rows as canonical JSON text, in the form of the golden tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from paimon.domain.row.values import to_values
from paimon.domain.types.data_types import (
    ArrayType,
    BinaryType,
    BlobType,
    DataField,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
    VectorType,
)

_NANOS = 1_000_000_000


def text(value: object) -> str:
    """Canonical JSON of one value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def rows_of(table: pa.Table, types: Mapping[str, DataType]) -> list[str]:
    """The rows of an Arrow table as sorted canonical JSON."""
    columns = {name: render_column(table[name], types[name]) for name in table.column_names}
    return sorted(text({name: columns[name][i] for name in columns}) for i in range(table.num_rows))


def changes_of(changes: pa.Table, types: Mapping[str, DataType]) -> list[str]:
    """The rows of `Table.changes` as sorted canonical JSON: kind, row and snapshot of each."""
    columns = {name: render_column(changes[name], types[name]) for name in changes.column_names[2:]}
    heads = zip(changes["_row_kind"].to_pylist(), changes["_snapshot_id"].to_pylist(), strict=True)
    return sorted(
        text({"kind": kind, "row": {name: columns[name][i] for name in columns}, "snapshot": snapshot})
        for i, (kind, snapshot) in enumerate(heads)
    )


def types_of(fields: Iterable[DataField]) -> dict[str, DataType]:
    """Types by column name."""
    return {f.name: f.type for f in fields}


def render_column(column: pa.ChunkedArray, data_type: DataType) -> list[Any]:
    """One column's values as JSON values."""
    return [render(v, data_type) for chunk in column.chunks for v in to_values(chunk, data_type)]


def render(value: Any, data_type: DataType) -> Any:
    """One internal value as a JSON value."""
    if value is None:
        return None
    match data_type:
        case FloatType() | DoubleType():
            return _float(value)
        case DecimalType():
            return format(value, "f")
        case BinaryType() | VarBinaryType() | BlobType():
            return value.hex()
        case DateType():
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        case TimeType():
            seconds, millis = divmod(value, 1000)
            return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{millis:03}"
        case TimestampType(precision=p):
            return _timestamp(value, p)
        case LocalZonedTimestampType(precision=p):
            return _timestamp(value, p) + "Z"
        case ArrayType(element=e) | VectorType(element=e):
            return [render(v, e) for v in value]
        case MapType(key=k, value=v):
            return sorted(([render(a, k), render(b, v)] for a, b in value), key=text)
        case MultisetType(element=e):
            return sorted(([render(a, e), b] for a, b in value), key=text)
        case RowType(fields=fields):
            return {f.name: render(v, f.type) for f, v in zip(fields, value, strict=True)}
    return value


def _float(value: float) -> float | str:
    if value != value:
        return "NaN"
    return value if abs(value) != float("inf") else ("Infinity" if value > 0 else "-Infinity")


def _timestamp(nanos: int, precision: int) -> str:
    seconds, rest = divmod(nanos, _NANOS)
    days, of_day = divmod(seconds, 86_400)
    day = (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    fraction = f".{rest:09}"[: precision + 1] if precision else ""
    return f"{day}T{of_day // 3600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}{fraction}"
