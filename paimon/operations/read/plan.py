"""Plan a read: select the files to read, and group them into splits.

Invariant: each stage is a pure function of the result of the stage before. Only manifests that may matter are read, and
objects are only created for files that are read. With `scan.fallback-branch` or `scan.primary-branch` each partition is
read from one branch only: the first branch that has a file of it. The table's own branch is the first one with a
fallback branch, and the second one with a primary branch. Files of the other branch are read with its schemas and
options, and an older snapshot is read with the other branch at that time.

Source: `AbstractFileStoreScan`, `SnapshotReaderImpl`, `FallbackReadFileStoreTable`.
"""

# `_plan_snapshot` narrows what the snapshot names. Each stage adds a `PruneStep`, which `explain` shows:
#
#     _list_manifests      all manifests of the snapshot, of its delta, or of its changelog
#     _select_manifests    those whose bounds of partitions and buckets admit a match
#     _live_entries        their entries, as columns: of matching partitions and buckets, without deleted files, then
#                          without level 0 or old files where the request or the table leaves them out
#     _prune_by_stats      files whose statistics and embedded indexes admit a match; where rows are merged, such files
#                          are only marked, because a file without a match can hold the newer row of a key
#     find_indexed_rows    the row ids that global indexes leave (data evolution)
#     _assemble_splits     the files of each bucket as splits, by `paimon.domain.scan.assemble`

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.manifest.entries import ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask, entry_columns
from paimon.domain.manifest.merge_entries import check_added_once, mark_live
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths, check_within
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.index_conditions import READ_SHARE, find_index_conditions, name_metric
from paimon.domain.predicate.transform import columns_of, restrict_to_columns
from paimon.domain.scan.assemble import BucketFiles, assemble_splits, group_by_bucket
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.prune_by_index import index_masks
from paimon.domain.scan.prune_by_partition import (
    bucket_mask,
    check_partitions,
    count_buckets,
    count_partitions,
    entry_signs,
    find_bucket_keys,
    find_partition_rows,
    manifests_of_buckets,
    manifests_to_read,
    partition_mask,
)
from paimon.domain.scan.prune_by_stats import key_mask, value_mask
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.row_id_ranges import RowIdRanges
from paimon.domain.scan.scan_plan import Plan, PruneStep, ScanKind, ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.rules.layout import UNAWARE
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.operations.metadata.manifests import (
    find_deletion_files,
    read_data_manifests,
    read_delta_list,
    read_live_entries,
    read_manifest_columns,
    read_manifest_list,
)
from paimon.operations.metadata.schemas import latest_schema, load_schemas
from paimon.operations.metadata.snapshots import latest_snapshot, report_expired, snapshot_before
from paimon.operations.table_context import TableContext

if TYPE_CHECKING:
    from paimon.operations.read.global_indexes import IndexedRows

_MOST_CACHED_FILES = 1_000
_MOST_CACHED_COLUMNS = 1_000
"""Above this number, the key of a cached plan costs more than the plan."""
_LONGEST_CACHED_VIEW = 65_536
_CACHED_FILE_BYTES = 8_192
"""The memory of a file in a plan with its statistics."""


@frozen(eq=False)
class _Request:
    """A request for one snapshot with the values that all stages need, and the steps so far."""

    context: TableContext
    request: ScanRequest
    snapshot: Snapshot
    rules: ReadRules
    steps: list[PruneStep]

    @property
    def predicate(self) -> Predicate | None:
        """The predicate of the request, over stored columns."""
        return self.request.predicate

    def restrict_predicate(self, names: tuple[str, ...]) -> Predicate | None:
        """Return the part of the predicate that needs only these columns."""
        return None if self.predicate is None else restrict_to_columns(self.predicate, names)

    def keep_matching(
        self, name: str, entries: EntryColumns, mask: Mask, count: Callable[[EntryColumns, Integers], int] | None = None
    ) -> EntryColumns:
        """Return the entries that the mask selects, in the same order, and record this as a pruning step.

        `count` counts what the step reports before and after; by default files.
        """
        remaining, count = entries.filter(mask), count or _count_files
        is_whole = self.request.kind is ScanKind.ALL
        signs, remaining_signs = (entry_signs(e, whole=is_whole) for e in (entries, remaining))
        size = int((remaining.number("_FILE_SIZE") * remaining_signs).sum())
        self.steps.append(PruneStep(name, count(entries, signs), count(remaining, remaining_signs), size))
        return remaining


