"""Check one data file of a state: the unit of a deep check, which any executor can run.

Invariant: the result depends on the file and its metadata only. What cannot be read is a fault of the result. The file
is read in batches, so memory use does not depend on its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from paimon.domain.bucket.bucket_columnar import compute_buckets
from paimon.domain.bucket.key_hashes import Hashes
from paimon.domain.errors import CorruptTable, PaimonError
from paimon.domain.lsm.keys import Comparable, to_comparable_key, to_comparable_values
from paimon.domain.maintenance.fault import Fault, FaultKind, FileReport
from paimon.domain.manifest.entries import DataFileMeta, IndexManifestEntry, ManifestEntry
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import group_rows_by_key, mask_retracts
from paimon.domain.row.binary_row import read_arity
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.row.values import to_values
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.rules.layout import UNAWARE
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.stats.collect import collect_column_stats, combine_column_stats
from paimon.domain.stats.simple_stats import ColumnStats, SimpleStats, from_simple_stats
from paimon.domain.types.data_types import CharType, DataField, DataType
from paimon.domain.types.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.buckets.hash_index_files import read_hashes
from paimon.operations.data_files.file_indexes import check_indexes
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.fsck.states import to_fault
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.table_context import TableContext


@frozen
class FileTask:
    """A data file to check."""

    entry: ManifestEntry
    path: str
    # the name of the state that references the file
    state: str
    # the hash index of its bucket; None if it has none
    index: IndexManifestEntry | None = None


def check_file(context: TableContext, task: FileTask) -> FileReport:
    """Compare a data file with its metadata; `context` is the table at the schema of the state that references it."""
    faults: list[Fault] = []
    content: FileContent | None = None
    try:
        content = _open_content(context, task)
        faults += [Fault(FaultKind.CONTENT, task.path, reason, [task.state]) for reason in content.faults()]
    except PaimonError as error:
        faults.append(to_fault(error, task.path, [task.state]))
        return FileReport(0, faults)
    try:
        check_indexes(context.engine, task.path, task.entry.file, content.types)
    except PaimonError as error:
        fault = to_fault(error, task.path, [task.state])
        faults.append(evolve(fault, reason=f"{fault.reason}; rewrite_file_index rebuilds it"))
    if content.misplaced:
        reason = f"has {content.misplaced} rows whose key belongs in another bucket"
        faults.append(Fault(FaultKind.PLACE, task.path, reason, [task.state]))
    return FileReport(content.rows, faults)


def _open_content(context: TableContext, task: FileTask) -> FileContent:
    entry = task.entry
    directory = task.path.rpartition("/")[0]
    split = DataSplit(0, entry.partition, entry.bucket, entry.total_buckets, directory, (entry.file,))
    written = load_schema(context.engine, context.paths, entry.file.schema_id)
    at_schema = context.with_table(evolve(context.table, schema=written))
    keys = written.key_fields if context.table.sorted_key_types and entry.bucket >= 0 else ()
    return FileContent(Bucket.of(at_schema, split), entry.file, keys, _find_placement(context, at_schema, task))


def _find_placement(
    context: TableContext, at_schema: TableContext, task: FileTask
) -> BucketPlacement | HashPlacement | None:
    entry = task.entry
    placement = BucketPlacement.of(at_schema.table, entry)
    is_dynamic = context.table.bucket_mode is BucketMode.DYNAMIC
    if placement is None and is_dynamic and entry.total_buckets < 1 and entry.bucket >= 0:
        return _read_hash_placement(context, task.index)
    return placement


@frozen
class BucketPlacement:
    """The bucket in which a row with a given key belongs."""

    keys: tuple[DataField, ...]
    function: str
    bucket: int
    total: int

    @classmethod
    def of(cls, table: TableDefinition, entry: ManifestEntry) -> BucketPlacement | None:
        """Return the placement of a file; None if no key selects its bucket."""
        names = table.schema.bucket_keys
        if table.options.bucket == UNAWARE or entry.total_buckets <= 0 or entry.bucket < 0 or not names:
            return None
        fields = tuple(table.schema.field_of(name) for name in names)
        return cls(fields, table.options.bucket_function, entry.bucket, entry.total_buckets)

    def count_misplaced(self, rows: pa.Table) -> int:
        """Return how many rows belong in another bucket."""
        columns = [rows[f.name].combine_chunks() for f in self.keys]
        found = compute_buckets(columns, [f.type for f in self.keys], self.total, self.function)
        return int(np.count_nonzero(found != self.bucket))


@frozen(eq=False)
class HashPlacement:
    """The keys that belong in one dynamic bucket."""

    keys: tuple[DataField, ...]
    # the hashes of the keys of the bucket, ascending
    hashes: Hashes

    def count_misplaced(self, rows: pa.Table) -> int:
        """Return how many rows have a key whose hash is not in the index of the bucket."""
        columns = [rows[f.name].combine_chunks() for f in self.keys]
        found = hash_rows(columns, [f.type for f in self.keys])
        return int(np.count_nonzero(~np.isin(found, self.hashes)))


def _read_hash_placement(context: TableContext, entry: IndexManifestEntry | None) -> HashPlacement | None:
    """Read the hash index of a dynamic bucket; None if it cannot be read, which another check reports."""
    keys = context.schema.key_fields
    if entry is None:
        return HashPlacement(keys, np.zeros(0, np.int32))
    try:
        return HashPlacement(keys, np.sort(read_hashes(context, entry)))
    except PaimonError:
        return None


class FileContent:
    """Read a file and compare it with its metadata.

    `bucket` is at the schema that the file was written with; `sorted_by` is empty if no key orders the file. After
    `faults`, `rows` is the number of rows, and `misplaced` the number of rows that belong in another bucket.
    """

    def __init__(
        self,
        bucket: Bucket,
        file: DataFileMeta,
        sorted_by: Sequence[DataField],
        placement: BucketPlacement | HashPlacement | None = None,
    ) -> None:
        self._bucket = bucket
        self._file = file
        self._keys = tuple(sorted_by)
        self._fields = bucket.context.schema.fields
        self._types = {f.name: f for f in self._fields}
        self._stats: dict[str, ColumnStats] = {}
        self._last: pa.Table | None = None
        self._bounds: tuple[Comparable, Comparable] | None = None
        self._in_order = True
        self._deletes = 0
        self._numbers: tuple[int, int] | None = None
        self._placement = placement
        self.rows = 0
        self.misplaced = 0

    @property
    def types(self) -> dict[str, DataType]:
        """The types of the columns of the file."""
        return {name: field.type for name, field in self._types.items()}

    def faults(self) -> Iterator[str]:
        """Yield a text for each difference between the file and its metadata."""
        wanted = (*self._fields, SEQUENCE_NUMBER, VALUE_KIND) if self._keys else self._fields
        for batch in read_data_file(self._bucket, self._file, wanted):
            self._collect(pa.Table.from_batches([batch]))
        file = self._file
        if self.rows != file.row_count:
            yield f"has {self.rows} rows; its metadata records {file.row_count}"
        if self._keys and self.rows:
            yield from self._find_key_faults()
            yield from self._find_stats_faults({f.name: f for f in self._keys}, file.key_stats, None)
        # The statistics of files of row tracking and data evolution have other columns, or only some.
        if file.write_cols is None:
            yield from self._find_stats_faults(
                {f.name: f for f in self._fields}, file.value_stats, file.value_stats_cols
            )

    def _collect(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        if not rows.num_rows:
            return
        for field in self._fields:
            found = collect_column_stats(rows[field.name].combine_chunks(), field.type)
            kept = self._stats.get(field.name)
            self._stats[field.name] = found if kept is None else combine_column_stats(kept, found, field.type)
        if self._placement is not None:
            self.misplaced += self._placement.count_misplaced(rows)
        if self._keys:
            self._collect_keys(rows)

    def _collect_keys(self, rows: pa.Table) -> None:
        names = [f.name for f in self._keys]
        keys = rows.select([*names, SEQUENCE_NUMBER.name, VALUE_KIND.name])
        if keys[SEQUENCE_NUMBER.name].null_count or keys[VALUE_KIND.name].null_count:
            raise CorruptTable(
                self._bucket.path, f"{self._file.file_name} has rows without sequence number or row kind"
            )
        joined = keys if self._last is None else pa.concat_tables([self._last, keys])
        groups = group_rows_by_key(joined.combine_chunks(), MergeSpec(self._keys))
        ascending = bool((groups.order == np.arange(joined.num_rows)).all())
        self._in_order &= ascending and groups.key_count == joined.num_rows
        self._last = keys.slice(keys.num_rows - 1)
        first, last = _to_key(keys.slice(0, 1), self._keys), _to_key(self._last, self._keys)
        self._bounds = (first if self._bounds is None else self._bounds[0], last)
        self._deletes += int(np.count_nonzero(mask_retracts(keys)))
        found = pc.min_max(keys[SEQUENCE_NUMBER.name]).as_py()
        low, high = self._numbers or (found["min"], found["max"])
        self._numbers = min(low, found["min"]), max(high, found["max"])

    def _find_key_faults(self) -> Iterator[str]:
        file, types = self._file, [f.type for f in self._keys]
        if not self._in_order:
            yield "its keys are not in order, or a key occurs twice"
        elif self._bounds != (to_comparable_key(file.min_key, types), to_comparable_key(file.max_key, types)):
            yield "its first and last key differ from the recorded smallest and largest key"
        if file.delete_row_count is not None and file.delete_row_count != self._deletes:
            yield f"has {self._deletes} deletes; its metadata records {file.delete_row_count}"
        recorded = (file.min_sequence_number, file.max_sequence_number)
        if self._numbers is not None and (self._numbers[0] < recorded[0] or self._numbers[1] > recorded[1]):
            yield "has sequence numbers {} to {}, outside the recorded {} to {}".format(*self._numbers, *recorded)

    def _find_stats_faults(
        self, fields: Mapping[str, DataField], stats: SimpleStats, names: Sequence[str] | None
    ) -> Iterator[str]:
        for name, recorded in _decode_stats(fields, stats, names).items():
            found = self._stats.get(name)
            if found is None:
                continue
            found = _strip_char_padding(self._types[name], found)
            if recorded.null_count is not None and recorded.null_count != found.null_count:
                yield f"column {name!r} has {found.null_count} nulls; its metadata records {recorded.null_count}"
            if not _encloses(recorded, found):
                yield f"column {name!r} has values outside the recorded bounds"


def _decode_stats(
    fields: Mapping[str, DataField], stats: SimpleStats, names: Sequence[str] | None
) -> Mapping[str, ColumnStats]:
    """Return the statistics of the columns that the metadata of the file has."""
    named = [fields[n] for n in (fields if names is None else names) if n in fields]
    if read_arity(stats.min_values) != len(named) != 0:
        return {}
    found = from_simple_stats(stats, [f.type for f in named]) if named else ()
    return {f.name: _strip_char_padding(f, of) for f, of in zip(named, found, strict=True)}


def _encloses(recorded: ColumnStats, found: ColumnStats) -> bool:
    """Return whether bounds are true; NaN is left out, because formats differ in where they order it."""
    if any(value != value for value in (recorded.minimum, recorded.maximum, found.minimum, found.maximum)):
        return True
    low = recorded.minimum is None or found.minimum is None or recorded.minimum <= found.minimum
    return low and (recorded.maximum is None or found.maximum is None or found.maximum <= recorded.maximum)


def _strip_char_padding(field: DataField, stats: ColumnStats) -> ColumnStats:
    """Remove the blanks with which ORC pads CHAR, in bounds or in values."""
    if not isinstance(field.type, CharType) or stats.minimum is None or stats.maximum is None:
        return stats
    return evolve(stats, minimum=stats.minimum.rstrip(" "), maximum=stats.maximum.rstrip(" "))


def _to_key(row: pa.Table, fields: Sequence[DataField]) -> Comparable:
    return to_comparable_values([to_values(row[f.name].combine_chunks(), f.type)[0] for f in fields])
