"""Schema changes from SQL text: what follows ``ALTER TABLE name`` in the SQL of Spark, Flink and PostgreSQL.

Invariant: a text is read to its end or refused. Each clause becomes the changes that a caller would write by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import evolve

from paimon.domain.errors import Unsupported
from paimon.domain.schema.change_columns import ColumnPath, Position
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
from paimon.domain.types.type_text import read_type

T = TypeVar("T")
Changes = tuple[SchemaChange, ...]
_CLAUSES = (
    "write ADD [COLUMN], RENAME [COLUMN] … TO, DROP [COLUMN], MODIFY, ALTER COLUMN … TYPE … [ALLOW LOSSY] | "
    "SET NOT NULL | DROP NOT NULL | SET DEFAULT | DROP DEFAULT | COMMENT | FIRST | LAST | AFTER | BEFORE, "
    "SET ('key' = 'value'), RESET ('key'), COMMENT 'text' or DROP PRIMARY KEY"
)

COMMENT_OPTION = "comment"
"""The option by which SQL changes the comment of a table."""


def parse_schema_changes(text: str) -> Changes:
    """Parse one clause of ALTER TABLE; return one change for each column or option that it names.

    ``a.b`` names the field `b` of the ROW column `a`. A name in back quotes may contain any character.

    >>> parse_schema_changes("RENAME COLUMN price TO unit_price")
    (RenameColumn(path=('price',), new_name='unit_price'),)
    """
    reader = TokenReader(text)
    if reader.read_if_next("ALTER", "TABLE"):
        raise reader.error(
            "ALTER TABLE and the table name are not part of the text",
            hint="write only what follows, such as 'ADD COLUMN x INT'",
        )
    changes = read_schema_changes(reader)
    reader.read_if_next(";")
    if reader.current.kind != "end":
        raise reader.error("expected the end of the text")
    return changes


def read_schema_changes(reader: TokenReader) -> Changes:
    """Read one clause of ALTER TABLE, and leave the tokens after it in the reader."""
    for words, hint in _REFUSED.items():
        if reader.read_if_next(*words):
            raise Unsupported(f"ALTER TABLE … {' '.join(words).rstrip(' (')}", hint=hint)
    for words, read in _READERS.items():
        if reader.read_if_next(*words):
            return read(reader)
    raise reader.error("expected a clause of ALTER TABLE", hint=_CLAUSES)


def _add(reader: TokenReader) -> Changes:
    return _read_list(reader, _read_added_column)


def _read_added_column(reader: TokenReader) -> SchemaChange:
    path, data_type = _path(reader), _type(reader)
    if reader.read_if_next("DEFAULT"):
        raise reader.error(
            "a new column cannot have a DEFAULT", hint="add the column, then ALTER COLUMN … SET DEFAULT …"
        )
    comment = reader.literal() if reader.read_if_next("COMMENT") else None
    return AddColumn(path, data_type, comment, _position(reader))


def _rename(reader: TokenReader) -> Changes:
    if reader.read_if_next("TO"):
        raise reader.error("a table gets another name by its catalog", hint="call Catalog.rename_table")
    path = _path(reader)
    reader.expect("TO")
    return (RenameColumn(path, reader.name()),)


def _drop(reader: TokenReader) -> Changes:
    missing_ok = reader.read_if_next("IF", "EXISTS")
    return _read_list(reader, lambda inner: DropColumn(_path(inner), missing_ok))


def _alter(reader: TokenReader) -> Changes:
    path = _path(reader)
    if reader.read_if_next("TYPE") or reader.read_if_next("SET", "DATA", "TYPE"):
        changed = SetColumnType(path, _type(reader), allow_lossy=_allows_lossy(reader))
        return (evolve(changed, keep_nullability=changed.type.nullable),)
    if reader.read_if_next("SET", "NOT", "NULL"):
        return (SetColumnNullability(path, False),)
    if reader.read_if_next("DROP", "NOT", "NULL"):
        return (SetColumnNullability(path, True),)
    if reader.read_if_next("SET", "DEFAULT"):
        return (SetColumnDefault(path, _value(reader)),)
    if reader.read_if_next("DROP", "DEFAULT"):
        return (SetColumnDefault(path, None),)
    if reader.read_if_next("COMMENT"):
        return (SetColumnComment(path, reader.literal()),)
    position = _position(reader)
    if position is None:
        raise reader.error("expected a change of the column", hint=_CLAUSES)
    return (MoveColumn(path, position),)


def _modify(reader: TokenReader) -> Changes:
    """Read Flink's MODIFY: a column with its type, and optionally its comment and its position."""

    def column(inner: TokenReader) -> Changes:
        """Read one column."""
        path, data_type = _path(inner), _type(inner)
        lossy = _allows_lossy(inner)
        found: list[SchemaChange] = [SetColumnType(path, data_type, keep_nullability=False, allow_lossy=lossy)]
        if inner.read_if_next("COMMENT"):
            found.append(SetColumnComment(path, inner.literal()))
        position = _position(inner)
        return (*found, MoveColumn(path, position)) if position is not None else tuple(found)

    return tuple(change for changes in _read_list(reader, column) for change in changes)


