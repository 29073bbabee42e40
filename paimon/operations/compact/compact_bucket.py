"""Compact one bucket: the function that each task of a compaction runs, in this process or on Spark.

Invariant: the new files have, key by key, the merged rows of the files that were read. Memory use stays within the
budget whatever the size of the files. A failed task leaves no file.

Source: `MergeTreeCompactTask`, `AppendCompactTask`, `MergeTreeCompactRewriter`, `ChangelogMergeTreeRewriter`.
"""

# The plan of a bucket (`plan_bucket.py`) names groups of sections. Files of one section overlap, sections do not, and
# each group is written to files of its own. What else a group needs is its `Merging`:
#
#     PLAIN    records of the group alone                       rows
#     LOOKUP   + the newest older record of each key, from      rows, and changes (old row -> new row) or deletion
#              the levels above the output                      vectors of the old rows
#     TOP      + the records of the top level                   rows, and changes from the top level
#
#     section      key  1 2 3 . 5      windows of records, all records of a key together
#     above                2   4 5     looked up: 2 and 5, unless the section has an older record of them
#     merged            1 2 3   5      data file on the output level
#     changelog         +1 -2 +2 +3 …  changelog file
#
# A file that only changes its level is not written. If it leaves level 0 and a changelog or deletion vectors depend on
# it, it is read all the same (`examined`). All files that a failed task wrote are deleted.

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.changelog.compaction_changelog_columnar import (
    Compacted,
    Found,
    build_window,
    compact_window,
    select_keys_to_find,
)
from paimon.domain.changelog.compaction_changelog_rules import ChangeRules
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.errors import InvalidRequest
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.unit_plan import Merging, UnitPlan, choose_merging, list_looked_up_files
from paimon.domain.lsm.keys import to_comparable_key
from paimon.domain.lsm.record_expiry_columnar import mask_unexpired
from paimon.domain.lsm.sorted_run import Section, SortedRun
from paimon.domain.maintenance.small_files import Pack
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import mask_retracts
from paimon.domain.scan.row_id_groups import first_row_id_of
from paimon.domain.scan.splits import DataSplit
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER, TRACKING_FIELDS, VALUE_KIND
from paimon.domain.undo import undo_on_failure
from paimon.operations.compact.compact_clustered import ClusteredWork
from paimon.operations.compact.lookup import Lookup, LookupResult, UpperLevels
from paimon.operations.compact.lookup_cache import BucketLookupFiles, LookupCache
from paimon.operations.compact.plan_bucket import BucketWork
from paimon.operations.compact.section_read import SectionRead, read_in_order
from paimon.operations.data_files.deletion_vectors import (
    BucketVectors,
    WorkingVectors,
    get_bucket_vectors,
    read_bucket_vectors,
)
from paimon.operations.data_files.external_sort import sort_rows
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.data_files.write_data_files import FileLayout, RollingFiles
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.read.data_evolution_read import read_data_evolution_files
from paimon.operations.table_context import TableContext

Group = tuple[Section, ...]


def compact_bucket(context: TableContext, work: BucketWork, copies: LookupCache | None = None) -> CommitMessage:
    """Compact one bucket and return the commit message.

    Rows in files of higher levels that newer rows replace are marked in deletion vectors, if the table has them.
    `copies` are the lookup files of a writer that compacts the same buckets repeatedly. Raises `InvalidRequest` if the
    table was opened before its schema changed, and files of the newer schema would be replaced.
    """
    bucket, vectors = open_bucket(context, work)
    output = OutputFiles(context, work.directory, work.output_level)
    lookup_files = copies.of((work.partition, work.bucket)) if copies is not None else None
    with undo_on_failure(output.remove):
        for pack in work.packs:
            if context.options.data_evolution_enabled:
                _join_row_groups(bucket, pack, work.columns, output, vectors)
            else:
                with output.data_files(pack[0].min_sequence_number) as data:
                    read = read_in_order(bucket, pack, vectors)
                    for rows in sort_rows(context.engine, read, work.order) if work.order else read:
                        data.write(rows)
        if work.unit is not None:
            UnitWork.of(bucket, work.unit, output, vectors, lookup_files).run()
        if work.clustered is not None:
            for rows in ClusteredWork(bucket, work.clustered, vectors, lookup_files).read_outputs():
                with output.data_files() as data:
                    for part in rows:
                        data.write(part)
        index = vectors.write({f.file_name for f in work.rewritten})
    upgrades = work.unit.upgrades if work.unit else ()
    upgraded = tuple(evolve(f, level=work.unit.output_level) for f in upgrades) if work.unit else ()
    increment = CompactIncrement(
        (*work.rewritten, *upgrades),
        (*output.data, *upgraded),
        output.changelog,
        index.new,
        index.deleted,
        _list_looked_up(context, work),
        work.clustered is not None or (work.unit is not None and work.unit.drop_deletes),
    )
    return CommitMessage(work.partition, work.bucket, work.total_buckets, work.directory, compact=increment)


