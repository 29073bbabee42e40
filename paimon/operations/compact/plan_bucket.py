"""Decide which tables can be compacted, and what to compact in one bucket, from the options and the live files.

Invariant: the decision reads no data files, and is the same in a writer, a compactor or a task on another machine. A
table with a feature that compaction does not support is refused, and the error names the feature.

Source: `MergeTreeCompactManager.triggerCompaction`, `AppendCompactCoordinator`.
"""

# The files of a bucket form sorted runs: each file of level 0 is a run, and each higher level is one. The newest runs
# come first. A compaction takes the newest runs without a gap, so that its result is older than no run that stays.
#
#     level 0   f9  f8  f7      three runs, newest first          sizes in MB   1   1   1
#     level 4   f5 f6           one run                                         4
#     level 5   f1 f2 f3 f4     the top level, one run                        100
#
# `pick` asks, in this order, and stops at the first rule that takes runs:
#
#     1. a full compaction by age or size (`compaction.optimization-interval`, …)                     all runs
#     2. below `num-sorted-run.compaction-trigger` runs, rules 3 to 5 take none
#     3. size amplification: the newer runs are large, compared with the oldest one (200 %)           all runs
#     4. size ratio: from the newest run on, each next run that is not much larger than those before  here 1 1 1, not 4
#     5. too many runs: the newest ones beyond the trigger, extended by the size ratio
#     6. where reads need level 0 compacted (`needs_lookup`): all of level 0, extended by the size ratio
#
# The result goes to the highest level below the next run that stays (here level 3); on level 0 nothing is written, so
# the pick grows until it reaches a level. `plan_unit` then decides file by file: files that overlap, and small files,
# are rewritten; a large file that overlaps no other only changes its level. In append tables there are no levels:
# neighboring small files are packed to about the target size.
#
# The rules are pure (`paimon.domain.lsm.compaction`, `paimon.domain.maintenance.small_files`). This module gives them
# the clock, the options and the schemas that record expiry needs.

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import evolve, frozen

from paimon.domain.errors import Unsupported
from paimon.domain.lsm.compaction.clustered_plan import CLUSTERED_LEVEL, ClusteredPlan, plan_clustered
from paimon.domain.lsm.compaction.level_order import include_newer_runs
from paimon.domain.lsm.compaction.pick import build_unit, pick, pick_full
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import CompactUnit, MergeTree
from paimon.domain.lsm.compaction.unit_plan import UnitPlan, plan_unit
from paimon.domain.lsm.record_expiry import RecordExpiry
from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.maintenance.small_files import Pack, PackRules, marked_files, pack_row_groups, pack_small_files
from paimon.domain.maintenance.sort_order import SortOrder, bind_clustering_order, is_clustered_locally
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_stored_options
from paimon.domain.paths import check_within
from paimon.domain.scan.assemble import BucketFiles
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.row_id_groups import group_by_row_range
from paimon.domain.scan.split_packing import pack
from paimon.domain.schema.writable import check_rows_writable, is_stored_as_blob, is_stored_as_vector
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import DataField, DataType
from paimon.operations.data_files.deletion_vectors import BucketVectors
from paimon.operations.metadata.manifests import find_deletion_files
from paimon.operations.metadata.schemas import load_schemas
from paimon.operations.table_context import TableContext

_JAVA_HINT = "compact this table with Java's Paimon"
_KEY_INDEXES = (
    "pk-btree.index.columns",
    "pk-bitmap.index.columns",
    "pk-vector.index.columns",
    "pk-full-text.index.columns",
)
"""Options of indexes that Java builds during a compaction."""
_HOUR_MILLIS = 3_600_000


