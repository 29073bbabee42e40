"""The Avro schemas that manifests are written with.

Law: field order and names are the format's, every nested record is named after its parent, nullable means a union
with null that defaults to null; readers resolve by name, so columns may be missing in files of older writers. Source:
`ManifestFileMeta`, `ManifestEntry`, `DataFileMeta`, `IndexManifestEntry`, `AvroSchemaConverter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

AvroType = str | list[object] | dict[str, object]
"""An Avro type as JSON has it."""

AvroSchema = Mapping[str, object]
"""An Avro record schema."""

_NAMESPACE = "org.apache.paimon.avro.generated"
_TIMESTAMP_MILLIS: Final[dict[str, object]] = {"type": "long", "logicalType": "timestamp-millis"}


def _field(name: str, kind: AvroType) -> dict[str, object]:
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
        name, [_field("_MIN_VALUES", "bytes"), _field("_MAX_VALUES", "bytes"), _optional("_NULL_COUNTS", counts)]
    )


_FILE = _record(
    "record__FILE",
    [
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_ROW_COUNT", "long"),
        _field("_MIN_KEY", "bytes"),
        _field("_MAX_KEY", "bytes"),
        _field("_KEY_STATS", _stats("record__FILE__KEY_STATS")),
        _field("_VALUE_STATS", _stats("record__FILE__VALUE_STATS")),
        _field("_MIN_SEQUENCE_NUMBER", "long"),
        _field("_MAX_SEQUENCE_NUMBER", "long"),
        _field("_SCHEMA_ID", "long"),
        _field("_LEVEL", "int"),
        _field("_EXTRA_FILES", _array("string")),
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
        _field("_VERSION", "int"),
        _field("_KIND", "int"),
        _field("_PARTITION", "bytes"),
        _field("_BUCKET", "int"),
        _field("_TOTAL_BUCKETS", "int"),
        _field("_FILE", _FILE),
    ],
)
"""A manifest: data files added and deleted."""

MANIFEST_LIST: Final[AvroSchema] = _record(
    "record",
    [
        _field("_VERSION", "int"),
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_NUM_ADDED_FILES", "long"),
        _field("_NUM_DELETED_FILES", "long"),
        _field("_PARTITION_STATS", _stats("record__PARTITION_STATS")),
        _field("_SCHEMA_ID", "long"),
        _optional("_MIN_BUCKET", "int"),
        _optional("_MAX_BUCKET", "int"),
        _optional("_MIN_LEVEL", "int"),
        _optional("_MAX_LEVEL", "int"),
        _optional("_MIN_ROW_ID", "long"),
        _optional("_MAX_ROW_ID", "long"),
    ],
)
"""A manifest list: manifests."""

_DELETION_VECTOR = _record(
    "record__DELETIONS_VECTORS_RANGES",
    [_field("f0", "string"), _field("f1", "int"), _field("f2", "int"), _optional("_CARDINALITY", "long")],
)

_GLOBAL_INDEX = _record(
    "record__GLOBAL_INDEX",
    [
        _field("_ROW_RANGE_START", "long"),
        _field("_ROW_RANGE_END", "long"),
        _field("_INDEX_FIELD_ID", "int"),
        _optional("_EXTRA_FIELD_IDS", _array("int")),
        _optional("_INDEX_META", "bytes"),
        _optional("_SOURCE_META", "bytes"),
    ],
)

INDEX_MANIFEST_ENTRY: Final[AvroSchema] = _record(
    "record",
    [
        _field("_VERSION", "int"),
        _field("_KIND", "int"),
        _field("_PARTITION", "bytes"),
        _field("_BUCKET", "int"),
        _field("_INDEX_TYPE", "string"),
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_ROW_COUNT", "long"),
        _optional("_DELETIONS_VECTORS_RANGES", _array(["null", _DELETION_VECTOR])),
        _optional("_EXTERNAL_PATH", "string"),
        _optional("_GLOBAL_INDEX", _GLOBAL_INDEX),
    ],
)
"""An index manifest: the live index files."""
