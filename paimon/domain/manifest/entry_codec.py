"""Convert manifest entries, data files, manifests and index manifest entries to records, and back.

Invariant: Decoding an encoded value returns an equal value. Columns that older writers do not write are null. A number
out of range, a name that leaves its directory, and an unknown version are refused with `CorruptTable`, which has the
path of the file.
Source: `ManifestEntrySerializer`, `DataFileMetaSerializer`, `ManifestFileMetaSerializer`,
`IndexManifestEntrySerializer`, `DeletionVectorMeta`, `ObjectSerializer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.entries import (
    DataFileMeta,
    DeletionVectorRange,
    FileKind,
    FileSource,
    GlobalIndex,
    IndexManifestEntry,
    ManifestEntry,
    ManifestFileMeta,
)
from paimon.domain.paths import check_stored_segment
from paimon.domain.stats.simple_stats import EMPTY_STATS, SimpleStats

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1

Record = Mapping[str, Any]
"""A record by column name, as a `RecordIO` returns it."""


@frozen
class StoredRecord:
    """One record of the file `path`. A column that older writers do not write is null."""

    values: Record
    path: str

    def integer(self, name: str, low: int, high: int = LONG_MAX) -> int:
        """Return an integer between `low` and `high`, both inclusive; any other value raises `CorruptTable`."""
        value = self.values.get(name)
        if type(value) is not int or not low <= value <= high:
            raise CorruptTable(self.path, f"{name} is {value!r}, not a number from {low} to {high}")
        return value

    def optional_integer(self, name: str, low: int, high: int = LONG_MAX) -> int | None:
        """Return an integer between `low` and `high`, both inclusive; None if it is null or missing."""
        return None if self.values.get(name) is None else self.integer(name, low, high)

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise CorruptTable(self.path, f"{name} is {value!r}, not text")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None."""
        return None if self.values.get(name) is None else self.text(name)

    def binary(self, name: str) -> bytes:
        """Return a byte string."""
        value = self.values.get(name)
        if not isinstance(value, bytes):
            raise CorruptTable(self.path, f"{name} is not a byte string")
        return value

    def row(self, name: str) -> bytes:
        """Return a serialized BinaryRow; one without an arity and at least eight more bytes raises `CorruptTable`."""
        value = self.binary(name)
        if len(value) < 12:
            raise CorruptTable(self.path, f"{name} has {len(value)} bytes, which is too short for a row")
        return value

    def optional_binary(self, name: str) -> bytes | None:
        """Return a byte string, or None."""
        return None if self.values.get(name) is None else self.binary(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty if it is null."""
        return self.optional_texts(name) or ()

    def optional_texts(self, name: str) -> tuple[str, ...] | None:
        """Return a list of texts, or None."""
        value = self.optional_list(name)
        if value is not None and not all(isinstance(v, str) for v in value):
            raise CorruptTable(self.path, f"{name} contains a value that is not text")
        return None if value is None else tuple(value)

    def optional_list(self, name: str) -> Sequence[Any] | None:
        """Return a list, or None."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, list):
            raise CorruptTable(self.path, f"{name} is not a list")
        return value

    def nested_record(self, name: str) -> StoredRecord:
        """Return a nested record."""
        value = self.values.get(name)
        if not isinstance(value, Mapping):
            raise CorruptTable(self.path, f"{name} is not a record")
        return StoredRecord(value, self.path)

    def stats(self, name: str) -> SimpleStats:
        """Return the statistics in a nested record."""
        stats = self.nested_record(name)
        counts = stats.optional_list("_NULL_COUNTS") or ()
        if not all(c is None or type(c) is int for c in counts):
            raise CorruptTable(self.path, f"{name} contains null counts that are not numbers")
        found = SimpleStats(stats.row("_MIN_VALUES"), stats.row("_MAX_VALUES"), tuple(counts))
        return EMPTY_STATS if found == EMPTY_STATS else found

    def check_version(self, supported: int, what: str) -> None:
        """Refuse all values of `_VERSION` except the supported one."""
        version = self.integer("_VERSION", 0, INT_MAX)
        if version != supported:
            hint = "create the table again" if version < supported else "use a newer release"
            raise Unsupported(f"{what} version {version} in {self.path}", hint=hint)


def stats_to_record(stats: SimpleStats) -> dict[str, Any]:
    """Return the nested record of statistics."""
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": list(stats.null_counts),
    }


MANIFEST_VERSION = 2
"""`_VERSION` of manifests and manifest lists."""

LOWEST_BUCKET = -2
MAX_LEVEL = 10_000
_LONG_MIN = -LONG_MAX - 1
_INT_MIN = -INT_MAX - 1


def entry_to_record(entry: ManifestEntry) -> dict[str, Any]:
    """Return the record of a manifest entry."""
    return {
        "_VERSION": MANIFEST_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": data_file_to_record(entry.file),
    }


