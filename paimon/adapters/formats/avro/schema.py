"""Avro schemas of data files, with Java's names and types.

Invariant: a nested record is named after its path (`record_a_b`). Nullable is a union with null first. TIMESTAMP is
`timestamp-*` and TIMESTAMP WITH LOCAL TIME ZONE is `local-timestamp-*`, the reverse of Avro's own meaning.
Source: `AvroSchemaConverter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.type_text import format_type

NAMESPACE = "org.apache.paimon.avro.generated"
_PLAIN: Mapping[type[DataType], Any] = {
    dt.BooleanType: "boolean",
    dt.TinyIntType: "int",
    dt.SmallIntType: "int",
    dt.IntType: "int",
    dt.BigIntType: "long",
    dt.FloatType: "float",
    dt.DoubleType: "double",
    dt.CharType: "string",
    dt.VarCharType: "string",
    dt.BinaryType: "bytes",
    dt.VarBinaryType: "bytes",
    dt.BlobType: "bytes",
    dt.DateType: {"type": "int", "logicalType": "date"},
}


def avro_schema(fields: Iterable[DataField]) -> dict[str, Any]:
    """Return the schema of a data file with these columns."""
    record = _record("record", fields)
    return {"type": "record", "name": "record", "namespace": NAMESPACE, "fields": record["fields"]}


def has_string_key(data_type: DataType) -> bool:
    """Return whether a MAP or MULTISET is an Avro map; others are arrays of (key, value) records."""
    key = data_type.key if isinstance(data_type, dt.MapType) else getattr(data_type, "element", None)
    return isinstance(key, dt.CHARACTER_TYPES)


def _record(name: str, fields: Iterable[DataField]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_avro_field(f.name, f.type, f"{name}_{f.name}") for f in fields]}


def _avro_field(name: str, data_type: DataType, path: str) -> dict[str, Any]:
    if not (name.isidentifier() or name.replace("$", "_").isidentifier()):
        raise InvalidRequest(
            f"Column {name!r} has a name that Avro does not allow", subject=name, hint="use letters, digits and _"
        )
    node = _nullable(data_type, path)
    return {"name": name, "type": node, "default": None} if data_type.nullable else {"name": name, "type": node}


def _nullable(data_type: DataType, path: str) -> Any:
    node = _node(data_type, path)
    return ["null", node] if data_type.nullable else node


def _node(data_type: DataType, path: str) -> Any:
    match data_type:
        case dt.DecimalType(precision=precision, scale=scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case dt.TimeType(precision=precision) if precision <= 3:
            return {"type": "int", "logicalType": "time-millis"}
        case dt.TimestampType(precision=precision) if precision <= 6:
            return {"type": "long", "logicalType": "timestamp-millis" if precision <= 3 else "timestamp-micros"}
        case dt.LocalZonedTimestampType(precision=precision) if precision <= 6:
            return {"type": "long", "logicalType": f"local-timestamp-{'millis' if precision <= 3 else 'micros'}"}
        case dt.ArrayType(element=element) | dt.VectorType(element=element):
            return {"type": "array", "items": _nullable(element, path)}
        case dt.RowType(fields=fields):
            return _record(path, fields)
        case dt.MapType(key=key, value=value):
            return _map(data_type, key, value, path)
        case dt.MultisetType(element=element) if has_string_key(data_type):
            return _map(data_type, element, dt.IntType(), path)
    if type(data_type) not in _PLAIN:
        raise Unsupported(
            f"{format_type(data_type)} in Avro files", hint="choose file.format=parquet, or a type that Avro can hold"
        )
    return _PLAIN[type(data_type)]


def _map(data_type: DataType, key: DataType, value: DataType, path: str) -> dict[str, Any]:
    if has_string_key(data_type):
        return {"type": "map", "values": _nullable(value, path)}
    fields = [
        {"name": "key", "type": _nullable(key, f"{path}_key")},
        _avro_field("value", value, f"{path}_value"),
    ]
    return {"type": "array", "items": {"type": "record", "name": path, "fields": fields}, "logicalType": "map"}
