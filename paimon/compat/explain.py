"""The plan of a read as pypaimon describes it.

Source: `pypaimon.read.explain`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field

from paimon.compat.predicate import Predicate, to_paimon_predicate
from paimon.compat.splits import DataSplit, from_paimon_splits
from paimon.domain.predicate.text import format_predicate
from paimon.domain.scan.scan_plan import Plan as PaimonPlan

if TYPE_CHECKING:
    from paimon.compat.table import FileStoreTable


@define
class PruningStat:
    """The number of objects before and after a step of planning."""

    before: int | None
    after: int | None

    @property
    def pruned(self) -> int | None:
        """The number of objects that the step removed."""
        return None if self.before is None or self.after is None else self.before - self.after

    def format(self) -> str:
        """Return both numbers as a text."""
        if self.before is None and self.after is None:
            return "n/a"
        before, after = ("?" if number is None else str(number) for number in (self.before, self.after))
        return f"{before} -> {after}" + ("" if self.pruned is None else f"  (pruned {self.pruned})")


@define
class ExplainSplitInfo:
    """One split of a plan."""

    partition: dict[str, Any]
    bucket: int
    file_count: int
    row_count: int
    merged_row_count: int | None
    file_size: int
    raw_convertible: bool
    has_deletion_vectors: bool
    level_histogram: dict[int, int]
    deletion_file_count: int
    file_paths: list[str]
    data_files: list[Any] | None = None


@define
class ExplainResult:
    """A plan: what is read, what was pruned, and the sizes of the splits; its text has one line for each fact."""

    table_identifier: str
    is_primary_key_table: bool
    bucket_mode: str
    deletion_vectors_enabled: bool
    data_evolution_enabled: bool
    snapshot_id: int | None
    schema_id: int | None
    predicate: str | None = None
    projection: list[str] | None = None
    limit: int | None = None
    partition_pruning: PruningStat | None = None
    bucket_pruning: PruningStat | None = None
    file_skipping: PruningStat | None = None
    file_count: int = 0
    total_file_size: int = 0
    estimated_row_count: int = 0
    estimated_merged_row_count: int | None = None
    deletion_file_count: int = 0
    level_histogram: dict[int, int] = field(factory=dict)
    split_count: int = 0
    splits_raw_convertible: int = 0
    splits_with_deletion_vectors: int = 0
    splits_all_above_l0: int = 0
    files_per_split_min: int = 0
    files_per_split_max: int = 0
    files_per_split_avg: float = 0.0
    split_size_min: int = 0
    split_size_max: int = 0
    split_size_avg: float = 0.0
    splits: list[ExplainSplitInfo] | None = None

    def __str__(self) -> str:
        snapshot = "<none>" if self.snapshot_id is None else self.snapshot_id
        lines = [
            f"Table:       {self.table_identifier}",
            f"Snapshot:    {snapshot} (schema {self.schema_id})",
            f"Predicate:   {self.predicate or '<none>'}",
            f"Projection:  {self.projection or '<all>'}",
            f"Limit:       {'<none>' if self.limit is None else self.limit}",
            f"Files:       {self.file_count}",
            f"Total size:  {self.total_file_size} bytes",
            f"Rows:        {self.estimated_row_count} stored",
            f"Splits:      {self.split_count}",
            f"  raw-convertible: {self.splits_raw_convertible}",
            f"  with DV:         {self.splits_with_deletion_vectors}",
            f"  size/split:      {self.split_size_min} to {self.split_size_max} bytes",
        ]
        return "\n".join(lines)


def explain_plan(
    table: FileStoreTable,
    planned: PaimonPlan,
    predicate: Predicate | None,
    selection: tuple[list[str] | None, int | None],
    verbose: bool,
) -> ExplainResult:
    """Describe a plan."""
    splits = from_paimon_splits(planned.splits, table.inner.table_schema)
    infos = [_describe_split(split) for split in splits]
    result = ExplainResult(
        table_identifier=table.identifier.get_full_name(),
        is_primary_key_table=table.is_primary_key_table,
        bucket_mode=table.bucket_mode().name,
        deletion_vectors_enabled=table.options.deletion_vectors_enabled(),
        data_evolution_enabled=table.options.data_evolution_enabled(),
        snapshot_id=None if planned.snapshot is None else planned.snapshot.id,
        schema_id=planned.schema_id,
        predicate=None if predicate is None else format_predicate(to_paimon_predicate(predicate)),
        projection=selection[0],
        limit=selection[1],
        splits=infos if verbose else None,
    )
    if predicate is not None:
        _add_pruning(result, planned)
    _add_sizes(result, infos)
    return result


def _describe_split(split: DataSplit) -> ExplainSplitInfo:
    vectors = sum(vector is not None for vector in split.inner.deletion_files)
    return ExplainSplitInfo(
        partition=split.partition.to_dict(),
        bucket=split.bucket,
        file_count=len(split.files),
        row_count=split.row_count,
        merged_row_count=split.merged_row_count(),
        file_size=split.file_size,
        raw_convertible=split.raw_convertible,
        has_deletion_vectors=vectors > 0,
        level_histogram=dict(Counter(file.level for file in split.files)),
        deletion_file_count=vectors,
        file_paths=split.file_paths,
    )


def _add_pruning(result: ExplainResult, planned: PaimonPlan) -> None:
    steps = {step.name: PruningStat(step.before, step.after) for step in planned.steps}
    manifests, partitions = steps.get("manifests"), steps.get("partitions")
    if partitions is not None and manifests is not None and partitions.before is not None:
        # Manifests without a matching partition are left out before their partitions are counted.
        partitions = PruningStat(partitions.before + (manifests.pruned or 0), partitions.after)
    result.partition_pruning = partitions
    result.bucket_pruning = steps.get("buckets")
    result.file_skipping = next((stat for name, stat in steps.items() if "statistics" in name), None)


def _add_sizes(result: ExplainResult, splits: Sequence[ExplainSplitInfo]) -> None:
    levels: Counter[int] = Counter()
    for split in splits:
        levels.update(split.level_histogram)
    merged = [split.merged_row_count for split in splits]
    result.split_count = len(splits)
    result.level_histogram = dict(levels)
    result.file_count = sum(split.file_count for split in splits)
    result.total_file_size = sum(split.file_size for split in splits)
    result.estimated_row_count = sum(split.row_count for split in splits)
    result.estimated_merged_row_count = None if None in merged else sum(count or 0 for count in merged)
    result.deletion_file_count = sum(split.deletion_file_count for split in splits)
    result.splits_raw_convertible = sum(split.raw_convertible for split in splits)
    result.splits_with_deletion_vectors = sum(split.has_deletion_vectors for split in splits)
    result.splits_all_above_l0 = sum(0 not in split.level_histogram for split in splits)
    if splits:
        files, sizes = [s.file_count for s in splits], [s.file_size for s in splits]
        result.files_per_split_min, result.files_per_split_max = min(files), max(files)
        result.files_per_split_avg = sum(files) / len(files)
        result.split_size_min, result.split_size_max = min(sizes), max(sizes)
        result.split_size_avg = sum(sizes) / len(sizes)
