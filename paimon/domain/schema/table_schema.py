"""A table's schema at one version, and schema files.

Invariant: a schema file never changes; each change of a table makes the next version.
`schema_from_json(schema_to_json(s))` is `s`, members of newer versions included. A file of Java 1.4 is written back
byte for byte. Files of versions 1 and 2 get the options that were implied then (``bucket`` 1, ``file.format`` orc). A
version above 3 is refused.
Source: `TableSchema`, `SchemaSerializer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from paimon.domain.errors import CorruptTable, NotFound
from paimon.domain.json_text import INT_MAX, SCHEMA_FILE, Members, dump_json, load_object
from paimon.domain.types.data_types import DataField
from paimon.domain.types.field_ids import all_fields
from paimon.domain.types.system_columns import KEY_ID_START
from paimon.domain.types.type_text import field_to_json, read_field_json


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


NEWEST_VERSION = 3
_RESERVED = "reserved for "
_MEMBERS = frozenset(
    ("version", "id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options", "comment", "timeMillis")
)


def schema_to_json(schema: TableSchema) -> bytes:
    """Encode a schema as the bytes of its file."""
    members: dict[str, Any] = {
        "version": schema.version,
        "id": schema.id,
        "fields": [field_to_json(f) for f in schema.fields],
        "highestFieldId": schema.highest_field_id,
        "partitionKeys": schema.partition_keys,
        "primaryKeys": schema.primary_keys,
        "options": schema.options,
    }
    if schema.comment is not None:
        members["comment"] = schema.comment
    members["timeMillis"] = schema.time_millis
    return dump_json({**members, **schema.unknown})


def schema_from_json(data: bytes, path: str) -> TableSchema:
    """Parse a schema file; members that this library does not know are kept in `unknown`.

    A damaged file, including keys that name no column and duplicate ids, raises `CorruptTable`. A version or data type
    of a newer release raises `Unsupported`, a reservation `NotFound`.
    """
    check_not_reserved(data, path)
    members = load_object(data, path, SCHEMA_FILE)
    version = members.version("schema", NEWEST_VERSION)
    if not isinstance(members.get("fields"), list):
        raise members.corrupt("fields", "is not a list of fields")
    fields = enumerate(members.array("fields"))
    schema = TableSchema(
        id=members.integer("id", 0),
        fields=tuple(read_field_json(members, f, f"fields[{i}]") for i, f in fields),
        highest_field_id=members.integer("highestFieldId", -1, INT_MAX),
        partition_keys=members.texts("partitionKeys"),
        primary_keys=members.texts("primaryKeys"),
        options=_with_implied_options(members, version),
        comment=members.optional_text("comment"),
        time_millis=members.optional_integer("timeMillis") or 0,
        version=version,
        unknown=members.without(_MEMBERS),
    )
    _check_structure(schema, path)
    return schema


def encode_reservation(source: str, token: str) -> bytes:
    """Encode a reservation, which no client reads as a schema, for a copy of `source`; the token names the call."""
    return f"{_RESERVED}{source!r}, which is renamed to this name; token {token}\n".encode()


def is_reserved(data: bytes | None) -> bool:
    """Return whether the content of a first schema file is a reservation."""
    return data is not None and data.startswith(_RESERVED.encode())


def check_not_reserved(data: bytes, path: str) -> None:
    """Raise `NotFound` with what to do, if a schema file only reserves the name of its table."""
    if is_reserved(data):
        source = data.decode(errors="replace").removeprefix(_RESERVED).partition(", which")[0]
        raise NotFound(
            "table",
            path.rpartition("/schema/")[0],
            hint=f"a rename of the table {source} reserved this name: wait until it ends. If it was interrupted, "
            "drop the table of the reserved name, or delete its directory, then rename again",
        )


def _with_implied_options(members: Members, version: int) -> dict[str, str]:
    options = members.text_map("options")
    if version <= 1:
        options.setdefault("bucket", "1")
    if version <= 2:
        options.setdefault("file.format", "orc")
    return options


def _check_structure(schema: TableSchema, path: str) -> None:
    """Check what every reader relies on, and a damaged file may break."""
    names = schema.names
    if len(set(names)) < len(names):
        raise CorruptTable(path, f"has two fields with the same name among {', '.join(names)}")
    for kind, keys in (("partitionKeys", schema.partition_keys), ("primaryKeys", schema.primary_keys)):
        for key in keys:
            if key not in schema.fields_by_name:
                raise CorruptTable(path, f"member {kind!r} names {key!r}, which is not a field")
        if len(set(keys)) < len(keys):
            raise CorruptTable(path, f"member {kind!r} names a field twice")
    ids = [f.id for f in all_fields(schema.fields)]
    if len(set(ids)) < len(ids):
        raise CorruptTable(path, "has two fields with the same id")
    highest = max((i for i in ids if i < KEY_ID_START), default=-1)
    if highest > schema.highest_field_id:
        raise CorruptTable(path, f"has the field id {highest} above its highestFieldId {schema.highest_field_id}")
