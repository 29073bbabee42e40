"""Data types as SQL text (``DECIMAL(10, 2) NOT NULL``, ``ROW<`a` INT>``), and as the JSON of schema files.

Invariant: `parse_type(format_type(t))` is `t`, with nested ids counted depth-first from 0, because text has no ids.
`format_type` writes what Java writes. `type_from_json(type_to_json(t))` is `t`, ids, descriptions and defaults
included. Atomic types are SQL text, nested ones objects.
Source: `DataType.asSQLString`, `DataTypeJsonParser`, `DataField.serializeJson`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from paimon.domain.errors import CorruptTable, InvalidRequest, PaimonError, Unsupported, did_you_mean
from paimon.domain.json_text import INT_MAX, Members, dump_json, load_json
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import MAX_LENGTH, DataField, DataType
from paimon.domain.types.field_ids import assign_ids
from paimon.domain.types.sql_tokens import TokenReader

MAX_DEPTH = 64
"""Most levels of nesting: more than any table needs, and few enough for the stack."""

_PLAIN: dict[str, type[DataType]] = {
    "BOOLEAN": dt.BooleanType,
    "TINYINT": dt.TinyIntType,
    "SMALLINT": dt.SmallIntType,
    "INT": dt.IntType,
    "BIGINT": dt.BigIntType,
    "FLOAT": dt.FloatType,
    "DOUBLE": dt.DoubleType,
    "DATE": dt.DateType,
    "VARIANT": dt.VariantType,
    "BLOB": dt.BlobType,
}
_PLAIN_NAMES = {cls: name for name, cls in _PLAIN.items()}
_LENGTHS: dict[str, Callable[[int], DataType]] = {
    "CHAR": lambda n: dt.CharType(n),
    "VARCHAR": lambda n: dt.VarCharType(n),
    "BINARY": lambda n: dt.BinaryType(n),
    "VARBINARY": lambda n: dt.VarBinaryType(n),
}
_LENGTH_NAMES: dict[type[DataType], str] = {
    dt.CharType: "CHAR",
    dt.VarCharType: "VARCHAR",
    dt.BinaryType: "BINARY",
    dt.VarBinaryType: "VARBINARY",
}
_PRECISION_NAMES: dict[type[DataType], tuple[str, str]] = {
    dt.TimeType: ("TIME", ""),
    dt.TimestampType: ("TIMESTAMP", ""),
    dt.LocalZonedTimestampType: ("TIMESTAMP", " WITH LOCAL TIME ZONE"),
}
"""The name before and the words after the precision."""
_ALIASES = {"INTEGER": "INT", "BOOL": "BOOLEAN", "NUMERIC": "DECIMAL", "DEC": "DECIMAL", "STRUCT": "ROW"}
_NESTED_NAMES = ("ARRAY", "MAP", "MULTISET", "ROW", "VECTOR")
_SHORT_TEXT = 64
_KNOWN = (
    *(*_PLAIN, *_LENGTHS, "STRING", "BYTES", "DECIMAL"),
    *("TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", *_NESTED_NAMES),
)


def parse_type(text: str) -> DataType:
    """Parse the SQL text of a type; types of newer versions (GEOMETRY, GEOGRAPHY) raise `Unsupported`.

    >>> parse_type("DECIMAL(10, 2) NOT NULL")
    DecimalType(nullable=False, precision=10, scale=2)
    >>> parse_type("string") == parse_type("VARCHAR(2147483647)")
    True
    """
    return _parsed(text) if len(text) <= _SHORT_TEXT else _parse(text)


def _parse(text: str) -> DataType:
    reader = TokenReader(text)
    parsed = read_type(reader)
    if reader.current.kind != "end":
        raise reader.error("expected the end of the text")
    return assign_ids((DataField(0, "", parsed),), start=-1)[0][0].type


_parsed = lru_cache(maxsize=1024)(_parse)  # a wide table has many columns of few types


def read_type(reader: TokenReader, depth: int = 0) -> DataType:
    """Read a type with its nullability, and advance; nested fields have id 0. Too much `depth` is refused."""
    if depth > MAX_DEPTH:
        raise reader.error(f"types nest deeper than {MAX_DEPTH} levels")
    word = reader.current
    name = word.text.upper()
    name = _ALIASES.get(name, name)
    if word.kind != "word" or name not in _KNOWN:
        if name in ("GEOMETRY", "GEOGRAPHY"):
            raise Unsupported(f"type {name}")
        wrong = f"{word.text!r} is not a type" if word.text else "a type is missing"
        raise reader.error(wrong, hint=did_you_mean(name, _KNOWN))
    reader.advance()
    try:
        parsed = _read_nested(reader, name, depth) if name in _NESTED_NAMES else _read_atomic(reader, name)
    except PaimonError:
        raise  # the error of an inner type is more exact
    except ValueError as error:  # what attrs' validators raise: a length or precision out of range
        raise reader.error(f"a length, precision or scale of {name} is out of range") from error
    if reader.read_if_next("NOT", "NULL"):
        return parsed.with_nullable(False)
    reader.read_if_next("NULL")
    return parsed


def _read_atomic(reader: TokenReader, name: str) -> DataType:
    if name == "DOUBLE":
        reader.read_if_next("PRECISION")
    if name in _PLAIN:
        return _PLAIN[name]()
    if name == "STRING":
        return dt.VarCharType(MAX_LENGTH)
    if name == "BYTES":
        return dt.VarBinaryType(MAX_LENGTH)
    if name in _LENGTHS:
        return _LENGTHS[name](_parameters(reader, (1,))[0])
    if name == "DECIMAL":
        precision, scale = _parameters(reader, (10, 0))
        if scale > precision:
            raise reader.error(f"the scale {scale} is larger than the precision {precision}")
        return dt.DecimalType(precision, scale)
    if name == "TIME":
        time = dt.TimeType(_parameters(reader, (0,))[0])
        reader.read_if_next("WITHOUT", "TIME", "ZONE")
        return time
    return _read_timestamp(reader, name)


def _read_timestamp(reader: TokenReader, name: str) -> DataType:
    (precision,) = _parameters(reader, (6,))
    if name == "TIMESTAMP_NTZ":
        return dt.TimestampType(precision)
    if name == "TIMESTAMP_LTZ" or reader.read_if_next("WITH", "LOCAL", "TIME", "ZONE"):
        return dt.LocalZonedTimestampType(precision)
    reader.read_if_next("WITHOUT", "TIME", "ZONE")
    return dt.TimestampType(precision)


def _parameters(reader: TokenReader, defaults: tuple[int, ...]) -> tuple[int, ...]:
    """Read numbers in parentheses; those that are left out take their default."""
    if not reader.read_if_next("("):
        return defaults
    given = [reader.number()]
    while len(given) < len(defaults) and reader.read_if_next(","):
        given.append(reader.number())
    reader.expect(")")
    return (*given, *defaults[len(given) :])


def _read_nested(reader: TokenReader, name: str, depth: int) -> DataType:
    reader.expect("<")
    if name == "ROW":
        fields = [] if reader.current.text == ">" else [read_field(reader, depth + 1)]
        while fields and reader.read_if_next(","):
            fields.append(read_field(reader, depth + 1))
        reader.expect(">")
        return dt.RowType(tuple(fields))
    first = read_type(reader, depth + 1)
    made: DataType
    if name == "MAP":
        reader.expect(",")
        made = dt.MapType(first, read_type(reader, depth + 1))
    elif name == "VECTOR":
        reader.expect(",")
        made = dt.VectorType(first, reader.number())
    else:
        made = dt.ArrayType(first) if name == "ARRAY" else dt.MultisetType(first)
    reader.expect(">")
    return made


def read_field(reader: TokenReader, depth: int = 0) -> DataField:
    """Read ``name TYPE [NOT NULL] [DEFAULT literal] [COMMENT 'text']``; the id of the field is 0."""
    name = reader.name()
    reader.read_if_next(":")
    parsed = read_type(reader, depth)
    default = description = None
    while True:
        if default is None and reader.read_if_next("DEFAULT"):
            token = reader.advance()
            if token.kind not in ("literal", "number", "word"):
                raise reader.error(f"{token.text or 'nothing'!r} is not a default value")
            default = token.text
        elif description is None and reader.read_if_next("COMMENT"):
            description = reader.literal()
        else:
            return DataField(0, name, parsed, description, default)


def format_type(data_type: DataType) -> str:
    """Format a type as SQL text, as Java prints it.

    >>> format_type(parse_type("array<int not null>"))
    'ARRAY<INT NOT NULL>'
    """
    return _format_bare(data_type) + ("" if data_type.nullable else " NOT NULL")


def format_field(column: DataField) -> str:
    """Format a column as DDL text."""
    text = f"{quote_name(column.name)} {format_type(column.type)}"
    if column.description is not None:
        text += f" COMMENT {quote_text(column.description)}"
    return text if column.default_value is None else f"{text} DEFAULT {quote_text(column.default_value)}"


def quote_name(name: str) -> str:
    """Return a name in back quotes.

    >>> quote_name("unit price")
    '`unit price`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_identifier(name: str) -> str:
    """Return a name in double quotes, as standard SQL and DuckDB write it.

    >>> quote_identifier("unit price")
    '"unit price"'
    """
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as a SQL literal in single quotes.

    >>> print(quote_text("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def _format_bare(data_type: DataType) -> str:
    match data_type:
        case dt.VarCharType(length=n) if n == MAX_LENGTH:
            return "STRING"
        case dt.VarBinaryType(length=n) if n == MAX_LENGTH:
            return "BYTES"
        case dt.CharType() | dt.VarCharType() | dt.BinaryType() | dt.VarBinaryType():
            return f"{_LENGTH_NAMES[type(data_type)]}({data_type.length})"
        case dt.DecimalType(precision=p, scale=s):
            return f"DECIMAL({p}, {s})"
        case dt.TimeType() | dt.TimestampType() | dt.LocalZonedTimestampType():
            name, ending = _PRECISION_NAMES[type(data_type)]
            return f"{name}({data_type.precision}){ending}"
    return _format_nested(data_type)


def _format_nested(data_type: DataType) -> str:
    match data_type:
        case dt.ArrayType(element=e):
            return f"ARRAY<{format_type(e)}>"
        case dt.MultisetType(element=e):
            return f"MULTISET<{format_type(e)}>"
        case dt.MapType(key=k, value=v):
            return f"MAP<{format_type(k)}, {format_type(v)}>"
        case dt.VectorType(element=e, length=n):
            return f"VECTOR<{format_type(e)}, {n}>"
        case dt.RowType(fields=fields):
            return f"ROW<{', '.join(format_field(f) for f in fields)}>"
    plain = _PLAIN_NAMES.get(type(data_type))
    if plain is None:
        raise InvalidRequest(f"{type(data_type).__name__} is not a data type of this library", subject=repr(data_type))
    return plain


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