@frozen
class BucketWork:
    """What to compact in one bucket: a unit of a merge tree, or packs of files of an append table."""

    # the partition values as a binary row
    partition: bytes
    bucket: int
    # the number of buckets of the partition
    total_buckets: int
    directory: str
    # for primary-key tables
    unit: UnitPlan | None = None
    # for append tables; the files of a pack are rewritten together
    packs: tuple[Pack, ...] = ()
    # the deletion vectors of the bucket when this was planned; None if the task reads them itself
    vectors: BucketVectors | None = None
    # how the rows of packs are sorted; None keeps their order
    order: SortOrder | None = None
    # the columns of the new files of a table with data evolution
    columns: tuple[str, ...] = ()
    # the level of the new files of an append table; more than 0 where rows are clustered incrementally
    level: int = 0
    # for primary-key tables with 'pk-clustering-override'
    clustered: ClusteredPlan | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether the files are of a primary-key table; then the work of the bucket is indivisible."""
        return self.unit is not None or self.clustered is not None

    @property
    def output_level(self) -> int:
        """The level of the new files."""
        if self.clustered is not None:
            return CLUSTERED_LEVEL
        return self.level if self.unit is None else self.unit.output_level

    @property
    def rewritten(self) -> tuple[DataFileMeta, ...]:
        """The files that are read and replaced."""
        clustered = (*self.clustered.new, *self.clustered.merged) if self.clustered else ()
        in_packs = (f for pack in self.packs for f in pack)
        return (*(self.unit.rewritten if self.unit else ()), *clustered, *in_packs)

    @property
    def replaced(self) -> tuple[DataFileMeta, ...]:
        """The files that are rewritten, or moved to another level."""
        return (*self.rewritten, *(self.unit.upgrades if self.unit else ()))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.replaced

    def outdates(self, schema_id: int) -> bool:
        """Return whether files of a newer schema would be replaced, of which this schema lacks columns."""
        return any(f.schema_id > schema_id for f in self.replaced)


def plan_bucket_work(
    context: TableContext,
    bucket: BucketFiles,
    full: bool,
    idle_triggers: int = 0,
    vectors: BucketVectors | None = None,
    order: SortOrder | None = None,
) -> BucketWork:
    """Decide what to compact in a bucket; the result `is_empty` if nothing is to be done.

    `bucket` contains all live files. By default the options select the files; `full` makes one sorted run, and `order`
    rewrites all files of an append table.
    `idle_triggers` counts the writer's requests without effect since level 0 was compacted (`lookup-compact = gentle`).
    """
    check_external_paths(context, bucket.files)
    directory = BucketPaths.of(context.table).directory(bucket.partition, bucket.bucket)
    marked = marked_files(vectors.current) if vectors is not None else {}
    work = BucketWork(bucket.partition, bucket.bucket, bucket.total_buckets, directory, vectors=vectors)
    if context.schema.primary_keys and context.options.pk_clustering_override:
        return evolve(work, clustered=_plan_clustered(context, bucket, full, marked))
    if context.schema.primary_keys:
        return evolve(work, unit=_plan_unit(context, bucket, full, idle_triggers, marked))
    if order is not None:
        return evolve(work, packs=_pack_to_sort(bucket.files), order=order)
    if context.options.clustering_incremental:
        unit = _pick_clustered(context, bucket, full, marked)
        if unit is None:
            return work
        clustering, packs = bind_clustering_order(context.table), _pack_to_sort(unit.files)
        if is_clustered_locally(context.options) and packs:
            target = context.options.target_file_size_bytes(False)
            packs = tuple(map(tuple, pack(packs[0], [f.file_size for f in packs[0]], target)))
        return evolve(work, packs=packs, order=clustering, level=unit.output_level)
    rules = PackRules.of(context.options, full)
    if context.options.data_evolution_enabled:
        return _plan_row_groups(context, bucket, rules, work)
    return evolve(work, packs=pack_small_files(bucket.files, rules, marked))


def _plan_row_groups(context: TableContext, bucket: BucketFiles, rules: PackRules, work: BucketWork) -> BucketWork:
    """Plan the compaction of files with columns of the same rows; BLOB and VECTOR files stay as they are.

    If files of other columns contain values of a column that has files of its own, they stay, too. Rows without files
    of a column stay apart from rows with them: the values would not begin at the first row of the joined file.
    """
    own, options = context.schema, context.options
    schemas = {own.id: own, **load_schemas(context, {f.schema_id for f in bucket.files} - {own.id})}

    def list_columns(file: DataFileMeta) -> set[int]:
        fields = schemas[file.schema_id].fields
        return {f.id for f in fields if file.write_cols is None or f.name in file.write_cols}

    apart = {f.id for f in own.fields if is_stored_as_blob(f, options) or is_stored_as_vector(f, options)}
    apart.update(*(list_columns(f) for f in bucket.files if not f.is_main_file))
    columns = tuple(f.name for f in own.fields if f.id not in apart)
    groups: list[Pack] = []
    before: set[str] = set()
    for group in group_by_row_range(bucket.files):
        dedicated = {name for f in group if not f.is_main_file for name in f.write_cols or ()}
        if dedicated != before:
            groups.append(())
        before = dedicated
        main = tuple(f for f in group if f.is_main_file and f.first_row_id is not None)
        groups.append(() if any(apart & list_columns(f) for f in main) else main)
    return evolve(work, packs=pack_row_groups(groups, rules) if columns else (), columns=columns)


def _pack_to_sort(files: Sequence[DataFileMeta]) -> tuple[Pack, ...]:
    """Return one pack with all files in the order of their rows."""
    ordered = sorted(files, key=lambda f: (f.min_sequence_number, f.max_sequence_number, f.file_name))
    return (tuple(ordered),) if ordered else ()


def pick_idle_partitions(
    buckets: Iterable[BucketFiles], before_millis: int, top_level: int, limit: int
) -> frozenset[bytes]:
    """Pick partitions with files below the top level, the newest of which was made before a local time.

    At most `limit` are picked, those without new files for the longest time first.
    Source: `HistoryPartitionCluster`.
    """
    newest: dict[bytes, int] = {}
    for bucket in buckets:
        for file in bucket.files:
            if file.level < top_level:
                made = file.creation_time_millis or 0
                newest[bucket.partition] = max(newest.get(bucket.partition, made), made)
    idle = sorted((made, partition) for partition, made in newest.items() if made < before_millis)
    return frozenset(partition for _, partition in idle[: max(0, limit)])


def _pick_clustered(
    context: TableContext, bucket: BucketFiles, full: bool, marked: Collection[str]
) -> CompactUnit | None:
    """Pick the runs to cluster; None if there is nothing to do."""
    rules = CompactionRules.of_clustering(context.options)
    tree = MergeTree.of(bucket.files, rules.levels)
    if not full:
        return pick(tree, rules, now_millis=0, hour=0)  # no rule by time applies
    is_one_run = [run.level for run in tree.runs] == [tree.top_level]
    if is_one_run and not marked and not _has_other_clustering(context, tree.files):
        return None
    return build_unit(tree, len(tree.runs)) if tree.runs else None


def _has_other_clustering(context: TableContext, files: Sequence[DataFileMeta]) -> bool:
    """Return whether some of the files were written when the table had other columns to cluster by."""
    schemas = load_schemas(context, {f.schema_id for f in files} - {context.schema.id}).values()
    own = context.options.clustering_columns
    return any(TableOptions.of(schema.options).clustering_columns != own for schema in schemas)


def _plan_clustered(context: TableContext, bucket: BucketFiles, full: bool, marked: Collection[str]) -> ClusteredPlan:
    own, options = context.schema, context.options
    schemas = {own.id: own, **load_schemas(context, {f.schema_id for f in bucket.files} - {own.id})}
    fields = context.table.get_bound_fields(CLUSTERED_LEVEL)
    types = {i: _find_types(context.table.get_bound_fields(CLUSTERED_LEVEL, s), fields) for i, s in schemas.items()}
    small = options.target_file_size_bytes(True) * options.compaction_small_file_ratio
    return plan_clustered(
        bucket.files,
        lambda file: KeyedFile.of(file, types[file.schema_id]),
        CompactionRules.of_clustering(options),
        int(small),
        full,
        marked,
    )


def _find_types(written: Sequence[DataField], fields: Sequence[DataField]) -> list[DataType]:
    """Return the types of the bounds of a file, if they are values of these columns and types; otherwise none."""
    bounds, wanted = ([(f.id, f.type.with_nullable(True)) for f in columns] for columns in (written, fields))
    return [kind for _, kind in bounds] if bounds == wanted else []


def _plan_unit(
    context: TableContext,
    bucket: BucketFiles,
    full: bool,
    idle_triggers: int,
    marked: Collection[str],
) -> UnitPlan | None:
    now = context.engine.clock.now_millis()
    rules = _add_expiry(context, bucket, CompactionRules.of(context.options), now)
    tree = MergeTree.of(bucket.files, rules.levels)
    local_millis = now + context.engine.clock.local_offset_millis(now)
    hour = local_millis // _HOUR_MILLIS % 24
    unit = (
        pick_full(tree, rules, {*marked, *rules.expired})
        if full
        else pick(tree, rules, local_millis, hour, idle_triggers)
    )
    if unit is None:
        return None
    key_types = [f.type for f in context.schema.key_fields]
    if rules.needs_lookup:
        unit = include_newer_runs(tree, unit, key_types)
    return plan_unit(tree, unit, rules, key_types)


def _add_expiry(context: TableContext, bucket: BucketFiles, rules: CompactionRules, now_millis: int) -> CompactionRules:
    """Return the rules with record expiry at this time, and with the files that contain expired records."""
    expiry = RecordExpiry.of(context.schema, context.options, now_millis)
    if expiry is None:
        return rules
    own = context.schema  # which a write with new columns has not published yet
    schemas = {own.id: own, **load_schemas(context, {f.schema_id for f in bucket.files} - {own.id})}
    expired = frozenset(f.file_name for f in bucket.files if expiry.may_hold_expired_records(f, schemas[f.schema_id]))
    return evolve(rules, expiry=expiry, expired=expired)


def check_external_paths(context: TableContext, files: Iterable[DataFileMeta]) -> None:
    """Refuse files outside the table and the allowed roots."""
    for file in files:
        if file.external_path is not None:
            check_within(file.external_path, context.table.roots, context.paths.manifests)


def check_compactable(context: TableContext, snapshot: Snapshot | None) -> None:
    """Raise `Unsupported` if compaction does not support the table or the deletion vectors of the snapshot."""
    check_rows_writable(context.table)
    check_stored_options(context.options.values, _KEY_INDEXES)
    for feature, is_used in _list_refused_features(context.options, bool(context.schema.primary_keys)):
        if is_used:
            raise Unsupported(f"compaction of a table with {feature}", hint=_JAVA_HINT)
    if context.schema.primary_keys:
        get_merge_engine(MergeSpec.of(context.schema, context.options))
    has_vectors = snapshot is not None and any(find_deletion_files(context, snapshot).values())
    if has_vectors and not context.options.deletion_vectors_enabled:
        raise Unsupported(
            "compaction of files that have deletion vectors", hint="set option 'deletion-vectors.enabled' to 'true'"
        )


def _list_refused_features(options: TableOptions, has_keys: bool) -> tuple[tuple[str, bool], ...]:
    if not has_keys:  # files of these tables have the order of the row ids
        return (("clustering.incremental", options.data_evolution_enabled and options.clustering_incremental),)
    return (
        ("row-tracking.enabled", options.row_tracking_enabled),
        ("blob-field", bool(options.blob_fields)),
        ("sequence.snapshot-ordering", options.sequence_snapshot_ordering),
        ("clustering.incremental", options.clustering_incremental),
    )
