"""Checks of a whole schema, for CREATE TABLE and ALTER TABLE.

Invariant: what Java 1.4 refuses at create is refused here, with a message that names the column or option at fault.
What Java refuses only at the first write is refused too. Columns and keys are checked here, buckets and row tracking in
`rules.layout`, merging in `rules.merge`, files and scans in `rules.files`, defaults of reads in `rules.defaults`.
Source: `SchemaValidation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.layout_options import FILE_FORMATS
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.defaults import check_read_defaults
from paimon.domain.schema.rules.files import check_files
from paimon.domain.schema.rules.layout import NO_KEY_TYPES, check_layout
from paimon.domain.schema.rules.merge import check_merge
from paimon.domain.schema.rules.scans import check_scan_options
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.text_checks import check_text
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.types.field_ids import all_fields, all_types
from paimon.domain.types.system_columns import is_system_name
from paimon.domain.types.type_text import format_type
from paimon.domain.whitespace import is_blank


def check_schema(schema: TableSchema, formats: Collection[str] = FILE_FORMATS) -> None:
    """Refuse a schema that no table can have (InvalidRequest), or that needs a missing feature (Unsupported)."""
    _check_texts(schema)
    _check_columns(schema.fields)
    for kind, keys in (("primary key", schema.primary_keys), ("partition key", schema.partition_keys)):
        _check_key(schema, kind, keys)
    if schema.primary_keys and set(schema.primary_keys) == set(schema.partition_keys):
        raise InvalidRequest(
            f"Primary key {', '.join(schema.primary_keys)} is also the partition key, so a partition has one row only",
            subject="primary-key",
            hint="add a column to the primary key",
        )
    options = TableOptions.of(schema.options)
    check_table_type(options)
    check_layout(schema, options)
    check_merge(schema, options)
    check_files(schema, options, formats)
    check_scan_options(schema, options)
    check_read_defaults(schema, options)


def _check_texts(schema: TableSchema) -> None:
    """Check that texts can be encoded as UTF-8."""
    if schema.comment is not None:
        check_text(schema.comment, "comment")
    for column in all_fields(schema.fields):
        check_text(column.name, "column name")
        for what, text in (("description", column.description), ("default value", column.default_value)):
            if text is not None:
                check_text(text, f"the {what} of column {column.name!r}:")


def _check_columns(fields: Sequence[DataField]) -> None:
    if not fields:
        raise InvalidRequest("A table needs at least one column", subject="fields")
    for column in fields:
        if is_system_name(column.name):
            raise InvalidRequest(
                f"Column name {column.name!r} is reserved for the format",
                subject=column.name,
                hint="use another name",
            )
    _check_names([f.name for f in fields], "The table")
    for column in fields:
        for part in all_types(column.type):
            if isinstance(part, dt.RowType):
                _check_names([f.name for f in part.fields], f"Column {column.name!r}")


def _check_names(names: Sequence[str], where: str) -> None:
    for name in names:
        if is_blank(name):
            raise InvalidRequest(f"{where} has a field without a name", subject=name)
        if not name.isprintable() and any(0xD800 <= ord(c) <= 0xDFFF for c in name):
            raise InvalidRequest(f"{where} has a field whose name is not valid Unicode: {name!r}", subject=name)
    twice = find_duplicates(names)
    if twice:
        raise InvalidRequest(
            f"{where} has two fields with the name {twice[0]!r}", subject=twice[0], hint="rename one of them"
        )


def find_duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def _check_key(schema: TableSchema, kind: str, keys: Sequence[str]) -> None:
    for name in keys:
        if name not in schema.fields_by_name:
            raise InvalidRequest(
                f"Column {name!r} of the {kind} does not exist", subject=name, hint=did_you_mean(name, schema.names)
            )
        held = schema.field_of(name).type
        if isinstance(held, NO_KEY_TYPES):
            raise InvalidRequest(
                f"Column {name!r} of the {kind} has the type {format_type(held)}, which no key can have",
                subject=name,
                hint="use a column of an atomic type",
            )
    twice = find_duplicates(keys)
    if twice:
        raise InvalidRequest(f"Column {twice[0]!r} is twice in the {kind}", subject=twice[0], hint="name it once")
