"""A table's schema at one version.

Invariant: a schema file never changes; each change of a table makes the next version.
Source: `TableSchema`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from paimon.domain.types.data_types import DataField


def _frozen_map(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(value)


def _fields(values: Iterable[DataField]) -> tuple[DataField, ...]:
    return tuple(values)


def _names(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen
class TableSchema:
    """One version of a table's columns, keys and options."""

    # the schema version, from 0; part of the file name
    id: int
    fields: tuple[DataField, ...] = field(converter=_fields)
    # the highest field id ever assigned, dropped fields included; -1 for none
    highest_field_id: int
    partition_keys: tuple[str, ...] = field(converter=_names, default=())
    primary_keys: tuple[str, ...] = field(converter=_names, default=())
    # stored option texts by key, without dynamic options
    options: Mapping[str, str] = field(converter=_frozen_map, factory=dict)
    comment: str | None = None
    # the time of the change, in epoch milliseconds
    time_millis: int = 0
    # the version of the schema file format
    version: int = 3
    # JSON members that this library does not know; they are written back
    unknown: Mapping[str, Any] = field(converter=_frozen_map, factory=dict)

    @cached_property
    def text(self) -> str:
        """All members as text, made once: what differs between two schemas differs in their texts."""
        return repr(self)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(f.name for f in self.fields)

    @cached_property
    def fields_by_name(self) -> Mapping[str, DataField]:
        """Columns by name, in order."""
        return {f.name: f for f in self.fields}

    def field_of(self, name: str) -> DataField:
        """Return the column of this name; raise `KeyError` if there is none."""
        return self.fields_by_name[name]

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """Primary keys without the partition keys, in primary-key order: the key inside a bucket."""
        return tuple(k for k in self.primary_keys if k not in self.partition_keys)

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        """Columns that determine a fixed bucket: `bucket-key`, else the trimmed primary key."""
        given = self.options.get("bucket-key", "")
        names = tuple(n.strip() for n in given.split(",") if n.strip())
        return names or self.trimmed_primary_keys

    @property
    def partition_fields(self) -> tuple[DataField, ...]:
        """The partition columns, in partition-key order."""
        return tuple(self.field_of(n) for n in self.partition_keys)

    @property
    def key_fields(self) -> tuple[DataField, ...]:
        """The columns of the trimmed primary key."""
        return tuple(self.field_of(n) for n in self.trimmed_primary_keys)
