"""Rewrite the files of one compaction unit of a merge tree, and write the changelog of the compaction.

Invariant: the new files have, key by key, the merged rows of the files that were read. Where lookups are needed, the
newest record in higher levels takes part. The changelog leads from the rows before to the rows after.

Source: `MergeTreeCompactRewriter`, `ChangelogMergeTreeRewriter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

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
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.unit_plan import Merging, UnitPlan, choose_merging
from paimon.domain.lsm.keys import to_comparable_key
from paimon.domain.lsm.record_expiry_columnar import mask_unexpired
from paimon.domain.lsm.sorted_run import Section, SortedRun
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import mask_retracts
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.compact.lookup import Lookup, LookupResult
from paimon.operations.compact.lookup_cache import BucketLookupFiles
from paimon.operations.compact.lookup_file import UpperLevels
from paimon.operations.compact.output_files import OutputFiles
from paimon.operations.compact.section_read import SectionRead
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.data_files.working_vectors import WorkingVectors

Group = tuple[Section, ...]


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
        return Found(found.rows.filter(pa.array(unexpired)), found.requested[unexpired])

    def _mark_replaced(self, found: LookupResult) -> None:
        """Mark the rows that newer rows replace as deleted."""
        for index, file in enumerate(found.files):
            self.vectors.mark(file, found.positions[found.file_of == index])

    def _to_upper_levels(self, group: Group, rules: ChangeRules, section_read: SectionRead) -> UpperLevels:
        names = {*(rules.columns_above or ()), *rules.spec.key_names}
        wanted = [f for f in self.bucket.context.schema.fields if f.name in names]
        types = [f.type for f in rules.spec.key_fields]
        through = max((f.max_key for f in _list_files(group)), key=lambda key: to_comparable_key(key, types))
        rows = min(section_read.batch_rows(section) for section in group)
        return UpperLevels(
            self.bucket,
            self.plan.above,
            (*wanted, SEQUENCE_NUMBER, VALUE_KIND, LEVEL),
            through,
            rows,
            returns_positions=rules.marks_deletions,
            vector_of=self.vectors.find_vector,
            copies=self.copies,
        )

    def _drop_deletes(self, rows: pa.Table) -> pa.Table:
        deleted = mask_retracts(rows) if self.plan.drop_deletes else None
        return rows if deleted is None or not deleted.any() else rows.filter(pa.array(~deleted))


def _list_files(group: Group) -> list[DataFileMeta]:
    return [f for section in group for run in section for f in run.files]


def _to_runs(files: Sequence[DataFileMeta]) -> tuple[SortedRun, ...]:
    """Return one sorted run for each level."""
    levels = sorted({f.level for f in files})
    return tuple(SortedRun(tuple(f for f in files if f.level == level)) for level in levels)
