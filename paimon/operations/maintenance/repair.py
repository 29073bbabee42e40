"""Repair what an examination of a table finds, in a safe order and within a budget of time and bytes.

Invariant: no row changes. Snapshots, changelogs and orphan files are deleted only as the options of the table and the
defaults of the procedures allow. A repair that fails does not stop the others.
"""

# Repairs run in the order of findings (`paimon.domain.maintenance.assess_health`). A compaction is cut into batches:
# each batch is planned on the newest snapshot, and is a commit of its own. So other writers are not blocked, a conflict
# costs one batch, and the limits of the budget hold between batches.
#
#     plan      bucket 0: packs 900 MB, 900 MB   bucket 1: unit 6 GB     budget: 2 GB
#     batch 1   900 MB + 900 MB                                          200 MB remain
#     batch 2   nothing fits: bucket 1 is left, and the outcome says so
#
# A repair can cause a finding: a compaction of many files leaves manifest entries that cancel out. So the table is
# examined again after the repairs, and what is new is repaired, too. Each finding is repaired once, but for expiry:
# each repair that commits can make one more snapshot expire.
#
# The budget counts the bytes of the data files that repairs read, because compaction, indexes and statistics all read
# them, and write at most about as much. Expiry and merges of manifests read no data file. A repair that has begun
# finishes, so the limit of time can be exceeded by one batch.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import define, evolve

from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitConflict, InvalidRequest, PaimonError
from paimon.domain.maintenance.bucket_layout import LayoutRules
from paimon.domain.maintenance.health import Finding, FindingKind, Repair, TableHealth
from paimon.domain.maintenance.small_files import marked_files
from paimon.domain.maintenance.snapshot_expiry import Retention
from paimon.domain.markup import format_count, format_size
from paimon.domain.schema.changes import SetOption
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.operations.analyze import analyze
from paimon.operations.compact.compact import CompactResult, compact, compact_with_executor
from paimon.operations.compact.compact_manifests import compact_manifests
from paimon.operations.compact.plan_bucket import BucketWork
from paimon.operations.compact.rewrite_indexes import rewrite_file_indexes
from paimon.operations.evolve import alter_table, load_at_newest_schema
from paimon.operations.expire.expire_changelogs import expire_changelogs
from paimon.operations.expire.expire_snapshots import expire_snapshots
from paimon.operations.expire.orphan_files import remove_orphans
from paimon.operations.maintenance.health import Conditions, examine
from paimon.operations.table_context import TableContext, commit_user_of
from paimon.operations.write.compact_table import compact_table

_BATCH_BYTES = 4 << 30
"""A batch of a compaction takes work until it reads so many bytes; a single unit of work may be larger."""
_ATTEMPTS = 5
"""How often a batch is planned again after another commit replaced its files."""
_MOST_BATCHES = 10_000
_ROUNDS = 4
"""Examinations with repairs: what is found, what compaction causes, what merged manifests cause, and one to spare."""
_REPEATED = (FindingKind.SNAPSHOTS, FindingKind.CHANGELOGS)


@define
class Budget:
    """What repairs may still use."""

    # when no further batch begins, in epoch milliseconds; None without a limit
    until_millis: int | None
    # bytes of data files that may still be read; None without a limit
    left_bytes: int | None

    def allows(self, size_bytes: int) -> bool:
        """Return whether so many bytes are left."""
        return self.left_bytes is None or size_bytes <= self.left_bytes

    def spend(self, size_bytes: int) -> None:
        """Count bytes that were read."""
        if self.left_bytes is not None:
            self.left_bytes -= size_bytes


@define
class _Visit:
    """The repairs of one table."""

    context: TableContext
    health: TableHealth
    budget: Budget

    @property
    def has_time(self) -> bool:
        """Whether the limit of time is not reached."""
        until = self.budget.until_millis
        return until is None or self.context.engine.clock.now_millis() < until

    @property
    def commit_user(self) -> str:
        """The user of a commit."""
        return commit_user_of(self.context, None)


def examine_table(
    context: TableContext, conditions: Conditions, fix: bool, max_seconds: float | None, max_bytes: int | None
) -> TableHealth:
    """Examine a table; with `fix`, run the automatic repairs, and return the findings with their outcomes.

    `conditions` are those of queries. No repair begins after `max_seconds`, and repairs read at most `max_bytes` of
    data files.
    """
    for name, limit in (("max_seconds", max_seconds), ("max_bytes", max_bytes)):
        if limit is not None and (not fix or limit < 0):
            hint = "give a number of at least 0" if fix else "add fix, or leave it out"
            raise InvalidRequest(f"Argument {name!r} limits repairs, and is {limit}.", subject=name, hint=hint)
    return _repair_table(context, conditions, max_seconds, max_bytes) if fix else examine(context, conditions)[0]


