"""Assess the health of a table: find in its facts what costs more than it should, and the repair of each finding.

Invariant: a repair changes no row, and expires only what the options of the table allow. What a person must decide is
never automatic.
"""

# Operations gather `TableFacts` from metadata: figures of buckets as columns, manifests, statistics, what could expire,
# orphan files. The functions here compare them with limits, and each limit follows what the repair can do: a finding
# that its own repair leaves behind would return at every visit.
#
#     bucket      files   small   surplus   runs      finding
#     day=1/0        40      38        37      1      small_files: more than half are small, 37 would be gone
#     day=1/1         3       3         0      1      none: fewer than `compaction.min.file-num` are small
#     day=2/0         9       0         0      9      sorted_runs: above `num-sorted-run.compaction-trigger` (5)
#
# One finding covers all buckets of its kind, and names the worst one: the repair plans each bucket anyway, and a
# report stays short, however many buckets a table has.
#
# The order of `FindingKind` is the order of repairs. Compaction comes first, because it makes the files that indexes
# and statistics describe, and the manifest entries that a merge drops. Expiry follows, and orphan files are last.

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from paimon.domain.maintenance.bucket_layout import BucketShape
from paimon.domain.maintenance.health import ExpiryFacts, FilterFacts, Finding, FindingKind, Repair, TableFacts
from paimon.domain.manifest.entry_columns import Integers
from paimon.domain.markup import format_count, format_size
from paimon.domain.predicate.index_conditions import READ_SHARE

SMALL_SHARE = 0.5
"""Small files are a finding in a bucket where they are a larger share of the files than this."""
SKEW = 3
"""Skew is a finding where the largest bucket has this many times the bytes of the mean bucket of its partition."""
PARTITION_SKEW = 10
"""Skew is a finding where the largest partition has this many times the bytes of the median partition."""
DEAD_ENTRIES = 1_000
"""Manifest entries that cancel out are a finding from this number on, if they are more than the live ones."""
CHANGED_SHARE = 0.2
"""Statistics are old if the number of rows changed by a larger share since."""
MOST_SHAPES = 12
"""A picture has so many buckets at most, the worst ones."""
_BUCKET_BYTES = 1 << 30
"""A rescale proposes buckets of about this size."""
_NO_OPEN_COST = {"source.split.open-file-cost": "0"}
"""Packs of small files are as large as the files that they become, so that one compaction is enough."""


def assess(facts: TableFacts) -> tuple[Finding, ...]:
    """Return the findings of a table, in the order of repairs."""
    found = [finding for check in _CHECKS for finding in check(facts)]
    order = list(FindingKind)
    return tuple(sorted(found, key=lambda finding: order.index(finding.kind)))


def choose_shapes(facts: TableFacts) -> tuple[BucketShape, ...]:
    """Return the shapes of the buckets with the most files that cost reads, worst first."""
    layout = facts.layout
    order = np.lexsort((-layout.size_bytes, -(layout.surplus_files + layout.runs)))[:MOST_SHAPES]
    return tuple(BucketShape(facts.name_bucket(place), layout.levels_of(place)) for place in order.tolist())


def _plan_compaction(facts: TableFacts, strategy: str, options: Mapping[str, str] | None = None) -> Repair | None:
    """Return a compaction with table options for this call; None if compaction refuses the table."""
    if facts.refusal is not None:
        return None
    return Repair("compact", {"compact_strategy": strategy}, options or {})


def _name_buckets(facts: TableFacts, places: Integers, weights: Integers) -> tuple[str, int]:
    """Return the object of a finding about these buckets, and the position of the one with the largest weight."""
    worst = int(places[np.argmax(weights[places])])
    name = facts.name_bucket(worst)
    return (name if len(places) == 1 else f"{format_count(len(places), 'bucket')}, worst {name}"), worst


def _find_unread_rows(facts: TableFacts) -> Iterator[Finding]:
    layout = facts.layout
    postponed = layout.buckets == -2
    unread = np.where(postponed, layout.rows, layout.level_0_rows if facts.hides_level_0 else 0)
    places = np.flatnonzero(unread)
    if len(places):
        name, _ = _name_buckets(facts, places, unread)
        why = "postponed rows" if postponed.any() else "level 0"
        detail = f"batch reads skip {why} until a compaction"
        rows = int(unread.sum())
        yield Finding(FindingKind.UNREAD_ROWS, name, rows, "rows not read", detail, _plan_compaction(facts, "minor"))


