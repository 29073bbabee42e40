"""Gather the facts about the health of a table from its metadata, and assess them.

Invariant: nothing is written and no data file is read. Files are counted in the columns of manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

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
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Mask
from paimon.domain.manifest.merge_plan import must_change
from paimon.domain.paths import MAIN_BRANCH
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.expression import And, Compare, In, Operator, Or, Predicate
from paimon.domain.predicate.transform import columns_of, split_conjuncts
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.scan_plan import ScanKind, ScanRequest
from paimon.domain.schema.declared_indexes import declare_indexes, supports_type
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.manifest_writer import build_merge_limits
from paimon.operations.compact.plan_bucket import check_compactable
from paimon.operations.data_files.file_indexes import INDEX_SUFFIX
from paimon.operations.evolve import load_at_newest_schema
from paimon.operations.expire.expire_snapshots import Expired
from paimon.operations.expire.orphan_files import find_orphan_files
from paimon.operations.expire.retention_reasons import expire_and_explain, expire_changelogs_and_explain
from paimon.operations.metadata.manifests import read_data_manifests, read_index_manifest, read_live_columns
from paimon.operations.metadata.snapshots import (
    find_snapshot,
    latest_snapshot,
    read_statistics,
    report_expired,
)
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.system.partitions_and_buckets import format_partition_name
from paimon.operations.table_context import TableContext

_INDEX_KINDS: Mapping[bool, Sequence[str]] = {
    False: ("bloom-filter", "bitmap", "range-bitmap", "bsi"),
    True: ("range-bitmap", "bsi"),
}
"""The kinds of index that decide an equality, and a range, the first choice first."""


def examine(context: TableContext, where: Predicate | None = None) -> TableHealth:
    """Return the health of the newest snapshot; `where` is a condition of queries that an index could help."""
    health, _ = examine_shapes(context, where)
    return health


def examine_shapes(
    context: TableContext, where: Predicate | None = None, names: Sequence[str] = ()
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
        if where is not None:
            filters = tuple(_find_filters(context, snapshot, live, bind(where, context.schema.fields)))
            facts = evolve(facts, filters=filters)
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
        analyzed_rows=None if statistics is None else _find_analyzed_rows(context, statistics.snapshot_id, rows),
        vectors=_measure_vectors(context, snapshot, live),
    )


def _find_refusal(context: TableContext, snapshot: Snapshot) -> str | None:
    """Return why compaction refuses the table; None if it does not."""
    try:
        check_compactable(context, snapshot)
    except Unsupported as error:
        return error.message
    return None


def _find_analyzed_rows(context: TableContext, snapshot_id: int, rows: int) -> int:
    """Return the stored rows when the table was analyzed; once that snapshot expired, what its statistics show."""
    snapshot = find_snapshot(context, snapshot_id)
    if snapshot is not None:
        return snapshot.total_record_count or 0
    statistics = read_statistics(context, latest_snapshot(context))
    merged = rows if statistics is None or statistics.row_count is None else statistics.row_count
    if context.schema.primary_keys and merged <= rows <= 2 * merged:
        return rows  # stored rows include older versions, which statistics do not count: up to as many are no change
    return merged


def _measure_vectors(context: TableContext, snapshot: Snapshot, live: EntryColumns) -> VectorFacts:
    if snapshot.index_manifest is None:
        return VectorFacts()
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
    context: TableContext, snapshot: Snapshot, live: EntryColumns, predicate: Predicate
) -> Iterator[FilterFacts]:
    """Yield what each part of a condition reads that an index could decide."""
    if ReadRules.of(context.table, ScanKind.ALL).merges and not context.options.deletion_vectors_enabled:
        return  # such reads do not use indexes
    declared = {(i.kind, i.name) for i in declare_indexes(context.schema.fields, context.schema.options)}
    has_bare_files = not bool(_mark_indexed(live).all())
    for part in split_conjuncts(predicate):
        columns = sorted(columns_of(part) - set(context.schema.partition_keys))
        if len(columns) != 1 or columns[0] not in context.schema.fields_by_name:
            continue
        kinds = _list_index_kinds(context, columns[0], part)
        held = next((kind for kind in kinds if (kind, columns[0]) in declared), None)
        if not kinds or (held is not None and not has_bare_files):
            continue
        plan = plan_scan(context, ScanRequest(snapshot, part))
        yield FilterFacts(columns[0], held or kinds[0], plan.file_count, plan.size_bytes, held is not None)


def _list_index_kinds(context: TableContext, column: str, part: Predicate) -> list[str]:
    """Return the kinds of index that can decide a condition on one column, the first choice first."""
    leaves = part.children if isinstance(part, Or | And) else (part,)
    if not all(isinstance(leaf, Compare) or (isinstance(leaf, In) and not leaf.negated) for leaf in leaves):
        return []
    operators = {leaf.op for leaf in leaves if isinstance(leaf, Compare)}
    if Operator.NE in operators:
        return []
    data_type = context.schema.field_of(column).type
    return [kind for kind in _INDEX_KINDS[bool(operators - {Operator.EQ})] if supports_type(kind, data_type)]


def _mark_indexed(live: EntryColumns) -> Mask:
    """Mark the files that have an index, in the manifest or in a file."""
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