def _join_row_groups(
    bucket: Bucket, pack: Pack, names: Collection[str], output: OutputFiles, vectors: WorkingVectors
) -> None:
    """Write the rows of neighbouring groups of files to one file, with their ids and their deletion vectors."""
    columns = tuple(f for f in bucket.context.schema.fields if f.name in names)
    with output.joined_file(pack, columns) as data:
        for batch in read_data_evolution_files(bucket, pack, columns):
            data.write(pa.Table.from_batches([batch]))
    joined = output.data[-1]
    for file in pack:
        vector = vectors.find_vector(file)
        if vector is not None:
            start = first_row_id_of(file) - first_row_id_of(joined)
            vectors.mark(joined, start + np.flatnonzero(vector.mask(0, file.row_count)))


def open_bucket(context: TableContext, work: BucketWork) -> tuple[Bucket, WorkingVectors]:
    """Return the bucket to read, and its deletion vectors; `InvalidRequest` if the context has an older schema."""
    if work.outdates(context.schema.id):
        raise InvalidRequest(
            f"Table {context.table.table_name!r} has a newer schema than this handle: compaction would lose columns.",
            hint="open the table again",
        )
    return Bucket.of(context, _as_split(work)), WorkingVectors(context, _find_vectors(context, work))


def _list_looked_up(context: TableContext, work: BucketWork) -> list[str]:
    if work.clustered is not None:
        return [f.file_name for f in work.clustered.kept]
    if work.unit is None:
        return []
    return [f.file_name for f in list_looked_up_files(work.unit, [f.type for f in context.schema.key_fields])]


def _find_vectors(context: TableContext, work: BucketWork) -> BucketVectors:
    key = work.partition, work.bucket
    if work.vectors is not None or not context.options.deletion_vectors_enabled:
        return work.vectors or BucketVectors(*key)
    by_bucket = read_bucket_vectors(context, latest_snapshot(context))
    return get_bucket_vectors(by_bucket, key)


def _as_split(work: BucketWork) -> DataSplit:
    """Return all files that may be read."""
    others = (*work.unit.upgrades, *work.unit.above) if work.unit else ()
    if work.clustered is not None:
        others = work.clustered.kept
    files = (*work.rewritten, *others)
    return DataSplit(0, work.partition, work.bucket, work.total_buckets, work.directory, files)


@frozen(eq=False)
class UnitWork:
    """The rewrite of one compaction unit of a bucket."""

    bucket: Bucket
    plan: UnitPlan
    rules: CompactionRules
    output: OutputFiles
    # updated by the rewrite, which marks replaced rows of higher levels
    vectors: WorkingVectors
    # the lookup files of the bucket; None if there is no lookup cache
    copies: BucketLookupFiles | None = None

    @classmethod
    def of(
        cls,
        bucket: Bucket,
        plan: UnitPlan,
        output: OutputFiles,
        vectors: WorkingVectors,
        copies: BucketLookupFiles | None = None,
    ) -> UnitWork:
        """Prepare the rewrite with the rules of the table's options; `run` executes it."""
        return cls(bucket, plan, CompactionRules.of(bucket.context.options), output, vectors, copies)

    def run(self) -> None:
        """Rewrite all groups of files, and write the changes of files that only move."""
        for group in self.plan.rewrites:
            merging = choose_merging(_list_files(group), self.plan, self.rules)
            if merging is Merging.PLAIN:
                self._rewrite_group(group)
            else:
                self._merge_group(group, merging, rewrites=True)
        for file in self.plan.examined:
            group = ((SortedRun((file,)),),)
            self._merge_group(group, choose_merging([file], self.plan, self.rules), rewrites=False)

    def _rewrite_group(self, group: Group) -> None:
        spec = MergeSpec.of(self.bucket.context.schema, self.bucket.context.options)
        section_read = evolve(SectionRead.for_merge(self.bucket, spec, self.vectors), expiry=self.plan.expiry)
        with self.output.data_files() as data:
            for section in group:
                for rows in section_read.read_merged(section):
                    data.write(self._drop_deletes(rows))

    def _merge_group(self, group: Group, merging: Merging, rewrites: bool) -> None:
        """Merge a group, with records of higher levels where necessary; write its rows, its changes, or both."""
        table = self.bucket.context.table
        top = self.plan.top_level if merging is Merging.TOP else None
        rules = evolve(ChangeRules.of(table.schema, table.options, top), only_moves_file=not rewrites)
        with ExitStack() as files:
            data = files.enter_context(self.output.data_files()) if rewrites else None
            changelog = files.enter_context(self.output.changelog_files()) if rules.writes_changelog else None
            for result in self._merge_sections(group, rules):
                if data is not None:
                    data.write(self._drop_deletes(result.rows))
                if changelog is not None:
                    changelog.write(result.changes)

    def _merge_sections(self, group: Group, rules: ChangeRules) -> Iterator[Compacted]:
        above = _to_runs(self.plan.above) if rules.columns_above is not None else ()
        section_read = SectionRead.for_changelog(
            self.bucket, rules.spec, self.vectors, above if rules.columns_above else ()
        )
        section_read = evolve(section_read, expiry=self.plan.expiry)
        lookup = Lookup(self._to_upper_levels(group, rules, section_read)) if above else None
        for section in group:
            for records in section_read.windows(section):
                window = build_window(records, rules)
                found = None if lookup is None else lookup.find(select_keys_to_find(window, rules))
                if found is not None and rules.marks_deletions:
                    self._mark_replaced(found)
                yield compact_window(window, self._filter_found(found, rules), rules)

    def _filter_found(self, found: LookupResult | None, rules: ChangeRules) -> Found | None:
        """Return the looked-up records that take part in the merge. Expired ones are marked, but treated as absent."""
        if found is None or (rules.marks_deletions and not rules.merges_above):
            return None
        # First-row looks up keys only, so that expired records in higher levels still count.
        unexpired = mask_unexpired(found.rows, self.plan.expiry) if rules.merges_above else None
        if unexpired is None:
            return Found(found.rows, found.requested)
        return Found(found.rows.filter(from_numpy(unexpired)), found.requested[unexpired])

    def _mark_replaced(self, found: LookupResult) -> None:
        """Mark the rows that newer rows replace as deleted."""
        for index, file in enumerate(found.files):
            self.vectors.mark(file, found.positions[found.file_of == index])

    def _to_upper_levels(self, group: Group, rules: ChangeRules, section_read: SectionRead) -> UpperLevels:
        names = {*(rules.columns_above or ()), *rules.spec.key_names}
        wanted = [f for f in self.bucket.context.schema.fields if f.name in names]
        types = [f.type for f in rules.spec.key_fields]
        through = max((f.max_key for f in _list_files(group)), key=lambda key: to_comparable_key(key, types))
        limit = min((section_read.limit_batches(section) for section in group), key=lambda limit: limit.rows)
        return UpperLevels(
            self.bucket,
            self.plan.above,
            (*wanted, SEQUENCE_NUMBER, VALUE_KIND, LEVEL),
            through,
            limit,
            returns_positions=rules.marks_deletions,
            vector_of=self.vectors.find_vector,
            copies=self.copies,
        )

    def _drop_deletes(self, rows: pa.Table) -> pa.Table:
        deleted = mask_retracts(rows) if self.plan.drop_deletes else None
        return rows if deleted is None or not deleted.any() else rows.filter(from_numpy(~deleted))


