"""The simulated world: drawn histories, every fault of fixed ones, and planted mistakes that it must see.

300 histories, sampled fault points and one pinned seed a mistake in CI; 20,000, all points, and the search by --long
(or, with a log and in pieces, by ``python -m paimon.testing.world simulated:assemble``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from attrs import evolve
from simulated import MISTAKES, assemble, planted

from paimon.testing.faulty_files import Fault
from paimon.testing.world.campaign import campaign, seeds
from paimon.testing.world.plan import LOCAL_FAULTS, STORE_FAULTS, Plan, drawn, drawn_hiding
from paimon.testing.world.workloads import WORKLOADS, fault_points
from paimon.testing.world.world import Verdict, World, shrunk, told

PARTS = 6
SEEN_WITHIN = 500
PINNED: Mapping[str, int] = {
    "a snapshot is overwritten": 0,
    "a lost answer is a lost race": 0,
    "an unknown outcome is a success": 3,
    "no look back after a put": 215,
    "commits are not known again": 6,
    "conflicts are not looked for": 1,
    "a hint is believed": 33,
    "a head is kept": 59,
    "sequence numbers begin anew": 0,
    "tags do not hold": 40,
    "later snapshots do not hold": 11,
    "young files are cleaned": 0,
    "the cleaner knows no tags": 40,
    "an unreadable tag is none": 385,
    "the cleaner goes on after errors": 63,
    "deletes are dropped too early": 463,
    "a compactor replaces what it did not read": 88,
    "readers believe the hint": 115,
    "data go before their snapshot": 121,
}

PINNED_HIDING: Mapping[str, int] = {"a lost compaction hides rows": 2}
"""Mistakes that only a table whose reads skip level 0 can show."""

REGRESSIONS = (199, 501)
"""Seeds that told of a fault: an expirer that was overtaken by others forgot who held what it was about to delete."""


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


def test_drawn_histories_of_a_table_whose_reads_skip_level_0() -> None:
    for seed in range(60):
        check(drawn_hiding(seed))


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_drawn_histories_of_a_table_whose_reads_skip_level_0(part: int) -> None:
    for seed in range(500 * part, 500 * (part + 1)):
        check(drawn_hiding(seed))


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_histories_that_told_of_a_fault(seed: int) -> None:
    check(drawn(seed))


@pytest.mark.long
@pytest.mark.parametrize("part", range(40))
def test_many_drawn_histories(part: int) -> None:
    for seed in range(500 * part, 500 * (part + 1)):
        check(drawn(seed))


@pytest.mark.parametrize("name", WORKLOADS)
def test_sampled_fault_points(name: str) -> None:
    plan = WORKLOADS[name]
    kinds = [*Fault]
    for place in range(1, check(plan).operations + 1, 9):
        fault = kinds[place // 9 % len(kinds)]
        check(evolve(plan, faults={place: fault}, is_store=fault in STORE_FAULTS))


@pytest.mark.long
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_fault_point(name: str) -> None:
    for _, _, plan in fault_points(name, assemble):
        check(plan)


@pytest.mark.parametrize("mistake", [*PINNED, *PINNED_HIDING])
def test_planted_mistakes_are_seen(mistake: str) -> None:
    plan = drawn(PINNED[mistake]) if mistake in PINNED else drawn_hiding(PINNED_HIDING[mistake])
    check(plan)
    with planted(mistake):
        assert not World(plan, assemble).run().is_well


def test_every_mistake_is_pinned() -> None:
    assert {*PINNED, *PINNED_HIDING} == set(MISTAKES)
    assert len(MISTAKES) >= 12


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen_soon(mistake: str) -> None:
    with planted(mistake):
        draw = drawn_hiding if mistake in PINNED_HIDING else drawn
        assert any(not World(draw(seed), assemble).run().is_well for seed in range(SEEN_WITHIN))


def test_one_seed_is_one_history() -> None:
    first, second = (World(drawn(17), assemble).run() for _ in range(2))
    assert first.story == second.story


def test_a_history_that_goes_wrong_is_made_smaller_and_told() -> None:
    with planted("a snapshot is overwritten"):
        verdict = World(drawn(PINNED["a snapshot is overwritten"]), assemble).run()
        small = shrunk(verdict, assemble, runs=60)
    assert not small.is_well
    assert len(small.story) < len(verdict.story)
    story = told(small)
    assert story.startswith(f"seed {verdict.plan.seed}: ")
    assert "WRONG: " in story


def test_drawn_plans_hold_everything_that_can_go_wrong() -> None:
    plans = [drawn(seed) for seed in range(100)]
    for is_store, kinds in ((True, STORE_FAULTS), (False, LOCAL_FAULTS)):
        assert {f for p in plans if p.is_store is is_store for f in p.faults.values()} == set(kinds)
    assert any(len(p.clocks) > 1 and min(p.clocks.values()) < 0 < max(p.clocks.values()) for p in plans)
    assert all(any(getattr(p, name) for p in plans) for name in ("delays", "nights", "flaky", "loaded"))


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    log, lines = tmp_path / "log", list[str]()
    stopped = campaign(seeds(0, 3), assemble, log, lines.append, seconds=0.0)
    done = campaign(seeds(0, 3), assemble, log, lines.append)
    assert (stopped.now, done.now, done.judged, done.wrong) == (1, 2, 3, 0)
    assert log.read_text().splitlines() == [f"seed-{n} well" for n in range(3)]
    with planted("a snapshot is overwritten"):
        wrong = campaign(seeds(0, 1), assemble, tmp_path / "other", lines.append, runs_to_shrink=3)
    assert wrong.wrong == 1
    assert "WRONG" in (tmp_path / "other").read_text()
