"""Manifest entries as columns, so that planning touches objects only for files that survive.

Law: columns hold what `codec.entry_from_record` would accept, and nothing else; `files_at` builds the same values
that it would. Source: `ManifestEntrySerializer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY
from paimon.domain.manifest.codec import LOWEST_BUCKET, MANIFEST_VERSION, MAX_LEVEL
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.stats.simple_stats import EMPTY_STATS, SimpleStats

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "int": pa.int64(),
    "long": pa.int64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_BAD_NAME = r"[/\\\x00-\x1f\x7f]|^\.{0,2}$"


def arrow_of(node: Any) -> pa.DataType:
    """The Arrow type that values of an Avro type are held in: all numbers as int64, records as structs."""
    if isinstance(node, list):
        return arrow_of(next(branch for branch in node if branch != "null"))
    if isinstance(node, str):
        return _PRIMITIVES[node]
    if node["type"] == "record":
        return pa.struct([(f["name"], arrow_of(f["type"])) for f in node["fields"]])
    if node["type"] == "array":
        return pa.list_(arrow_of(node["items"]))
    return arrow_of(node["type"])


ENTRY_TYPE: pa.StructType = arrow_of(MANIFEST_ENTRY)
"""One manifest entry as an Arrow struct."""


@frozen(eq=False)
class EntryColumns:
    """Entries of some manifests, in their order; `partitions` are positions in `partition_rows`."""

    kinds: Integers
    partitions: Integers
    partition_rows: tuple[bytes, ...]
    buckets: Integers
    total_buckets: Integers
    files: pa.StructArray

    def __len__(self) -> int:
        return len(self.files)

    def number(self, name: str, missing: int = 0) -> Integers:
        """A numeric column of the files; null reads as `missing`."""
        return _numbers(self.files.field(name), missing)

    def where(self, mask: Mask) -> EntryColumns:
        """The entries that the mask selects."""
        if bool(mask.all()):
            return self
        return self.take(np.flatnonzero(mask))

    def take(self, rows: Integers) -> EntryColumns:
        """The entries at these positions."""
        return EntryColumns(
            self.kinds[rows],
            self.partitions[rows],
            self.partition_rows,
            self.buckets[rows],
            self.total_buckets[rows],
            self.files.take(pa.array(rows)),
        )


@frozen(eq=False)
class ManifestRecords:
    """Records of several manifests as one array of `ENTRY_TYPE`; `counts` are the records of each."""

    paths: tuple[str, ...]
    counts: tuple[int, ...]
    records: pa.StructArray

    def part(self, first: int, last: int) -> ManifestRecords:
        """The manifests from position `first` up to, not including, `last`."""
        start = sum(self.counts[:first])
        counts = self.counts[first:last]
        return ManifestRecords(self.paths[first:last], counts, self.records.slice(start, sum(counts)))


def entry_columns(parts: Sequence[ManifestRecords]) -> EntryColumns:
    """The entries of manifests, checked.

    Raises
    ------
    CorruptTable, Unsupported
        Naming the manifest at fault.
    """
    arrays = [part.records for part in parts]
    records = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays) if arrays else pa.array([], ENTRY_TYPE)
    _check(records, parts)
    encoded = records.field("_PARTITION").dictionary_encode()
    return EntryColumns(
        kinds=_numbers(records.field("_KIND")),
        partitions=_numbers(encoded.indices),
        partition_rows=tuple(encoded.dictionary.to_pylist()),
        buckets=_numbers(records.field("_BUCKET")),
        total_buckets=_numbers(records.field("_TOTAL_BUCKETS")),
        files=records.field("_FILE"),
    )


def _check(records: pa.StructArray, parts: Sequence[ManifestRecords]) -> None:
    versions = _numbers(records.field("_VERSION"), -1)
    if bool((versions != MANIFEST_VERSION).any()):
        row = int(np.flatnonzero(versions != MANIFEST_VERSION)[0])
        hint = "the table must be created anew" if versions[row] < MANIFEST_VERSION else "a newer release wrote it"
        raise Unsupported(f"manifest version {versions[row]} in {_path_of(row, parts)}", hint=hint)
    for what, good in _rules(records):
        if not bool(good.all()):
            row = int(np.flatnonzero(~good)[0])
            raise CorruptTable(_path_of(row, parts), f"{what} of entry {row} is missing or out of range")


def _rules(records: pa.StructArray) -> Iterator[tuple[str, Mask]]:
    file = records.field("_FILE")
    bounds = (
        (records, "_KIND", 0, 1),
        (records, "_BUCKET", LOWEST_BUCKET, 2**31 - 1),
        (records, "_TOTAL_BUCKETS", -(2**31), 2**31 - 1),
        (file, "_FILE_SIZE", 0, 2**63 - 1),
        (file, "_ROW_COUNT", 0, 2**63 - 1),
        (file, "_SCHEMA_ID", 0, 2**63 - 1),
        (file, "_LEVEL", 0, MAX_LEVEL),
    )
    for parent, name, low, high in bounds:
        values = _numbers(parent.field(name), low - 1 if low > -(2**62) else low)
        yield name, (values >= low) & (values <= high)
    for name, high in (("_DELETE_ROW_COUNT", 2**63 - 1), ("_FIRST_ROW_ID", 2**63 - 1), ("_FILE_SOURCE", 1)):
        values = _numbers(file.field(name), 0)
        yield name, (values >= 0) & (values <= high)
    for name in ("_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER"):
        yield name, _mask(file.field(name).is_valid())
    yield "_PARTITION", _row_lengths(records.field("_PARTITION")) >= 12
    for name in ("_MIN_KEY", "_MAX_KEY"):
        yield name, _row_lengths(file.field(name)) >= 12
    for name in ("_KEY_STATS", "_VALUE_STATS"):
        for part in ("_MIN_VALUES", "_MAX_VALUES"):
            yield f"{name}.{part}", _row_lengths(file.field(name).field(part)) >= 12
    names = file.field("_FILE_NAME")
    yield "_FILE_NAME", _mask(pc.invert(pc.match_substring_regex(names, _BAD_NAME)).fill_null(False))
    extra = file.field("_EXTRA_FILES")
    bad = pc.match_substring_regex(extra.flatten(), _BAD_NAME).fill_null(True)
    good = np.ones(len(extra), dtype=bool)
    good[_numbers(pc.list_parent_indices(extra))[_mask(bad)]] = False
    yield "_EXTRA_FILES", good


def _path_of(row: int, parts: Sequence[ManifestRecords]) -> str:
    for part in parts:
        for path, count in zip(part.paths, part.counts, strict=True):
            if row < count:
                return path
            row -= count
    raise IndexError(row)


def _numbers(array: pa.Array, missing: int = 0) -> Integers:
    filled = array.fill_null(missing) if array.null_count else array
    found: Integers = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


def _mask(array: pa.BooleanArray) -> Mask:
    found: Mask = array.to_numpy(zero_copy_only=False)
    return found


def _row_lengths(array: pa.BinaryArray) -> Integers:
    return _numbers(pc.binary_length(array), -1)


def files_at(files: pa.StructArray) -> list[DataFileMeta]:
    """The data files of a column of file records that `entry_columns` checked."""
    columns = [_python(files.field(i)) for i in range(files.type.num_fields)]
    return [DataFileMeta(*row) for row in zip(*_arguments(files.type, columns), strict=True)]


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
