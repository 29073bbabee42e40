"""Compare the outcomes that actors got with the commits and tags of the final table.

Invariant: a commit with outcome `DONE` is committed once, and a refused one is not committed. A tag exists until its
tagger deletes it. Without faults, an actor is refused only because of the work of another actor. No commit uses up its
retries, because the other actors publish fewer snapshots than `commit.max-retries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from paimon.testing.simulation.actions import Action, Outcome
from paimon.testing.simulation.simulation_plan import WRITERS, Plan, Role, TableKind

_FIRST_BATCH_IDENTIFIER = 2**31
"""Batch commits use identifiers from here on, which may repeat.

A writer that repeats a commit may publish the missing compaction under such an identifier, and nothing else.
"""
_RETRIES_USED_UP = "commit.max-retries"
"""The option that only the error about used-up retries names."""
Commit = tuple[str, int, str]
"""Commit user, commit identifier and commit kind."""


def check_outcomes(
    plan: Plan, actions: Sequence[Action], commits: Mapping[Commit, int], tags: Mapping[str, int]
) -> Iterator[str]:
    """Report each outcome that does not agree with the final table.

    Parameters
    ----------
    plan : Plan
        The plan of the history.
    actions : sequence of Action
        All actions, in the order of their end.
    commits : mapping
        The number of snapshots in the history of each commit.
    tags : mapping
        The snapshot ids by tag name.

    Yields
    ------
    str
        One sentence per violation.
    """
    for (user, commit_identifier, _), count in commits.items():
        if count > 1 and commit_identifier < _FIRST_BATCH_IDENTIFIER:
            yield f"commit {commit_identifier} of {user} is in the history {count} times"
    yield from _check_refused_commits(actions, commits)
    writers = {a.actor for a in actions if a.role in WRITERS}
    yield from (
        f"{user} committed a batch of kind {kind}, which no writer does"
        for user, commit_identifier, kind in commits
        if user in writers and commit_identifier >= _FIRST_BATCH_IDENTIFIER and kind != "COMPACT"
    )
    yield from _check_tags(actions, tags)
    for action in actions:
        if action.outcome is Outcome.REFUSED and _RETRIES_USED_UP in action.description:
            yield f"{action.actor} was refused: {action.description}"
    if plan.is_faultless:
        yield from (
            f"{a.actor} got the outcome {a.outcome.value} without a reason: {a.description}"
            for a in actions
            if a.outcome is not Outcome.DONE and not _can_be_refused(a, plan)
        )


def _check_refused_commits(actions: Sequence[Action], commits: Mapping[Commit, int]) -> Iterator[str]:
    outcomes: dict[tuple[str, int], set[Outcome]] = {}
    for action in actions:
        if action.role in WRITERS:
            outcomes.setdefault((action.actor, action.number), set()).add(action.outcome)
    writers = {actor for actor, _ in outcomes}
    for user, commit_identifier in {(user, commit_identifier) for user, commit_identifier, _ in commits}:
        attempted = (user, commit_identifier) in outcomes
        if outcomes.get((user, commit_identifier)) == {Outcome.REFUSED}:
            yield f"commit {commit_identifier} of {user} was refused, and it is committed"
        if user in writers and not attempted and commit_identifier < _FIRST_BATCH_IDENTIFIER:
            yield f"commit {commit_identifier} of {user} was never attempted, and it is committed"


def _check_tags(actions: Sequence[Action], tags: Mapping[str, int]) -> Iterator[str]:
    """Check the tags of each tagger, whose names no other actor uses; after a failure its earlier tags are unknown."""
    for tagger in {a.actor for a in actions if a.role is Role.TAGGER}:
        expected: dict[str, int] = {}
        for action in (a for a in actions if a.actor == tagger):
            change = action.tag_change
            if action.outcome is not Outcome.DONE:
                expected.clear()
            elif change is not None:
                expected.pop(change.tag_name, None)
                expected |= {} if change.snapshot_id is None else {change.tag_name: change.snapshot_id}
        for tag_name, snapshot_id in expected.items():
            if tags.get(tag_name) != snapshot_id:
                yield f"{tagger} created tag {tag_name} of snapshot {snapshot_id}, and it names {tags.get(tag_name)}"


def _can_be_refused(action: Action, plan: Plan) -> bool:
    """Return whether other actors can be the reason: a state expired, files were replaced, or a table was rescaled."""
    if Role.RESCALER in plan.roles and action.role is not Role.READER:
        return True
    if plan.table_kind in (TableKind.DYNAMIC, TableKind.CROSS_PARTITION) and action.role is Role.STREAMER:
        return True  # another writer changed the index that assigned the rows; a job starts again
    if action.role in WRITERS or action.role is Role.SCHEMA_CHANGER:
        return False
    return action.role is Role.COMPACTOR or plan.expires_snapshots
