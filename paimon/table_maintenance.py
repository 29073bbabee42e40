"""Run the maintenance methods of `paimon.table`: each is one operation, and then what follows a commit."""

from __future__ import annotations

from attrs import evolve

from paimon.domain.predicate.expression import Predicate
from paimon.operations.compact.compact import CompactResult
from paimon.operations.rescale.rescale import RescaleResult, plan_rescale, rescale
from paimon.operations.table_context import TableContext
from paimon.operations.write.compact_table import compact_table, plan_table_compaction
from paimon.references import commit_user_of, run_after_commit
from paimon.scan import condition_of


def compact_where(
    context: TableContext, full: bool, where: str | Predicate | None, dry_run: bool = False
) -> CompactResult:
    """Compact the partitions that a condition selects, None for all; see `Table.compact`."""
    predicate = None if where is None else condition_of(where)
    if dry_run:
        return plan_table_compaction(context, full, predicate)
    done = compact_table(context, commit_user_of(context, None), full, predicate)
    # Expiry of a write-only table runs where it is compacted.
    writing = evolve(context.table, options=context.options.with_values({"write-only": "false"}))
    run_after_commit(context.with_table(writing), done.snapshot_ids)
    return done


def rescale_where(
    context: TableContext, buckets: int, where: str | Predicate | None, dry_run: bool = False
) -> RescaleResult:
    """Rewrite the partitions that a condition selects with `buckets` buckets each; see `Table.rescale`."""
    predicate = None if where is None else condition_of(where)
    if dry_run:
        return plan_rescale(context, buckets, predicate)
    done = rescale(context, buckets, commit_user_of(context, None), predicate)
    run_after_commit(context, done.snapshot_ids)
    return done
