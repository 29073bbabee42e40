"""The simulation: drawn histories, every fault point of fixed workloads, and planted mistakes that it must detect.

Always: some histories of each kind, sampled fault points, and a pinned mistake of each kind. By --nightly: 300
histories of tables with fixed buckets, more of each other kind, those of new seeds, and all mistakes. By --long: 20,000
histories, 5,000 of each other kind, all fault points, and the search for each mistake. Or, with a log and in pieces:
``python -m paimon.testing.simulation support.simulated_engines:assemble``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve
from support.case_lists import mark_nightly
from support.pin_seeds import COMMAND, DETECTED_WITHIN, DRAWS, find_seed, read_pinned_seeds, shows_mistake
from support.simulated_engines import MISTAKES, assemble, plant_mistake

from paimon.adapters.process_effects import SystemProcessEffects
from paimon.testing.faulty_files import Fault
from paimon.testing.simulation.campaign import WORKLOADS, draw_plans, enumerate_fault_points, run_campaign
from paimon.testing.simulation.simulation import Simulation, SimulationResult, describe_result, shrink
from paimon.testing.simulation.simulation_plan import LOCAL_FAULTS, STORE_FAULTS, Plan, draw_plan

pytestmark = pytest.mark.filterwarnings("ignore:Table .* the clock of this machine:paimon.PaimonWarning")

PARTS, SEEDS_OF_A_PART = 50, 6
SEEDS = {
    "lasting_faults": 10,
    "hidden_level_0": 60,
    "rescales": 12,
    "dynamic_buckets": 10,
    "cross_partition": 10,
    "postponed_buckets": 10,
    "replaced_tables": 60,
    "power_losses": 20,
}
"""How many histories of each kind run; `--long` runs 5,000."""
PINNED = read_pinned_seeds()
MOST_FAULT_POINTS = 16
KINDS = {mistake: kind for kind, seeds in PINNED.items() for mistake in seeds}
"""The kind of histories that can show each mistake."""
DAILY_MISTAKES = {
    *(next(iter(seeds)) for seeds in PINNED.values()),
    "expiry ignores tags", "the cleaner ignores tags", "a compactor replaces files that it did not read",
}  # fmt: skip
"""One of each kind of histories, and of each operation."""
OTHER_KINDS = [kind for kind in DRAWS if kind != "fixed_buckets"]

REGRESSIONS = [
    ("fixed_buckets", 199), ("fixed_buckets", 501),
    ("replaced_tables", 3648384322), ("replaced_tables", 3648384007), ("replaced_tables", 3648384012),
    ("replaced_tables", 3648384861), ("replaced_tables", 3648385165), ("power_losses", 318),
]  # fmt: skip
"""Seeds that showed a fault: an expiry that others overtook did not read the references again before it deleted. A
table was renamed there and back by copies, which lack the files of a commit in progress, and was taken for the opened.
A copied tag named a snapshot that was made after the files to copy were listed. A new table began with the tag of a
dropped one. The repeat of a late commit of a dropped table found its snapshot in the new table, and was acknowledged
without its files. A new table had a decoupled changelog that an expiry wrote during the drop of the earlier one. The
cleaner left what a process that died had written of the record of a commit.
"""


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


@pytest.mark.parametrize("part", mark_nightly(range(PARTS), always=[0]))
def test_drawn_histories(part: int) -> None:
    for seed in range(SEEDS_OF_A_PART * part, SEEDS_OF_A_PART * (part + 1)):
        check(draw_plan(seed))


@pytest.mark.parametrize("kind", OTHER_KINDS)
@pytest.mark.parametrize("part", mark_nightly(range(10), always=[0]))
def test_drawn_histories_of_each_kind(kind: str, part: int) -> None:
    for seed in range(SEEDS[kind])[part::10]:
        check(DRAWS[kind](seed))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", DRAWS)
def test_histories_of_new_seeds(kind: str) -> None:
    """A failure names its seed; pin it in `REGRESSIONS`."""
    first = int.from_bytes(os.urandom(4))
    for seed in range(first, first + 100):
        check(DRAWS[kind](seed))


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_many_drawn_histories_of_each_kind(kind: str, part: int) -> None:
    for seed in range(500 * part, 500 * (part + 1)):
        check(DRAWS[kind](seed))


@pytest.mark.parametrize(("kind", "seed"), REGRESSIONS)
def test_seeds_that_showed_a_fault(kind: str, seed: int) -> None:
    check(DRAWS[kind](seed))


@pytest.mark.long
@pytest.mark.parametrize("part", range(40))
def test_many_drawn_histories(part: int) -> None:
    for seed in range(500 * part, 500 * (part + 1)):
        check(draw_plan(seed))


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("part", mark_nightly(range(2), always=[0]))
def test_sampled_fault_points(name: str, part: int) -> None:
    plan, kinds = WORKLOADS[name], [*Fault]
    operations = check(plan).operations
    places = range(1, operations + 1, max(13, operations // MOST_FAULT_POINTS))
    for number, place in enumerate(places[part::2]):
        fault = kinds[number % len(kinds)]
        check(evolve(plan, faults={place: fault}, is_store=fault in STORE_FAULTS))


@pytest.mark.long
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_fault_point(name: str) -> None:
    for _, _, plan in enumerate_fault_points(name, assemble):
        check(plan)


@pytest.mark.parametrize("mistake", mark_nightly(KINDS, always=DAILY_MISTAKES))
def test_planted_mistakes_are_detected(mistake: str) -> None:
    kind = KINDS[mistake]
    seed = PINNED[kind][mistake]
    moved = f"Seed {seed} no longer shows the mistake {mistake!r}. Search another one: {COMMAND} {mistake!r}"
    assert shows_mistake(kind, mistake, seed), moved


@pytest.mark.nightly
@pytest.mark.parametrize("mistake", KINDS)
def test_seeds_of_mistakes_are_right_without_them(mistake: str) -> None:
    check(DRAWS[KINDS[mistake]](PINNED[KINDS[mistake]][mistake]))


def test_every_mistake_is_pinned() -> None:
    assert set(KINDS) == set(MISTAKES)
    assert set(PINNED) <= set(DRAWS)
    assert all(seed < DETECTED_WITHIN for seeds in PINNED.values() for seed in seeds.values())
    assert len(MISTAKES) >= 12


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_detected_soon(mistake: str) -> None:
    assert find_seed(KINDS[mistake], mistake) is not None


def test_one_seed_is_one_history() -> None:
    first, second = (Simulation(draw_plan(17), assemble).run() for _ in range(2))
    assert first.trace == second.trace


def test_a_failing_history_is_shrunk_and_described() -> None:
    with plant_mistake("a snapshot is overwritten"):
        result = Simulation(draw_plan(PINNED["fixed_buckets"]["a snapshot is overwritten"]), assemble).run()
        small = shrink(result, assemble, max_runs=15)
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
