"""Column lists as DDL text: ``id INT NOT NULL, name STRING COMMENT 'full name'``.

Law: `parse_columns(format_columns(f))` is `f`, up to ids, which are given depth-first from 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon.domain.errors import InvalidRequest
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ids import assign_ids
from paimon.domain.types.sql_tokens import TokenReader
from paimon.domain.types.text import format_field, read_field


def parse_columns(text: str) -> tuple[DataField, ...]:
    """The columns of a list like ``a INT, b DECIMAL(10, 2) NOT NULL DEFAULT '0' COMMENT 'price'``.

    A pair of parentheses around the list is allowed; InvalidRequest shows where the text stops being a list of columns.
    """
    reader = TokenReader(text)
    wrapped = reader.accept("(")
    if reader.current.kind == "end" or (wrapped and reader.accept(")")):
        raise InvalidRequest("the column list is empty", subject=text, hint="write 'id BIGINT NOT NULL, name STRING'")
    columns = [_read_column(reader)]
    while reader.accept(","):
        columns.append(_read_column(reader))
    if wrapped:
        reader.expect(")")
    if reader.current.kind != "end":
        raise reader.error("expected a comma or the end")
    return assign_ids(columns)[0]


def _read_column(reader: TokenReader) -> DataField:
    ahead = [t.text.upper() for t in reader.tokens[reader.position : reader.position + 2] if t.kind == "word"]
    if ahead in (["PRIMARY", "KEY"], ["PARTITIONED", "BY"]):
        raise reader.error(
            f"{' '.join(ahead)} is no column", hint="pass primary_keys=[…] and partition_keys=[…] beside the columns"
        )
    return read_field(reader)


def format_columns(fields: Iterable[DataField]) -> str:
    """The columns as DDL text, one a line."""
    return ",\n".join(format_field(f) for f in fields)
