"""Defaults that reads return for nulls: ``fields.<column>.default-value``.

Invariant: a default changes what is read, never what is stored. Keys have none. The text is a literal of the column's
type.
Source: `SchemaValidation.validateDefaultValues`, `DefaultValueAssigner` (0.9; newer versions have only defaults that
are written).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.literals import parse_literal
from paimon.domain.schema.rules.layout import NO_KEY_TYPES, option_error
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.type_text import format_type

_PREFIX, _ENDING = "fields.", ".default-value"


def check_read_defaults(schema: TableSchema, options: TableOptions) -> None:
    """Refuse defaults of keys, and default texts that are not a value of their column."""
    for column, text in _texts(options).items():
        key = f"{_PREFIX}{column}{_ENDING}"
        for kind, keys in (("primary-key", schema.primary_keys), ("partition", schema.partition_keys)):
            if column in keys:
                raise option_error(
                    key, f"is set, but {column!r} is a {kind} column", "leave the option out: keys have no defaults"
                )
        if column in schema.fields_by_name:
            _value(schema, column, text)


def read_defaults(schema: TableSchema, options: TableOptions) -> Mapping[str, Any]:
    """Return the internal default value by column; columns that the schema does not have (time travel) are left out."""
    return {c: _value(schema, c, text) for c, text in _texts(options).items() if c in schema.fields_by_name}


def _texts(options: TableOptions) -> Mapping[str, str]:
    return {
        key.removeprefix(_PREFIX).removesuffix(_ENDING): text
        for key, text in options.values.items()
        if key.startswith(_PREFIX) and key.endswith(_ENDING)
    }


def _value(schema: TableSchema, column: str, text: str) -> Any:
    key, kind = f"{_PREFIX}{column}{_ENDING}", schema.field_of(column).type
    if isinstance(kind, NO_KEY_TYPES):
        raise option_error(
            key,
            f"is set, but {column!r} is of type {format_type(kind)}",
            "leave the option out: only atomic types have defaults",
        )
    try:
        return parse_literal(text, kind)
    except InvalidRequest as error:
        raise option_error(
            key, f"is {text!r}, which is not a valid {format_type(kind)}", "use a value of the column's type"
        ) from error
