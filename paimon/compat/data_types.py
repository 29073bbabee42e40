"""Data types by the names of pypaimon, and their Arrow types.

Source: `pypaimon.schema.data_types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon.domain.errors import PaimonError
from paimon.domain.json_text import Members
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type, fields_from_arrow
from paimon.domain.types.type_text import field_to_json, read_field_json, type_from_json, type_to_json

_CALLER = "the given type"
_KEYWORDS = frozenset(
    (
        "CHAR", "VARCHAR", "STRING", "BOOLEAN", "BINARY", "VARBINARY", "BYTES", "BLOB", "DECIMAL", "NUMERIC", "DEC",
        "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP",
        "TIMESTAMP_LTZ", "VARIANT",
    )
)  # fmt: skip


class DataType:
    """The base of all data types."""

    def __init__(self, nullable: bool = True) -> None:
        self.nullable = nullable

    def to_dict(self) -> Any:
        """Return the JSON form of the type."""
        raise NotImplementedError

    def _suffix(self) -> str:
        return "" if self.nullable else " NOT NULL"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class AtomicType(DataType):
    """A type without parts: ``AtomicType("DECIMAL(10, 2)")``."""

    def __init__(self, type: str, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.type = type

    def to_dict(self) -> str:
        """Return the type as SQL text."""
        return self.type + self._suffix()

    @classmethod
    def from_dict(cls, data: str) -> DataType:
        """Parse the type from SQL text."""
        return DataTypeParser.parse_data_type(data)

    def __str__(self) -> str:
        return self.to_dict()


class _ElementType(DataType):
    _root = ""

    def __init__(self, nullable: bool, element_type: DataType) -> None:
        super().__init__(nullable)
        self.element = element_type

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the type."""
        return {"type": self._root + self._suffix(), "element": self.element.to_dict(), "nullable": self.nullable}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DataType:
        """Parse the JSON form of the type."""
        return DataTypeParser.parse_data_type(data)

    def __str__(self) -> str:
        return f"{self._root}<{self.element}>{self._suffix()}"


class ArrayType(_ElementType):
    """An array; the constructor takes `nullable` and the type of the elements."""

    _root = "ARRAY"


class MultisetType(_ElementType):
    """A multiset; the constructor takes `nullable` and the type of the elements."""

    _root = "MULTISET"


class VectorType(_ElementType):
    """A list of fixed length."""

    _root = "VECTOR"
    VALID_ELEMENT_TYPES = frozenset({"BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"})

    def __init__(self, nullable: bool, element_type: DataType, length: int) -> None:
        super().__init__(nullable, element_type)
        if length < 1:
            raise ValueError("Vector length must be greater than or equal to 1.")
        if not self.is_valid_element_type(element_type):
            raise ValueError(f"Invalid element type for vector: {element_type}")
        self.length = length

    @classmethod
    def is_valid_element_type(cls, element_type: DataType) -> bool:
        """Return whether the elements of a vector may have this type."""
        return isinstance(element_type, AtomicType) and element_type.type.upper() in cls.VALID_ELEMENT_TYPES

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the type."""
        return {**super().to_dict(), "length": self.length}

    def __str__(self) -> str:
        return f"VECTOR<{self.element}, {self.length}>{self._suffix()}"


class MapType(DataType):
    """A map."""

    def __init__(self, nullable: bool, key_type: DataType, value_type: DataType) -> None:
        super().__init__(nullable)
        self.key = key_type
        self.value = value_type

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the type."""
        key, value = self.key.to_dict(), self.value.to_dict()
        return {"type": "MAP" + self._suffix(), "key": key, "value": value, "nullable": self.nullable}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DataType:
        """Parse the JSON form of the type."""
        return DataTypeParser.parse_data_type(data)

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>{self._suffix()}"


