"""Convert manifest entries, data files and manifests to records, and back.

Invariant: Decoding an encoded value returns an equal value. Columns that older writers do not write are null. A number
out of range, a name that leaves its directory, and an unknown version are refused.
Source: `ManifestEntrySerializer`, `DataFileMetaSerializer`, `ManifestFileMetaSerializer`.
"""

from __future__ import annotations

from typing import Any

from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, ManifestEntry, ManifestFileMeta
from paimon.domain.manifest.stored_record import INT_MAX, LONG_MAX, Record, StoredRecord, stats_to_record
from paimon.domain.paths import check_stored_segment

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
