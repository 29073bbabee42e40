"""What one data file holds, against what its metadata say.

Law: rows are counted, keys ascend strictly and keep within their bounds, as do sequence numbers; statistics hold of
every value. It is read in batches, so a file of any size takes little memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from paimon.domain.bucket.columnar import buckets_of
from paimon.domain.errors import CorruptTable
from paimon.domain.lsm.keys import Comparable, comparable, comparable_values
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.merge.columnar.ordering.order import groups_of, retracts
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.row.binary_row import arity
from paimon.domain.row.values import to_values
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.stats.codec import column_stats
from paimon.domain.stats.collect import collect, combine
from paimon.domain.stats.simple_stats import ColumnStats, SimpleStats
from paimon.domain.types.data_types import CharType, DataField
from paimon.domain.types.system import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.read.data_file import Bucket, read_data_file


@frozen
class Placing:
    """Where rows belong: the bucket of a key, in so many."""

    keys: tuple[DataField, ...]
    function: str
    bucket: int
    total: int

    @classmethod
    def of(cls, table: TableDefinition, entry: ManifestEntry) -> Placing | None:
        """That of a file; None where no key says the bucket."""
        names = table.schema.bucket_keys
        if table.options.bucket <= 0 or entry.total_buckets <= 0 or entry.bucket < 0 or not names:
            return None
        fields = tuple(table.schema.field_of(name) for name in names)
        return cls(fields, table.options.bucket_function, entry.bucket, entry.total_buckets)

    def misplaced(self, rows: pa.Table) -> int:
        """How many rows belong in another bucket."""
        columns = [rows[f.name].combine_chunks() for f in self.keys]
        found = buckets_of(columns, [f.type for f in self.keys], self.total, self.function)
        return int(np.count_nonzero(found != self.bucket))


class FileContent:
    """Reads a file through and keeps what its metadata speak of; `rows` counts, and `misplaced`."""

    def __init__(
        self, bucket: Bucket, file: DataFileMeta, sorted_by: Sequence[DataField], placing: Placing | None = None
    ) -> None:
        self._bucket = bucket
        self._file = file
        self._keys = tuple(sorted_by)
        self._fields = bucket.table.schema.fields
        self._types = {f.name: f for f in self._fields}
        self._stats: dict[str, ColumnStats] = {}
        self._last: pa.Table | None = None
        self._ends: tuple[Comparable, Comparable] | None = None
        self._in_order = True
        self._deletes = 0
        self._numbers: tuple[int, int] | None = None
        self._placing = placing
        self.rows = 0
        self.misplaced = 0

    def faults(self) -> Iterator[str]:
        """What is not as its metadata say."""
        wanted = (*self._fields, SEQUENCE_NUMBER, VALUE_KIND) if self._keys else self._fields
        for batch in read_data_file(self._bucket, self._file, wanted):
            self._take(pa.Table.from_batches([batch]))
        file = self._file
        if self.rows != file.row_count:
            yield f"holds {self.rows} rows, and {file.row_count} are said of it"
        if self._keys and self.rows:
            yield from self._key_faults()
            yield from self._stats_faults({f.name: f for f in self._keys}, file.key_stats, None)
        # Files of row tracking and data evolution speak of columns that are not the table's, or of a part of them.
        if file.write_cols is None:
            yield from self._stats_faults({f.name: f for f in self._fields}, file.value_stats, file.value_stats_cols)

    def _take(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        if not rows.num_rows:
            return
        for field in self._fields:
            found = collect(rows[field.name].combine_chunks(), field.type)
            kept = self._stats.get(field.name)
            self._stats[field.name] = found if kept is None else combine(kept, found, field.type)
        if self._placing is not None:
            self.misplaced += self._placing.misplaced(rows)
        if self._keys:
            self._take_keys(rows)

    def _take_keys(self, rows: pa.Table) -> None:
        names = [f.name for f in self._keys]
        keys = rows.select([*names, SEQUENCE_NUMBER.name, VALUE_KIND.name])
        if keys[SEQUENCE_NUMBER.name].null_count or keys[VALUE_KIND.name].null_count:
            raise CorruptTable(self._bucket.path, f"{self._file.file_name} holds rows without sequence number or kind")
        together = keys if self._last is None else pa.concat_tables([self._last, keys])
        groups = groups_of(together.combine_chunks(), MergeSpec(self._keys))
        ascending = bool((groups.order == np.arange(together.num_rows)).all())
        self._in_order &= ascending and groups.key_count == together.num_rows
        self._last = keys.slice(keys.num_rows - 1)
        first, last = _key(keys.slice(0, 1), self._keys), _key(self._last, self._keys)
        self._ends = (first if self._ends is None else self._ends[0], last)
        self._deletes += int(np.count_nonzero(retracts(keys)))
        found = pc.min_max(keys[SEQUENCE_NUMBER.name]).as_py()
        low, high = self._numbers or (found["min"], found["max"])
        self._numbers = min(low, found["min"]), max(high, found["max"])

    def _key_faults(self) -> Iterator[str]:
        file, types = self._file, [f.type for f in self._keys]
        if not self._in_order:
            yield "its keys do not ascend, or one is there twice"
        elif self._ends != (comparable(file.min_key, types), comparable(file.max_key, types)):
            yield "its first and last key are not the smallest and the largest that are said of it"
        if file.delete_row_count is not None and file.delete_row_count != self._deletes:
            yield f"holds {self._deletes} deletes, and {file.delete_row_count} are said of it"
        told = (file.min_sequence_number, file.max_sequence_number)
        if self._numbers is not None and (self._numbers[0] < told[0] or self._numbers[1] > told[1]):
            yield f"holds sequence numbers {self._numbers[0]} to {self._numbers[1]}, outside {told[0]} to {told[1]}"

    def _stats_faults(
        self, fields: Mapping[str, DataField], stats: SimpleStats, names: Sequence[str] | None
    ) -> Iterator[str]:
        for name, told in _told(fields, stats, names).items():
            found = self._stats.get(name)
            if found is None:
                continue
            found = _unpadded(self._types[name], found)
            if told.null_count is not None and told.null_count != found.null_count:
                yield f"column {name!r} has {found.null_count} nulls, and {told.null_count} are said of it"
            if not _encloses(told, found):
                yield f"column {name!r} has values outside the bounds that are said of it"


def _told(
    fields: Mapping[str, DataField], stats: SimpleStats, names: Sequence[str] | None
) -> Mapping[str, ColumnStats]:
    """Statistics of the columns, where the file's metadata has any."""
    named = [fields[n] for n in (fields if names is None else names) if n in fields]
    if arity(stats.min_values) != len(named) != 0:
        return {}
    found = column_stats(stats, [f.type for f in named]) if named else ()
    return {f.name: _unpadded(f, of) for f, of in zip(named, found, strict=True)}


def _encloses(told: ColumnStats, found: ColumnStats) -> bool:
    """Whether bounds hold; NaN is left out, because formats differ in where they put it."""
    if any(value != value for value in (told.minimum, told.maximum, found.minimum, found.maximum)):
        return True
    low = told.minimum is None or found.minimum is None or told.minimum <= found.minimum
    return low and (told.maximum is None or found.maximum is None or found.maximum <= told.maximum)


def _unpadded(field: DataField, stats: ColumnStats) -> ColumnStats:
    """ORC pads CHAR with blanks, in bounds or in values."""
    if not isinstance(field.type, CharType) or stats.minimum is None or stats.maximum is None:
        return stats
    return evolve(stats, minimum=stats.minimum.rstrip(" "), maximum=stats.maximum.rstrip(" "))


def _key(row: pa.Table, fields: Sequence[DataField]) -> Comparable:
    return comparable_values([to_values(row[f.name].combine_chunks(), f.type)[0] for f in fields])
