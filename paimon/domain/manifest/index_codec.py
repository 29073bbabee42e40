"""Convert index manifest entries to records, and back.

Invariant: Decoding an encoded value returns an equal value. An offset or length out of range is refused with
`CorruptTable`.
Source: `IndexManifestEntrySerializer`, `DeletionVectorMeta`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import DeletionVectorRange, FileKind, GlobalIndex, IndexManifestEntry
from paimon.domain.manifest.entry_codec import LOWEST_BUCKET
from paimon.domain.manifest.stored_record import INT_MAX, Record, StoredRecord
from paimon.domain.paths import check_stored_segment

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