class DataField:
    """A column, or a field of a row."""

    FIELD_ID = "id"
    FIELD_NAME = "name"
    FIELD_TYPE = "type"
    FIELD_DESCRIPTION = "description"
    FIELD_DEFAULT_VALUE = "defaultValue"

    def __init__(
        self,
        id: int,
        name: str,
        type: DataType,
        description: str | None = None,
        default_value: str | None = None,
    ) -> None:
        self.id = id
        self.name = name
        self.type = type
        self.description = description
        self.default_value = default_value

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DataField:
        """Parse the JSON form of a field."""
        return DataTypeParser.parse_data_field(data)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the field."""
        made = {"id": self.id, "name": self.name, "type": self.type.to_dict()}
        optional = {"description": self.description, "defaultValue": self.default_value}
        return {**made, **{key: value for key, value in optional.items() if value is not None}}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataField) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.id, self.name, str(self.type)))

    def __repr__(self) -> str:
        return f"DataField({self.id}, {self.name!r}, {str(self.type)!r})"


class RowType(DataType):
    """A row of fields."""

    def __init__(self, nullable: bool, fields: list[DataField]) -> None:
        super().__init__(nullable)
        self.fields = fields or []

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the type."""
        fields = [field.to_dict() for field in self.fields]
        return {"type": "ROW" + self._suffix(), "fields": fields, "nullable": self.nullable}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DataType:
        """Parse the JSON form of the type."""
        return DataTypeParser.parse_data_type(data)

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field."""
        for position, field in enumerate(self.fields):
            if field.name == field_name:
                return position
        raise ValueError(f"Field {field_name} not found in {self}")

    def __str__(self) -> str:
        shown = (f"{f.name}: {f.type}{f' COMMENT {f.description}' if f.description else ''}" for f in self.fields)
        return f"ROW<{', '.join(shown)}>{self._suffix()}"


class AtomicInteger:
    """A counter, from which ids of fields are taken."""

    def __init__(self, initial_value: int = 0) -> None:
        self._value = initial_value

    def get(self) -> int:
        """Return the value."""
        return self._value

    def increment_and_get(self) -> int:
        """Add 1 and return the new value."""
        self._value += 1
        return self._value

    def get_and_increment(self) -> int:
        """Return the value, then add 1."""
        self._value += 1
        return self._value - 1

    def set(self, value: int) -> None:
        """Replace the value."""
        self._value = value


class DataTypeParser:
    """Parse types and fields from JSON."""

    @staticmethod
    def parse_nullability(type_string: str) -> bool:
        """Return whether a type allows null."""
        return "NOT NULL" not in type_string.upper()

    @staticmethod
    def parse_atomic_type_sql_string(type_string: str) -> DataType:
        """Parse a type without parts from SQL text."""
        nullable = DataTypeParser.parse_nullability(type_string)
        text = type_string.upper().strip().removesuffix(" NOT NULL").removesuffix(" NULL").rstrip()
        root = text.split("(")[0].split(" ")[0]
        if root not in _KEYWORDS:
            raise ValueError(f"Unknown type: {root}")
        return AtomicType(text if "(" in text else root, nullable)

    @staticmethod
    def parse_data_type(json_data: Mapping[str, Any] | str, field_id: AtomicInteger | None = None) -> DataType:
        """Parse the JSON form of a type; fields without an id take theirs from the counter `field_id`."""
        if isinstance(json_data, str):
            return DataTypeParser.parse_atomic_type_sql_string(json_data)
        if not isinstance(json_data, Mapping) or "type" not in json_data:
            raise ValueError(f"Cannot parse data type: {json_data}")
        text = json_data["type"]
        nullable = "NOT NULL" not in text and json_data.get("nullable", True) is not False
        root = text.split(" ")[0]
        if root in ("ARRAY", "MULTISET", "VECTOR"):
            element = DataTypeParser.parse_data_type(json_data["element"], field_id)
            if root == "VECTOR":
                return VectorType(nullable, element, int(json_data["length"]))
            return (ArrayType if root == "ARRAY" else MultisetType)(nullable, element)
        if root == "MAP":
            key = DataTypeParser.parse_data_type(json_data["key"], field_id)
            return MapType(nullable, key, DataTypeParser.parse_data_type(json_data["value"], field_id))
        if root == "ROW":
            fields = [DataTypeParser.parse_data_field(f, field_id) for f in json_data.get("fields", [])]
            return RowType(nullable, fields)
        return DataTypeParser.parse_atomic_type_sql_string(text)

    @staticmethod
    def parse_data_field(json_data: Mapping[str, Any], field_id: AtomicInteger | None = None) -> DataField:
        """Parse the JSON form of a field; a field without an id takes it from the counter `field_id`."""
        given = json_data.get("id")
        if given is not None and field_id is not None and field_id.get() != -1:
            raise ValueError("Partial field id is not allowed.")
        if given is None and field_id is None:
            raise ValueError("Field ID is required when not provided in JSON")
        for member in ("name", "type"):
            if member not in json_data:
                raise ValueError(f"Missing '{member}' field in JSON")
        if given is None:
            assert field_id is not None
            number = field_id.increment_and_get()
        else:
            number = int(given)
        data_type = DataTypeParser.parse_data_type(json_data["type"], field_id)
        return DataField(
            number, json_data["name"], data_type, json_data.get("description"), json_data.get("defaultValue")
        )


def is_blob_type(data_type: DataType) -> bool:
    """Return whether a type is BLOB."""
    return isinstance(data_type, AtomicType) and data_type.type.upper() == "BLOB"


def to_paimon_type(data_type: DataType) -> dt.DataType:
    """Return the type of this library."""
    try:
        return type_from_json(data_type.to_dict(), _CALLER)
    except (PaimonError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"Unsupported data type: {data_type}") from error


def to_paimon_field(field: DataField) -> dt.DataField:
    """Return the field of this library."""
    return read_field_json(Members({"field": field.to_dict()}, _CALLER), field.to_dict(), "field")


def from_paimon_type(data_type: dt.DataType) -> DataType:
    """Return the type of pypaimon for a type of this library."""
    return DataTypeParser.parse_data_type(type_to_json(data_type))


def from_paimon_field(field: dt.DataField) -> DataField:
    """Return the field of pypaimon for a field of this library."""
    return DataField.from_dict(field_to_json(field))


class PyarrowFieldParser:
    """Convert between fields and Arrow."""

    @staticmethod
    def from_paimon_type(data_type: DataType) -> pa.DataType:
        """Return the Arrow type in which pypaimon returns a type."""
        return arrow_type_of(to_paimon_type(data_type))

    @staticmethod
    def from_paimon_field(data_field: DataField) -> pa.Field:
        """Return the Arrow field of a field."""
        metadata = {b"description": data_field.description.encode()} if data_field.description else None
        kind = PyarrowFieldParser.from_paimon_type(data_field.type)
        return pa.field(data_field.name, kind, nullable=data_field.type.nullable, metadata=metadata)

    @staticmethod
    def from_paimon_schema(data_fields: Iterable[DataField]) -> pa.Schema:
        """Return the Arrow schema of fields."""
        return pa.schema([PyarrowFieldParser.from_paimon_field(field) for field in data_fields])

    @staticmethod
    def to_paimon_type(pa_type: pa.DataType, nullable: bool) -> DataType:
        """Return the type that holds all values of an Arrow type."""
        return PyarrowFieldParser.to_paimon_field(0, pa.field("value", pa_type, nullable=nullable)).type

    @staticmethod
    def to_paimon_field(field_idx: int, pa_field: pa.Field) -> DataField:
        """Return the field of an Arrow field, with this id."""
        made = PyarrowFieldParser.to_paimon_schema(pa.schema([pa_field]))[0]
        made.id = field_idx
        return made

    @staticmethod
    def to_paimon_schema(pa_schema: pa.Schema) -> list[DataField]:
        """Return the fields of an Arrow schema, with ids that are unique."""
        counter = AtomicInteger(-1)
        made = []
        for column in pa_schema:
            number = counter.increment_and_get()
            description = (column.metadata or {}).get(b"description")
            text = None if description is None else description.decode()
            made.append(DataField(number, column.name, _type_of(column, counter), text))
        return made


_VARIANT_PARTS = {("value", pa.binary(), False), ("metadata", pa.binary(), False)}
"""What pypaimon reads and writes as a VARIANT."""


def _type_of(column: pa.Field, counter: AtomicInteger) -> DataType:
    """Return the type of an Arrow field; nested fields take their ids from the counter."""
    kind, nullable = column.type, column.nullable
    types = pa.types
    if types.is_large_binary(kind):
        return AtomicType("BLOB", nullable)
    if types.is_time(kind):
        return AtomicType("TIME(0)", nullable)
    if types.is_fixed_size_list(kind):
        return VectorType(nullable, _type_of(kind.value_field, counter), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        return ArrayType(nullable, _type_of(kind.value_field, counter))
    if types.is_map(kind):
        return MapType(nullable, _type_of(kind.key_field, counter), _type_of(kind.item_field, counter))
    plain = fields_from_arrow(pa.schema([column]))[0].type
    if not isinstance(plain, dt.RowType):
        return from_paimon_type(plain)
    if {(part.name, part.type, part.nullable) for part in kind} == _VARIANT_PARTS:
        return AtomicType("VARIANT", nullable)
    parts = []
    for part in kind:
        inner = _type_of(part, counter)
        parts.append(DataField(counter.increment_and_get(), part.name, inner))
    return RowType(nullable, parts)


def arrow_schema_of(fields: Sequence[dt.DataField]) -> pa.Schema:
    """Return the Arrow schema in which pypaimon returns columns."""
    return pa.schema([_arrow_field_of(field.name, field.type, field.description) for field in fields])


def _arrow_field_of(name: str, data_type: dt.DataType, description: str | None = None) -> pa.Field:
    metadata = {b"description": description.encode()} if description else None
    return pa.field(name, arrow_type_of(data_type), nullable=data_type.nullable, metadata=metadata)


def arrow_type_of(data_type: dt.DataType) -> pa.DataType:
    """Return the Arrow type in which pypaimon returns a type: its parts have other names than in this library."""
    match data_type:
        case dt.BlobType():
            return pa.large_binary()
        case dt.ArrayType():
            return pa.list_(_arrow_field_of("item", data_type.element))
        case dt.VectorType():
            return pa.list_(arrow_type_of(data_type.element), data_type.length)
        case dt.MapType():
            key = pa.field("key", arrow_type_of(data_type.key), nullable=False)
            return pa.map_(key, _arrow_field_of("value", data_type.value))
        case dt.RowType():
            return pa.struct([_arrow_field_of(f.name, f.type) for f in data_type.fields])
    return arrow_type(data_type)


def to_plain_texts(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type with `string` in place of `large_string`, also in its children."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(to_plain_texts(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(to_plain_texts(kind.key_type), to_plain_texts(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(to_plain_texts(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(to_plain_texts(kind.value_type))
    return kind
