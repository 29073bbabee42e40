"""Schema changes from SQL text: what follows ``ALTER TABLE name`` in the SQL of Spark, Flink and PostgreSQL.

Invariant: a text is read to its end or refused; each clause becomes the changes that a caller would write by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from paimon.domain.schema.change_columns import Path, Position
from paimon.domain.schema.changes import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetColumnComment,
    SetColumnDefault,
    SetColumnNullability,
    SetColumnType,
    SetComment,
    SetOption,
)
from paimon.domain.types.sql_tokens import TokenReader
from paimon.domain.types.text import read_type

T = TypeVar("T")
Changes = tuple[SchemaChange, ...]
_CLAUSES = (
    "write ADD COLUMN, RENAME COLUMN … TO, DROP COLUMN, ALTER COLUMN … TYPE | SET NOT NULL | DROP NOT NULL | "
    "SET DEFAULT | DROP DEFAULT | COMMENT | FIRST | LAST | AFTER | BEFORE, SET ('key' = 'value'), RESET ('key'), "
    "COMMENT 'text' or DROP PRIMARY KEY"
)


def parse_schema_changes(text: str) -> Changes:
    """The changes that a clause of ALTER TABLE asks for.

    Parameters
    ----------
    text : str
        One clause, such as ``"ADD COLUMN x INT AFTER id"``; a name in back quotes may hold any character, and
        ``a.b`` names the field `b` of the ROW column `a`.

    Returns
    -------
    tuple of SchemaChange
        One change for each column or option that the clause names.

    Raises
    ------
    InvalidRequest
        The text is no such clause; the message shows where reading stopped.
    """
    reader = TokenReader(text)
    if reader.accept("ALTER", "TABLE"):
        raise reader.error(
            "ALTER TABLE and the name of the table are left out", hint="write only what follows: 'ADD COLUMN x INT'"
        )
    for words, read in _READERS.items():
        if reader.accept(*words):
            changes = read(reader)
            break
    else:
        raise reader.error("no clause of ALTER TABLE", hint=_CLAUSES)
    reader.accept(";")
    if reader.current.kind != "end":
        raise reader.error("expected the end")
    return changes


def _add(reader: TokenReader) -> Changes:
    return _listed(reader, _added)


def _added(reader: TokenReader) -> SchemaChange:
    path, data_type = _path(reader), _type(reader)
    if reader.accept("DEFAULT"):
        raise reader.error("a new column takes no DEFAULT", hint="add it, then ALTER COLUMN … SET DEFAULT …")
    comment = reader.literal() if reader.accept("COMMENT") else None
    return AddColumn(path, data_type, comment, _position(reader))


def _rename(reader: TokenReader) -> Changes:
    path = _path(reader)
    reader.expect("TO")
    return (RenameColumn(path, reader.name()),)


def _drop(reader: TokenReader) -> Changes:
    return _listed(reader, lambda inner: DropColumn(_path(inner)))


def _alter(reader: TokenReader) -> Changes:
    path = _path(reader)
    if reader.accept("TYPE") or reader.accept("SET", "DATA", "TYPE"):
        changed = SetColumnType(path, _type(reader))
        return (SetColumnType(path, changed.type, keep_nullability=changed.type.nullable),)
    if reader.accept("SET", "NOT", "NULL"):
        return (SetColumnNullability(path, False),)
    if reader.accept("DROP", "NOT", "NULL"):
        return (SetColumnNullability(path, True),)
    if reader.accept("SET", "DEFAULT"):
        return (SetColumnDefault(path, _value(reader)),)
    if reader.accept("DROP", "DEFAULT"):
        return (SetColumnDefault(path, None),)
    if reader.accept("COMMENT"):
        return (SetColumnComment(path, reader.literal()),)
    position = _position(reader)
    if position is None:
        raise reader.error("no change of a column", hint=_CLAUSES)
    return (MoveColumn(path, position),)


def _set(reader: TokenReader) -> Changes:
    def option(inner: TokenReader) -> SchemaChange:
        key = inner.literal()
        inner.expect("=")
        return SetOption(key, _value(inner))

    return _in_parentheses(reader, option)


def _reset(reader: TokenReader) -> Changes:
    return _in_parentheses(reader, lambda inner: RemoveOption(inner.literal()))


_READERS: Mapping[tuple[str, ...], Callable[[TokenReader], Changes]] = {
    ("ADD", "COLUMNS"): _add,
    ("ADD", "COLUMN"): _add,
    ("RENAME", "COLUMN"): _rename,
    ("DROP", "PRIMARY", "KEY"): lambda _: (DropPrimaryKey(),),
    ("DROP", "COLUMNS"): _drop,
    ("DROP", "COLUMN"): _drop,
    ("ALTER", "COLUMN"): _alter,
    ("SET", "TBLPROPERTIES"): _set,
    ("SET",): _set,
    ("UNSET", "TBLPROPERTIES"): _reset,
    ("RESET",): _reset,
    ("COMMENT",): lambda reader: (SetComment(reader.literal()),),
}
"""By the words that a clause begins with; longer beginnings come before shorter ones."""


def _listed(reader: TokenReader, read: Callable[[TokenReader], T]) -> tuple[T, ...]:
    """One or more, between commas; a pair of parentheses around them is allowed."""
    if reader.current.text == "(" and reader.current.kind == "symbol":
        return _in_parentheses(reader, read)
    found = [read(reader)]
    while reader.accept(","):
        found.append(read(reader))
    return tuple(found)


def _in_parentheses(reader: TokenReader, read: Callable[[TokenReader], T]) -> tuple[T, ...]:
    reader.expect("(")
    found = [read(reader)]
    while reader.accept(","):
        found.append(read(reader))
    reader.expect(")")
    return tuple(found)


def _path(reader: TokenReader) -> Path:
    names = [reader.name()]
    while reader.accept("."):
        names.append(reader.name())
    return tuple(names)


def _type(reader: TokenReader) -> str:
    start = reader.current.start
    read_type(reader)
    return reader.text[start : reader.current.start]


def _position(reader: TokenReader) -> Position | None:
    if reader.accept("FIRST"):
        return Position.first()
    if reader.accept("LAST"):
        return Position.last()
    if reader.accept("AFTER"):
        return Position.after(reader.name())
    if reader.accept("BEFORE"):
        return Position.before(reader.name())
    return None


def _value(reader: TokenReader) -> str:
    token = reader.advance()
    if token.kind in ("literal", "number") or (token.kind == "word" and token.text.upper() in ("TRUE", "FALSE")):
        return token.text.lower() if token.kind == "word" else token.text
    raise reader.error(f"expected a value, not {token.text or 'the end'!r}", hint="write texts in single quotes")