def _find_small_files(facts: TableFacts) -> Iterator[Finding]:
    layout = facts.layout
    is_bad = (layout.surplus_files > 0) & (layout.small_files > SMALL_SHARE * layout.files) & (layout.buckets >= 0)
    places = np.flatnonzero(is_bad)
    if not len(places):
        return
    name, _ = _name_buckets(facts, places, layout.surplus_files)
    small, files = int(layout.small_files[places].sum()), int(layout.files[places].sum())
    limit = format_size(facts.rules.small_bytes)
    detail = f"{small:,} of {format_count(files, 'file')} ({100 * small / files:.0f} %) are smaller than {limit}"
    surplus = int(layout.surplus_files[places].sum())
    has_levels = facts.rules.has_levels
    repair = _plan_compaction(facts, "full") if has_levels else _plan_compaction(facts, "minor", _NO_OPEN_COST)
    yield Finding(FindingKind.SMALL_FILES, name, surplus, "files too many", detail, repair)


def _find_sorted_runs(facts: TableFacts) -> Iterator[Finding]:
    layout, trigger = facts.layout, facts.options.compaction_trigger
    places = np.flatnonzero((layout.runs > trigger) & (layout.buckets >= 0))
    if not facts.rules.has_levels or not len(places):
        return
    name, worst = _name_buckets(facts, places, layout.runs)
    size = format_size(int(layout.size_bytes[places].sum()))
    detail = f"a read merges so many runs; compaction starts above {trigger}; {size} in such buckets"
    runs = int(layout.runs[worst])
    yield Finding(FindingKind.SORTED_RUNS, name, runs, "sorted runs", detail, _plan_compaction(facts, "minor"))


def _find_deletion_vectors(facts: TableFacts) -> Iterator[Finding]:
    vectors = facts.vectors
    if not vectors.worn_files:
        return
    share = 100 * facts.options.compaction_delete_ratio_threshold
    detail = f"more than {share:g} % of the rows of {format_count(vectors.worn_files, 'file')} are deleted"
    repair = _plan_compaction(facts, "full" if facts.rules.has_levels else "minor")
    unit = "deleted rows stored"
    yield Finding(FindingKind.DELETION_VECTORS, vectors.worst_file, vectors.deleted_rows, unit, detail, repair)


def _find_file_indexes(facts: TableFacts) -> Iterator[Finding]:
    total = int(facts.layout.files.sum())
    large = [filtered for filtered in facts.filters if filtered.size_bytes > facts.rules.target_bytes]
    costly = [filtered for filtered in large if filtered.is_observed or _reads_many(filtered, total)]
    # one repair for all columns, because each call rewrites the files, and columns can share an option
    repair = Repair("rewrite_file_index", table_options=_declare_indexes(facts, costly))
    for filtered in costly:
        detail = f"the condition reads {filtered.files:,} of {format_count(total, 'file')}"
        if filtered.is_observed:
            detail = "scans of this process with conditions on the column read so much"
        name = f"column {filtered.column}"
        yield Finding(FindingKind.FILE_INDEX, name, filtered.size_bytes, "bytes read", detail, repair)


def _reads_many(filtered: FilterFacts, total: int) -> bool:
    return filtered.files > 1 and filtered.files > READ_SHARE * total


def _declare_indexes(facts: TableFacts, filters: Sequence[FilterFacts]) -> Mapping[str, str]:
    """Return the options that declare indexes, each with the columns that it has already."""
    columns: dict[str, list[str]] = {}
    for filtered in filters:
        if filtered.is_declared:
            continue
        key = f"file-index.{filtered.index_kind}.columns"
        before = facts.options.get(key)
        declared = columns.setdefault(key, [before] if before else [])
        if filtered.column not in declared:
            declared.append(filtered.column)
    return {key: ",".join(declared) for key, declared in columns.items()}


def _find_manifests(facts: TableFacts) -> Iterator[Finding]:
    held = facts.manifests
    dead = 2 * held.deleted_entries
    many = held.to_merge >= max(2, held.merge_min_count)
    if not many and (dead < DEAD_ENTRIES or dead <= held.live_entries):
        return
    detail = f"{held.to_merge:,} are small or have deleted entries; {dead:,} entries cancel out"
    repair = Repair("compact_manifest")
    yield Finding(FindingKind.MANIFESTS, facts.table_name, held.count, "manifests read", detail, repair)


def _find_statistics(facts: TableFacts) -> Iterator[Finding]:
    analyzed, rows = facts.analyzed_rows, facts.snapshot_rows
    if facts.size_bytes < facts.rules.target_bytes:
        return  # a planner needs no statistics of a table that fits into one file
    if analyzed is not None and abs(rows - analyzed) <= CHANGED_SHARE * max(analyzed, 1):
        return
    detail = "the table was not analyzed" if analyzed is None else f"the table had {analyzed:,} rows when analyzed"
    cost = rows if analyzed is None else abs(rows - analyzed)
    yield Finding(FindingKind.STATISTICS, facts.table_name, cost, "rows unknown", detail, Repair("analyze"))