def _set(reader: TokenReader) -> Changes:
    def option(inner: TokenReader) -> SchemaChange:
        """Read one pair ``'key' = 'value'``."""
        key = inner.literal()
        inner.expect("=")
        value = _value(inner)
        return SetComment(value) if key == COMMENT_OPTION else SetOption(key, value)

    return _in_parentheses(reader, option)


def _reset(reader: TokenReader) -> Changes:
    def option(inner: TokenReader) -> SchemaChange:
        """Read one key."""
        key = inner.literal()
        return SetComment(None) if key == COMMENT_OPTION else RemoveOption(key)

    return _in_parentheses(reader, option)


_NOT_ENFORCED = "a table checks NOT NULL and its primary key, which CREATE TABLE declares; leave out the clause"
_NO_WATERMARK = "the query engine defines watermarks; a writer passes 'watermark' to commits"
_EXISTS = "look at DESCRIBE, then write ADD COLUMN for a column that is missing"
_REFUSED: Mapping[tuple[str, ...], str] = {
    ("ADD", "COLUMN", "IF", "NOT", "EXISTS"): _EXISTS,
    ("ADD", "COLUMNS", "IF", "NOT", "EXISTS"): _EXISTS,
    ("ADD", "IF", "NOT", "EXISTS"): _EXISTS,
    ("ADD", "CONSTRAINT"): _NOT_ENFORCED,
    ("ADD", "PRIMARY", "KEY"): _NOT_ENFORCED,
    ("ADD", "UNIQUE", "("): _NOT_ENFORCED,
    ("ADD", "CHECK", "("): _NOT_ENFORCED,
    ("ADD", "FOREIGN", "KEY"): _NOT_ENFORCED,
    ("MODIFY", "PRIMARY", "KEY"): _NOT_ENFORCED,
    ("ADD", "WATERMARK", "FOR"): _NO_WATERMARK,
    ("MODIFY", "WATERMARK", "FOR"): _NO_WATERMARK,
}
"""Clauses of other systems by their first words, and what to do. A column of such a name is written in quotes."""

_READERS: Mapping[tuple[str, ...], Callable[[TokenReader], Changes]] = {
    ("ADD", "COLUMNS"): _add,
    ("ADD", "COLUMN"): _add,
    ("ADD",): _add,
    ("RENAME", "COLUMN"): _rename,
    ("RENAME",): _rename,
    ("DROP", "PRIMARY", "KEY"): lambda _: (DropPrimaryKey(),),
    ("DROP", "COLUMNS"): _drop,
    ("DROP", "COLUMN"): _drop,
    ("DROP",): _drop,
    ("MODIFY", "COLUMN"): _modify,
    ("MODIFY",): _modify,
    ("ALTER", "COLUMN"): _alter,
    ("SET", "TBLPROPERTIES"): _set,
    ("SET",): _set,
    ("UNSET", "TBLPROPERTIES", "IF", "EXISTS"): _reset,
    ("UNSET", "TBLPROPERTIES"): _reset,
    ("RESET",): _reset,
    ("COMMENT",): lambda reader: (SetComment(reader.literal()),),
}
"""Readers by the first words of a clause; longer beginnings come before shorter ones."""


def _read_list(reader: TokenReader, read: Callable[[TokenReader], T]) -> tuple[T, ...]:
    """Read one or more items between commas; a pair of parentheses around them is allowed."""
    if reader.current.text == "(" and reader.current.kind == "symbol":
        return _in_parentheses(reader, read)
    found = [read(reader)]
    while reader.read_if_next(","):
        found.append(read(reader))
    return tuple(found)


def _in_parentheses(reader: TokenReader, read: Callable[[TokenReader], T]) -> tuple[T, ...]:
    reader.expect("(")
    found = [read(reader)]
    while reader.read_if_next(","):
        found.append(read(reader))
    reader.expect(")")
    return tuple(found)


def _path(reader: TokenReader) -> ColumnPath:
    names = [reader.name()]
    while reader.read_if_next("."):
        names.append(reader.name())
    return tuple(names)


def _type(reader: TokenReader) -> str:
    start = reader.current.start
    read_type(reader)
    return reader.text[start : reader.current.start]


def _allows_lossy(reader: TokenReader) -> bool:
    return reader.read_if_next("ALLOW", "LOSSY")


def _position(reader: TokenReader) -> Position | None:
    if reader.read_if_next("FIRST"):
        return Position.first()
    if reader.read_if_next("LAST"):
        return Position.last()
    if reader.read_if_next("AFTER"):
        return Position.after(reader.name())
    if reader.read_if_next("BEFORE"):
        return Position.before(reader.name())
    return None


def _value(reader: TokenReader) -> str:
    token = reader.advance()
    if token.kind in ("literal", "number") or (token.kind == "word" and token.text.upper() in ("TRUE", "FALSE")):
        return token.text.lower() if token.kind == "word" else token.text
    raise reader.error(f"expected a value, not {token.text or 'the end'!r}", hint="write texts in single quotes")