def _count_files(entries: EntryColumns, signs: Integers) -> int:
    return int((signs > 0).sum())


def plan_scan(context: TableContext, request: ScanRequest) -> Plan:
    """Plan the splits of a request, and list the pruning steps that led to them.

    Raises `SnapshotExpired` if the snapshot expired, so that a manifest is deleted.
    """
    if request.snapshot is None:
        return Plan(None, context.schema.id)
    with report_expired(context, request.snapshot.id):
        plan = _plan_snapshot(context, request, request.snapshot)
    _count_conditions(context, request, plan)
    return plan


def plan_repeated_scan(context: TableContext, request: ScanRequest) -> Plan:
    """Plan as `plan_scan` does, and cache small plans for queries that are repeated; a snapshot never changes."""
    if request.snapshot is None or len(context.schema.fields) > _MOST_CACHED_COLUMNS:
        return plan_scan(context, request)
    path = context.paths.manifest(request.snapshot.delta_manifest_list)
    view = name_plan(context.table, request, request.snapshot)
    cached = context.engine.cache.get(path, view)
    if isinstance(cached, Plan):
        _count_conditions(context, request, cached)
        return cached
    plan = plan_scan(context, request)
    if plan.file_count <= _MOST_CACHED_FILES and len(view) <= _LONGEST_CACHED_VIEW:
        context.engine.cache.put(path, plan, 2 * len(view) + _CACHED_FILE_BYTES * (plan.file_count + 1), view)
    return plan


def _count_conditions(context: TableContext, request: ScanRequest, plan: Plan) -> None:
    """Count for the observer what a scan reads in spite of its condition; `Maintain.health` finds columns by it."""
    uses_indexes = not context.schema.primary_keys or context.options.deletion_vectors_enabled
    if request.predicate is None or request.kind is not ScanKind.ALL or not uses_indexes:
        return
    live = next((step.after for step in plan.steps if step.name == "live files"), 0)
    if plan.file_count > max(1, READ_SHARE * live):
        for condition in find_index_conditions(request.predicate):
            metric = name_metric(context.table.table_name, condition.column, condition.is_range)
            context.engine.observer.count(metric, plan.size_bytes)


def name_plan(table: TableDefinition, request: ScanRequest, snapshot: Snapshot) -> str:
    """Return a text that differs between plans with the same delta manifest list."""
    named = table.table_name, table.paths, table.options, table.allowed_roots, snapshot.id, snapshot.schema_id
    return f"plan of {named!r} {evolve(request, snapshot=None)!r} {table.schema.text}"


def _plan_snapshot(context: TableContext, request: ScanRequest, snapshot: Snapshot) -> Plan:
    rules = ReadRules.of(context.table, request.kind)
    scan = _Request(context, request, snapshot, rules, [])
    entries = _live_entries(scan, _select_manifests(scan))
    entries, matching = _prune_by_stats(scan, entries)
    check_added_once(entries)
    rows = _find_indexed_rows(scan)
    with context.engine.process.pause_gc():
        buckets = group_by_bucket(entries, matching, drains=True)
        splits = _assemble_splits(scan, buckets, None if rows is None else rows.ids)
    files = sum(len(split.files) for split in splits)
    name = "files" if rows is None else f"global index {', '.join(rows.names)}"
    scan.steps.append(PruneStep(name, len(entries), files, sum(split.file_size for split in splits)))
    return Plan(snapshot, context.schema.id, splits, tuple(scan.steps))


