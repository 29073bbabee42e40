"""Data types as SQL text: ``DECIMAL(10, 2) NOT NULL``, ``ARRAY<INT>``, ``ROW<`a` INT>``.

Law: `parse_type(format_type(t))` is `t`, with nested ids counted depth-first from 0 (text has none); `format_type`
writes what Java writes. Source: `DataType.asSQLString`, `DataTypeJsonParser`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported, did_you_mean
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import MAX_LENGTH, DataField, DataType
from paimon.domain.types.ids import assign_ids
from paimon.domain.types.sql_tokens import TokenReader

MAX_DEPTH = 64
"""How deep types may nest: far beyond any table, far below what would exhaust the stack."""

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
_ALIASES = {"INTEGER": "INT", "BOOL": "BOOLEAN", "NUMERIC": "DECIMAL", "DEC": "DECIMAL"}
_NESTED_NAMES = ("ARRAY", "MAP", "MULTISET", "ROW", "VECTOR")
_SHORT_TEXT = 64
_KNOWN = (*_PLAIN, *_LENGTHS, "STRING", "BYTES", "DECIMAL", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", *_NESTED_NAMES)


def parse_type(text: str) -> DataType:
    """The type that this text names.

    Raises
    ------
    InvalidRequest
        The text is not a type; the message shows where it stops making sense.
    Unsupported
        A type of newer versions (GEOMETRY, GEOGRAPHY).
    """
    return _parsed(text) if len(text) <= _SHORT_TEXT else _parse(text)


def _parse(text: str) -> DataType:
    reader = TokenReader(text)
    parsed = read_type(reader)
    if reader.current.kind != "end":
        raise reader.error("there is more after the type")
    return assign_ids((DataField(0, "", parsed),), start=-1)[0][0].type


_parsed = lru_cache(maxsize=1024)(_parse)  # a wide table has many columns of few types


def read_type(reader: TokenReader, depth: int = 0) -> DataType:
    """Reads one type, with its nullability; nested fields have no ids yet (all 0)."""
    if depth > MAX_DEPTH:
        raise reader.error(f"types nest deeper than {MAX_DEPTH} levels")
    word = reader.advance()
    name = word.text.upper()
    name = _ALIASES.get(name, name)
    if word.kind != "word" or name not in _KNOWN:
        if name in ("GEOMETRY", "GEOGRAPHY"):
            raise Unsupported(f"type {name}")
        raise reader.error(f"{word.text or 'nothing'!r} is no type", hint=did_you_mean(name, _KNOWN))
    try:
        parsed = _read_nested(reader, name, depth) if name in _NESTED_NAMES else _read_atomic(reader, name)
    except PaimonError:
        raise  # an inner type says better what is wrong
    except ValueError as error:  # what attrs' validators raise: a length or precision out of range
        raise reader.error(f"a length, precision or scale of {name} is out of range") from error
    if reader.accept("NOT", "NULL"):
        return parsed.with_nullable(False)
    reader.accept("NULL")
    return parsed


def _read_atomic(reader: TokenReader, name: str) -> DataType:
    if name == "DOUBLE":
        reader.accept("PRECISION")
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
        reader.accept("WITHOUT", "TIME", "ZONE")
        return time
    (precision,) = _parameters(reader, (6,))
    if name == "TIMESTAMP_LTZ" or reader.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return dt.LocalZonedTimestampType(precision)
    reader.accept("WITHOUT", "TIME", "ZONE")
    return dt.TimestampType(precision)


def _parameters(reader: TokenReader, defaults: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers in parentheses; those that are left out take their default."""
    if not reader.accept("("):
        return defaults
    given = [reader.number()]
    while len(given) < len(defaults) and reader.accept(","):
        given.append(reader.number())
    reader.expect(")")
    return (*given, *defaults[len(given) :])


def _read_nested(reader: TokenReader, name: str, depth: int) -> DataType:
    reader.expect("<")
    if name == "ROW":
        fields = [] if reader.current.text == ">" else [read_field(reader, depth + 1)]
        while fields and reader.accept(","):
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
    """Reads ``name TYPE [NOT NULL] [DEFAULT literal] [COMMENT 'text']``; the id is 0."""
    name = reader.name()
    reader.accept(":")
    parsed = read_type(reader, depth)
    default = description = None
    while True:
        if default is None and reader.accept("DEFAULT"):
            token = reader.advance()
            if token.kind not in ("literal", "number", "word"):
                raise reader.error(f"{token.text or 'nothing'!r} is no default value")
            default = token.text
        elif description is None and reader.accept("COMMENT"):
            description = reader.literal()
        else:
            return DataField(0, name, parsed, description, default)


def format_type(data_type: DataType) -> str:
    """The type as SQL text, as Java prints it."""
    return _bare(data_type) + ("" if data_type.nullable else " NOT NULL")


def format_field(column: DataField) -> str:
    """A column as DDL text."""
    text = f"{quote_name(column.name)} {format_type(column.type)}"
    if column.description is not None:
        text += f" COMMENT {_quoted(column.description)}"
    return text if column.default_value is None else f"{text} DEFAULT {_quoted(column.default_value)}"


def quote_name(name: str) -> str:
    """A name in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _bare(data_type: DataType) -> str:
    match data_type:
        case dt.CharType(length=n):
            return f"CHAR({n})"
        case dt.VarCharType(length=n):
            return "STRING" if n == MAX_LENGTH else f"VARCHAR({n})"
        case dt.BinaryType(length=n):
            return f"BINARY({n})"
        case dt.VarBinaryType(length=n):
            return "BYTES" if n == MAX_LENGTH else f"VARBINARY({n})"
        case dt.DecimalType(precision=p, scale=s):
            return f"DECIMAL({p}, {s})"
        case dt.TimeType(precision=p):
            return f"TIME({p})"
        case dt.TimestampType(precision=p):
            return f"TIMESTAMP({p})"
        case dt.LocalZonedTimestampType(precision=p):
            return f"TIMESTAMP({p}) WITH LOCAL TIME ZONE"
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
        raise InvalidRequest(f"{type(data_type).__name__} is no data type of this library", subject=repr(data_type))
    return plain
