"""Column lists as DDL text: ``id INT NOT NULL, name STRING COMMENT 'full name'``.

Invariant: the columns are those that `format_field` printed, up to ids, which are assigned depth-first from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.errors import InvalidRequest
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataField
from paimon.domain.types.field_ids import assign_ids
from paimon.domain.types.sql_tokens import TokenReader
from paimon.domain.types.type_text import read_field


def parse_columns(text: str) -> tuple[DataField, ...]:
    """Parse a list of columns; a pair of parentheses around the list is allowed.

    A column may have NOT NULL, DEFAULT and COMMENT. The error for other text shows where parsing stopped.

    >>> [(c.name, c.type.nullable) for c in parse_columns("id BIGINT NOT NULL, name STRING")]
    [('id', False), ('name', True)]
    """
    reader = TokenReader(text)
    wrapped = reader.read_if_next("(")
    if reader.current.kind == "end" or (wrapped and reader.read_if_next(")")):
        raise InvalidRequest("The column list is empty", subject=text, hint="write 'id BIGINT NOT NULL, name STRING'")
    columns = [_read_column(reader)]
    while reader.read_if_next(","):
        columns.append(_read_column(reader))
    if wrapped:
        reader.expect(")")
    if reader.current.kind != "end":
        raise reader.error("expected a comma or the end of the text")
    return assign_ids(columns)[0]


def _read_column(reader: TokenReader) -> DataField:
    ahead = [t.text.upper() for t in reader.tokens[reader.position : reader.position + 2] if t.kind == "word"]
    if ahead in (["PRIMARY", "KEY"], ["PARTITIONED", "BY"]):
        raise reader.error(
            f"{' '.join(ahead)} is not a column", hint="pass primary_keys=[…] and partition_keys=[…] as arguments"
        )
    return read_field(reader)


def to_fields(schema: pa.Schema | str | Sequence[DataField]) -> tuple[DataField, ...]:
    """Return the columns that an Arrow schema, DDL text or a sequence of fields declares."""
    if isinstance(schema, str):
        return parse_columns(schema)
    if isinstance(schema, pa.Schema):
        return fields_from_arrow(schema)
    if isinstance(schema, Sequence) and all(isinstance(column, DataField) for column in schema):
        return tuple(schema)
    raise InvalidRequest(
        f"A {type(schema).__name__} is not a schema.",
        subject="schema",
        hint="give a pyarrow.Schema, or text such as 'id BIGINT NOT NULL, name STRING'",
    )
