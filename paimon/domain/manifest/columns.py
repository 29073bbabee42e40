"""Manifest entries as columns, so that planning touches objects only for files that survive.

Law: columns hold what `codec.entry_from_record` would accept, and nothing else; `files_at` builds the same values
that it would. Source: `ManifestEntrySerializer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.manifest.records.checked import (
    ENTRY_TYPE,
    CheckedRecords,
    FileColumns,
    ManifestRecords,
    Mask,
    arrow_of,
    numbers,
)
from paimon.domain.manifest.records.columns import Integers
from paimon.domain.stats.simple_stats import EMPTY_STATS, SimpleStats

__all__ = ["ENTRY_TYPE", "EntryColumns", "FileColumns", "Integers", "ManifestRecords", "Mask", "arrow_of",
           "entry_columns", "files_at"]  # fmt: skip


@frozen(eq=False)
class EntryColumns:
    """Entries of some manifests, in their order; `partitions` are positions in `partition_rows`."""

    kinds: Integers
    partitions: Integers
    partition_rows: tuple[bytes, ...]
    buckets: Integers
    total_buckets: Integers
    files: FileColumns

    def __len__(self) -> int:
        return len(self.kinds)

    def number(self, name: str, missing: int = 0) -> Integers:
        """A numeric column of the files; null reads as `missing`."""
        return numbers(self.files.field(name), missing)

    def where(self, mask: Mask) -> EntryColumns:
        """The entries that the mask selects."""
        if bool(mask.all()):
            return self
        rows = np.flatnonzero(mask)
        return EntryColumns(
            self.kinds[rows],
            self.partitions[rows],
            self.partition_rows,
            self.buckets[rows],
            self.total_buckets[rows],
            self.files.at(rows),
        )


def entry_columns(parts: Sequence[ManifestRecords]) -> EntryColumns:
    """The entries of manifests; what is looked at is checked before.

    Raises
    ------
    CorruptTable, Unsupported
        Naming the manifest at fault, here or where more columns are looked at.
    """
    records = CheckedRecords.of(parts)
    records.check_versions()
    encoded = records.column("_PARTITION").dictionary_encode()
    return EntryColumns(
        kinds=numbers(records.column("_KIND")),
        partitions=numbers(encoded.indices),
        partition_rows=tuple(encoded.dictionary.to_pylist()),
        buckets=numbers(records.column("_BUCKET")),
        total_buckets=numbers(records.column("_TOTAL_BUCKETS")),
        files=FileColumns(records),
    )


def files_at(files: FileColumns) -> list[DataFileMeta]:
    """The data files."""
    records = files.records()
    columns = [_python(records.field(i)) for i in range(records.type.num_fields)]
    return [DataFileMeta(*row) for row in zip(*_arguments(records.type, columns), strict=True)]


def _arguments(kind: pa.StructType, columns: Sequence[list[Any]]) -> list[list[Any]]:
    """The columns in the order of DataFileMeta's arguments, which is the format's order."""
    by_name = {kind.field(i).name: column for i, column in enumerate(columns)}
    by_name["_FILE_SOURCE"] = [_SOURCES.get(v) for v in by_name["_FILE_SOURCE"]]
    by_name["_EXTRA_FILES"] = [v or () for v in by_name["_EXTRA_FILES"]]
    return [by_name[f["name"]] for f in _FILE_FIELDS]


_SOURCES: Mapping[int | None, FileSource] = {source.value: source for source in FileSource}
_FILE_FIELDS: Sequence[Mapping[str, Any]] = MANIFEST_ENTRY["fields"][-1]["type"]["fields"]  # type: ignore[index]


def _python(array: pa.Array) -> list[Any]:
    if pa.types.is_struct(array.type):
        return _all_stats(*(_python(array.field(i)) for i in range(array.type.num_fields)))
    if pa.types.is_list(array.type):
        return _tuples(array)
    return list(array.to_pylist())


def _all_stats(lows: list[bytes], highs: list[bytes], counts: list[tuple[int | None, ...] | None]) -> list[Any]:
    """The statistics of each file; one object where all are equal, as those of keys in tables without keys are."""
    if lows and _is_constant(lows) and _is_constant(highs) and _is_constant(counts):
        return [_stats(lows[0], highs[0], counts[0])] * len(lows)
    return list(map(_stats, lows, highs, counts))


def _is_constant(values: Sequence[Any]) -> bool:
    return values.count(values[0]) == len(values)


def _stats(low: bytes, high: bytes, counts: tuple[int | None, ...] | None) -> SimpleStats:
    if len(low) == 12 and not counts and low == high == EMPTY_STATS.min_values:
        return EMPTY_STATS
    return SimpleStats(low, high, counts or ())


def _tuples(array: pa.ListArray) -> list[tuple[Any, ...] | None]:
    if array.null_count == len(array):
        return [None] * len(array)
    offsets = array.offsets.to_pylist()
    if not array.null_count and offsets[0] == offsets[-1]:
        return [()] * len(array)
    items = array.values.to_pylist()
    lengths = np.diff(offsets)
    if not array.null_count and bool((lengths == max(lengths[0], 1)).all()):
        return list(zip(*[iter(items[offsets[0] : offsets[-1]])] * int(lengths[0]), strict=True))
    valid = array.is_valid().to_pylist()
    return [tuple(items[offsets[i] : offsets[i + 1]]) if ok else None for i, ok in enumerate(valid)]