def _repair_table(
    context: TableContext, conditions: Conditions, max_seconds: float | None, max_bytes: int | None
) -> TableHealth:
    context = load_at_newest_schema(context)
    until = None if max_seconds is None else context.engine.clock.now_millis() + int(1000 * max_seconds)
    health, _ = examine(context, conditions)
    visit = _Visit(context, health, Budget(until, max_bytes))
    names = [shape.name for shape in health.shapes]
    repaired: list[Finding] = []
    latest, shapes = health, health.shapes
    for _ in range(_ROUNDS):
        found = [f for f in latest.findings if f.kind in _REPEATED or not any(_is_same(f, r) for r in repaired)]
        if not found or (repaired and not visit.has_time):
            break
        for finding in _repair_findings(visit, found):
            _record(repaired, finding)
        latest, shapes = examine(context, conditions, names)
    findings = [evolve(f, cost_after=_find_cost(latest, f)) for f in repaired]
    findings += [
        evolve(f, cost_after=f.cost, outcome=_explain_omission(visit, f) or "left: run the repair again")
        for f in latest.findings
        if not any(_is_same(f, r) for r in repaired)
    ]
    return evolve(health, findings=findings, shapes_after=shapes)


def _record(repaired: list[Finding], finding: Finding) -> None:
    """Add a finding with its outcome, or its outcome to the same finding of an earlier round."""
    for place, earlier in enumerate(repaired):
        if _is_same(finding, earlier):
            has_failed = earlier.has_failed or finding.has_failed
            repaired[place] = evolve(earlier, outcome=f"{earlier.outcome}; {finding.outcome}", has_failed=has_failed)
            return
    repaired.append(finding)


