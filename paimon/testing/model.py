"""TableModel: what a primary-key table must hold, told by the row-wise reference of merging.

Law: the model sees what was written, and which files each commit put in the place of which; what the files hold it
works out by itself, record by record, in the grouping of records into merges that took place. So whatever a table
answers can be compared with `rows`. A state machine; `AssertionError` where files cannot hold what they must.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from paimon.domain.bucket.reference import bucket_of
from paimon.domain.changelog.compaction.reference import compacted
from paimon.domain.changelog.compaction.rules import FIRST_ROW, ChangeRules
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.keys import Comparable, comparable, comparable_values
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.merge.reference.merge import merge
from paimon.domain.merge.reference.record import DELETE, Record
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.row.binary_row import serialize
from paimon.domain.schema.table_definition import TableDefinition

Row: TypeAlias = Mapping[str, Any]
"""All columns by name, as internal values."""
Place: TypeAlias = tuple[bytes, int]
"""A serialised partition and a bucket."""
_UPDATE_BEFORE = 1


def _records(values: Iterable[Record]) -> tuple[Record, ...]:
    return tuple(values)


@frozen(eq=False)
class ModelFile:
    """A data file, and the records that it must hold, ascending by key."""

    meta: DataFileMeta
    records: tuple[Record, ...] = field(converter=_records)

    @property
    def leveled(self) -> list[Record]:
        """The records as a merge sees them."""
        return [evolve(r, level=self.meta.level) for r in self.records]


class TableModel:
    """The files of a table by place and name."""

    def __init__(self, table: TableDefinition) -> None:
        self.table = table
        self.files: dict[Place, dict[str, ModelFile]] = {}

    @property
    def spec(self) -> MergeSpec:
        """How the table merges."""
        return MergeSpec.of(self.table.schema, self.table.options)

    def altered(self, table: TableDefinition) -> None:
        """The table has another schema now; columns that rows lack are null."""
        self.table = table
        missing = dict.fromkeys(table.schema.names)
        for files in self.files.values():
            for name, file in files.items():
                filled = tuple(evolve(r, values=missing | dict(r.values)) for r in file.records)
                files[name] = evolve(file, records=filled)

    def rows(self, least_level: int = 0) -> list[Row]:
        """What the files of these levels say, merged: retracts are not rows."""
        found: list[Row] = []
        for files in self.files.values():
            records = [r for f in files.values() if f.meta.level >= least_level for r in f.leveled]
            found += [r.values for r in merge(records, self.spec) if r.is_add]
        return found

    def visible_rows(self) -> list[Row]:
        """What a batch read answers: level 0 is hidden where only compaction finds out what it replaces."""
        options = self.table.options
        hidden = options.deletion_vectors_enabled and not options.deletion_vectors_merge_on_read
        return self.rows(1 if hidden or options.merge_engine == FIRST_ROW else 0)

    def told_rows(self) -> list[Row]:
        """The state that the changes of a changelog producer have led to: what lookups, or full compactions, saw."""
        producer = self.table.options.changelog_producer
        return self.rows({"lookup": 1, "full-compaction": self._top_level}.get(producer, 0))

    @property
    def _top_level(self) -> int:
        levels = (f.meta.level for files in self.files.values() for f in files.values())
        return max([CompactionRules.of(self.table.options).levels - 1, *levels])

    def add(self, place: Place, files: Iterable[ModelFile]) -> None:
        """Files that a commit added."""
        self.files.setdefault(place, {}).update({f.meta.file_name: f for f in files})

    def clear(self, partitions: Iterable[bytes] | None) -> None:
        """An overwrite took these partitions away; None: all."""
        gone = None if partitions is None else set(partitions)
        self.files = {p: files for p, files in self.files.items() if gone is not None and p[0] not in gone}

    def compacted(self, message: CommitMessage) -> None:
        """A compaction replaced files of a bucket."""
        place = message.partition, message.bucket
        left = {name: f.meta for name, f in self.files.get(place, {}).items()}
        for meta in message.compact.compact_before:
            del left[meta.file_name]
        if message.compact != CompactIncrement():
            self._replace(place, left | {m.file_name: m for m in message.compact.compact_after})

    def follow(self, live: Iterable[ManifestEntry]) -> None:
        """These files are live now: what is new holds what is gone, merged; others may have changed their level."""
        after: dict[Place, dict[str, DataFileMeta]] = {}
        for entry in live:
            after.setdefault((entry.partition, entry.bucket), {})[entry.file.file_name] = entry.file
        for place in self.files.keys() | after.keys():
            self._replace(place, after.get(place, {}))

    def _replace(self, place: Place, after: Mapping[str, DataFileMeta]) -> None:
        before = self.files.get(place, {})
        made = [meta for name, meta in after.items() if name not in before]
        stays = [f for name, f in before.items() if name in after and after[name].level == f.meta.level]
        worked = [f for f in before.values() if f not in stays]
        if not worked and not made:
            return
        records = self._compacted(before.values(), [f for f in worked if f.meta.file_name not in after], made, stays)
        new = [r for f in worked if f.meta.level == 0 for r in f.records]
        kept = {name: evolve(file, meta=after[name]) for name, file in before.items() if name in after}
        if self.table.options.deletion_vectors_enabled:
            keys = {_key(r, self.spec) for r in new}
            for file in stays:
                left = [r for r in file.records if file.meta.level == 0 or _key(r, self.spec) not in keys]
                kept[file.meta.file_name] = evolve(file, records=left)
        self.files[place] = kept | {f.meta.file_name: f for f in placed(records, made, self.spec)}

    def _compacted(
        self,
        tree: Iterable[ModelFile],
        gone: Sequence[ModelFile],
        made: Sequence[DataFileMeta],
        stays: Sequence[ModelFile],
    ) -> list[Record]:
        """What the new files hold: the files that are gone, merged, where lookups are needed with what stays above."""
        records = [r for f in gone for r in f.leveled]
        above = sorted((r for f in stays if f.meta.level > 0 for r in f.leveled), key=lambda r: r.level)
        found = {_key(r, self.spec): r for r in reversed(above)}
        if self.table.options.needs_lookup and any(f.meta.level == 0 for f in gone):
            rules = ChangeRules.of(self.table.schema, self.table.options, None)
            merged, _ = compacted(records, lambda r: found.get(_key(r, self.spec)), rules)
        else:
            merged = merge(records, self.spec)
        levels = {meta.level for meta in made}
        assert len(levels) <= 1, f"one compaction of a bucket writes to levels {levels}"
        highest = max((f.meta.level for f in tree), default=0)
        if self.table.options.deletion_vectors_enabled or all(level >= highest for level in levels):
            merged = [r for r in merged if r.is_add]
        return merged


class ModelWriter:
    """One writer of the model's table: rows go in as they come, files are told of as they are flushed.

    `anew`: for overwrites, whose sequence numbers begin at 0.
    """

    def __init__(self, model: TableModel, anew: bool = False) -> None:
        self._model = model
        self._anew = anew
        self._next: dict[Place, int] = {}
        self._buffer: dict[Place, list[Record]] = {}

    def write(self, rows: Sequence[Row], kinds: Sequence[int]) -> None:
        """Rows in the order in which they come."""
        options = self._model.table.options
        dropped = {_UPDATE_BEFORE, DELETE} if options.ignore_delete else set()
        dropped |= {_UPDATE_BEFORE} if options.ignore_update_before else set()
        for row, kind in zip(rows, kinds, strict=True):
            if kind not in dropped:
                place = place_of(row, self._model.table)
                self._buffer.setdefault(place, []).append(Record(row, self._number(place), kind))

    def flush(self, messages: Iterable[CommitMessage]) -> None:
        """What was written since the last flush became the new files of these messages, and was compacted perhaps."""
        spec = evolve(self._model.spec, lookup=False, ignore_delete=False)
        written = dict(self._buffer)
        self._buffer = {}
        for message in messages:
            place = message.partition, message.bucket
            for records, files in self._flushes(written.pop(place, []), message.data.new_files):
                self._model.add(place, placed(merge(records, spec), files, spec))
            self._model.compacted(message)
        assert not written, f"rows were written to {len(written)} buckets that have no files"

    def _flushes(
        self, records: Sequence[Record], metas: Sequence[DataFileMeta]
    ) -> Iterator[tuple[list[Record], Sequence[DataFileMeta]]]:
        """What was merged together: all, or where the buffer cannot spill, up to the newest record of each file."""
        if self._model.table.options.write_buffer_spillable:
            yield list(records), metas
            return
        before = -1
        for meta in metas:
            yield [r for r in records if before < r.sequence <= meta.max_sequence_number], [meta]
            before = meta.max_sequence_number

    def _number(self, place: Place) -> int:
        if place not in self._next:
            files = [] if self._anew else self._model.files.get(place, {}).values()
            self._next[place] = max((f.meta.max_sequence_number for f in files), default=-1) + 1
        self._next[place] += 1
        return self._next[place] - 1


def place_of(row: Row, table: TableDefinition) -> Place:
    """Where a row belongs."""
    schema = table.schema
    parts, keys = schema.partition_fields, [schema.field_of(name) for name in schema.bucket_keys]
    partition = serialize([row[f.name] for f in parts], [f.type for f in parts])
    bucket = bucket_of([row[f.name] for f in keys], [f.type for f in keys], table.options.bucket)
    return partition, bucket


def placed(records: Sequence[Record], metas: Iterable[DataFileMeta], spec: MergeSpec) -> list[ModelFile]:
    """The records in the files whose key ranges hold them; what the files say of themselves must fit."""
    types = [f.type for f in spec.key_fields]
    files = []
    metas = list(metas)
    for meta in metas:
        low, high = comparable(meta.min_key, types), comparable(meta.max_key, types)
        files.append(ModelFile(meta, [r for r in records if low <= _key(r, spec) <= high]))
    told = [
        (f.meta.row_count, f.meta.delete_row_count, f.meta.min_sequence_number, f.meta.max_sequence_number)
        for f in files
    ]
    expected = [_described(f.records) for f in files]
    assert told == expected, f"files say (rows, retracts, first and last number) {told}, they hold {expected}"
    held = sum(len(f.records) for f in files)
    assert held == len(records), f"of {len(records)} records {held} are in files: {records} in {metas}"
    return files


def _key(record: Record, spec: MergeSpec) -> Comparable:
    return comparable_values([record.values[name] for name in spec.key_names])


def _described(records: Sequence[Record]) -> tuple[int, int, int, int]:
    numbers = [r.sequence for r in records] or [0]
    return len(records), sum(not r.is_add for r in records), min(numbers), max(numbers)
