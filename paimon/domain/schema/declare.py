"""What becomes of a declaration: the first schema of a new table.

Law: fields are numbered depth-first from 0; primary-key columns are NOT NULL (nullable where `primary-key.nullable`
says so); the options `primary-key` and `partition` move into the key lists; option texts are stored in the one form
that Java reads. Source: `Schema.normalizeFields`, `TableSchema.create`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.options.option import Kind
from paimon.domain.options.parse import parse_list
from paimon.domain.options.registry import OPTIONS, canonical_key
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.literals import literal
from paimon.domain.schema.rules.layout import POSTPONED, UNAWARE, flag
from paimon.domain.schema.rules.table_type import check_new_table_type
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.schema.validate import check_schema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ids import assign_ids
from paimon.domain.types.text import format_type

ALLOW_FLOATING = "primary-key.allow-floating"
"""Our own option: Java keeps it, and does not read it."""
_TRIMMED = (Kind.BOOL, Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.CHOICE)
_AGGREGATE_OPTIONS = (".aggregate-function", ".default-aggregate-function")
_OLDER_FUNCTIONS = {"nested-update": "nested_update", "first_not_null_value": "first_non_null_value"}


def declare(
    fields: Iterable[DataField],
    primary_keys: Sequence[str],
    partition_keys: Sequence[str],
    options: Mapping[str, str],
    comment: str | None,
    time_millis: int,
) -> TableSchema:
    """The schema of a new table, checked (see `check_schema` for what is refused)."""
    texts = {key: stored_option(key, value) for key, value in options.items()}
    primary = _moved(texts, "primary-key", primary_keys)
    partition = _moved(texts, "partition", partition_keys)
    nullable_keys = flag(TableOptions.of(texts), "primary-key.nullable")
    numbered, highest = assign_ids(
        evolve(f, type=f.type.with_nullable(nullable_keys)) if f.name in primary else f for f in fields
    )
    schema = TableSchema(0, numbered, highest, partition, primary, texts, comment, time_millis)
    check_schema(schema)
    for column in schema.fields:
        check_default(column)
    _check_writable(schema)
    _check_floating_keys(schema)
    return schema


def stored_option(key: str, value: str) -> str:
    """The text under which an option's value is stored: Java takes no blanks, and newer names, in some places."""
    option = OPTIONS.get(canonical_key(key))
    if key == "bucket-key":
        return ",".join(parse_list(value))
    if option is not None and option.kind in _TRIMMED:
        return value.strip()
    if key.startswith("fields.") and key.endswith(_AGGREGATE_OPTIONS):
        return _OLDER_FUNCTIONS.get(value.strip(), value.strip())
    return value


def _moved(options: dict[str, str], key: str, given: Sequence[str]) -> tuple[str, ...]:
    """The key list, out of the option where that gives it."""
    told = parse_list(options.pop(key, ""))
    if told and given:
        raise InvalidRequest(
            f"the {key} is given as an argument and as option {key!r}", subject=key, hint="leave out the option"
        )
    return told or tuple(given)


def check_default(column: DataField) -> None:
    """Refuse a default value that is no value of the column (those of nested types are not looked at)."""
    if column.default_value is None or isinstance(column.type, (*dt.NESTED_TYPES, dt.VariantType)):
        return
    try:
        literal(column.default_value, column.type)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"the default value {column.default_value!r} of column {column.name!r} is no {format_type(column.type)}",
            subject=column.name, hint="give a literal of the column's type",
        ) from error


def _check_writable(schema: TableSchema) -> None:
    """Tables whose buckets this library cannot fill yet, or whose type it cannot define, are not made."""
    check_new_table_type(TableOptions.of(schema.options))
    bucket = TableOptions.of(schema.options).bucket
    hint = "set option 'bucket' to a number of buckets, such as '4'"
    if schema.primary_keys and bucket == UNAWARE:
        raise Unsupported("a primary-key table with dynamic buckets (no 'bucket' option, or -1)", hint=hint)
    if schema.primary_keys and bucket == POSTPONED:
        raise Unsupported("a primary-key table with postponed buckets ('bucket' = -2)", hint=hint)


def _check_floating_keys(schema: TableSchema) -> None:
    """Refuse FLOAT and DOUBLE in the primary key of a new table, unless its option `primary-key.allow-floating` is set.

    Clients order NaN and the two zeros differently, so they merge such keys differently. Tables that exist are left
    alone: neither opening, writing nor altering them asks here.
    """
    if flag(TableOptions.of(schema.options), ALLOW_FLOATING):
        return
    for name in schema.primary_keys:
        held = schema.field_of(name).type
        if isinstance(held, dt.FloatType | dt.DoubleType):
            raise InvalidRequest(
                f"Primary-key column {name!r} is of type {format_type(held.with_nullable(True))}. "
                "Clients merge keys of NaN and -0.0 differently",
                subject=name,
                hint=f"use DECIMAL, BIGINT or STRING, or set {ALLOW_FLOATING!r} to true",
            )