def _select_manifests(scan: _Request) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests that may name a matching file."""
    found = _list_manifests(scan)
    schema, buckets = scan.context.schema, scan.request.buckets
    remaining = manifests_to_read(found, scan.restrict_predicate(schema.partition_keys), schema.partition_fields)
    if buckets is not None:
        remaining = manifests_of_buckets(remaining, buckets)
    scan.steps.append(PruneStep("manifests", len(found), len(remaining), sum(m.file_size for m in remaining)))
    return remaining


def _list_manifests(scan: _Request) -> tuple[ManifestFileMeta, ...]:
    context, snapshot = scan.context, scan.snapshot
    if scan.request.kind is ScanKind.ALL:
        return read_data_manifests(context, snapshot)
    if scan.request.kind is ScanKind.DELTA:
        return read_delta_list(context, snapshot)
    name, size = snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size
    return () if name is None else read_manifest_list(context, name, size)


def _live_entries(scan: _Request, manifests: tuple[ManifestFileMeta, ...]) -> EntryColumns:
    """Return the live files of matching partitions and buckets; a deletion has the partition and bucket of its file."""
    table, request = scan.context.table, scan.request
    names = [m.file_name for m in manifests]
    fields = table.schema.partition_fields
    partitions = scan.restrict_predicate(table.schema.partition_keys)
    rows = () if partitions is None else find_partition_rows(partitions, fields)
    entries = entry_columns(read_manifest_columns(scan.context.with_table(table), names, manifests, rows))
    check_partitions(entries.partition_rows, len(fields), table.paths.manifests)
    if partitions is not None:
        entries = scan.keep_matching(
            "partitions", entries, partition_mask(entries, partitions, fields), count_partitions
        )
    entries = _prune_by_bucket(scan, entries)
    entries = scan.keep_matching("live files", entries, mark_live(entries))
    hidden = scan.rules.hides_level_0 and not request.shows_level_0
    lowest = max(request.min_level, 1 if hidden else 0)
    if lowest:
        entries = scan.keep_matching("levels", entries, entries.number("_LEVEL") >= lowest)
    if request.made_since_millis is not None:
        entries = scan.keep_matching("ages", entries, entries.number("_CREATION_TIME") >= request.made_since_millis)
    return entries


def _prune_by_bucket(scan: _Request, entries: EntryColumns) -> EntryColumns:
    schema, options = scan.context.schema, scan.context.options
    mask = np.ones(len(entries), dtype=bool)
    if scan.request.buckets is not None:
        mask &= np.isin(entries.buckets, sorted(scan.request.buckets))
    if scan.request.kind is ScanKind.ALL:
        mask &= entries.buckets >= 0
    fields = [schema.field_of(name) for name in schema.bucket_keys] if options.bucket != UNAWARE else []
    keys = None if scan.predicate is None else find_bucket_keys(scan.predicate, fields)
    if keys is not None:
        mask &= bucket_mask(entries, keys, [f.type for f in fields], options.bucket_function)
    return entries if bool(mask.all()) else scan.keep_matching("buckets", entries, mask, count_buckets)


def _prune_by_stats(scan: _Request, entries: EntryColumns) -> tuple[EntryColumns, Mask | None]:
    """Prune files by keys, and find the files with matching values.

    If rows are merged, a file without matching values may still be needed, so the mask is returned and not applied.
    """
    if scan.predicate is None or not len(entries):
        return entries, None
    schema = scan.context.schema
    schemas = _load_schemas(scan, entries)
    keys = scan.restrict_predicate(schema.trimmed_primary_keys)
    if keys is not None:
        entries = scan.keep_matching("key statistics", entries, key_mask(entries, keys, schema, schemas))
    if not scan.rules.prunes_values:
        return entries, None
    if columns_of(scan.predicate) <= {*schema.trimmed_primary_keys}:  # the statistics of keys have decided
        matching = None
    else:
        parts = [value_mask(e, scan.predicate, schema, schemas) for e in entries.split()]
        matching = np.concatenate([np.zeros(0, dtype=bool), *parts])  # no file may be left to look at
    if scan.rules.merges:
        masks = [*(() if matching is None else (matching,)), *_mask_by_indexes(scan, entries, schemas).values()]
        return entries, np.logical_and.reduce(masks) if masks else None
    if matching is not None:
        entries = scan.keep_matching("value statistics", entries, matching)
    left = np.ones(len(entries), dtype=bool)
    for name, mask in _mask_by_indexes(scan, entries, schemas).items():
        step = mask[left]
        left &= mask
        entries = scan.keep_matching(f"file index {name}", entries, step)
    return entries, None


def _mask_by_indexes(scan: _Request, entries: EntryColumns, schemas: Mapping[int, TableSchema]) -> Mapping[str, Mask]:
    """Return which files each embedded index leaves; none where indexes are not used: merges without vectors."""
    options = scan.context.options
    merges_all = scan.rules.merges and not options.deletion_vectors_enabled
    if scan.predicate is None or merges_all or not options.file_index_read_enabled or not len(entries):
        return {}
    return index_masks(entries, scan.predicate, scan.context.schema, schemas)


def _find_indexed_rows(scan: _Request) -> IndexedRows | None:
    """Return the rows that the predicate can select by global indexes; None if none is used."""
    options = scan.context.options
    is_used = options.data_evolution_enabled and options.global_index_enabled and scan.request.kind is ScanKind.ALL
    if not is_used or scan.snapshot.index_manifest is None or scan.predicate is None:
        return None
    from paimon.operations.read.global_indexes import find_indexed_rows  # loaded where a table has global indexes

    return find_indexed_rows(scan.context, scan.snapshot, scan.predicate)


def _load_schemas(scan: _Request, entries: EntryColumns) -> dict[int, TableSchema]:
    own = scan.context.schema
    ids = set(from_numpy(entries.number("_SCHEMA_ID")).unique().to_pylist()) - {own.id}
    return {own.id: own, **load_schemas(scan.context, ids)}


def _assemble_splits(scan: _Request, buckets: list[BucketFiles], row_ids: RowIdRanges | None) -> tuple[DataSplit, ...]:
    table = scan.context.table
    directories = BucketPaths.of(table)
    vectors = find_deletion_files(scan.context, scan.snapshot) if scan.request.kind is ScanKind.ALL else {}
    splits: list[DataSplit] = []
    for bucket in buckets:
        _check_external_paths(table, bucket)
        directory = directories.directory(bucket.partition, bucket.bucket)
        deletion_files = vectors.get((bucket.partition, bucket.bucket), {})
        bucket = evolve(bucket, row_ids=row_ids)
        splits.extend(assemble_splits(scan.snapshot.id, bucket, scan.rules, directory, deletion_files))
    return tuple(splits)


def _check_external_paths(table: TableDefinition, bucket: BucketFiles) -> None:
    for file in bucket.files:
        if file.external_path is not None:
            check_within(file.external_path, table.roots, table.paths.manifests)


def plan_with_fallback(context: TableContext, request: ScanRequest) -> Plan:
    """Plan a read, including the partitions of a fallback or primary branch if an option names one.

    Raises `InvalidRequest` if the columns of the two branches differ.
    """
    made = plan_repeated_scan(context, request)
    primary = context.options.scan_primary_branch
    branch = primary or context.options.scan_fallback_branch
    if not branch or branch == context.table.branch:
        return made
    other = _load_branch(context, branch)
    snapshot = _find_snapshot_at_same_time(context, other, request.snapshot)
    found = tuple(evolve(split, branch=branch) for split in plan_scan(other, evolve(request, snapshot=snapshot)).splits)
    if primary:
        own, more = _drop_partitions(made.splits, _read_partitions(other, snapshot)), found
    else:
        own, more = made.splits, _drop_partitions(found, _read_partitions(context, request.snapshot))
    steps = [_build_step(f"splits of branch {branch}", found, more)]
    if primary:
        steps.append(_build_step(f"splits that branch {branch} lacks", made.splits, own))
    return evolve(made, splits=(*own, *more), steps=(*made.steps, *steps))


def _drop_partitions(splits: Sequence[DataSplit], partitions: Container[bytes]) -> tuple[DataSplit, ...]:
    """Return the splits that are in none of the partitions."""
    return tuple(split for split in splits if split.partition not in partitions)


def _build_step(name: str, before: Sequence[DataSplit], after: Sequence[DataSplit]) -> PruneStep:
    return PruneStep(name, len(before), len(after), sum(split.file_size for split in after))


def get_split_context(context: TableContext, split: DataSplit) -> TableContext:
    """Return the context of the table on the branch to which a split belongs."""
    return context if split.branch is None else _load_branch(context, split.branch)


def _load_branch(context: TableContext, branch: str) -> TableContext:
    """Return the context of the table on its fallback or primary branch, whose columns and keys must be the same."""
    paths = TablePaths(context.table.location, branch)
    schema = latest_schema(context.engine, paths)
    if schema is None:
        option = _branch_option(context.table)
        raise NotFound("branch", branch, hint=f"create the branch, or reset option {option!r}")
    if _columns_and_keys(schema) != _columns_and_keys(context.schema):
        raise InvalidRequest(
            f"Branch {branch!r} has other columns or keys than branch {context.table.branch!r}",
            subject=branch,
            hint=f"reset option {_branch_option(context.table)!r}, or change the columns of one branch",
        )
    options = TableOptions.of(schema.options)
    check_table_type(options, f"{context.table.table_name}$branch_{branch}")
    return context.with_table(evolve(context.table.at_paths(paths), schema=schema, options=options))


def _branch_option(table: TableDefinition) -> str:
    return "scan.primary-branch" if table.options.scan_primary_branch else "scan.fallback-branch"


def _columns_and_keys(schema: TableSchema) -> object:
    return [(f.name, f.type) for f in schema.fields], schema.partition_keys, schema.primary_keys


def _find_snapshot_at_same_time(
    context: TableContext, other: TableContext, requested: Snapshot | None
) -> Snapshot | None:
    """Return the snapshot of the other branch at the time of the snapshot that is read of the table."""
    newest = latest_snapshot(context)
    if requested is None or newest is None or requested.identity == newest.identity:
        return latest_snapshot(other)
    return snapshot_before(other, requested.time_millis)


def _read_partitions(context: TableContext, snapshot: Snapshot | None) -> frozenset[bytes]:
    if snapshot is None:
        return frozenset()
    with report_expired(context, snapshot.id):
        return frozenset(e.partition for e in read_live_entries(context, read_data_manifests(context, snapshot)))


def count_rows_from_metadata(context: TableContext, snapshot: Snapshot | None) -> int | None:
    """Count the rows of a snapshot from its metadata; None without a snapshot, or if counting requires a merge.

    `context` is the table on the branch of the snapshot.
    """
    if snapshot is None:
        return None
    recorded = get_recorded_row_count(context.table, snapshot)
    return plan_with_fallback(context, ScanRequest(snapshot)).merged_row_count if recorded is None else recorded


def get_recorded_row_count(table: TableDefinition, snapshot: Snapshot) -> int | None:
    """Return the row count that the snapshot file records; None if its records may be merged or deleted."""
    options = table.options
    is_plain = not table.schema.primary_keys and snapshot.index_manifest is None
    if not is_plain or options.data_evolution_enabled or options.scan_fallback_branch is not None:
        return None
    return snapshot.total_record_count
