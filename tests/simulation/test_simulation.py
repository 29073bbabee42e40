"""The simulation: drawn histories, every fault point of fixed workloads, and planted mistakes that it must detect.

Always: 100 histories of tables with fixed buckets, some of each other kind, sampled fault points, and one pinned seed a
mistake. By --nightly: 200 more, more of each kind, and histories of new seeds. By --long: 20,000 histories, 5,000 of
each other kind, all fault points, and the search for each mistake. Or, with a log and in pieces:
``python -m paimon.testing.simulation support.simulated_engines:assemble``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from attrs import evolve
from support.case_lists import mark_nightly
from support.simulated_engines import MISTAKES, assemble, plant_mistake

from paimon.adapters.process_effects import SystemProcessEffects
from paimon.testing.faulty_files import Fault
from paimon.testing.simulation.campaign import draw_plans, run_campaign
from paimon.testing.simulation.simulation import Simulation, SimulationResult, describe_result, shrink
from paimon.testing.simulation.simulation_plan import (
    LOCAL_FAULTS,
    STORE_FAULTS,
    Plan,
    draw_cross_partition_plan,
    draw_dynamic_plan,
    draw_hidden_level_0_plan,
    draw_plan,
    draw_postponed_plan,
    draw_replaced_plan,
    draw_rescale_plan,
)
from paimon.testing.simulation.workloads import WORKLOADS, enumerate_fault_points

pytestmark = pytest.mark.filterwarnings("ignore:Table .* the clock of this machine:paimon.PaimonWarning")

PARTS = 6
SEEDS = {
    "hidden_level_0": 60,
    "rescales": 12,
    "dynamic_buckets": 10,
    "cross_partition": 10,
    "postponed_buckets": 10,
    "replaced_tables": 60,
}
"""How many histories of each kind run; `--long` runs 5,000."""
DETECTED_WITHIN = 500
PINNED: Mapping[str, int] = {
    "a snapshot is overwritten": 0,
    "an unknown outcome is a lost race": 6,
    "an unknown outcome is published": 3,
    "a put is not confirmed": 365,
    "a repeated commit is not recognized": 6,
    "conflicts are not checked": 11,
    "a committer trusts the hint": 33,
    "the latest snapshot is cached": 4,
    "sequence numbers restart": 0,
    "expiry ignores tags": 112,
    "expiry ignores later snapshots": 11,
    "the cleaner removes young files": 44,
    "the cleaner ignores tags": 40,
    "an unreadable tag is ignored": 456,
    "the cleaner ignores errors": 63,
    "deletes are dropped too early": 51,
    "a compactor replaces files that it did not read": 89,
    "a reader trusts the hint": 817,
    "data files are deleted before their snapshot": 171,
}

DRAWS: Mapping[str, Callable[[int], Plan]] = {
    "hidden_level_0": draw_hidden_level_0_plan,
    "rescales": draw_rescale_plan,
    "dynamic_buckets": draw_dynamic_plan,
    "cross_partition": draw_cross_partition_plan,
    "postponed_buckets": draw_postponed_plan,
    "replaced_tables": draw_replaced_plan,
}
"""Other kinds of histories than those of `draw_plan`."""

PINNED_BY_KIND: Mapping[str, Mapping[str, int]] = {
    "hidden_level_0": {"a lost compaction hides rows": 1},
    "rescales": {"a commit does not check the number of buckets": 10, "a rescale does not see concurrent rows": 2},
    "dynamic_buckets": {
        "the hash index conflict is not checked": 0,
        "a retry keeps its old assignment": 3,
        "index files of other writers are ignored": 1,
        "an overwrite keeps the hash index": 38,
    },
    "cross_partition": {
        "a moved key is not deleted in its old partition": 1,
        "the key index conflict is not checked": 3,
        "a stream does not read the keys of other writers": 10,
        "a moved key is deleted with a low sequence number": 30,
        "the key index is not rebuilt after a repeated commit": 33,
    },
    "postponed_buckets": {
        "postponed files are replayed in reverse order": 0,
        "a compaction drops new postponed files": 2,
    },
    "replaced_tables": {
        "a commit does not confirm its table": 2,
        "a commit trusts its open table": 2,
        "a refused snapshot is not taken back": 3,
    },
}
"""Mistakes that only a history of one kind can show."""

ALL_PINNED = {**PINNED, **{name: seed for pinned in PINNED_BY_KIND.values() for name, seed in pinned.items()}}

REGRESSIONS = (199, 501)
"""Seeds that showed a fault: an expiry that others overtook did not read the references again before it deleted."""


@pytest.fixture(autouse=True)
def _ignore_warnings() -> Iterator[None]:
    """Ignore warnings: maintenance after a commit fails on purpose here. Garbage is collected after each test."""
    with warnings.catch_warnings(), SystemProcessEffects().pause_gc():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def check(plan: Plan) -> SimulationResult:
    result = Simulation(plan, assemble).run()
    if not result.is_correct:
        pytest.fail(describe_result(shrink(result, assemble, max_runs=20)))
    return result


@pytest.mark.slow("50 histories")
@pytest.mark.parametrize("part", mark_nightly(range(PARTS), always=[0, 1]))
def test_drawn_histories(part: int) -> None:
    for seed in range(50 * part, 50 * (part + 1)):
        check(draw_plan(seed))


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("part", mark_nightly(range(3), always=[0]))
def test_drawn_histories_of_each_kind(kind: str, part: int) -> None:
    for seed in range(SEEDS[kind])[part::3]:
        check(DRAWS[kind](seed))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["fixed_buckets", *DRAWS])
def test_histories_of_new_seeds(kind: str) -> None:
    """A failure names its seed; pin it in `REGRESSIONS`."""
    first = int.from_bytes(os.urandom(4))
    for seed in range(first, first + 100):
        check(DRAWS.get(kind, draw_plan)(seed))


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", DRAWS)
def test_many_drawn_histories_of_each_kind(kind: str, part: int) -> None:
    for seed in range(500 * part, 500 * (part + 1)):
        check(DRAWS[kind](seed))


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_seeds_that_showed_a_fault(seed: int) -> None:
    check(draw_plan(seed))


@pytest.mark.long
@pytest.mark.parametrize("part", range(40))
def test_many_drawn_histories(part: int) -> None:
    for seed in range(500 * part, 500 * (part + 1)):
        check(draw_plan(seed))


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
    for _, _, plan in enumerate_fault_points(name, assemble):
        check(plan)


def choose_draw(mistake: str) -> Callable[[int], Plan]:
    """Return what draws the histories that can show the mistake."""
    return next((DRAWS[kind] for kind, pinned in PINNED_BY_KIND.items() if mistake in pinned), draw_plan)


@pytest.mark.parametrize("mistake", ALL_PINNED)
def test_planted_mistakes_are_detected(mistake: str) -> None:
    """A pinned seed is the first that is tried: another one shows the mistake when operations of the storage change."""
    draw = choose_draw(mistake)
    with plant_mistake(mistake):
        seeds = (ALL_PINNED[mistake], *range(2 * DETECTED_WITHIN))
        found = next((seed for seed in seeds if not Simulation(draw(seed), assemble).run().is_correct), None)
    assert found is not None
    check(draw(found))


def test_every_mistake_is_pinned() -> None:
    assert set(ALL_PINNED) == set(MISTAKES)
    assert len(MISTAKES) >= 12


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_detected_soon(mistake: str) -> None:
    with plant_mistake(mistake):
        draw = choose_draw(mistake)
        assert any(not Simulation(draw(seed), assemble).run().is_correct for seed in range(DETECTED_WITHIN))


def test_one_seed_is_one_history() -> None:
    first, second = (Simulation(draw_plan(17), assemble).run() for _ in range(2))
    assert first.trace == second.trace


def test_a_failing_history_is_shrunk_and_described() -> None:
    with plant_mistake("a snapshot is overwritten"):
        result = Simulation(draw_plan(PINNED["a snapshot is overwritten"]), assemble).run()
        small = shrink(result, assemble, max_runs=60)
    assert not small.is_correct
    assert len(small.trace) < len(result.trace)
    description = describe_result(small)
    assert description.startswith(f"seed {result.plan.seed}: ")
    assert "VIOLATION: " in description


def test_drawn_plans_contain_every_kind_of_fault() -> None:
    plans = [draw_plan(seed) for seed in range(100)]
    for is_store, kinds in ((True, STORE_FAULTS), (False, LOCAL_FAULTS)):
        assert {f for p in plans if p.is_store is is_store for f in p.faults.values()} == set(kinds)
    assert any(
        len(p.clock_offsets) > 1 and min(p.clock_offsets.values()) < 0 < max(p.clock_offsets.values()) for p in plans
    )
    assert all(any(getattr(p, name) for p in plans) for name in ("delays", "time_jumps", "flaky_reads", "initial_rows"))


def test_a_stopped_campaign_continues(tmp_path: Path) -> None:
    log, lines = tmp_path / "log", list[str]()
    stopped = run_campaign(draw_plans(0, 3), assemble, log, lines.append, max_seconds=0.0)
    done = run_campaign(draw_plans(0, 3), assemble, log, lines.append)
    assert (stopped.checked_now, done.checked_now, done.checked, done.failed) == (1, 2, 3, 0)
    assert log.read_text().splitlines() == [f"seed-{n} passed" for n in range(3)]
    with plant_mistake("a snapshot is overwritten"):
        failed = run_campaign(draw_plans(0, 1), assemble, tmp_path / "other", lines.append, max_shrink_runs=3)
    assert failed.failed == 1
    assert "FAILED" in (tmp_path / "other").read_text()
