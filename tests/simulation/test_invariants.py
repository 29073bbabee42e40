"""The invariants of the simulation, checked on actions and states that violate them."""

from __future__ import annotations

import pytest

from paimon.testing.simulation.actions import Action, Outcome, TagChange
from paimon.testing.simulation.invariants import check_outcomes
from paimon.testing.simulation.simulated_rows import (
    build_commit_rows,
    build_initial_rows,
    compute_state_after,
    find_progress,
)
from paimon.testing.simulation.simulation_plan import Plan, Role

PLAN = Plan(1, (Role.WRITER, Role.TAGGER, Role.READER))
FLAKY_PLAN = Plan(1, PLAN.roles, flaky_reads={0: "tag/"})


def action(role: Role, outcome: Outcome, number: int = 1, tag_change: TagChange | None = None) -> Action:
    return Action(f"{role.value}-0", role, number, outcome, 1, 2, tag_change=tag_change)


@pytest.mark.parametrize("version", range(8))
def test_the_last_commit_of_a_writer_is_found_in_a_state(version: int) -> None:
    assert find_progress(compute_state_after(3, version), [3], 0) == ({3: version}, "")


def test_consecutive_commits_lead_to_the_states() -> None:
    versions: dict[int, int] = {}
    for version in range(1, 8):
        for row in build_commit_rows(2, version).to_pylist():
            if row["kind"] == "-D":
                versions.pop(row["id"], None)
            else:
                versions[row["id"]] = row["version"]
        assert versions == compute_state_after(2, version)


def test_a_state_that_no_commit_made_is_detected() -> None:
    second = compute_state_after(0, 2)
    assert "the state after none of its commits" in find_progress({**second, 0: 1}, [0], 0)[1]  # deleted, and back
    assert "the state after none of its commits" in find_progress({2: 2}, [0], 0)[1]  # an earlier change is lost
    assert "rows that belong to no writer" in find_progress({**second, 9: 1}, [0], 0)[1]
    assert "rows that belong to no writer" in find_progress(second, [0], 1)[1]  # an initial row is lost
    initial = {row["id"]: row["version"] for row in build_initial_rows(1).to_pylist()}
    assert find_progress({**second, **initial}, [0], 1) == ({0: 2}, "")


def test_outcomes_that_agree_with_the_table_are_no_violation() -> None:
    actions = [action(Role.WRITER, Outcome.DONE), action(Role.TAGGER, Outcome.DONE, tag_change=TagChange("a", 1))]
    assert not [*check_outcomes(PLAN, actions, {("writer-0", 1, "APPEND"): 1}, {"a": 1})]


def test_outcomes_that_contradict_the_table_are_violations() -> None:
    refused = [action(Role.WRITER, Outcome.REFUSED)]
    commits = {("writer-0", 1, "APPEND"): 1}
    assert [*check_outcomes(FLAKY_PLAN, refused, commits, {})] == [
        "commit 1 of writer-0 was refused, and it is committed"
    ]
    assert not [*check_outcomes(FLAKY_PLAN, [*refused, action(Role.WRITER, Outcome.DIED)], commits, {})]
    assert "without a reason" in next(check_outcomes(PLAN, refused, {}, {}))
    assert "is in the history 2 times" in next(check_outcomes(FLAKY_PLAN, refused, {("writer-0", 1, "APPEND"): 2}, {}))
    assert "never attempted" in next(check_outcomes(FLAKY_PLAN, refused, {("writer-0", 2, "APPEND"): 1}, {}))


def test_a_tag_exists_until_its_tagger_deletes_it() -> None:
    made = action(Role.TAGGER, Outcome.DONE, tag_change=TagChange("a", 4))
    deleted = action(Role.TAGGER, Outcome.DONE, number=2, tag_change=TagChange("a"))
    refused_change = action(Role.TAGGER, Outcome.REFUSED, number=2)
    assert [*check_outcomes(FLAKY_PLAN, [made], {}, {})] == ["tagger-0 created tag a of snapshot 4, and it names None"]
    assert [*check_outcomes(FLAKY_PLAN, [made], {}, {"a": 5})] == [
        "tagger-0 created tag a of snapshot 4, and it names 5"
    ]
    assert not [*check_outcomes(FLAKY_PLAN, [made], {}, {"a": 4})]
    assert not [*check_outcomes(FLAKY_PLAN, [made, deleted], {}, {})]
    assert not [*check_outcomes(FLAKY_PLAN, [made, refused_change], {}, {})]
