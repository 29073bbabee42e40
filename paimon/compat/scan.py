"""Splits, the scans that plan them, and what a scan prunes, by the names of pypaimon.

Source: `pypaimon.read`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, evolve, field

from paimon.compat.catalog_values import state_errors
from paimon.compat.predicate import Predicate, to_paimon_predicate
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.rows import GenericRow
from paimon.compat.schema import from_paimon_fields
from paimon.compat.stored_table import StoredTable
from paimon.domain.predicate.text import format_predicate
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.values import to_array
from paimon.domain.scan.scan_plan import Plan as PaimonPlan
from paimon.domain.scan.splits import DataSplit as PaimonSplit
from paimon.domain.schema.table_schema import TableSchema

if TYPE_CHECKING:
    from paimon.builders.read_builder import ReadBuilder as PaimonReadBuilder


T = TypeVar("T")


class DataFile:
    """The metadata of a data file: the members of the manifest entry, and its path."""

    def __init__(self, inner: Any, file_path: str) -> None:
        self.inner = inner
        self.file_path = file_path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name, name=name, obj=self)
        return getattr(self.inner, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataFile) and self.file_path == other.file_path

    def __hash__(self) -> int:
        return hash(self.file_path)

    def __reduce__(self) -> tuple[Any, ...]:
        return DataFile, (self.inner, self.file_path)

    def __repr__(self) -> str:
        return f"DataFile({self.file_path!r})"


class Split(PeerClass, ABC):
    """The base of all splits."""

    @property
    @abstractmethod
    def files(self) -> list[Any]:
        """The metadata of the data files."""

    @property
    @abstractmethod
    def partition(self) -> GenericRow:
        """The values of the partition columns."""

    @property
    @abstractmethod
    def bucket(self) -> int:
        """The number of the bucket."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The rows that the files store."""

    def merged_row_count(self) -> int | None:
        """Return the number of rows that a read returns; None if it is not known before."""
        return None


class DataSplit(Split):
    """Files of one bucket, which one task reads; it pickles."""

    def __init__(self, inner: PaimonSplit, partition: GenericRow, is_state: bool = True) -> None:
        self.inner = inner
        self._partition = partition
        self.is_state = is_state

    @property
    def files(self) -> list[Any]:
        """The metadata of the data files."""
        return [DataFile(file, path) for file, path in zip(self.inner.files, self.inner.file_paths, strict=True)]

    @property
    def partition(self) -> GenericRow:
        """The values of the partition columns."""
        return self._partition

    @property
    def bucket(self) -> int:
        """The number of the bucket."""
        return self.inner.bucket

    @property
    def total_buckets(self) -> int:
        """The number of buckets of the partition."""
        return self.inner.total_buckets

    @property
    def snapshot_id(self) -> int:
        """The snapshot that was planned."""
        return self.inner.snapshot_id

    @property
    def raw_convertible(self) -> bool:
        """Whether the files are read without merging."""
        return self.inner.raw_convertible

    @property
    def row_count(self) -> int:
        """The rows that the files store."""
        return self.inner.row_count

    @property
    def file_size(self) -> int:
        """The size of the files in bytes."""
        return self.inner.file_size

    @property
    def file_paths(self) -> list[str]:
        """The paths of the files."""
        return list(self.inner.file_paths)

    def merged_row_count(self) -> int | None:
        """Return the number of rows that a read returns; None if it is not known before."""
        return self.inner.merged_row_count

    def filter_file(self, func: Callable[[Any], bool]) -> DataSplit | None:
        """Return the split of the files for which a function is true; None if there are none."""
        chosen = [place for place, file in enumerate(self.files) if func(file)]
        if not chosen:
            return None
        if len(chosen) < len(self.inner.files) and not self.raw_convertible:
            refuse("filter_file of files that are merged", "plan with a filter on the rows")
        inner = evolve(
            self.inner,
            files=select(self.inner.files, chosen),
            deletion_files=select(self.inner.deletion_files, chosen),
            row_ranges=select(self.inner.row_ranges, chosen),
        )
        return DataSplit(inner, self._partition, self.is_state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataSplit) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash(self.inner)

    def __repr__(self) -> str:
        return repr(self.inner)


@define
class Plan:
    """The splits of a scan."""

    planned: list[Any]
    snapshot_id: int | None = None

    def splits(self) -> list[Any]:
        """Return the splits."""
        return self.planned


