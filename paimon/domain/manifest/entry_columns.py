"""Manifest entries as columns, so that planning creates objects only for the files that remain.

Invariant: The columns contain only values that `entry_codec.entry_from_record` accepts. `files_at` returns equal
values.
Source: `ManifestEntrySerializer`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import fields, frozen

from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY
from paimon.domain.manifest.checked_columns import (
    ENTRY_TYPE,
    CheckedRecords,
    FileColumns,
    ManifestRecords,
    Mask,
    arrow_of,
    to_integers,
)
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.manifest.record_columns import Integers, PickedRecords
from paimon.domain.stats.simple_stats import EMPTY_STATS, SimpleStats
from paimon.domain.types.arrow_arrays import to_numpy

__all__ = ["ENTRY_TYPE", "EntryColumns", "FileColumns", "Integers", "ManifestRecords", "Mask", "arrow_of",
           "drain_files", "entry_columns", "files_at", "to_files"]  # fmt: skip

T = TypeVar("T", DataFileMeta, SimpleStats)
_FILES_AT_ONCE = 1 << 16
"""The number of files that are converted together, which takes about 600 bytes each beside the result."""


@frozen(eq=False)
class EntryColumns:
    """The entries of several manifests, in their order."""

    kinds: Integers
    # the position of each entry's partition in `partition_rows`
    partitions: Integers
    # the distinct partitions as serialized BinaryRows
    partition_rows: tuple[bytes, ...]
    buckets: Integers
    # the number of buckets that the partition of each entry was written with
    total_buckets: Integers
    files: FileColumns

    def __len__(self) -> int:
        return len(self.kinds)

    def number(self, name: str, missing: int = 0) -> Integers:
        """Return a numeric column of the file records as int64, with `missing` for null."""
        return to_integers(self.files.field(name), missing)

    @property
    def addresses(self) -> Integers:
        """A number for each entry, which entries of the same bucket have in common."""
        return (self.partitions << 32) + self.buckets

    def pick(self, rows: Integers) -> PickedRecords:
        """Return the records of the entries at these positions, in this order; their values are not checked."""
        whole = self.files.rows
        return PickedRecords(self.files.checked.records, rows if whole is None else whole[rows])

    def filter(self, mask: Mask) -> EntryColumns:
        """Return the entries that the mask selects."""
        return self if bool(mask.all()) else self.take(np.flatnonzero(mask))

    def take(self, rows: Integers) -> EntryColumns:
        """Return the entries at these positions, which are in ascending order."""
        return EntryColumns(
            self.kinds[rows],
            self.partitions[rows],
            self.partition_rows,
            self.buckets[rows],
            self.total_buckets[rows],
            self.files.take(rows),
        )

    def split(self, size: int | None = None) -> Iterator[EntryColumns]:
        """Yield the entries in parts of at most `size`, so that their values need not be in memory together."""
        size = size or _FILES_AT_ONCE
        for start in range(0, len(self), size):
            yield self if len(self) <= size else self.take(np.arange(start, min(start + size, len(self))))


def entry_columns(parts: Sequence[ManifestRecords]) -> EntryColumns:
    """Return all entries of manifests, in order, as columns that are checked when they are read.

    An invalid value raises `CorruptTable` here, or when its column is read later. Another manifest version raises
    `Unsupported`.
    """
    records = CheckedRecords.of(parts)
    records.check_versions()
    encoded = records.column("_PARTITION").dictionary_encode()
    return EntryColumns(
        kinds=to_integers(records.column("_KIND")),
        partitions=to_integers(encoded.indices),
        partition_rows=tuple(encoded.dictionary.to_pylist()),
        buckets=to_integers(records.column("_BUCKET")),
        total_buckets=to_integers(records.column("_TOTAL_BUCKETS")),
        files=FileColumns(records),
    )


def files_at(files: FileColumns) -> list[DataFileMeta]:
    """Return the data files as values, which share equal parts."""
    found: list[DataFileMeta] = []
    for start in range(0, len(files), _FILES_AT_ONCE):
        part = files
        if len(files) > _FILES_AT_ONCE:
            part = files.take(np.arange(start, min(start + _FILES_AT_ONCE, len(files))))
        found += to_files(part.records())
    return found


def drain_files(files: FileColumns) -> list[DataFileMeta]:
    """Return what `files_at` returns, and release what was decoded; nothing can be read from `files` afterwards."""
    return [file for records in files.drain(_FILES_AT_ONCE) for file in to_files(records)]


def to_files(records: pa.StructArray) -> list[DataFileMeta]:
    """Convert checked file records to values, which share equal parts."""
    columns = [_to_python(records.field(i)) for i in range(records.type.num_fields)]
    return _make_values(DataFileMeta, _order_arguments(records.type, columns))


def _make_values(kind: type[T], columns: Sequence[Sequence[Any]]) -> list[T]:
    """Make values of a class from columns in the order of its fields, whose converters are not called.

    Column by column: the `__init__` of a frozen class takes half of the time of a plan of all files.
    """
    found = [kind.__new__(kind) for _ in columns[0]]
    for attribute, values in zip(fields(kind), columns, strict=True):
        deque(map(getattr(kind, attribute.name).__set__, found, values), maxlen=0)
    return found


def _order_arguments(kind: pa.StructType, columns: Sequence[list[Any]]) -> list[list[Any]]:
    """Return the columns in the order of the arguments of `DataFileMeta`, which is the order of the format."""
    by_name = {kind.field(i).name: column for i, column in enumerate(columns)}
    by_name["_FILE_SOURCE"] = [_SOURCES.get(v) for v in by_name["_FILE_SOURCE"]]
    by_name["_EXTRA_FILES"] = [v or () for v in by_name["_EXTRA_FILES"]]
    return [by_name[f["name"]] for f in _FILE_FIELDS]


_SOURCES: Mapping[int | None, FileSource] = {source.value: source for source in FileSource}
_FILE_FIELDS: Sequence[Mapping[str, Any]] = MANIFEST_ENTRY["fields"][-1]["type"]["fields"]  # type: ignore[index]


def _to_python(array: pa.Array) -> list[Any]:
    if pa.types.is_struct(array.type):
        return _to_stats_list(*(array.field(i) for i in range(array.type.num_fields)))
    if pa.types.is_list(array.type):
        return _to_tuples(array)
    if _has_one_value(array):
        return [array[0].as_py()] * len(array)
    return list(array.to_pylist())


def _has_one_value(array: pa.Array) -> bool:
    if len(array) < 2 or array.null_count or array[0] != array[-1]:
        return False
    return pc.all(pc.equal(array, array[0])).as_py() is True


def _to_stats_list(low: pa.Array, high: pa.Array, null_counts: pa.ListArray) -> list[SimpleStats]:
    """Return the statistics of each file; one shared object if all are equal, as the keys of append tables are."""
    lows, counts = _to_python(low), _to_python(null_counts)
    highs = lows if low.equals(high) else [b if a != b else a for a, b in zip(lows, _to_python(high), strict=True)]
    if _is_constant(lows) and _is_constant(highs) and _is_constant(counts):
        return [_to_stats(*parts) for parts in zip(lows[:1], highs, counts, strict=False)] * len(lows)
    if all(counts):
        return _make_values(SimpleStats, (lows, highs, counts))
    return list(map(_to_stats, lows, highs, counts))


def _is_constant(values: Sequence[Any]) -> bool:
    return values.count(values[0]) == len(values) if values else True


def _to_stats(low: bytes, high: bytes, counts: tuple[int | None, ...] | None) -> SimpleStats:
    if len(low) == 12 and not counts and low == high == EMPTY_STATS.min_values:
        return EMPTY_STATS
    return SimpleStats(low, high, counts or ())


def _to_tuples(array: pa.ListArray) -> list[tuple[Any, ...] | None]:
    if array.null_count == len(array):
        return [None] * len(array)
    offsets = to_numpy(array.offsets)
    if not array.null_count and offsets[0] == offsets[-1]:
        return [()] * len(array)
    lengths = np.diff(offsets)
    items = array.values.slice(offsets[0], offsets[-1] - offsets[0])
    if not array.null_count and bool((lengths == max(lengths[0], 1)).all()):
        if _has_one_value(items):
            return [(items[0].as_py(),) * int(lengths[0])] * len(array)
        shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        rows = zip(*[iter(items.to_pylist())] * int(lengths[0]), strict=True)
        return [shared.setdefault(row, row) for row in rows]
    values, starts = items.to_pylist(), (offsets - offsets[0]).tolist()
    valid = array.is_valid().to_pylist()
    return [tuple(values[starts[i] : starts[i + 1]]) if ok else None for i, ok in enumerate(valid)]
