"""Manifest records as columns that are checked when they are read.

Invariant: Values are returned only if `entry_codec.entry_from_record` accepts each of them, and a record only if it
accepts the record. An error names the manifest that contains the invalid value.
Source: `ManifestEntrySerializer`, `DataFileMetaSerializer`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY
from paimon.domain.manifest.entry_codec import LOWEST_BUCKET, MANIFEST_VERSION, MAX_LEVEL
from paimon.domain.manifest.record_columns import Integers, JoinedColumns, RecordColumns, SlicedColumns, join_records
from paimon.domain.types.arrow_arrays import FALSE, TRUE, make_scalar, to_numpy

Mask = npt.NDArray[np.bool_]
Rule = Callable[[pa.Array], Mask]

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "int": pa.int64(),
    "long": pa.int64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_STATS = ("_KEY_STATS", "_VALUE_STATS")
_BAD_NAME = r"[/\\\x00-\x1f\x7f]|^\.{0,2}$"
_LONG_MAX = 2**63 - 1


def arrow_of(node: Any) -> pa.DataType:
    """Return the Arrow type for values of an Avro type: int64 for all numbers, structs for records."""
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
"""A manifest entry as an Arrow struct."""


@frozen(eq=False)
class ManifestRecords:
    """The records of several manifests, of the type `ENTRY_TYPE`."""

    # in the order of the records
    paths: tuple[str, ...]
    # the number of records of each manifest
    counts: tuple[int, ...]
    records: RecordColumns

    def part(self, first: int, last: int) -> ManifestRecords:
        """Return the manifests from position `first` up to, but not including, `last`."""
        start, counts = sum(self.counts[:first]), self.counts[first:last]
        return ManifestRecords(self.paths[first:last], counts, SlicedColumns(self.records, start, start + sum(counts)))


@frozen(eq=False)
class CheckedRecords:
    """The records of several manifests; only valid values are returned."""

    # the path of each manifest, and the number of its records
    counts: Sequence[tuple[str, int]]
    records: RecordColumns
    # whether nothing else refers to `records`
    is_owner: bool

    @classmethod
    def of(cls, parts: Sequence[ManifestRecords]) -> CheckedRecords:
        """Return the records of these manifests, in order."""
        counts = [pair for part in parts for pair in zip(part.paths, part.counts, strict=True)]
        return cls(counts, join_records([part.records for part in parts], ENTRY_TYPE), len(parts) > 1)

    def __len__(self) -> int:
        return len(self.records)

    def column(self, *path: str, rows: Integers | None = None) -> pa.Array:
        """Return the column at `path` (names from the record down); an invalid value raises `CorruptTable`.

        `rows` are ascending positions; by default it has all records.
        """
        found = self.records.column(*path) if rows is None else self.records.select(rows, *path)
        self._check(path[-1], found, rows)
        return found

    def files(self, rows: Integers) -> pa.StructArray:
        """Return the whole file records at ascending positions `rows`; an invalid value raises `CorruptTable`."""
        return self._check_files(self.records.take(rows), rows)

    def drain_files(self, rows: Integers, size: int) -> Iterator[pa.StructArray]:
        """Yield the same records, at most `size` together, and release their manifests one after the other.

        No record can be read afterwards.
        """
        pieces = [(self.records, rows)]
        if self.is_owner and isinstance(self.records, JoinedColumns):
            pieces = self.records.divide(rows)
            self.records.parts.clear()
        cut = deque((part, own[at : at + size]) for part, own in pieces for at in range(0, len(own), size))
        pieces.clear()
        start = 0
        while cut:
            records = _take_together(cut, size)
            yield self._check_files(records, rows[start : start + len(records)])
            start += len(records)

    def _check_files(self, records: pa.StructArray, rows: Integers) -> pa.StructArray:
        found = records.field("_FILE")
        for name in (*_FILE_RULES, *_STATS):
            self._check(name, found.field(name), rows)
        return found

    def check_versions(self) -> None:
        """Refuse all versions of the format except the known one; `Unsupported` names the manifest."""
        versions = to_integers(self.records.column("_VERSION"), -1)
        if bool((versions != MANIFEST_VERSION).any()):
            row = int(np.flatnonzero(versions != MANIFEST_VERSION)[0])
            hint = "create the table again" if versions[row] < MANIFEST_VERSION else "use a newer release"
            raise Unsupported(f"manifest version {versions[row]} in {self._path_of(row)}", hint=hint)

    def _check(self, name: str, values: pa.Array, rows: Integers | None) -> None:
        for what, good in _evaluate_rules(name, values):
            if not bool(good.all()):
                place = int(np.flatnonzero(~good)[0])
                row = place if rows is None else int(rows[place])
                raise CorruptTable(self._path_of(row), f"{what} of entry {row} is {_describe_value(values[place])}")

    def _path_of(self, row: int) -> str:
        for path, count in self.counts:
            if row < count:
                return path
            row -= count
        raise IndexError(row)


def _take_together(pieces: deque[tuple[RecordColumns, Integers]], size: int) -> pa.StructArray:
    """Take the records of the first pieces, at most `size`, off the queue; each conversion has a fixed cost."""
    found: list[pa.StructArray] = []
    count = 0
    while pieces and count + len(pieces[0][1]) <= size:
        part, rows = pieces.popleft()
        found.append(part.take(rows))
        count += len(rows)
    return found[0] if len(found) == 1 else pa.concat_arrays(found)


@frozen(eq=False)
class FileColumns:
    """The file records of entries, checked when they are read."""

    checked: CheckedRecords
    # the positions of the entries among all records; None for all of them
    rows: Integers | None = None
    _cache: dict[str, pa.Array] = field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.checked) if self.rows is None else len(self.rows)

    def field(self, name: str) -> pa.Array:
        """Return a column of the file records; an invalid value raises `CorruptTable`."""
        cached = self._cache.get(name)
        if cached is None:
            cached = self._cache[name] = self.checked.column("_FILE", name, rows=self.rows)
        return cached

    def check(self) -> None:
        """Check all columns, also those that nothing reads; an invalid value raises `CorruptTable`."""
        for column in ENTRY_TYPE.field("_FILE").type:
            self.field(column.name)

    def take(self, rows: Integers) -> FileColumns:
        """Return the file records at these positions, which are in ascending order."""
        return FileColumns(self.checked, rows if self.rows is None else self.rows[rows])

    def records(self) -> pa.StructArray:
        """Return whole file records; an invalid value raises `CorruptTable`."""
        return self.checked.files(np.arange(len(self)) if self.rows is None else self.rows)

    def drain(self, size: int) -> Iterator[pa.StructArray]:
        """Yield whole file records as `CheckedRecords.drain_files` does."""
        self._cache.clear()
        return self.checked.drain_files(np.arange(len(self)) if self.rows is None else self.rows, size)


def _describe_value(value: pa.Scalar) -> str:
    found = value.as_py()
    if isinstance(found, str | list):
        return f"{found!r:.80}, which would leave its directory"
    return "missing" if found is None else f"{found!r:.80}, which is out of range"


def _evaluate_rules(name: str, values: pa.Array) -> Iterator[tuple[str, Mask]]:
    """Yield the name of each rule of a column, and a mask of the values that are valid."""
    rule = _RULES.get(name) or _FILE_RULES.get(name)
    if rule is not None:
        yield name, rule(values)
    elif name in _STATS:
        for part in ("_MIN_VALUES", "_MAX_VALUES"):
            yield f"{name}.{part}", _is_row(values.field(part))


def _within(values: pa.Array, low: int, high: int, missing: int) -> Mask:
    found = to_integers(values, missing)
    within: Mask = (found >= low) & (found <= high)
    return within


def _is_valid(values: pa.Array) -> Mask:
    return to_mask(values.is_valid())


def _is_row(values: pa.Array) -> Mask:
    lengths: Mask = to_integers(pc.binary_length(values), -1) >= 12
    return lengths


def _is_name(values: pa.Array) -> Mask:
    return to_mask(pc.invert(pc.match_substring_regex(values, _BAD_NAME)).fill_null(FALSE))


def _are_names(values: pa.ListArray) -> Mask:
    bad = pc.match_substring_regex(values.flatten(), _BAD_NAME).fill_null(TRUE)
    good = np.ones(len(values), dtype=bool)
    good[to_integers(pc.list_parent_indices(values))[to_mask(bad)]] = False
    return good


_SIZE = partial(_within, low=0, high=_LONG_MAX, missing=-1)
_OPTIONAL_SIZE = partial(_within, low=0, high=_LONG_MAX, missing=0)
_RULES: Mapping[str, Rule] = {
    "_KIND": partial(_within, low=0, high=1, missing=-1),
    "_PARTITION": _is_row,
    "_BUCKET": partial(_within, low=LOWEST_BUCKET, high=2**31 - 1, missing=LOWEST_BUCKET - 1),
    "_TOTAL_BUCKETS": partial(_within, low=-(2**31), high=2**31 - 1, missing=-(2**31) - 1),
}
_FILE_RULES: Mapping[str, Rule] = {
    "_FILE_NAME": _is_name,
    "_FILE_SIZE": _SIZE,
    "_ROW_COUNT": _SIZE,
    "_MIN_KEY": _is_row,
    "_MAX_KEY": _is_row,
    "_MIN_SEQUENCE_NUMBER": _is_valid,
    "_MAX_SEQUENCE_NUMBER": _is_valid,
    "_SCHEMA_ID": _SIZE,
    "_LEVEL": partial(_within, low=0, high=MAX_LEVEL, missing=-1),
    "_EXTRA_FILES": _are_names,
    "_DELETE_ROW_COUNT": _OPTIONAL_SIZE,
    "_FILE_SOURCE": partial(_within, low=0, high=1, missing=0),
    "_FIRST_ROW_ID": _OPTIONAL_SIZE,
}


def to_integers(array: pa.Array, missing: int = 0) -> Integers:
    """Return a column of numbers as int64, with `missing` for null."""
    filled = array.fill_null(make_scalar(missing, array.type)) if array.null_count else array
    found: Integers = to_numpy(filled).astype(np.int64, copy=False)
    return found


def to_mask(array: pa.BooleanArray) -> Mask:
    """Return a column of truth values without nulls."""
    return to_numpy(array)
