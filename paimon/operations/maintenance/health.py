"""Gather the facts about the health of a table from its metadata, and assess them.

Invariant: nothing is written and no data file is read. Files are counted in the columns of manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from paimon.domain.errors import Unsupported
from paimon.domain.maintenance.assess_health import assess, choose_shapes
from paimon.domain.maintenance.bucket_layout import BucketShape, LayoutRules, measure_buckets
from paimon.domain.maintenance.health import (
    ExpiryFacts,
    FilterFacts,
    ManifestFacts,
    TableFacts,
    TableHealth,
    VectorFacts,
)
from paimon.domain.maintenance.snapshot_expiry import Retention, has_decoupled_changelogs
from paimon.domain.manifest.entries import DELETION_VECTORS, INDEX_SUFFIX, FileKind, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Mask
from paimon.domain.manifest.merge_plan import must_change
from paimon.domain.paths import MAIN_BRANCH
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.index_conditions import find_index_conditions, name_metric
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.scan_plan import ScanKind, ScanRequest
from paimon.domain.schema.declared_indexes import (
    DeclaredIndex,
    declare_indexes,
    split_index_column,
    supports_type,
    value_type,
)
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.stats.table_statistics import TableStatistics
from paimon.operations.commit.manifest_writer import build_merge_limits
from paimon.operations.compact.plan_bucket import check_compactable
from paimon.operations.evolve import load_at_newest_schema
from paimon.operations.expire.expire_snapshots import Expired
from paimon.operations.expire.orphan_files import find_orphan_files
from paimon.operations.expire.retention_reasons import expire_and_explain, expire_changelogs_and_explain
from paimon.operations.metadata.manifests import read_data_manifests, read_index_manifest, read_live_columns
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot, read_statistics, report_expired
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.system.partitions_and_buckets import format_partition_name
from paimon.operations.table_context import TableContext

_INDEX_KINDS: Mapping[bool, Sequence[str]] = {
    False: ("bloom-filter", "bitmap", "range-bitmap", "bsi"),
    True: ("range-bitmap", "bsi"),
}
"""The kinds of index that decide an equality, and a range, the first choice first."""


@frozen(hash=False)
class Conditions:
    """The conditions of queries that an index could help: one of the caller, and what an observer counted."""

    where: Predicate | None = None
    # metrics of an observer, by their names
    observed: Mapping[str, int] = field(factory=dict)


def examine(
    context: TableContext, conditions: Conditions, names: Sequence[str] = ()
) -> tuple[TableHealth, tuple[BucketShape, ...]]:
    """Return the health of the newest snapshot, and the shapes of the buckets with these names."""
    context = load_at_newest_schema(context)
    snapshot = latest_snapshot(context)
    branch = _name_branch(context)
    name, location = context.table.table_name + branch, context.table.location + branch
    health = TableHealth(name, location, None if snapshot is None else snapshot.id)
    if snapshot is None:
        return health, tuple(map(BucketShape, names))
    with report_expired(context, snapshot.id):
        manifests = read_data_manifests(context, snapshot)
        live = read_live_columns(context, manifests)
        facts = _gather_layout(context, snapshot, manifests, live)
        facts = evolve(facts, filters=tuple(_find_filters(context, snapshot, live, conditions)))
    facts, notes = _add_history(context, facts)
    health = evolve(
        health,
        files=len(live),
        size_bytes=facts.size_bytes,
        buckets=len(facts.layout),
        findings=assess(facts),
        shapes=choose_shapes(facts),
        notes=notes,
    )
    return health, tuple(_find_shapes(facts, names))


def _name_branch(context: TableContext) -> str:
    """Return what follows the name of the table if another branch than main is examined."""
    return "" if context.table.branch == MAIN_BRANCH else f"$branch_{context.table.branch}"


def _find_shapes(facts: TableFacts, names: Sequence[str]) -> Iterator[BucketShape]:
    places = {facts.name_bucket(place): place for place in range(len(facts.layout))} if names else {}
    for name in names:
        yield BucketShape(name, facts.layout.levels_of(places[name]) if name in places else ())


def _gather_layout(
    context: TableContext, snapshot: Snapshot, manifests: Sequence[ManifestFileMeta], live: EntryColumns
) -> TableFacts:
    rules, limits = LayoutRules.of(context.table), build_merge_limits(context.table)
    partitioned = bool(context.schema.partition_keys)
    statistics = read_statistics(context, snapshot)
    rows = snapshot.total_record_count or 0
    return TableFacts(
        context.table.table_name + _name_branch(context),
        context.options,
        rules,
        measure_buckets(live, rules),
        tuple(format_partition_name(context.table, row) if partitioned else "" for row in live.partition_rows),
        ManifestFacts(
            count=len(manifests),
            to_merge=sum(must_change(m, limits) for m in manifests),
            merge_min_count=limits.min_count,
            deleted_entries=sum(m.num_deleted_files for m in manifests),
            live_entries=len(live),
        ),
        hides_level_0=ReadRules.of(context.table, ScanKind.ALL).hides_level_0,
        refusal=_find_refusal(context, snapshot),
        snapshot_rows=rows,
        analyzed_rows=None if statistics is None else _find_analyzed_rows(context, statistics, rows),
        vectors=_measure_vectors(context, snapshot, live),
    )


def _find_refusal(context: TableContext, snapshot: Snapshot) -> str | None:
    """Return why compaction refuses the table; None if it does not."""
    try:
        check_compactable(context, snapshot)
    except Unsupported as error:
        return error.message
    return None


def _find_analyzed_rows(context: TableContext, statistics: TableStatistics, rows: int) -> int:
    """Return the stored rows when the table was analyzed; once that snapshot expired, what its statistics show."""
    snapshot = find_snapshot(context, statistics.snapshot_id)
    if snapshot is not None:
        return snapshot.total_record_count or 0
    merged = rows if statistics.row_count is None else statistics.row_count
    if context.schema.primary_keys and merged <= rows <= 2 * merged:
        return rows  # stored rows include older versions, which statistics do not count: up to as many are no change
    return merged


def _measure_vectors(context: TableContext, snapshot: Snapshot, live: EntryColumns) -> VectorFacts:
    if snapshot.index_manifest is None or context.options.data_evolution_enabled:
        return VectorFacts()  # a compaction by row ids keeps deleted rows
    entries = read_index_manifest(context, snapshot.index_manifest)
    ranges = [
        r
        for e in entries
        if e.kind is FileKind.ADD and e.index_type == DELETION_VECTORS
        for r in e.deletion_vectors or ()
    ]
    if not ranges:
        return VectorFacts()
    names = pa.array([r.data_file for r in ranges], pa.string())
    places = pc.index_in(names, live.files.field("_FILE_NAME").cast(pa.string()))
    known = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    rows = live.number("_ROW_COUNT")[places.drop_null().to_numpy(zero_copy_only=False)]
    counts = pa.array([r.cardinality for r in ranges], pa.int64()).take(pa.array(known))
    deleted = np.where(counts.is_null().to_numpy(zero_copy_only=False), rows, counts.fill_null(0).to_numpy())
    worn = np.flatnonzero(deleted > context.options.compaction_delete_ratio_threshold * rows)
    if not len(worn):
        return VectorFacts()
    worst = ranges[int(known[worn[np.argmax(deleted[worn])]])].data_file
    return VectorFacts(len(worn), int(deleted[worn].sum()), worst)


def _find_filters(
    context: TableContext, snapshot: Snapshot, live: EntryColumns, conditions: Conditions
) -> Iterator[FilterFacts]:
    """Yield what conditions read that an index could decide; those of the caller first."""
    predicate = None if conditions.where is None else bind(conditions.where, context.schema.fields)
    if ReadRules.of(context.table, ScanKind.ALL).merges and not context.options.deletion_vectors_enabled:
        return  # such reads do not use indexes
    parts = () if predicate is None else tuple(find_index_conditions(predicate))
    for condition in parts:
        kind = _choose_index(context, live, condition.column, condition.is_range)
        if kind is not None:
            plan = plan_scan(context, ScanRequest(snapshot, condition.part))
            yield evolve(kind, files=plan.file_count, size_bytes=plan.size_bytes)
    named = {condition.column for condition in parts}
    for column, is_range in product(sorted(context.schema.fields_by_name.keys() - named), (False, True)):
        size_bytes = conditions.observed.get(name_metric(context.table.table_name, column, is_range), 0)
        kind = _choose_index(context, live, column, is_range) if size_bytes else None
        if kind is not None:
            yield evolve(kind, size_bytes=size_bytes, is_observed=True)


def _choose_index(context: TableContext, live: EntryColumns, column: str, is_range: bool) -> FilterFacts | None:
    """Return an index for a column or map key ``tags[color]``; None if none can, or no file lacks one."""
    fields = context.schema.fields_by_name
    index = DeclaredIndex("", *((column, None) if column in fields else split_index_column(column)))
    field = fields.get(index.column)
    if field is None or column in context.schema.partition_keys or "," in column:
        return None  # an option lists columns between commas
    kinds = [kind for kind in _INDEX_KINDS[is_range] if supports_type(kind, value_type(index, field))]
    declared = {(i.kind, i.name) for i in declare_indexes(context.schema.fields, context.schema.options)}
    held = next((kind for kind in kinds if (kind, column) in declared), None)
    # any index of a file counts, because manifests do not show the columns of an index
    if not kinds or (held is not None and _mark_indexed(live).all()):
        return None
    return FilterFacts(column, held or kinds[0], 0, 0, held is not None)


def _mark_indexed(live: EntryColumns) -> Mask:
    """Mark the files that have an index of any kind and column, in the manifest or in a file."""
    embedded: Mask = live.files.field("_EMBEDDED_FILE_INDEX").is_valid().to_numpy(zero_copy_only=False).copy()
    extra = live.files.field("_EXTRA_FILES")
    names = pc.list_flatten(extra)
    owners = pc.list_parent_indices(extra).to_numpy(zero_copy_only=False)
    has_index = pc.ends_with(names, INDEX_SUFFIX).to_numpy(zero_copy_only=False)
    embedded[owners[has_index.astype(bool)]] = True
    return embedded


def _add_history(context: TableContext, facts: TableFacts) -> tuple[TableFacts, tuple[str, ...]]:
    """Add what could expire, and orphan files; also return what could not be examined."""
    expired = expire_and_explain(context, Retention.of_snapshots(context.options).without_limit(), dry_run=True)
    facts = evolve(facts, snapshots=_to_expiry_facts(expired))
    if has_decoupled_changelogs(context.options):
        changelogs = Retention.of_changelogs(context.options).without_limit()
        expired = expire_changelogs_and_explain(context, changelogs, delete_all=False, dry_run=True)
        facts = evolve(facts, changelogs=_to_expiry_facts(expired))
    notes = () if facts.refusal is None else (f"{facts.refusal}: such findings have no repair",)
    try:
        orphans = find_orphan_files(context)
    except Unsupported as error:
        return facts, (*notes, error.message)
    size = pc.sum(orphans["size"]).as_py() or 0
    return evolve(facts, orphan_files=orphans.num_rows, orphan_bytes=size), notes


def _to_expiry_facts(expired: Expired) -> ExpiryFacts:
    ids = f"{expired.first} to {expired.until - 1}" if expired.until - 1 > expired.first else str(expired.first)
    return ExpiryFacts(expired.snapshots, ids, expired.retained_by)
