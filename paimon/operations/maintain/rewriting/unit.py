"""Rewriting the files of a merge tree's compaction unit, and telling what that changes.

Law: what is written holds, key by key, what merging the files read (and, where lookups are needed, the newest record
above) holds; what is told leads from the rows before to the rows after. Source: `MergeTreeCompactRewriter`,
`ChangelogMergeTreeRewriter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.changelog.compaction.columnar import Compacted, Found, compacted, keys_to_find, window_of
from paimon.domain.changelog.compaction.rules import ChangeRules
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.unit_plan import Merging, UnitPlan, merging_of
from paimon.domain.lsm.expiry.columnar import unexpired
from paimon.domain.lsm.keys import comparable
from paimon.domain.lsm.sorted_run import Section, SortedRun
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.columnar.ordering.order import retracts
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.deletion.working import WorkingVectors
from paimon.operations.maintain.rewriting.local_copies import BucketCopies
from paimon.operations.maintain.rewriting.made import MadeFiles
from paimon.operations.maintain.rewriting.probe import Probe, Probed
from paimon.operations.maintain.rewriting.probed_file import Above
from paimon.operations.maintain.rewriting.read import SectionRead
from paimon.operations.read.data_file import Bucket

Group = tuple[Section, ...]


@frozen(eq=False)
class UnitWork:
    """One unit of one bucket, the files that it makes, the rows above its output that it deletes, and the local
    copies of files in which it looks keys up.
    """

    bucket: Bucket
    plan: UnitPlan
    rules: CompactionRules
    made: MadeFiles
    vectors: WorkingVectors
    copies: BucketCopies | None = None

    @classmethod
    def of(
        cls,
        bucket: Bucket,
        plan: UnitPlan,
        made: MadeFiles,
        vectors: WorkingVectors,
        copies: BucketCopies | None = None,
    ) -> UnitWork:
        """The work by the table's options."""
        return cls(bucket, plan, CompactionRules.of(bucket.table.options), made, vectors, copies)

    def run(self) -> None:
        """Does all of it."""
        for group in self.plan.rewrites:
            merging = merging_of(_files(group), self.plan, self.rules)
            if merging is Merging.PLAIN:
                self._rewrite(group)
            else:
                self._compact(group, merging, rewrites=True)
        for file in self.plan.examined:
            group = ((SortedRun((file,)),),)
            self._compact(group, merging_of([file], self.plan, self.rules), rewrites=False)

    def _rewrite(self, group: Group) -> None:
        spec = MergeSpec.of(self.bucket.table.schema, self.bucket.table.options)
        reading = evolve(SectionRead.plain(self.bucket, spec, self.vectors), expiry=self.plan.expiry)
        with self.made.data_files() as data:
            for section in group:
                for rows in reading.merged(section):
                    data.write(self._kept(rows))

    def _compact(self, group: Group, merging: Merging, rewrites: bool) -> None:
        """Merges a group, with what lies above where that is needed; writes its rows, its changes, or both."""
        table = self.bucket.table
        top = self.plan.top_level if merging is Merging.TOP else None
        rules = evolve(ChangeRules.of(table.schema, table.options, top), moves=not rewrites)
        with ExitStack() as files:
            data = files.enter_context(self.made.data_files()) if rewrites else None
            changelog = files.enter_context(self.made.changelog_files()) if rules.tells else None
            for made in self._compacted(group, rules):
                if data is not None:
                    data.write(self._kept(made.rows))
                if changelog is not None:
                    changelog.write(made.changes)

    def _compacted(self, group: Group, rules: ChangeRules) -> Iterator[Compacted]:
        above = _runs(self.plan.above) if rules.columns_above is not None else ()
        reading = SectionRead.telling(self.bucket, rules.spec, self.vectors, above if rules.columns_above else ())
        reading = evolve(reading, expiry=self.plan.expiry)
        probe = Probe(self._above(group, rules, reading)) if above else None
        for section in group:
            for records in reading.windows(section):
                window = window_of(records, rules)
                probed = None if probe is None else probe.find(keys_to_find(window, rules))
                if probed is not None and rules.marks:
                    self._mark(probed)
                yield compacted(window, self._used(probed, rules), rules)

    def _used(self, probed: Probed | None, rules: ChangeRules) -> Found | None:
        """What was found, as far as it is merged or told of; expired records are marked, but otherwise not there."""
        if probed is None or (rules.marks and not rules.merges_above):
            return None
        # First-row asks for keys alone, so that expired records above still count.
        kept = unexpired(probed.rows, self.plan.expiry) if rules.merges_above else None
        if kept is None:
            return Found(probed.rows, probed.asked)
        return Found(probed.rows.filter(pa.array(kept)), probed.asked[kept])

    def _mark(self, probed: Probed) -> None:
        """Rows of which there is a newer one are deleted."""
        for place, file in enumerate(probed.files):
            self.vectors.mark(file, probed.positions[probed.file_of == place])

    def _above(self, group: Group, rules: ChangeRules, reading: SectionRead) -> Above:
        names = {*(rules.columns_above or ()), *rules.spec.key_names}
        wanted = [f for f in self.bucket.table.schema.fields if f.name in names]
        types = [f.type for f in rules.spec.key_fields]
        through = max((f.max_key for f in _files(group)), key=lambda key: comparable(key, types))
        rows = min(reading.batch_rows(section) for section in group)
        return Above(
            self.bucket,
            self.plan.above,
            (*wanted, SEQUENCE_NUMBER, VALUE_KIND, LEVEL),
            through,
            rows,
            tells_positions=rules.marks,
            vector_of=self.vectors.of,
            copies=self.copies,
        )

    def _kept(self, rows: pa.Table) -> pa.Table:
        gone = retracts(rows) if self.plan.drop_deletes else None
        return rows if gone is None or not gone.any() else rows.filter(pa.array(~gone))


def _files(group: Group) -> list[DataFileMeta]:
    return [f for section in group for run in section for f in run.files]


def _runs(files: Sequence[DataFileMeta]) -> tuple[SortedRun, ...]:
    """The files of each level."""
    levels = sorted({f.level for f in files})
    return tuple(SortedRun(tuple(f for f in files if f.level == level)) for level in levels)
