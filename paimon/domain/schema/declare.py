"""The first schema of a new table, built from its declaration.

Invariant: fields are numbered depth-first from 0. Primary-key columns are NOT NULL, or nullable where
`primary-key.nullable` is true. The options `primary-key` and `partition` move into the key lists. Option texts are
stored in the form that Java reads.
Source: `Schema.normalizeFields`, `TableSchema.create`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import evolve

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.known_options import OPTIONS, canonical_function, canonical_key
from paimon.domain.options.layout_options import FILE_FORMATS
from paimon.domain.options.option import Kind
from paimon.domain.options.parse import parse_list
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.literals import parse_literal
from paimon.domain.schema.rules.layout import read_flag
from paimon.domain.schema.rules.table_type import check_new_table_type
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.schema.validate import check_schema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.types.field_ids import assign_ids
from paimon.domain.types.type_text import format_type

ALLOW_FLOATING = "primary-key.allow-floating"
"""An option of this library only: Java stores it, but does not read it."""
_TRIMMED = (Kind.BOOL, Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.CHOICE)
_AGGREGATE_OPTIONS = (".aggregate-function", ".default-aggregate-function")


def declare_schema(
    fields: Iterable[DataField],
    primary_keys: Sequence[str],
    partition_keys: Sequence[str],
    options: Mapping[str, str],
    comment: str | None,
    time_millis: int,
    formats: Collection[str] = FILE_FORMATS,
) -> TableSchema:
    """Build and check the schema of a new table with new field ids; `formats` are the possible formats."""
    texts = {key: to_stored_option(key, value) for key, value in options.items()}
    primary = _take_key_option(texts, "primary-key", primary_keys)
    partition = _take_key_option(texts, "partition", partition_keys)
    nullable_keys = read_flag(TableOptions.of(texts), "primary-key.nullable")
    numbered, highest = assign_ids(
        evolve(f, type=f.type.with_nullable(nullable_keys)) if f.name in primary else f
        for f in _to_blobs(tuple(fields), TableOptions.of(texts).blob_fields)
    )
    schema = TableSchema(0, numbered, highest, partition, primary, texts, comment, time_millis)
    check_schema(schema, formats)
    for column in schema.fields:
        check_default(column)
    check_new_table_type(TableOptions.of(schema.options))
    _check_floating_keys(schema)
    return schema


def to_stored_option(key: str, value: str) -> str:
    """Return the text under which an option is stored, in a spelling that Java accepts."""
    option = OPTIONS.get(canonical_key(key))
    if key == "bucket-key":
        return ",".join(parse_list(value))
    if option is not None and option.kind in _TRIMMED:
        return value.strip()
    if key.startswith("fields.") and key.endswith(_AGGREGATE_OPTIONS):
        return canonical_function(value.strip())
    return value


def _to_blobs(fields: tuple[DataField, ...], names: Sequence[str]) -> tuple[DataField, ...]:
    """Return the columns, of which those that `blob-field` names become BLOB."""
    known = {f.name: f for f in fields}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InvalidRequest(
                f"Option 'blob-field' names {name!r}, which does not exist", subject="blob-field", hint=hint
            )
        if not isinstance(known[name].type, (dt.VarBinaryType, dt.BlobType)):
            raise InvalidRequest(
                f"Option 'blob-field' names {name!r} of type {format_type(known[name].type)}",
                subject="blob-field",
                hint="declare the column as BYTES or BLOB",
            )
    return tuple(evolve(f, type=dt.BlobType(nullable=f.type.nullable)) if f.name in names else f for f in fields)


def _take_key_option(options: dict[str, str], key: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return the key list, from the option where it is set."""
    named = parse_list(options.pop(key, ""))
    if named and given:
        raise InvalidRequest(
            f"Option {key!r} is given, and the same keys as an argument", subject=key, hint="leave out the option"
        )
    return named or tuple(given)


def check_default(column: DataField) -> None:
    """Refuse a default value that is not a value of the column; defaults of nested types are not checked."""
    if column.default_value is None or isinstance(column.type, (*dt.NESTED_TYPES, dt.VariantType)):
        return
    try:
        parse_literal(column.default_value, column.type)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"Default {column.default_value!r} of column {column.name!r} is not a valid {format_type(column.type)}",
            subject=column.name,
            hint="write a literal of the column's type",
        ) from error


def _check_floating_keys(schema: TableSchema) -> None:
    """Refuse FLOAT and DOUBLE in the primary key of a new table, unless `primary-key.allow-floating` is true.

    Clients order NaN and the two zeros differently, so they merge such keys differently. Existing tables are not
    affected: opening, writing and altering them do not check this.
    """
    if read_flag(TableOptions.of(schema.options), ALLOW_FLOATING):
        return
    for name in schema.primary_keys:
        kind = schema.field_of(name).type
        if isinstance(kind, dt.FloatType | dt.DoubleType):
            raise InvalidRequest(
                f"Primary-key column {name!r} is of type {format_type(kind.with_nullable(True))}. "
                "Clients merge keys of NaN and -0.0 differently",
                subject=name,
                hint=f"use DECIMAL, BIGINT or STRING, or set {ALLOW_FLOATING!r} to true",
            )
