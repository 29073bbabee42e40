"""The types of Paimon by their names in DuckDB.

Invariant: a value that is cast to the named type fits the column, or the cast fails.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType
from paimon.domain.types.type_text import format_type

_PLAIN: dict[type[DataType], str] = {
    dt.BooleanType: "BOOLEAN",
    dt.TinyIntType: "TINYINT",
    dt.SmallIntType: "SMALLINT",
    dt.IntType: "INTEGER",
    dt.BigIntType: "BIGINT",
    dt.FloatType: "FLOAT",
    dt.DoubleType: "DOUBLE",
    dt.DateType: "DATE",
    dt.TimeType: "TIME",
    dt.CharType: "VARCHAR",
    dt.VarCharType: "VARCHAR",
    dt.BinaryType: "BLOB",
    dt.VarBinaryType: "BLOB",
    dt.BlobType: "BLOB",
    dt.LocalZonedTimestampType: "TIMESTAMPTZ",
}
_TIMESTAMPS = {0: "TIMESTAMP_S", 1: "TIMESTAMP_MS", 2: "TIMESTAMP_MS", 3: "TIMESTAMP_MS"}


def to_engine_type(kind: DataType) -> str:
    """Return the name of the type in DuckDB's SQL; raise `Unsupported` if SQL cannot create values of the type."""
    plain = _PLAIN.get(type(kind))
    if plain is not None:
        return plain
    match kind:
        case dt.DecimalType(precision=p, scale=s):
            return f"DECIMAL({p}, {s})"
        case dt.TimestampType(precision=p):
            return _TIMESTAMPS.get(p, "TIMESTAMP" if p <= 6 else "TIMESTAMP_NS")
        case dt.ArrayType(element=e):
            return f"{to_engine_type(e)}[]"
        case dt.VectorType(element=e, length=n):
            return f"{to_engine_type(e)}[{n}]"
        case dt.MapType(key=k, value=v):
            return f"MAP({to_engine_type(k)}, {to_engine_type(v)})"
        case dt.MultisetType(element=e):
            return f"MAP({to_engine_type(e)}, INTEGER)"
        case dt.RowType(fields=fields):
            inner = ", ".join(f'"{f.name.replace(chr(34), chr(34) * 2)}" {to_engine_type(f.type)}' for f in fields)
            return f"STRUCT({inner})"
    raise Unsupported(f"type {format_type(kind)} in INSERT", hint="write the rows with Table.write")