def _list_files(group: Group) -> list[DataFileMeta]:
    return [f for section in group for run in section for f in run.files]


def _to_runs(files: Sequence[DataFileMeta]) -> tuple[SortedRun, ...]:
    """Return one sorted run for each level."""
    levels = sorted({f.level for f in files})
    return tuple(SortedRun(tuple(f for f in files if f.level == level)) for level in levels)


class OutputFiles:
    """The files written so far; a state machine."""

    def __init__(self, context: TableContext, directory: str, level: int) -> None:
        self._context = context
        self._directory = directory
        self._level = level
        self.data: list[DataFileMeta] = []
        self.changelog: list[DataFileMeta] = []

    @contextmanager
    def data_files(self, sequence: int = 0) -> Iterator[RollingFiles]:
        """Open a writer of data files for rows in key order; rows of append tables are numbered from `sequence`.

        Tracked rows keep their ids and sequence numbers, which `read_in_order` reads.
        """
        layout = FileLayout.of(self._context.table, self._level, FileSource.COMPACT)
        if self._context.options.row_tracking_enabled:
            layout = layout.with_columns((*layout.fields, *TRACKING_FIELDS))
        with self._rolling(layout, sequence, self.data) as rolling:
            yield rolling

    @contextmanager
    def joined_file(self, pack: Pack, columns: tuple[DataField, ...]) -> Iterator[RollingFiles]:
        """Open a writer of one file with columns of all rows of a pack, in ascending order of row ids."""
        layout = FileLayout.of(self._context.table, self._level, FileSource.COMPACT).with_columns(columns)
        if columns == self._context.schema.fields:
            layout = evolve(layout, write_cols=None)
        written: list[DataFileMeta] = []
        with self._rolling(layout.without_limits(), 0, written) as rolling:
            yield rolling
        first = min(map(first_row_id_of, pack))
        least, largest = min(f.min_sequence_number for f in pack), max(f.max_sequence_number for f in pack)
        self.data += [
            evolve(file, min_sequence_number=least, max_sequence_number=largest, first_row_id=first) for file in written
        ]

    @contextmanager
    def changelog_files(self) -> Iterator[RollingFiles]:
        """Open a writer of changelog files for changes in ascending order of keys."""
        with self._rolling(FileLayout.of_changelog(self._context.table, self._level), 0, self.changelog) as rolling:
            yield rolling

    def remove(self) -> None:
        """Delete all files written so far."""
        written = (*self.data, *self.changelog)
        paths = [path for f in written for path in f.paths_in(self._directory)]
        self.data, self.changelog = [], []
        self._context.files.delete(paths)

    @contextmanager
    def _rolling(self, layout: FileLayout, sequence: int, into: list[DataFileMeta]) -> Iterator[RollingFiles]:
        rolling = RollingFiles(self._context.engine, evolve(layout, target_rows=None), self._directory, sequence)
        with undo_on_failure(rolling.abort):
            yield rolling
            into += rolling.close()