def entry_from_record(record: Record, path: str) -> ManifestEntry:
    """Return the manifest entry of a record of the file `path`.

    An invalid value raises `CorruptTable`, another record version `Unsupported`. Both errors name `path`.
    """
    stored = StoredRecord(record, path)
    stored.check_version(MANIFEST_VERSION, "manifest")
    return ManifestEntry(
        kind=FileKind(stored.integer("_KIND", 0, 1)),
        partition=stored.row("_PARTITION"),
        bucket=stored.integer("_BUCKET", LOWEST_BUCKET, INT_MAX),
        total_buckets=stored.integer("_TOTAL_BUCKETS", _INT_MIN, INT_MAX),
        file=data_file_from_record(stored.nested_record("_FILE").values, path),
    )


def data_file_to_record(file: DataFileMeta) -> dict[str, Any]:
    """Return the nested record of a data file."""
    return {
        "_FILE_NAME": file.file_name,
        "_FILE_SIZE": file.file_size,
        "_ROW_COUNT": file.row_count,
        "_MIN_KEY": file.min_key,
        "_MAX_KEY": file.max_key,
        "_KEY_STATS": stats_to_record(file.key_stats),
        "_VALUE_STATS": stats_to_record(file.value_stats),
        "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
        "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
        "_SCHEMA_ID": file.schema_id,
        "_LEVEL": file.level,
        "_EXTRA_FILES": list(file.extra_files),
        "_CREATION_TIME": file.creation_time_millis,
        "_DELETE_ROW_COUNT": file.delete_row_count,
        "_EMBEDDED_FILE_INDEX": file.embedded_index,
        "_FILE_SOURCE": None if file.file_source is None else int(file.file_source),
        "_VALUE_STATS_COLS": None if file.value_stats_cols is None else list(file.value_stats_cols),
        "_EXTERNAL_PATH": file.external_path,
        "_FIRST_ROW_ID": file.first_row_id,
        "_WRITE_COLS": None if file.write_cols is None else list(file.write_cols),
    }


def data_file_from_record(record: Record, path: str) -> DataFileMeta:
    """Return the data file of a nested record; `CorruptTable` for an invalid value names `path`."""
    stored = StoredRecord(record, path)
    source = stored.optional_integer("_FILE_SOURCE", 0, 1)
    extra_files = [check_stored_segment(name, path) for name in stored.texts("_EXTRA_FILES")]
    return DataFileMeta(
        file_name=check_stored_segment(stored.text("_FILE_NAME"), path),
        file_size=stored.integer("_FILE_SIZE", 0),
        row_count=stored.integer("_ROW_COUNT", 0),
        min_key=stored.row("_MIN_KEY"),
        max_key=stored.row("_MAX_KEY"),
        key_stats=stored.stats("_KEY_STATS"),
        value_stats=stored.stats("_VALUE_STATS"),
        min_sequence_number=stored.integer("_MIN_SEQUENCE_NUMBER", _LONG_MIN),
        max_sequence_number=stored.integer("_MAX_SEQUENCE_NUMBER", _LONG_MIN),
        schema_id=stored.integer("_SCHEMA_ID", 0),
        level=stored.integer("_LEVEL", 0, MAX_LEVEL),
        extra_files=extra_files,
        creation_time_millis=stored.optional_integer("_CREATION_TIME", _LONG_MIN),
        delete_row_count=stored.optional_integer("_DELETE_ROW_COUNT", 0),
        embedded_index=stored.optional_binary("_EMBEDDED_FILE_INDEX"),
        file_source=None if source is None else FileSource(source),
        value_stats_cols=stored.optional_texts("_VALUE_STATS_COLS"),
        external_path=stored.optional_text("_EXTERNAL_PATH"),
        first_row_id=stored.optional_integer("_FIRST_ROW_ID", 0),
        write_cols=stored.optional_texts("_WRITE_COLS"),
    )


def manifest_to_record(manifest: ManifestFileMeta) -> dict[str, Any]:
    """Return the record of a manifest in a manifest list."""
    return {
        "_VERSION": MANIFEST_VERSION,
        "_FILE_NAME": manifest.file_name,
        "_FILE_SIZE": manifest.file_size,
        "_NUM_ADDED_FILES": manifest.num_added_files,
        "_NUM_DELETED_FILES": manifest.num_deleted_files,
        "_PARTITION_STATS": stats_to_record(manifest.partition_stats),
        "_SCHEMA_ID": manifest.schema_id,
        "_MIN_BUCKET": manifest.min_bucket,
        "_MAX_BUCKET": manifest.max_bucket,
        "_MIN_LEVEL": manifest.min_level,
        "_MAX_LEVEL": manifest.max_level,
        "_MIN_ROW_ID": manifest.min_row_id,
        "_MAX_ROW_ID": manifest.max_row_id,
    }