def _find_snapshots(facts: TableFacts) -> Iterator[Finding]:
    yield from _find_expiry(FindingKind.SNAPSHOTS, facts.snapshots, "snapshots", "expire_snapshots")
    held = [reason for reason in facts.snapshots.retained_by if reason.kind == "consumer"]
    first = next((reason for reason in facts.snapshots.retained_by if reason.kind == "option"), None)
    for reason in held:
        count = max(first.snapshot_id - reason.snapshot_id, 0) if first else 0
        if count:
            detail = f"{reason}; delete it if its reader is gone"
            repair = Repair("clear_consumers", {"including_consumers": re.escape(reason.name)}, is_automatic=False)
            yield Finding(FindingKind.CONSUMERS, f"consumer {reason.name}", count, "snapshots retained", detail, repair)


def _find_changelogs(facts: TableFacts) -> Iterator[Finding]:
    yield from _find_expiry(FindingKind.CHANGELOGS, facts.changelogs, "changelogs", "expire_changelogs")


def _find_expiry(kind: FindingKind, expiry: ExpiryFacts, unit: str, procedure: str) -> Iterator[Finding]:
    if expiry.expirable:
        held = ", ".join(map(str, expiry.retained_by))
        detail = "past their retention" + (f"; others are retained by {held}" if held else "")
        repair = Repair(procedure, {"max_deletes": expiry.expirable})  # more than `snapshot.expire.limit` allows a call
        yield Finding(kind, f"{unit} {expiry.ids}", expiry.expirable, unit, detail, repair)


def _find_orphans(facts: TableFacts) -> Iterator[Finding]:
    if facts.orphan_files:
        detail = f"{format_count(facts.orphan_files, 'file')} that nothing references, older than a day"
        repair = Repair("remove_orphan_files")
        yield Finding(FindingKind.ORPHANS, facts.table_name, facts.orphan_bytes, "bytes stored", detail, repair)


def _find_bucket_skew(facts: TableFacts) -> Iterator[Finding]:
    buckets, layout = facts.options.bucket, facts.layout
    if buckets < 2 or not len(layout):
        return
    totals = _sum_partitions(facts)
    means = totals[layout.partitions] // buckets
    places = np.flatnonzero((layout.size_bytes >= SKEW * means) & (layout.size_bytes > facts.rules.target_bytes))
    if len(places):
        name, worst = _name_buckets(facts, places, layout.size_bytes)
        size, mean = int(layout.size_bytes[worst]), int(means[worst])
        detail = f"{format_size(size)}, and the mean bucket of its partition has {format_size(mean)}"
        repair = _plan_rescale(facts, totals)
        yield Finding(FindingKind.BUCKET_SKEW, name, size - mean, "bytes above the mean", detail, repair)


def _find_partition_skew(facts: TableFacts) -> Iterator[Finding]:
    totals = _sum_partitions(facts)
    used = totals[totals > 0]
    if facts.options.bucket < 1 or len(used) < 2:
        return
    worst, median = int(np.argmax(totals)), int(np.sort(used)[(len(used) - 1) // 2])
    largest = int(totals[worst])
    if largest >= PARTITION_SKEW * median and largest > facts.options.bucket * facts.rules.target_bytes:
        detail = f"{format_size(largest)}, and the median partition has {format_size(median)}"
        name, repair = facts.partition_names[worst], _plan_rescale(facts, totals)
        cost = largest // facts.options.bucket
        yield Finding(FindingKind.PARTITION_SKEW, name, cost, "bytes in its mean bucket", detail, repair)


def _sum_partitions(facts: TableFacts) -> Integers:
    """Return the bytes of each partition, by its position."""
    totals = np.zeros(len(facts.partition_names), dtype=np.int64)
    np.add.at(totals, facts.layout.partitions, facts.layout.size_bytes)
    return totals


def _plan_rescale(facts: TableFacts, totals: Integers) -> Repair | None:
    """Return a rescale of the whole table, so that writers continue to agree; it is for a person to decide."""
    if facts.refusal is not None:
        return None
    buckets = max(2 * facts.options.bucket, -(-int(totals.max()) // _BUCKET_BYTES))
    return Repair("rescale", {"bucket_num": buckets}, is_automatic=False)


_CHECKS: Sequence[Callable[[TableFacts], Iterator[Finding]]] = (
    *(_find_unread_rows, _find_small_files, _find_deletion_vectors, _find_sorted_runs, _find_file_indexes),
    *(_find_manifests, _find_statistics, _find_snapshots, _find_changelogs, _find_orphans),
    *(_find_bucket_skew, _find_partition_skew),
)
