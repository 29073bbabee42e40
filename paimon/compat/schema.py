"""Schemas of tables as pypaimon declares and returns them.

Source: `pypaimon.schema.schema`, `pypaimon.schema.table_schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pyarrow as pa
from attrs import define, field

from paimon.compat.arrow_types import PyarrowFieldParser
from paimon.compat.data_types import DataField, from_paimon_field
from paimon.compat.file_io import FileIO
from paimon.domain.schema.schema_json import schema_from_json
from paimon.domain.schema.table_schema import TableSchema as PaimonSchema


class Schema:
    """The columns, keys and options of a table to create."""

    def __init__(
        self,
        fields: list[DataField] | None = None,
        partition_keys: list[str] | None = None,
        primary_keys: list[str] | None = None,
        options: dict[str, Any] | None = None,
        comment: str | None = None,
    ) -> None:
        self.fields = fields if fields is not None else []
        self.partition_keys = partition_keys if partition_keys is not None else []
        self.primary_keys = primary_keys if primary_keys is not None else []
        self.options = options if options is not None else {}
        self.comment = comment
        nullable = str(self.options.get("primary-key.nullable", "false")).lower() == "true"
        if nullable and not self.primary_keys:
            raise ValueError("Option 'primary-key.nullable' can only be enabled for a table with primary keys.")
        for column in self.fields:
            if column.name in self.primary_keys:
                column.type.nullable = nullable
        producer = self.options.get("changelog-producer", "none")
        if producer != "none" and not self.primary_keys:
            raise ValueError(
                f"Cannot set 'changelog-producer' to '{producer}' on a table without primary keys. "
                "Changelog producer requires primary keys to be defined."
            )

    @staticmethod
    def from_pyarrow_schema(
        pa_schema: pa.Schema,
        partition_keys: list[str] | None = None,
        primary_keys: list[str] | None = None,
        options: dict[str, Any] | None = None,
        comment: str | None = None,
    ) -> Schema:
        """Return the schema of a table with the columns of an Arrow schema."""
        fields = PyarrowFieldParser.to_paimon_schema(pa_schema)
        return Schema(fields, partition_keys, primary_keys, options, comment)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Schema({self.fields!r}, primary_keys={self.primary_keys!r}, partition_keys={self.partition_keys!r})"


@define
class TableSchema:
    """One version of the schema of a table."""

    PAIMON_07_VERSION = 1
    PAIMON_08_VERSION = 2
    CURRENT_VERSION = 3

    version: int = 3
    id: int = 0
    fields: list[DataField] = field(factory=list)
    highest_field_id: int = 0
    partition_keys: list[str] = field(factory=list)
    primary_keys: list[str] = field(factory=list)
    options: dict[str, str] = field(factory=dict)
    comment: str | None = None
    time_millis: int = 0

    @staticmethod
    def from_schema(schema_id: int, schema: Schema) -> TableSchema:
        """Return a declared schema with a number."""
        numbers = [column.id for column in schema.fields]
        return TableSchema(
            id=schema_id,
            fields=schema.fields,
            highest_field_id=max(numbers, default=-1),
            partition_keys=schema.partition_keys,
            primary_keys=schema.primary_keys,
            options=schema.options,
            comment=schema.comment,
        )

    @staticmethod
    def from_json(json_str: str) -> TableSchema:
        """Parse the content of the file of a schema."""
        return from_paimon_schema(schema_from_json(json_str.encode("utf8"), "schema"))

    @staticmethod
    def from_path(file_io: FileIO, schema_path: str) -> TableSchema:
        """Read the file of a schema."""
        try:
            return TableSchema.from_json(file_io.read_file_utf8(schema_path))
        except FileNotFoundError as error:
            raise RuntimeError(f"Schema file not found: {schema_path}") from error

    @property
    def bucket_keys(self) -> list[str]:
        """The columns of the option `bucket-key`, else the primary key without partition columns."""
        given = [name.strip() for name in self.options.get("bucket-key", "").split(",") if name.strip()]
        known = [column.name for column in self.fields]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"Bucket key {unknown[0]!r} is not a column. Known are: {', '.join(known)}")
        return given or [key for key in self.primary_keys if key not in self.partition_keys]

    @property
    def logical_bucket_key_fields(self) -> list[DataField]:
        """The columns that determine a fixed bucket, in the order of the keys."""
        fields = {column.name: column for column in self.fields}
        return [fields[key] for key in self.bucket_keys]

    def cross_partition_update(self) -> bool:
        """Return whether the primary key lacks a partition column."""
        return bool(self.primary_keys) and not set(self.partition_keys) <= set(self.primary_keys)

    def to_schema(self) -> Schema:
        """Return the schema to create such a table."""
        return Schema(
            deepcopy(self.fields),
            list(self.partition_keys),
            list(self.primary_keys),
            dict(self.options),
            self.comment,
        )

    def copy(self, new_options: Mapping[str, str] | None = None) -> TableSchema:
        """Return the same schema with other options."""
        made = deepcopy(self)
        made.options = dict(self.options if new_options is None else new_options)
        return made


def from_paimon_schema(schema: PaimonSchema, options: Mapping[str, str] | None = None) -> TableSchema:
    """Return the schema of pypaimon for one of this library, with the effective options of a handle if given."""
    return TableSchema(
        version=schema.version,
        id=schema.id,
        fields=from_paimon_fields(schema.fields),
        highest_field_id=schema.highest_field_id,
        partition_keys=list(schema.partition_keys),
        primary_keys=list(schema.primary_keys),
        options=dict(schema.options if options is None else options),
        comment=schema.comment,
        time_millis=schema.time_millis,
    )


def from_paimon_fields(fields: Sequence[Any]) -> list[DataField]:
    """Return the fields of pypaimon for those of this library."""
    return [from_paimon_field(column) for column in fields]
