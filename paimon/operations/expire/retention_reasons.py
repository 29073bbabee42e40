"""Expire snapshots or changelogs on request, and name what retains the others: references, options and rules."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from paimon.domain.maintenance.snapshot_expiry import (
    Retention,
    RetentionReason,
    find_expirable,
    find_first_retained,
    find_retention_reasons,
)
from paimon.operations.expire.expire_changelogs import expire_changelogs, find_end, find_expirable_changelogs
from paimon.operations.expire.expire_snapshots import Expired, expire_snapshots, find_expirable_snapshots, read_ages
from paimon.operations.expire.references import list_branch_names
from paimon.operations.metadata.consumers import consumer_name, consumer_statuses, read_consumers
from paimon.operations.metadata.snapshots import (
    earliest_snapshot_id,
    find_snapshot,
    latest_snapshot,
    snapshot_ids,
    tags,
)
from paimon.operations.read.changes.history import find_changelog, list_changelog_ids
from paimon.operations.table_context import TableContext


def expire_and_explain(context: TableContext, retention: Retention, dry_run: bool) -> Expired:
    """Expire snapshots, or find those that would expire, and name what retains the others."""
    reasons = _read_retention_reasons(context, retention)  # before a deletion, so that an error hides no result
    expired = (
        find_expirable_snapshots(context, retention)
        if dry_run
        else expire_snapshots(context, retention, everything=True)
    )
    return evolve(expired, retained_by=reasons)


def expire_changelogs_and_explain(
    context: TableContext, retention: Retention, delete_all: bool, dry_run: bool
) -> Expired:
    """Expire changelogs, or find those that would expire, and name what retains the others."""
    reasons = () if delete_all else _read_changelog_reasons(context, retention)
    run = find_expirable_changelogs if dry_run else expire_changelogs
    return evolve(run(context, retention, delete_all), retained_by=reasons)


def _read_changelog_reasons(context: TableContext, rules: Retention) -> tuple[RetentionReason, ...]:
    latest, ids = latest_snapshot(context), list_changelog_ids(context)
    if latest is None or not ids:
        return ()
    first = find_end(context, rules, ids, latest.id)
    changelog = find_changelog(context, first)
    since = None if changelog is None else changelog.time_millis
    # A changelog with files of its own needs no other file, so no tag or branch can retain one.
    has_files = context.options.changelog_producer != "none"
    references = [r for r in read_references(context) if r.kind == "consumer" or not has_files]
    reasons = find_retention_reasons(rules, ids[0], latest.id, first, since, references)
    if first == ids[-1] and latest.id - first >= rules.num_min:
        reasons[-1] = RetentionReason("rule", "the newest changelog stays", first, since)
    return tuple(reasons)


def _read_retention_reasons(context: TableContext, rules: Retention) -> tuple[RetentionReason, ...]:
    ids = snapshot_ids(context)
    if not ids:
        return ()
    reach = find_expirable(rules, ids[0], ids[-1])
    now = context.engine.clock.now_millis()
    first = find_first_retained(reach, rules, read_ages(context, reach), now)
    snapshot = find_snapshot(context, first)
    since = None if snapshot is None else snapshot.time_millis
    ignored = "consumer" if context.options.consumer_changelog_only else ""
    references = (r for r in read_references(context) if r.kind != ignored)
    return tuple(find_retention_reasons(rules, ids[0], ids[-1], first, since, references))


def read_references(context: TableContext) -> Iterator[RetentionReason]:
    """Yield the consumers, tags and branches of a table, each with the smallest snapshot that it retains."""
    progress = {consumer_name(s): s.modified_millis for s in consumer_statuses(context)}
    for name, next_id in sorted(read_consumers(context).items()):
        yield RetentionReason("consumer", name, next_id, progress.get(name))
    written = {status.name: status.modified_millis for status in context.files.list(context.paths.tags)}
    for tag in tags(context):
        yield RetentionReason("tag", tag.name, tag.snapshot.id, written.get(f"tag-{tag.name}"))
    for name in sorted(list_branch_names(context.engine, context.paths)):
        branch = context.at_branch(name)
        first = earliest_snapshot_id(branch)
        snapshot = None if first is None else find_snapshot(branch, first)
        if snapshot is not None:
            yield RetentionReason("branch", name, snapshot.id, snapshot.time_millis)
