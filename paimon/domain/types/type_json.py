"""Data types and fields as the JSON of schema files.

Invariant: `type_from_json(type_to_json(t))` is `t`, ids, descriptions and defaults included. Atomic types are SQL text,
nested ones objects.
Source: `DataTypeJsonParser`, `DataField.serializeJson`.
"""

from __future__ import annotations

from typing import Any

from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported
from paimon.domain.json_text import INT_MAX, Members, dump_json, load_json
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.type_text import MAX_DEPTH, format_type, parse_type

_FIELD_MEMBERS = frozenset(("id", "name", "type", "description", "defaultValue"))


def type_to_json(data_type: DataType) -> Any:
    """Return the JSON value of a type: text, or an object for nested types."""
    suffix = "" if data_type.nullable else " NOT NULL"
    match data_type:
        case dt.ArrayType():
            return {"type": "ARRAY" + suffix, "element": type_to_json(data_type.element)}
        case dt.MultisetType():
            return {"type": "MULTISET" + suffix, "element": type_to_json(data_type.element)}
        case dt.MapType():
            return {
                "type": "MAP" + suffix,
                "key": type_to_json(data_type.key),
                "value": type_to_json(data_type.value),
            }
        case dt.VectorType():
            return {"type": "VECTOR" + suffix, "element": type_to_json(data_type.element), "length": data_type.length}
        case dt.RowType():
            return {"type": "ROW" + suffix, "fields": [field_to_json(f) for f in data_type.fields]}
    return format_type(data_type)


def field_to_json(column: DataField) -> dict[str, Any]:
    """Return the JSON object of a field, with the members that this library does not know."""
    made: dict[str, Any] = {"id": column.id, "name": column.name, "type": type_to_json(column.type)}
    if column.description is not None:
        made["description"] = column.description
    if column.default_value is not None:
        made["defaultValue"] = column.default_value
    return {**made, **{name: load_json(text) for name, text in column.unknown}}


def type_from_json(value: object, path: str) -> DataType:
    """Parse the JSON value of a type from the file `path`; a type of a newer format version raises `Unsupported`."""
    return _type(Members({"type": value}, path), 0)


def read_field_json(parent: Members, value: object, where: str, depth: int = 0) -> DataField:
    """Parse a field's JSON object, with unknown members; `where` names it in errors, `depth` is its nesting."""
    members = parent.child(value, where)
    unknown = members.without(_FIELD_MEMBERS)
    return DataField(
        members.integer("id", 0, INT_MAX),
        members.text("name"),
        _type(members, depth),
        members.optional_text("description"),
        members.optional_text("defaultValue"),
        tuple((name, dump_json(value, compact=True).decode()) for name, value in unknown.items()),
    )


def _type(owner: Members, depth: int, name: str = "type") -> DataType:
    value = owner.get(name)
    if depth > MAX_DEPTH:
        raise owner.corrupt(name, f"nests deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return _atomic(owner, name, value)
    return _parse_nested(owner.child(value, name), depth)


def _atomic(owner: Members, name: str, text: str) -> DataType:
    try:
        if "<" in text:
            raise InvalidRequest(f"{text!r} is a nested type and must be a JSON object")
        return parse_type(text)
    except InvalidRequest as error:
        raise owner.corrupt(name, f"is not a data type: {error.message}") from error
    except Unsupported as error:
        raise Unsupported(f"{error.feature} in {owner.path}") from error


def _parse_nested(members: Members, depth: int) -> DataType:
    words = members.text("type").upper().split()
    root, nullable = (words or [""])[0], words[1:] in ([], ["NULL"])
    if words[1:] not in ([], ["NULL"], ["NOT", "NULL"]):
        raise members.corrupt("type", f"is not a data type: {members.text('type')!r}")
    made: DataType
    match root:
        case "ARRAY":
            made = dt.ArrayType(_type(members, depth + 1, "element"))
        case "MULTISET":
            made = dt.MultisetType(_type(members, depth + 1, "element"))
        case "MAP":
            made = dt.MapType(_type(members, depth + 1, "key"), _type(members, depth + 1, "value"))
        case "VECTOR":
            made = dt.VectorType(_type(members, depth + 1, "element"), members.integer("length", 1, INT_MAX))
        case "ROW":
            values = enumerate(members.array("fields"))
            made = dt.RowType(tuple(read_field_json(members, v, f"fields[{i}]", depth + 1) for i, v in values))
        case _:
            raise CorruptTable(members.path, f"member {members.where + 'type'!r} is not a nested data type: {root!r}")
    return made.with_nullable(nullable)
