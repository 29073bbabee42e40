"""The defaults that nulls are shown as: ``fields.<column>.default-value``.

Law: a default changes what is read, never what is stored; keys have none. The text is the value itself, as a literal of
the column's type. Source: `SchemaValidation.validateDefaultValues`, `DefaultValueAssigner` (0.9; newer versions have
only defaults that are written).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.literals import literal
from paimon.domain.schema.rules.layout import NO_KEY_TYPES, refuse
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.text import format_type

_PREFIX, _ENDING = "fields.", ".default-value"


def check_read_defaults(schema: TableSchema, options: TableOptions) -> None:
    """Refuse defaults of keys, and texts that are no value of their column."""
    for column, text in _texts(options).items():
        key = f"{_PREFIX}{column}{_ENDING}"
        for kind, keys in (("primary-key", schema.primary_keys), ("partition", schema.partition_keys)):
            if column in keys:
                raise refuse(key, f"is set, but {column!r} is a {kind} column", "leave it out: keys are never shown so")
        if column in schema.fields_by_name:
            _value(schema, column, text)


def read_defaults(schema: TableSchema, options: TableOptions) -> Mapping[str, Any]:
    """The internal value by column; columns that the schema does not have (time travel) are left out."""
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
        raise refuse(key, f"is set, but {column!r} is of type {format_type(kind)}", "only atomic types have defaults")
    try:
        return literal(text, kind)
    except InvalidRequest as error:
        raise refuse(key, f"is {text!r}, which is no {format_type(kind)}", "give a value of its type") from error
