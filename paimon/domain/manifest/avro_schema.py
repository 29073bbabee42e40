"""Avro schemas for writing manifests, manifest lists and index manifests.

Invariant: Field names and their order are those of the format. Each nested record is named after its parent. Nullable
means a union with null and null as the default. Readers resolve fields by name, so files of older writers can lack
columns.
Source: `ManifestFileMeta`, `ManifestEntry`, `DataFileMeta`, `IndexManifestEntry`, `AvroSchemaConverter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

AvroType = str | list[object] | dict[str, object]
"""An Avro type in JSON form."""

AvroSchema = Mapping[str, object]
"""An Avro record schema."""

_NAMESPACE = "org.apache.paimon.avro.generated"
_TIMESTAMP_MILLIS: Final[dict[str, object]] = {"type": "long", "logicalType": "timestamp-millis"}


def _schema_field(name: str, kind: AvroType) -> dict[str, object]:
    return {"name": name, "type": kind}


def _optional(name: str, kind: AvroType) -> dict[str, object]:
    return {"name": name, "type": ["null", kind], "default": None}


def _array(items: AvroType) -> dict[str, object]:
    return {"type": "array", "items": items}


def _record(name: str, fields: list[dict[str, object]]) -> dict[str, object]:
    return {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": fields}


def _stats(name: str) -> dict[str, object]:
    counts = _array(["null", "long"])
    return _record(
        name,
        [
            _schema_field("_MIN_VALUES", "bytes"),
            _schema_field("_MAX_VALUES", "bytes"),
            _optional("_NULL_COUNTS", counts),
        ],
    )


_FILE = _record(
    "record__FILE",
    [
        _schema_field("_FILE_NAME", "string"),
        _schema_field("_FILE_SIZE", "long"),
        _schema_field("_ROW_COUNT", "long"),
        _schema_field("_MIN_KEY", "bytes"),
        _schema_field("_MAX_KEY", "bytes"),
        _schema_field("_KEY_STATS", _stats("record__FILE__KEY_STATS")),
        _schema_field("_VALUE_STATS", _stats("record__FILE__VALUE_STATS")),
        _schema_field("_MIN_SEQUENCE_NUMBER", "long"),
        _schema_field("_MAX_SEQUENCE_NUMBER", "long"),
        _schema_field("_SCHEMA_ID", "long"),
        _schema_field("_LEVEL", "int"),
        _schema_field("_EXTRA_FILES", _array("string")),
        _optional("_CREATION_TIME", _TIMESTAMP_MILLIS),
        _optional("_DELETE_ROW_COUNT", "long"),
        _optional("_EMBEDDED_FILE_INDEX", "bytes"),
        _optional("_FILE_SOURCE", "int"),
        _optional("_VALUE_STATS_COLS", _array("string")),
        _optional("_EXTERNAL_PATH", "string"),
        _optional("_FIRST_ROW_ID", "long"),
        _optional("_WRITE_COLS", _array("string")),
    ],
)

MANIFEST_ENTRY: Final[AvroSchema] = _record(
    "record",
    [
        _schema_field("_VERSION", "int"),
        _schema_field("_KIND", "int"),
        _schema_field("_PARTITION", "bytes"),
        _schema_field("_BUCKET", "int"),
        _schema_field("_TOTAL_BUCKETS", "int"),
        _schema_field("_FILE", _FILE),
    ],
)
"""A record of a manifest: a data file that is added or deleted."""

MANIFEST_LIST: Final[AvroSchema] = _record(
    "record",
    [
        _schema_field("_VERSION", "int"),
        _schema_field("_FILE_NAME", "string"),
        _schema_field("_FILE_SIZE", "long"),
        _schema_field("_NUM_ADDED_FILES", "long"),
        _schema_field("_NUM_DELETED_FILES", "long"),
        _schema_field("_PARTITION_STATS", _stats("record__PARTITION_STATS")),
        _schema_field("_SCHEMA_ID", "long"),
        _optional("_MIN_BUCKET", "int"),
        _optional("_MAX_BUCKET", "int"),
        _optional("_MIN_LEVEL", "int"),
        _optional("_MAX_LEVEL", "int"),
        _optional("_MIN_ROW_ID", "long"),
        _optional("_MAX_ROW_ID", "long"),
    ],
)
"""A record of a manifest list: a manifest."""

_DELETION_VECTOR = _record(
    "record__DELETIONS_VECTORS_RANGES",
    [
        _schema_field("f0", "string"),
        _schema_field("f1", "int"),
        _schema_field("f2", "int"),
        _optional("_CARDINALITY", "long"),
    ],
)

_GLOBAL_INDEX = _record(
    "record__GLOBAL_INDEX",
    [
        _schema_field("_ROW_RANGE_START", "long"),
        _schema_field("_ROW_RANGE_END", "long"),
        _schema_field("_INDEX_FIELD_ID", "int"),
        _optional("_EXTRA_FIELD_IDS", _array("int")),
        _optional("_INDEX_META", "bytes"),
        _optional("_SOURCE_META", "bytes"),
    ],
)

INDEX_MANIFEST_ENTRY: Final[AvroSchema] = _record(
    "record",
    [
        _schema_field("_VERSION", "int"),
        _schema_field("_KIND", "int"),
        _schema_field("_PARTITION", "bytes"),
        _schema_field("_BUCKET", "int"),
        _schema_field("_INDEX_TYPE", "string"),
        _schema_field("_FILE_NAME", "string"),
        _schema_field("_FILE_SIZE", "long"),
        _schema_field("_ROW_COUNT", "long"),
        _optional("_DELETIONS_VECTORS_RANGES", _array(["null", _DELETION_VECTOR])),
        _optional("_EXTERNAL_PATH", "string"),
        _optional("_GLOBAL_INDEX", _GLOBAL_INDEX),
    ],
)
"""A record of an index manifest: a live index file."""
