"""The simulated world: drawn histories, every fault of fixed ones, and planted mistakes that it must see.

300 histories, sampled fault points and one pinned seed a mistake in CI; 20,000, all points, and the search by --long.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping

import pytest
from attrs import evolve
from simulated import MISTAKES, assemble, planted

from paimon.testing.faulty_files import Fault
from paimon.testing.world.plan import LOCAL_FAULTS, STORE_FAULTS, Plan, Role, drawn
from paimon.testing.world.world import Verdict, World, shrunk, told

PARTS = 6
SEEN_WITHIN = 500
PINNED: Mapping[str, int] = {
    "a snapshot is overwritten": 0,
    "a lost answer is a lost race": 11,
    "an unknown outcome is a success": 22,
    "no look back after a put": 53,
    "commits are not known again": 13,
    "conflicts are not looked for": 2,
    "a hint is believed": 194,
    "a head is kept": 7,
    "sequence numbers begin anew": 4,
    "tags do not hold": 101,
    "later snapshots do not hold": 6,
    "young files are cleaned": 0,
    "the cleaner knows no tags": 295,
}
_KEYED = {"bucket": "1", "file.format": "avro", "commit.max-retries": "60"}
WORKLOADS: Mapping[str, Plan] = {
    "writers": Plan(1, (Role.WRITER, Role.WRITER), 2, options={**_KEYED, "write-only": "true"}),
    "writer and compactor": Plan(2, (Role.WRITER, Role.COMPACTOR), 2, options={**_KEYED, "write-only": "true"}),
    "inline compaction": Plan(
        3, (Role.STREAMER, Role.WRITER), 2, options={**_KEYED, "num-sorted-run.compaction-trigger": "2"}
    ),
    "expiry and tags": Plan(4, (Role.WRITER, Role.EXPIRER, Role.TAGGER), 2, options={**_KEYED, "write-only": "true"}),
    "lookup changelog": Plan(
        5, (Role.WRITER, Role.READER), 2,
        options={**_KEYED, "num-sorted-run.compaction-trigger": "2", "changelog-producer": "lookup"},
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What fails after a commit is a warning: here it fails on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def check(plan: Plan) -> Verdict:
    verdict = World(plan, assemble).run()
    if not verdict.is_well:
        pytest.fail(told(shrunk(verdict, assemble, runs=20)))
    return verdict


@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_histories(part: int) -> None:
    for seed in range(50 * part, 50 * (part + 1)):
        check(drawn(seed))


@pytest.mark.long
@pytest.mark.parametrize("part", range(40))
def test_many_drawn_histories(part: int) -> None:
    for seed in range(1_000 + 500 * part, 1_000 + 500 * (part + 1)):
        check(drawn(seed))


def points(plan: Plan) -> int:
    """How many operations a workload has when nothing goes wrong."""
    return sum(line[0].isdecimal() for line in check(plan).story)


@pytest.mark.parametrize("name", WORKLOADS)
def test_sampled_fault_points(name: str) -> None:
    plan = WORKLOADS[name]
    kinds = [*STORE_FAULTS]
    for place in range(1, points(plan) + 1, 9):
        fault = kinds[place // 9 % len(kinds)]
        check(evolve(plan, faults={place: fault}, is_store=fault not in LOCAL_FAULTS))


@pytest.mark.long
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_fault_point(name: str, fault: Fault) -> None:
    plan = WORKLOADS[name]
    for place in range(1, points(plan) + 1):
        check(evolve(plan, faults={place: fault}, is_store=fault not in LOCAL_FAULTS))


@pytest.mark.parametrize("mistake", PINNED)
def test_planted_mistakes_are_seen(mistake: str) -> None:
    plan = drawn(PINNED[mistake])
    check(plan)
    with planted(mistake):
        assert not World(plan, assemble).run().is_well


def test_every_mistake_is_pinned() -> None:
    assert set(PINNED) == set(MISTAKES)
    assert len(MISTAKES) >= 12


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen_soon(mistake: str) -> None:
    with planted(mistake):
        assert any(not World(drawn(seed), assemble).run().is_well for seed in range(SEEN_WITHIN))


def test_one_seed_is_one_history() -> None:
    first, second = (World(drawn(17), assemble).run() for _ in range(2))
    assert first.story == second.story


def test_a_history_that_goes_wrong_is_made_smaller_and_told() -> None:
    with planted("a snapshot is overwritten"):
        verdict = World(drawn(PINNED["a snapshot is overwritten"]), assemble).run()
        small = shrunk(verdict, assemble)
    assert not small.is_well
    assert len(small.story) < len(verdict.story)
    story = told(small)
    assert story.startswith(f"seed {verdict.plan.seed}: ")
    assert "WRONG: " in story