def manifest_from_record(record: Record, path: str) -> ManifestFileMeta:
    """Return the manifest that a record of the manifest list `path` names.

    An invalid value raises `CorruptTable`, another record version `Unsupported`. Both errors name `path`.
    """
    stored = StoredRecord(record, path)
    stored.check_version(MANIFEST_VERSION, "manifest list")
    return ManifestFileMeta(
        file_name=check_stored_segment(stored.text("_FILE_NAME"), path),
        file_size=stored.integer("_FILE_SIZE", 0),
        num_added_files=stored.integer("_NUM_ADDED_FILES", 0),
        num_deleted_files=stored.integer("_NUM_DELETED_FILES", 0),
        partition_stats=stored.stats("_PARTITION_STATS"),
        schema_id=stored.integer("_SCHEMA_ID", 0),
        min_bucket=stored.optional_integer("_MIN_BUCKET", LOWEST_BUCKET, INT_MAX),
        max_bucket=stored.optional_integer("_MAX_BUCKET", LOWEST_BUCKET, INT_MAX),
        min_level=stored.optional_integer("_MIN_LEVEL", 0, INT_MAX),
        max_level=stored.optional_integer("_MAX_LEVEL", 0, INT_MAX),
        min_row_id=stored.optional_integer("_MIN_ROW_ID", 0),
        max_row_id=stored.optional_integer("_MAX_ROW_ID", 0),
    )


INDEX_MANIFEST_VERSION = 1
"""`_VERSION` of index manifests."""


def index_entry_to_record(entry: IndexManifestEntry) -> dict[str, Any]:
    """Return the record of an index manifest entry."""
    vectors = entry.deletion_vectors
    return {
        "_VERSION": INDEX_MANIFEST_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.index_type,
        "_FILE_NAME": entry.file_name,
        "_FILE_SIZE": entry.file_size,
        "_ROW_COUNT": entry.row_count,
        "_DELETIONS_VECTORS_RANGES": None if vectors is None else [_vector_to_record(v) for v in vectors],
        "_EXTERNAL_PATH": entry.external_path,
        "_GLOBAL_INDEX": None if entry.global_index is None else _global_to_record(entry.global_index),
    }


def index_entry_from_record(record: Record, path: str) -> IndexManifestEntry:
    """Return the index manifest entry of a record of the file `path`.

    An invalid value raises `CorruptTable`, another record version `Unsupported`. Both errors name `path`.
    """
    stored = StoredRecord(record, path)
    stored.check_version(INDEX_MANIFEST_VERSION, "index manifest")
    vectors = stored.optional_list("_DELETIONS_VECTORS_RANGES")
    has_global = stored.values.get("_GLOBAL_INDEX") is not None
    return IndexManifestEntry(
        kind=FileKind(stored.integer("_KIND", 0, 1)),
        partition=stored.row("_PARTITION"),
        bucket=stored.integer("_BUCKET", LOWEST_BUCKET, INT_MAX),
        index_type=stored.text("_INDEX_TYPE"),
        file_name=check_stored_segment(stored.text("_FILE_NAME"), path),
        file_size=stored.integer("_FILE_SIZE", 0),
        row_count=stored.integer("_ROW_COUNT", 0),
        deletion_vectors=None if vectors is None else tuple(_vector_from_record(v, path) for v in vectors),
        external_path=stored.optional_text("_EXTERNAL_PATH"),
        global_index=_global_from_record(stored.nested_record("_GLOBAL_INDEX")) if has_global else None,
    )


def _vector_to_record(vector: DeletionVectorRange) -> dict[str, Any]:
    return {
        "f0": vector.data_file,
        "f1": vector.offset,
        "f2": vector.length,
        "_CARDINALITY": vector.cardinality,
    }


def _vector_from_record(value: object, path: str) -> DeletionVectorRange:
    if not isinstance(value, Mapping):
        raise CorruptTable(path, "contains a deletion vector range that is not a record")
    stored = StoredRecord(value, path)
    return DeletionVectorRange(
        data_file=stored.text("f0"),
        offset=stored.integer("f1", 0, INT_MAX),
        length=stored.integer("f2", 0, INT_MAX),
        cardinality=stored.optional_integer("_CARDINALITY", 0),
    )


def _global_to_record(index: GlobalIndex) -> dict[str, Any]:
    return {
        "_ROW_RANGE_START": index.row_range_start,
        "_ROW_RANGE_END": index.row_range_end,
        "_INDEX_FIELD_ID": index.index_field_id,
        "_EXTRA_FIELD_IDS": None if index.extra_field_ids is None else list(index.extra_field_ids),
        "_INDEX_META": index.index_meta,
        "_SOURCE_META": index.source_meta,
    }


def _global_from_record(stored: StoredRecord) -> GlobalIndex:
    extra = stored.optional_list("_EXTRA_FIELD_IDS")
    if extra is not None and not all(type(v) is int for v in extra):
        raise CorruptTable(stored.path, "_EXTRA_FIELD_IDS contains a value that is not a number")
    return GlobalIndex(
        row_range_start=stored.integer("_ROW_RANGE_START", 0),
        row_range_end=stored.integer("_ROW_RANGE_END", 0),
        index_field_id=stored.integer("_INDEX_FIELD_ID", 0, INT_MAX),
        extra_field_ids=None if extra is None else tuple(extra),
        index_meta=stored.optional_binary("_INDEX_META"),
        source_meta=stored.optional_binary("_SOURCE_META"),
    )