def _repair_findings(visit: _Visit, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Run the repairs of findings, and yield them with their outcomes; equal repairs run once."""
    done: list[Finding] = []
    for number, finding in enumerate(findings, 1):
        same = next((f for f in done if f.repair is not None and f.repair == finding.repair), None)
        if same is None:
            done.append(_repair(visit, finding))
        else:
            done.append(evolve(finding, outcome=same.outcome, has_failed=same.has_failed))
        visit.context.engine.observer.progress("repairing findings", number, len(findings))
        yield done[-1]


def _is_same(finding: Finding, other: Finding) -> bool:
    """Return whether two examinations found the same: one kind, and the same object where a kind has several."""
    is_named = finding.kind in (FindingKind.FILE_INDEX, FindingKind.CONSUMERS)
    return finding.kind is other.kind and (not is_named or finding.object_name == other.object_name)


def _find_cost(health: TableHealth, finding: Finding) -> int:
    """Return the cost of the same finding in another examination; 0 if it is gone."""
    return next((f.cost for f in health.findings if _is_same(f, finding)), 0)


def _repair(visit: _Visit, finding: Finding) -> Finding:
    """Run the repair of a finding, and return the finding with what changed, or why nothing did."""
    omitted = _explain_omission(visit, finding)
    if omitted is not None or finding.repair is None:
        return evolve(finding, outcome=omitted)
    try:
        visit.context = load_at_newest_schema(visit.context)
        return evolve(finding, outcome=_REPAIRS[finding.repair.procedure](visit, finding, finding.repair))
    except PaimonError as error:
        return evolve(finding, outcome=f"failed: {error.message}", has_failed=True)


def _explain_omission(visit: _Visit, finding: Finding) -> str | None:
    """Return why the repair of a finding does not run; None if it does."""
    if finding.repair is None:
        return "no repair for this table"
    if not finding.repair.is_automatic:
        return "not automatic"
    return None if visit.has_time else "left: no time remains"


def _compact(visit: _Visit, finding: Finding, repair: Repair) -> str:
    context = visit.context
    context = context.with_table(evolve(context.table, options=context.options.with_values(repair.call_options)))
    full = repair.arguments["compact_strategy"] == "full"
    if context.options.bucket == POSTPONED:
        if not visit.budget.allows(visit.health.size_bytes):
            return _describe_excess(visit)
        visit.budget.spend(visit.health.size_bytes)
        done = compact_table(context, visit.commit_user, full)
        return f"{format_count(done.files_before, 'file')} replaced by {done.files_after:,}"
    chooser = _Chooser(visit.budget, LayoutRules.of(context.table), finding.kind, full)
    before = after = 0
    for _ in range(_MOST_BATCHES):
        done = _compact_batch(context, visit.commit_user, full, chooser)
        before, after = before + done.files_before, after + done.files_after
        if not done.snapshot_ids or not visit.has_time:
            break
    left = [] if visit.has_time else ["no time remains"]
    left += [_describe_excess(visit)] if chooser.has_left else []
    text = f"{format_count(before, 'file')} ({format_size(chooser.read_bytes)}) replaced by {after:,}"
    return "; ".join([*([text] if before else []), *left]) or "nothing to compact"


def _describe_excess(visit: _Visit) -> str:
    left = max(visit.budget.left_bytes or 0, 0)
    return f"left: more than the {format_size(left)} that remain of the budget"


@define
class _Chooser:
    """Chooses the work of the next batch of a compaction."""

    budget: Budget
    rules: LayoutRules
    kind: FindingKind
    # whether the compaction is full: it may rewrite files that are right, so each bucket is compacted once
    is_full: bool
    read_bytes: int = 0
    # whether work exceeds the budget
    has_left: bool = False
    # what the batch reads, until its commit succeeds
    batch_bytes: int = 0
    batch_buckets: tuple[tuple[bytes, int], ...] = ()
    done: frozenset[tuple[bytes, int]] = frozenset()

    def run(self, context: TableContext, works: Sequence[BucketWork]) -> Iterable[CommitMessage]:
        """Compact the buckets of the next batch."""
        return compact_with_executor(context, self._choose(works))

    def _choose(self, works: Sequence[BucketWork]) -> list[BucketWork]:
        """Return the work of a batch, packs of a bucket one by one."""
        self.batch_bytes, self.has_left = 0, False
        chosen = [part for work in works if self._is_wanted(work) for part in self._take(work)]
        self.batch_buckets = tuple((work.partition, work.bucket) for work in chosen)
        return chosen

    def finish(self) -> None:
        """Count a batch that was committed."""
        self.budget.spend(self.batch_bytes)
        self.read_bytes += self.batch_bytes
        self.done |= frozenset(self.batch_buckets)

    def _is_wanted(self, work: BucketWork) -> bool:
        # the files that writers of a merge tree add meanwhile are no work of this repair, which would never end
        if (self.is_full or work.is_keyed) and (work.partition, work.bucket) in self.done:
            return False
        if not self.is_full:
            return True
        if self.kind is FindingKind.DELETION_VECTORS:
            marked = marked_files(work.vectors.current) if work.vectors is not None else {}
            return any(file.file_name in marked for file in work.replaced)
        small = sum(file.level > 0 and file.file_size < self.rules.small_bytes for file in work.replaced)
        return small >= self.rules.min_files

    def _take(self, work: BucketWork) -> list[BucketWork]:
        """Return the part of the work of a bucket that fits into the batch and the budget."""
        if work.is_keyed or work.order is not None:  # all of it, so that each level stays one run
            return [work] if self._fits(sum(file.file_size for file in work.rewritten)) else []
        packs = tuple(pack for pack in work.packs if self._fits(sum(file.file_size for file in pack)))
        return [evolve(work, packs=packs)] if packs else []

    def _fits(self, size_bytes: int) -> bool:
        if not self.budget.allows(self.batch_bytes + size_bytes):
            self.has_left = True
            return False
        if self.batch_bytes and self.batch_bytes + size_bytes > _BATCH_BYTES:
            return False
        self.batch_bytes += size_bytes
        return True


def _compact_batch(context: TableContext, commit_user: str, full: bool, chooser: _Chooser) -> CompactResult:
    """Compact one batch; after a conflict it is planned again."""
    for attempt in range(_ATTEMPTS):
        try:
            done = compact(context, commit_user, full, run=chooser.run)
        except CommitConflict:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            chooser.finish()
            return done
    raise AssertionError("a batch returns or raises")


def _build_indexes(visit: _Visit, _: Finding, repair: Repair) -> str:
    if not visit.budget.allows(visit.health.size_bytes):
        return _describe_excess(visit)
    if repair.table_options:
        changes = [SetOption(key, value) for key, value in repair.table_options.items()]
        visit.context = visit.context.at_schema(alter_table(visit.context, changes))
    visit.budget.spend(visit.health.size_bytes)
    done = rewrite_file_indexes(visit.context, visit.commit_user)
    return f"indexes of {format_count(done.files, 'file')} built"


def _merge_manifests(visit: _Visit, _: Finding, __: Repair) -> str:
    done = compact_manifests(visit.context, visit.commit_user)
    return f"{format_count(done.manifests_before, 'manifest')} merged into {done.manifests_after:,}"


def _analyze(visit: _Visit, _: Finding, __: Repair) -> str:
    if not visit.budget.allows(visit.health.size_bytes):
        return _describe_excess(visit)
    visit.budget.spend(visit.health.size_bytes)
    done = analyze(visit.context, None, visit.commit_user)
    return f"{format_count(done.statistics.row_count or 0, 'row')} analyzed"


def _expire_snapshots(visit: _Visit, _: Finding, __: Repair) -> str:
    retention = Retention.of_snapshots(visit.context.options).without_limit()
    done = expire_snapshots(visit.context, retention, everything=True)
    return f"{format_count(done.snapshots, 'snapshot')} and {format_count(done.files, 'file')} deleted"


def _expire_changelogs(visit: _Visit, _: Finding, __: Repair) -> str:
    done = expire_changelogs(visit.context, Retention.of_changelogs(visit.context.options).without_limit())
    return f"{format_count(done.snapshots, 'changelog')} and {format_count(done.files, 'file')} deleted"


def _remove_orphans(visit: _Visit, _: Finding, __: Repair) -> str:
    return f"{format_count(remove_orphans(visit.context).num_rows, 'orphan file')} deleted"


_REPAIRS: Mapping[str, Callable[[_Visit, Finding, Repair], str]] = {
    "compact": _compact,
    "rewrite_file_index": _build_indexes,
    "compact_manifest": _merge_manifests,
    "analyze": _analyze,
    "expire_snapshots": _expire_snapshots,
    "expire_changelogs": _expire_changelogs,
    "remove_orphan_files": _remove_orphans,
}
