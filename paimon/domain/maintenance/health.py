"""The health of a table as values: the facts that are gathered, and the findings that they lead to.

Invariant: a finding names one object, what it costs in a figure, and the procedure that repairs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import field, frozen

from paimon.domain.maintenance.bucket_layout import BucketColumns, BucketShape, LayoutRules
from paimon.domain.maintenance.snapshot_expiry import RetentionReason
from paimon.domain.markup import format_count, format_size
from paimon.domain.options.table_options import TableOptions
from paimon.domain.report import Grid, ListingDisplay, Report
from paimon.domain.text_layout import TextColumn


class FindingKind(Enum):
    """The kind of a finding, in the order of repairs; the value is its name in reports."""

    UNREAD_ROWS = "unread_rows"
    SMALL_FILES = "small_files"
    DELETION_VECTORS = "deletion_vectors"
    SORTED_RUNS = "sorted_runs"
    FILE_INDEX = "file_index"
    MANIFESTS = "manifests"
    STATISTICS = "statistics"
    SNAPSHOTS = "snapshots"
    CHANGELOGS = "changelogs"
    ORPHANS = "orphans"
    CONSUMERS = "consumers"
    BUCKET_SKEW = "bucket_skew"
    PARTITION_SKEW = "partition_skew"


def _to_dict(values: Mapping[str, object]) -> Mapping[str, object]:
    return dict(values)


@frozen(hash=False)
class Repair:
    """The call of one procedure that repairs a finding."""

    procedure: str
    # by the names of CALL
    arguments: Mapping[str, object] = field(converter=_to_dict, factory=dict)
    # table options for this call alone
    call_options: Mapping[str, str] = field(factory=dict)
    # table options that are stored before, such as those that declare a file index
    table_options: Mapping[str, str] = field(factory=dict)
    # whether `fix` runs it; otherwise a person decides
    is_automatic: bool = True

    def to_statement(self, table_name: str) -> str:
        """Return the repair as SQL."""
        given = {"table": table_name, **self.arguments}
        if self.call_options:
            given["options"] = ",".join(f"{key}={value}" for key, value in self.call_options.items())
        call = f"CALL sys.{self.procedure}({', '.join(f'{n} => {_to_literal(v)}' for n, v in given.items())})"
        if not self.table_options:
            return call
        name = ".".join(f"`{part}`" for part in table_name.split("."))
        options = ", ".join(f"{_to_literal(key)} = {_to_literal(value)}" for key, value in self.table_options.items())
        return f"ALTER TABLE {name} SET TBLPROPERTIES ({options}); {call}"


def _to_literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


@frozen(hash=False)
class Finding:
    """One object of a table that costs more than it should."""

    kind: FindingKind
    # the bucket, partition, consumer, column or table
    object_name: str
    cost: int
    # what `cost` counts
    unit: str
    detail: str = ""
    # None if this library has no repair for the table
    repair: Repair | None = None
    # after a repair of the table: the cost that remains
    cost_after: int | None = None
    # what was done, or why nothing was; None if no repair was asked for
    outcome: str | None = None
    # whether a repair was begun and failed; `outcome` says why
    has_failed: bool = False


def _to_findings(values: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(values)


def _to_shapes(values: Sequence[BucketShape]) -> tuple[BucketShape, ...]:
    return tuple(values)


@frozen(hash=False)
class TableHealth(ListingDisplay):
    """The health of a table: findings in the order of repairs, and the shape of its worst buckets."""

    # name and location end in the branch, if it is not main
    table_name: str
    location: str
    # None for a table without snapshots
    snapshot_id: int | None
    files: int = 0
    size_bytes: int = 0
    buckets: int = 0
    findings: tuple[Finding, ...] = field(converter=_to_findings, default=())
    shapes: tuple[BucketShape, ...] = field(converter=_to_shapes, default=(), repr=False)
    # the same buckets after repairs; None without
    shapes_after: tuple[BucketShape, ...] | None = field(default=None, repr=False)
    # what could not be examined
    notes: tuple[str, ...] = ()

    @property
    def is_healthy(self) -> bool:
        """Whether nothing costs more than it should, or all of it was repaired."""
        return all(finding.cost_after == 0 for finding in self.findings)

    def _report(self) -> Report:
        columns: Mapping[str, tuple[bool, list[str]]] = {
            "kind": (False, [f.kind.value for f in self.findings]),
            "object": (False, [f.object_name for f in self.findings]),
            "cost": (True, [f"{f.cost:,}" for f in self.findings]),
            "unit": (False, [f.unit for f in self.findings]),
            "outcome": (False, [f.outcome or "" for f in self.findings]),
            "repair": (False, [f.repair.to_statement(self.table_name) if f.repair else "" for f in self.findings]),
        }
        grid = Grid(tuple(TextColumn(name, numeric, tuple(cells)) for name, (numeric, cells) in columns.items()))
        facts = [
            ("snapshot", "none" if self.snapshot_id is None else str(self.snapshot_id)),
            ("size", f"{format_count(self.files, 'file')}, {format_size(self.size_bytes)}"),
            ("buckets", f"{self.buckets:,}"),
            ("findings", str(len(self.findings)) if self.findings else "none"),
        ]
        return Report(self.table_name, "Table health", facts, (*((grid,) if self.findings else ()), *self.notes))


@frozen
class ManifestFacts:
    """The manifests of a snapshot."""

    count: int
    # those that are small, or have DELETE entries
    to_merge: int
    # the limit of the option `manifest.merge-min-count`
    merge_min_count: int
    deleted_entries: int
    live_entries: int


@frozen
class ExpiryFacts:
    """What could expire by the retention of the table."""

    expirable: int = 0
    # the ids that could expire, as text
    ids: str = ""
    retained_by: tuple[RetentionReason, ...] = ()


@frozen
class VectorFacts:
    """The deletion vectors of a snapshot."""

    # files with a larger share of deleted rows than `compaction.delete-ratio-threshold`
    worn_files: int = 0
    # the deleted rows of these files
    deleted_rows: int = 0
    # the file with the most deleted rows
    worst_file: str = ""


@frozen
class FilterFacts:
    """What a condition on one column reads, if only column statistics skip files."""

    column: str
    # the kind of index that can decide the condition
    index_kind: str
    files: int
    size_bytes: int
    # whether the options declare such an index, so that only files lack it
    is_declared: bool = False
    # whether an observer counted the bytes of all scans, and no files
    is_observed: bool = False


@frozen(hash=False, eq=False)
class TableFacts:
    """What an assessment needs to know of a table at a snapshot."""

    table_name: str
    options: TableOptions
    rules: LayoutRules
    layout: BucketColumns
    # the names of `layout.partition_rows`; empty texts for a table without partitions
    partition_names: tuple[str, ...]
    manifests: ManifestFacts
    # whether batch reads skip level 0 until it is compacted
    hides_level_0: bool = False
    # why compaction refuses the table
    refusal: str | None = None
    snapshot_rows: int = 0
    # the rows when the table was analyzed; None if it was not
    analyzed_rows: int | None = None
    snapshots: ExpiryFacts = ExpiryFacts()
    changelogs: ExpiryFacts = ExpiryFacts()
    vectors: VectorFacts = VectorFacts()
    filters: tuple[FilterFacts, ...] = ()
    orphan_files: int = 0
    orphan_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """The size of all live files."""
        return int(self.layout.size_bytes.sum())

    def name_bucket(self, place: int) -> str:
        """Return the name of the bucket at a position of `layout`."""
        number = int(self.layout.buckets[place])
        bucket = "bucket-postpone" if number < 0 else f"bucket-{number}"
        partition = self.partition_names[int(self.layout.partitions[place])]
        return f"{partition}/{bucket}" if partition else bucket
