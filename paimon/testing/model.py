"""TableModel: the expected contents of a primary-key table, computed with the row-wise reference of merging.

Invariant: the model receives the written rows, and which files each commit replaced. It computes the contents of the
files itself, record by record, with the same groups of records per merge. Reads of the table can therefore be compared
with `rows`. The model is a state machine. It raises `AssertionError` if files cannot have the expected contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from paimon.domain.bucket.bucket_rule import compute_bucket
from paimon.domain.changelog.compaction_changelog_reference import compact_records
from paimon.domain.changelog.compaction_changelog_rules import ChangeRules
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.keys import Comparable, to_comparable_key, to_comparable_values
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.merge.merge_engines import is_oldest_winning
from paimon.domain.merge.merge_reference import merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import DELETE, Record
from paimon.domain.row.binary_row import serialize
from paimon.domain.schema.table_definition import TableDefinition

Row: TypeAlias = Mapping[str, Any]
"""All columns by name, as internal values."""
PartitionBucket: TypeAlias = tuple[bytes, int]
"""A serialized partition and a bucket number."""
_UPDATE_BEFORE = 1


def _records(values: Iterable[Record]) -> tuple[Record, ...]:
    return tuple(values)


@frozen(eq=False)
class ModelFile:
    """A data file and its expected records, ascending by key."""

    meta: DataFileMeta
    records: tuple[Record, ...] = field(converter=_records)

    @property
    def records_with_level(self) -> list[Record]:
        """The records with the level of the file, as a merge receives them."""
        return [evolve(r, level=self.meta.level) for r in self.records]


class TableModel:
    """The expected files of a table, by bucket and file name.

    Parameters
    ----------
    table : TableDefinition
        A table with a primary key and fixed buckets.
    """

    def __init__(self, table: TableDefinition) -> None:
        self.table = table
        self.files: dict[PartitionBucket, dict[str, ModelFile]] = {}

    @property
    def spec(self) -> MergeSpec:
        """The merge engine of the table, with its settings."""
        return MergeSpec.of(self.table.schema, self.table.options)

    def apply_schema_change(self, table: TableDefinition) -> None:
        """Use another schema; new columns of existing rows are null."""
        self.table = table
        missing = dict.fromkeys(table.schema.names)
        for files in self.files.values():
            for name, file in files.items():
                filled = tuple(evolve(r, values=missing | dict(r.values)) for r in file.records)
                files[name] = evolve(file, records=filled)

    def rows(self, min_level: int = 0) -> list[Row]:
        """Return the merged rows of the files on this level and above, without retracts."""
        found: list[Row] = []
        for files in self.files.values():
            records = [r for f in files.values() if f.meta.level >= min_level for r in f.records_with_level]
            found += [r.values for r in merge(records, self.spec) if r.is_add]
        return found

    def visible_rows(self) -> list[Row]:
        """Return the rows that a batch read returns; tables that need lookups hide level 0."""
        options = self.table.options
        hidden = options.deletion_vectors_enabled and not options.deletion_vectors_merge_on_read
        return self.rows(1 if hidden or is_oldest_winning(options.merge_engine) else 0)

    def reported_rows(self) -> list[Row]:
        """Return the rows to which the changelog has led so far: those that a lookup or a full compaction has seen."""
        producer = self.table.options.changelog_producer
        return self.rows({"lookup": 1, "full-compaction": self._top_level}.get(producer, 0))

    @property
    def _top_level(self) -> int:
        levels = (f.meta.level for files in self.files.values() for f in files.values())
        return max([CompactionRules.of(self.table.options).levels - 1, *levels])

    def add_files(self, bucket: PartitionBucket, files: Iterable[ModelFile]) -> None:
        """Add the files of a commit to a bucket."""
        self.files.setdefault(bucket, {}).update({f.meta.file_name: f for f in files})

    def remove_partitions(self, partitions: Iterable[bytes] | None) -> None:
        """Remove the files of these serialized partitions, or all files for None, as an overwrite does."""
        removed = None if partitions is None else set(partitions)
        self.files = {p: files for p, files in self.files.items() if removed is not None and p[0] not in removed}

    def apply_compaction(self, message: CommitMessage) -> None:
        """Replace files of a bucket as a compaction did."""
        bucket = message.partition, message.bucket
        remaining = {name: f.meta for name, f in self.files.get(bucket, {}).items()}
        for meta in message.compact.compact_before:
            del remaining[meta.file_name]
        if message.compact != CompactIncrement():
            self._replace_files(bucket, remaining | {m.file_name: m for m in message.compact.compact_after})

    def apply_rescale(self, table: TableDefinition, live: Iterable[ManifestEntry]) -> None:
        """Use another number of buckets, and these new files, which contain the merged rows by arrival.

        The rows of the old buckets arrive one bucket after another, each in ascending order of keys.
        """
        records: dict[PartitionBucket, list[Record]] = {}
        for _, files in sorted(self.files.items()):
            for record in merge([r for f in files.values() for r in f.records_with_level], self.spec):
                if record.is_add:
                    bucket = records.setdefault(find_bucket(record.values, table), [])
                    bucket.append(evolve(record, sequence=len(bucket)))
        self.files, self.table = {}, table
        new_files: dict[PartitionBucket, list[DataFileMeta]] = {}
        for entry in live:
            new_files.setdefault((entry.partition, entry.bucket), []).append(entry.file)
        assert new_files.keys() == records.keys(), "each bucket with rows has files, and no other"
        for place, found in records.items():
            ordered = sorted(found, key=lambda r: _key_of(r, self.spec))
            self.add_files(place, assign_to_files(ordered, new_files[place], self.spec))

    def apply_live_files(self, live: Iterable[ManifestEntry]) -> None:
        """Use these live files: new files contain the merged records of the removed ones; others may change level."""
        after: dict[PartitionBucket, dict[str, DataFileMeta]] = {}
        for entry in live:
            after.setdefault((entry.partition, entry.bucket), {})[entry.file.file_name] = entry.file
        for bucket in self.files.keys() | after.keys():
            self._replace_files(bucket, after.get(bucket, {}))

    def _replace_files(self, bucket: PartitionBucket, after: Mapping[str, DataFileMeta]) -> None:
        before = self.files.get(bucket, {})
        new_files = [meta for name, meta in after.items() if name not in before]
        unchanged = [f for name, f in before.items() if name in after and after[name].level == f.meta.level]
        changed = [f for f in before.values() if f not in unchanged]
        if not changed and not new_files:
            return
        removed = [f for f in changed if f.meta.file_name not in after]
        records = self._compact_files(before.values(), removed, new_files, unchanged)
        level_0_records = [r for f in changed if f.meta.level == 0 for r in f.records]
        remaining = {name: evolve(file, meta=after[name]) for name, file in before.items() if name in after}
        if self.table.options.deletion_vectors_enabled:
            keys = {_key_of(r, self.spec) for r in level_0_records}
            for file in unchanged:
                visible = [r for r in file.records if file.meta.level == 0 or _key_of(r, self.spec) not in keys]
                remaining[file.meta.file_name] = evolve(file, records=visible)
        self.files[bucket] = remaining | {f.meta.file_name: f for f in assign_to_files(records, new_files, self.spec)}

    def _compact_files(
        self,
        tree: Iterable[ModelFile],
        removed: Sequence[ModelFile],
        new_files: Sequence[DataFileMeta],
        unchanged: Sequence[ModelFile],
    ) -> list[Record]:
        """Return the records of the new files: those of the removed files, merged, with lookups in unchanged files."""
        records = [r for f in removed for r in f.records_with_level]
        above = sorted((r for f in unchanged if f.meta.level > 0 for r in f.records_with_level), key=lambda r: r.level)
        older_records = {_key_of(r, self.spec): r for r in reversed(above)}
        if self.table.options.needs_lookup and any(f.meta.level == 0 for f in removed):
            rules = ChangeRules.of(self.table.schema, self.table.options, None)
            merged, _ = compact_records(records, lambda r: older_records.get(_key_of(r, self.spec)), rules)
        else:
            merged = merge(records, self.spec)
        levels = {meta.level for meta in new_files}
        assert len(levels) <= 1, f"one compaction of a bucket writes to one level, not to {levels}"
        highest = max((f.meta.level for f in tree), default=0)
        if self.table.options.deletion_vectors_enabled or all(level >= highest for level in levels):
            merged = [r for r in merged if r.is_add]
        return merged


class ModelWriter:
    """One writer of the table of a model: it receives the rows, and the files of each flush.

    Parameters
    ----------
    model : TableModel
        The table.
    is_overwrite : bool
        Whether sequence numbers start at 0 instead of behind those of the existing files.
    """

    def __init__(self, model: TableModel, is_overwrite: bool = False) -> None:
        self._model = model
        self._is_overwrite = is_overwrite
        self._next: dict[PartitionBucket, int] = {}
        self._buffer: dict[PartitionBucket, list[Record]] = {}

    def write(self, rows: Sequence[Row], kinds: Sequence[int]) -> None:
        """Write rows in this order, each with its row kind (0 +I, 1 -U, 2 +U, 3 -D)."""
        options = self._model.table.options
        dropped = {_UPDATE_BEFORE, DELETE} if options.ignore_delete else set()
        dropped |= {_UPDATE_BEFORE} if options.ignore_update_before else set()
        for row, kind in zip(rows, kinds, strict=True):
            if kind not in dropped:
                bucket = find_bucket(row, self._model.table)
                self._buffer.setdefault(bucket, []).append(Record(row, self._next_sequence_number(bucket), kind))

    def flush(self, messages: Iterable[CommitMessage]) -> None:
        """Assign the rows since the last flush to the new files of these messages, and apply their compactions."""
        spec = evolve(self._model.spec, lookup=False, ignore_delete=False)
        written = dict(self._buffer)
        self._buffer = {}
        for message in messages:
            bucket = message.partition, message.bucket
            for records, files in self._group_by_flush(written.pop(bucket, []), message.data.new_files):
                self._model.add_files(bucket, assign_to_files(merge(records, spec), files, spec))
            self._model.apply_compaction(message)
        assert not written, f"rows were written to {len(written)} buckets that have no files"

    def _group_by_flush(
        self, records: Sequence[Record], metas: Sequence[DataFileMeta]
    ) -> Iterator[tuple[list[Record], Sequence[DataFileMeta]]]:
        """Return the records that were merged together: all, or one group per file if the buffer cannot spill."""
        if self._model.table.options.write_buffer_spillable:
            yield list(records), metas
            return
        before = -1
        for meta in metas:
            yield [r for r in records if before < r.sequence <= meta.max_sequence_number], [meta]
            before = meta.max_sequence_number

    def _next_sequence_number(self, bucket: PartitionBucket) -> int:
        if bucket not in self._next:
            files = [] if self._is_overwrite else self._model.files.get(bucket, {}).values()
            self._next[bucket] = max((f.meta.max_sequence_number for f in files), default=-1) + 1
        self._next[bucket] += 1
        return self._next[bucket] - 1


def find_bucket(row: Row, table: TableDefinition) -> PartitionBucket:
    """Return the serialized partition and the bucket of a row."""
    schema = table.schema
    partition_fields, keys = schema.partition_fields, [schema.field_of(name) for name in schema.bucket_keys]
    partition = serialize([row[f.name] for f in partition_fields], [f.type for f in partition_fields])
    bucket = compute_bucket([row[f.name] for f in keys], [f.type for f in keys], table.options.bucket)
    return partition, bucket


def assign_to_files(records: Sequence[Record], metas: Iterable[DataFileMeta], spec: MergeSpec) -> list[ModelFile]:
    """Assign the records to the files with their key ranges, and check the metadata of the files.

    Parameters
    ----------
    records : sequence of Record
        Merged records, ascending by key.
    metas : iterable of DataFileMeta
        Files with key ranges that do not overlap.
    spec : MergeSpec
        The key columns.

    Returns
    -------
    list of ModelFile
        The files in the given order. `AssertionError` is raised if a record has no file, or if counts or sequence
        numbers of a file differ from its records.
    """
    types = [f.type for f in spec.key_fields]
    files = []
    for meta in metas:
        low, high = to_comparable_key(meta.min_key, types), to_comparable_key(meta.max_key, types)
        files.append(ModelFile(meta, [r for r in records if low <= _key_of(r, spec) <= high]))
    _check_metadata(files)
    assigned = sum(len(f.records) for f in files)
    named = [f.meta for f in files]
    assert assigned == len(records), f"{assigned} of {len(records)} records are in files: {records} in {named}"
    return files


def _check_metadata(files: Sequence[ModelFile]) -> None:
    recorded = [
        (f.meta.row_count, f.meta.delete_row_count, f.meta.min_sequence_number, f.meta.max_sequence_number)
        for f in files
    ]
    expected = [_describe_records(f.records) for f in files]
    assert recorded == expected, (
        f"files record (rows, retracts, first and last sequence number) {recorded}, they must contain {expected}"
    )


def _key_of(record: Record, spec: MergeSpec) -> Comparable:
    return to_comparable_values([record.values[name] for name in spec.key_names])


def _describe_records(records: Sequence[Record]) -> tuple[int, int, int, int]:
    numbers = [r.sequence for r in records] or [0]
    return len(records), sum(not r.is_add for r in records), min(numbers), max(numbers)
