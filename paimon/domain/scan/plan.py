"""What is asked of a plan, and what it answers.

Law: a plan is a value: planning the same request at the same snapshot again gives an equal one. Source:
`DataTableScan`, `TableScan.Plan`.
"""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from paimon.domain.markup import Column, count_of, format_card, format_grid, format_size
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot


class ScanKind(Enum):
    """Which files of a snapshot are planned: all live ones, those that it added, or its changelog files."""

    ALL = "all"
    DELTA = "delta"
    CHANGELOG = "changelog"


@frozen(hash=False)
class ScanRequest:
    """What to plan.

    Parameters
    ----------
    snapshot : Snapshot, optional
        The snapshot to read; None: an empty table.
    predicate : Predicate, optional
        Bound to the table's columns. A plan only leaves out files where it holds for no row.
    buckets : frozenset of int, optional
        Plan these buckets alone.
    kind : ScanKind
        Delta and changelog plans are read without merging: they see level 0 and the postponed bucket, and no value is
        filtered by statistics of other files.
    min_level : int
        Leave out files of lower levels.
    made_since_millis : int, optional
        Leave out files that were made before, by the wall clock of their writers.
    shows_level_0 : bool
        Merge level 0 in, also where batch reads leave it out until it is compacted.
    """

    snapshot: Snapshot | None
    predicate: Predicate | None = None
    buckets: frozenset[int] | None = None
    kind: ScanKind = ScanKind.ALL
    min_level: int = 0
    made_since_millis: int | None = None
    shows_level_0: bool = False


@frozen
class PruneStep:
    """One step of planning: how many things there were before and after, and the bytes of those left.

    Manifests, partitions, buckets and splits are counted in the steps named after them, files in all others.
    """

    name: str
    before: int
    after: int
    size_bytes: int = 0


@frozen(hash=False, repr=False)
class Plan:
    """Splits to read, and how planning got there."""

    snapshot: Snapshot | None
    schema_id: int
    splits: tuple[DataSplit, ...] = ()
    steps: tuple[PruneStep, ...] = field(default=())

    @property
    def row_count(self) -> int:
        """Physical rows of all files, before merging and filtering."""
        return sum(split.row_count for split in self.splits)

    @property
    def merged_row_count(self) -> int | None:
        """Rows that a read without a predicate returns; None where files must be merged to know."""
        counts = [split.merged_row_count for split in self.splits]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def file_count(self) -> int:
        """Files to read."""
        return sum(len(split.files) for split in self.splits)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files to read."""
        return sum(split.file_size for split in self.splits)

    @property
    def summary(self) -> str:
        """What is read, in a line."""
        merged = sum(not split.raw_convertible for split in self.splits)
        return (
            f"{count_of(self.file_count, 'file')}, {format_size(self.size_bytes)}, "
            f"{count_of(self.row_count, 'stored row')} in {count_of(len(self.splits), 'split')} ({merged} to be merged)"
        )

    def __repr__(self) -> str:
        return f"Plan(snapshot {'none' if self.snapshot is None else self.snapshot.id}: {self.summary})"

    def _repr_html_(self) -> str:
        columns = [Column("step"), *(Column(name, is_number=True) for name in ("before", "after", "bytes left"))]
        rows = [[s.name, f"{s.before:,}", f"{s.after:,}", format_size(s.size_bytes)] for s in self.steps]
        facts = [
            ("snapshot", "none yet" if self.snapshot is None else self.snapshot.summary),
            ("schema", str(self.schema_id)),
            ("reads", self.summary),
        ]
        return format_card("plan", "Plan", facts, format_grid(columns, rows) if rows else "")

    def explain(self) -> str:
        """The steps and the result as text, one line each."""
        lines = [f"  {s.name}: {s.before} -> {s.after} ({format_size(s.size_bytes)})" for s in self.steps]
        merged = sum(not split.raw_convertible for split in self.splits)
        vectors = [d.range.cardinality or 0 for split in self.splits for d in split.deletion_files if d is not None]
        if vectors:
            lines.append(f"  deletion vectors: {sum(vectors)} rows of {len(vectors)} files are deleted")
        lines.append(
            f"  reads {self.file_count} files, {format_size(self.size_bytes)}, {self.row_count} stored records in "
            f"{len(self.splits)} splits ({merged} to be merged)"
        )
        return "\n".join(lines)
