"""Manifest entries in the form of `meta.jsonl` of the golden tables."""

from __future__ import annotations

from typing import Any

from paimon.domain.manifest.entries import ManifestEntry

WRITERS_OWN = frozenset(
    {"fileName", "fileSize", "schemaId", "writeCols", "extraFiles", "embeddedIndex", "externalPath", "firstRowId"}
)
"""What two writers of the same rows need not have in common, or these cases do not have."""


def to_java_entry(entry: ManifestEntry) -> dict[str, Any]:
    """All metadata that Java records for a file."""
    file = entry.file
    return {
        "partitionHex": entry.partition.hex(),
        "bucket": entry.bucket,
        "totalBuckets": entry.total_buckets,
        "fileName": file.file_name,
        "fileSize": file.file_size,
        "rowCount": file.row_count,
        "level": file.level,
        "schemaId": file.schema_id,
        "minSequenceNumber": file.min_sequence_number,
        "maxSequenceNumber": file.max_sequence_number,
        "minKeyHex": file.min_key.hex(),
        "maxKeyHex": file.max_key.hex(),
        "keyStatsMinHex": file.key_stats.min_values.hex(),
        "keyStatsMaxHex": file.key_stats.max_values.hex(),
        "keyStatsNullCounts": list(file.key_stats.null_counts),
        "valueStatsMinHex": file.value_stats.min_values.hex(),
        "valueStatsMaxHex": file.value_stats.max_values.hex(),
        "valueStatsNullCounts": list(file.value_stats.null_counts),
        "valueStatsCols": None if file.value_stats_cols is None else list(file.value_stats_cols),
        "writeCols": None if file.write_cols is None else list(file.write_cols),
        "extraFiles": list(file.extra_files),
        "embeddedIndex": None if file.embedded_index is None else file.embedded_index.hex(),
        "externalPath": file.external_path,
        "firstRowId": file.first_row_id,
        "deleteRowCount": file.delete_row_count,
        "fileSource": None if file.file_source is None else file.file_source.name,
    }


def to_comparable_entry(entry: ManifestEntry) -> dict[str, Any]:
    """The metadata that are equal for all writers of the same rows."""
    return {name: value for name, value in to_java_entry(entry).items() if name not in WRITERS_OWN}