def select(values: Sequence[T], places: Sequence[int]) -> tuple[T, ...]:
    """Return the values at some places; nothing of an empty sequence."""
    return tuple(values[place] for place in places) if values else ()


def from_paimon_splits(splits: Sequence[PaimonSplit], schema: TableSchema, is_state: bool = True) -> list[DataSplit]:
    """Return the splits of pypaimon for those of this library."""
    fields = schema.partition_fields
    shown = from_paimon_fields(fields)
    types = [column.type for column in fields]
    rows: dict[bytes, GenericRow] = {}
    for split in splits:
        if split.partition not in rows:
            stored = deserialize(split.partition, types) if fields else ()
            values = [to_array([value], kind)[0].as_py() for value, kind in zip(stored, types, strict=True)]
            rows[split.partition] = GenericRow(values, shown)
    return [DataSplit(split, rows[split.partition], is_state) for split in splits]


class TableScan(PeerClass):
    """Plan the splits of a read; made by `ReadBuilder.new_scan`."""

    def __init__(
        self,
        table: StoredTable,
        predicate: Predicate | None = None,
        limit: int | None = None,
        partition_predicate: Predicate | None = None,
    ) -> None:
        self.table = table
        self._scan = to_paimon_builder(table, predicate, partition_predicate, limit=limit).new_scan()
        self._distribution: str | None = None

    def plan(self) -> Plan:
        """Return the splits to read."""
        with state_errors():
            planned = self._scan.plan().planned
        snapshot = self._find_end() if planned.snapshot is None else planned.snapshot.id
        return Plan(from_paimon_splits(planned.splits, self.table.inner.table_schema), snapshot)

    def _find_end(self) -> int | None:
        """Return the last snapshot of an incremental read between two times; None for other reads."""
        times = str(self.table.inner.options.get("incremental-between-timestamp", "")).split(",")
        if len(times) != 2 or not times[1].strip().isdecimal():
            return None
        found = self.table.snapshot_manager().earlier_or_equal_time_mills(int(times[1]))
        return None if found is None else found.id

    def with_shard(self, idx_of_this_subtask: int, number_of_para_subtasks: int) -> TableScan:
        """Plan one of several disjoint parts of the rows."""
        self._distribute("with_shard")
        if idx_of_this_subtask < 0 or idx_of_this_subtask >= number_of_para_subtasks:
            raise ValueError("idx_of_this_subtask must be less than number_of_para_subtasks and not negative")
        self._scan = self._scan.with_shard(idx_of_this_subtask, number_of_para_subtasks)
        return self

    def with_slice(self, start_pos: int, end_pos: int) -> TableScan:
        """Plan the stored rows from one position to another."""
        self._distribute("with_slice")
        if start_pos < 0 or start_pos >= end_pos:
            raise ValueError("start_pos must be less than end_pos and not negative")
        if self.table.is_primary_key_table:
            refuse("with_slice of tables with a primary key", "call with_shard")
        self._scan = self._scan.with_slice(start_pos, end_pos)
        return self

    def _distribute(self, method: str) -> None:
        if self._distribution not in (None, method):
            raise ValueError(f"{method} and {self._distribution} cannot be used simultaneously")
        self._distribution = method

    def with_row_ranges(self, row_ranges: object) -> TableScan:
        """Refuse to select rows by their row ids."""
        refuse("with_row_ranges", "call with_slice, or filter by a column")

    def with_chunk_shuffle(self, seed: int, chunk_size: int) -> TableScan:
        """Refuse to shuffle rows while they are planned."""
        refuse(
            "with_chunk_shuffle", "pass the dataset of all rows, to_torch(splits), to a DataLoader with shuffle=True"
        )

    def with_global_index_result(self, result: object) -> TableScan:
        """Refuse to select rows by an index."""
        refuse("with_global_index_result", "filter with ReadBuilder.with_filter")


def to_paimon_builder(
    table: StoredTable,
    predicate: Predicate | None = None,
    partition_predicate: Predicate | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> PaimonReadBuilder:
    """Return the read builder of this library."""
    builder = table.inner.new_read_builder()
    for condition in (predicate, partition_predicate):
        if condition is not None:
            builder = builder.with_filter(to_paimon_predicate(condition))
    if columns is not None:
        builder = builder.with_projection(list(columns.values()))
    return builder if limit is None else builder.with_limit(limit)


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
    table: StoredTable,
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
