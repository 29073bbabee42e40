"""The request for a scan plan, and the plan as a value.

Invariant: Two plans of the same request for the same snapshot are equal.
Source: `DataTableScan`, `TableScan.Plan`.
"""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from paimon.domain.markup import format_count, format_size
from paimon.domain.predicate.expression import Predicate
from paimon.domain.report import CardDisplay, Grid, Report, ShownText
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.text_layout import TextColumn


class ScanKind(Enum):
    """The files of a snapshot to plan: all live files, the files that it added, or its changelog files."""

    ALL = "all"
    DELTA = "delta"
    CHANGELOG = "changelog"


@frozen(hash=False)
class ScanRequest:
    """A request for a scan plan."""

    # the snapshot to read; None for an empty table
    snapshot: Snapshot | None
    # bound; a plan leaves out only files in which it is true for no row
    predicate: Predicate | None = None
    # None for all buckets
    buckets: frozenset[int] | None = None
    # delta and changelog plans do not merge, include level 0 and postponed files, and prune each file alone
    kind: ScanKind = ScanKind.ALL
    # the lowest level to include
    min_level: int = 0
    # leave out files created earlier, by the clock of their writers, in epoch milliseconds
    made_since_millis: int | None = None
    # whether level 0 is merged in, even if batch reads skip it until it is compacted
    shows_level_0: bool = False


@frozen
class PruneStep:
    """One step of planning: the number of objects before and after it, and the bytes of the remaining files.

    The steps for manifests, partitions, buckets and splits count these objects. All other steps count files. Blocks of
    manifests that were not decoded, because they lack the partitions of the plan, do not count before a step.
    """

    name: str
    before: int
    after: int
    size_bytes: int = 0


@frozen(hash=False, repr=False)
class Plan(CardDisplay):
    """The splits to read, and the steps of planning."""

    snapshot: Snapshot | None
    schema_id: int
    splits: tuple[DataSplit, ...] = ()
    steps: tuple[PruneStep, ...] = field(default=())

    @property
    def row_count(self) -> int:
        """The physical rows of all files, before merging and filtering."""
        return sum(split.row_count for split in self.splits)

    @property
    def merged_row_count(self) -> int | None:
        """The rows that a read without a predicate returns; None if only merging can determine it."""
        counts = [split.merged_row_count for split in self.splits]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def file_count(self) -> int:
        """The number of files to read."""
        return sum(len(split.files) for split in self.splits)

    @property
    def size_bytes(self) -> int:
        """The size of the files to read."""
        return sum(split.file_size for split in self.splits)

    @property
    def summary(self) -> str:
        """The files to read, in one line."""
        merged = sum(not split.raw_convertible for split in self.splits)
        return (
            f"{format_count(self.file_count, 'file')}, {format_size(self.size_bytes)}, "
            f"{format_count(self.row_count, 'stored record')} in {format_count(len(self.splits), 'split')} "
            f"({merged} to be merged)"
        )

    def __repr__(self) -> str:
        return f"Plan(snapshot {'none' if self.snapshot is None else self.snapshot.id}: {self.summary})"

    def _report(self) -> Report:
        columns = (
            TextColumn("step", False, tuple(s.name for s in self.steps)),
            TextColumn("before", True, tuple(f"{s.before:,}" for s in self.steps)),
            TextColumn("after", True, tuple(f"{s.after:,}" for s in self.steps)),
            TextColumn("bytes left", True, tuple(format_size(s.size_bytes) for s in self.steps)),
        )
        facts = [
            ("snapshot", "none yet" if self.snapshot is None else self.snapshot.summary),
            ("schema", str(self.schema_id)),
            ("reads", self.summary),
        ]
        return Report("plan", "Plan", facts, (Grid(columns),) if self.steps else ())

    def explain(self) -> str:
        """Return the steps and the result as text, one line each."""
        lines = [f"  {s.name}: {s.before} -> {s.after} ({format_size(s.size_bytes)})" for s in self.steps]
        vectors = [d.range.cardinality or 0 for split in self.splits for d in split.deletion_files if d is not None]
        if vectors:
            deleted = f"{format_count(sum(vectors), 'row')} of {format_count(len(vectors), 'file')}"
            lines.append(f"  deletion vectors delete {deleted}")
        return ShownText("\n".join([*lines, f"  reads {self.summary}"]))
