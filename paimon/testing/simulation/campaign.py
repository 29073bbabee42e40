"""Run many histories, with a log of the histories that were checked, so that a stopped run can be continued.

Six fixed workloads are also run with each fault on each storage operation, one fault a history.

Invariant: the log has one line per checked history. The trace of a failed history follows it, indented. To check a
history again, remove its line.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from attrs import define, evolve

from paimon.adapters.process_effects import SystemProcessEffects
from paimon.testing.faulty_files import Fault
from paimon.testing.simulation.simulation import Assemble, Simulation, describe_result, shrink
from paimon.testing.simulation.simulation_plan import HIDDEN_LEVEL_0, STORE_FAULTS, Plan, Role, draw_plan

_SHOW_INTERVAL = 100
"""Histories between two lines of progress."""
_COLLECT_INTERVAL = 20
"""Histories between two garbage collections."""
_PASSED = "passed"
_FAILED = "FAILED"
_COMMON_OPTIONS = {"bucket": "1", "file.format": "avro", "commit.max-retries": "60"}
_INLINE_COMPACTION = {**_COMMON_OPTIONS, "num-sorted-run.compaction-trigger": "2"}
_WRITE_ONLY = {**_COMMON_OPTIONS, "write-only": "true"}
WORKLOADS: Mapping[str, Plan] = {
    "writers": Plan(seed=1, roles=(Role.WRITER, Role.WRITER), steps_per_actor=2, options=_WRITE_ONLY),
    "writer and compactor": Plan(seed=2, roles=(Role.WRITER, Role.COMPACTOR), steps_per_actor=2, options=_WRITE_ONLY),
    "inline compaction": Plan(
        seed=3, roles=(Role.STREAMER, Role.WRITER), steps_per_actor=2, options=_INLINE_COMPACTION
    ),
    "expiry, tags and cleaning": Plan(
        seed=4,
        roles=(Role.WRITER, Role.EXPIRER, Role.TAGGER, Role.CLEANER),
        steps_per_actor=2,
        time_jumps=(60, 140),
        options=_WRITE_ONLY,
    ),
    "lookup changelog": Plan(
        seed=5,
        roles=(Role.WRITER, Role.READER),
        steps_per_actor=2,
        options={**_INLINE_COMPACTION, "changelog-producer": "lookup"},
    ),
    "hidden level 0": Plan(
        seed=6,
        roles=(Role.WRITER, Role.STREAMER, Role.READER),
        steps_per_actor=2,
        options={**_COMMON_OPTIONS, **HIDDEN_LEVEL_0},
    ),
}


@define
class CampaignProgress:
    """The state of a campaign: all histories in the log, how many of them failed, and those of this run."""

    checked: int = 0
    failed: int = 0
    checked_now: int = 0
    seconds: float = 0.0

    def add(self, has_failed: bool, seconds: float) -> None:
        """Add one history of this run, which ended after this number of seconds."""
        self.checked += 1
        self.checked_now += 1
        self.failed += has_failed
        self.seconds = seconds

    def __str__(self) -> str:
        rate = self.checked_now / self.seconds if self.seconds else 0.0
        return (
            f"{self.checked} histories checked, {self.failed} failed; {self.checked_now} in this run, "
            f"{rate:.2f} per second"
        )


def draw_plans(first: int, stop: int) -> Iterator[tuple[str, Plan]]:
    """Draw the plans of the seeds from `first` to `stop - 1`, each with its name in the log."""
    return ((f"seed-{seed}", draw_plan(seed)) for seed in range(first, stop))


def enumerate_fault_plans(assemble: Assemble) -> Iterator[tuple[str, Plan]]:
    """Return every fault point of the fixed workloads, each with its name in the log."""
    for workload in WORKLOADS:
        for number, fault, plan in enumerate_fault_points(workload, assemble):
            yield f"{workload.replace(' ', '-')}/{fault.name}/{number}", plan


def run_campaign(
    plans: Iterable[tuple[str, Plan]],
    assemble: Assemble,
    log: Path,
    show: Callable[[str], None] = print,
    max_seconds: float = float("inf"),
    max_shrink_runs: int = 100,
) -> CampaignProgress:
    """Run and check the plans that are not in the log yet.

    Parameters
    ----------
    plans : iterable of (str, Plan)
        Plans with their names; a name contains no white space.
    assemble : callable
        Returns the engine of one simulated process.
    log : Path
        Created if it does not exist.
    show : callable
        Receives lines of progress and the first violation of each failed history.
    max_seconds : float
        Stop after this time.
    max_shrink_runs : int
        The number of runs that may be used to shrink a failed history.

    Returns
    -------
    CampaignProgress
        Counts that include the histories in the log.
    """
    known = dict(line.split(" ", 1) for line in _read_log_lines(log))
    progress = CampaignProgress(len(known), sum(text.startswith(_FAILED) for text in known.values()))
    start = time.monotonic()
    # Python's own choice of when to collect garbage costs a fifth of the time.
    with log.open("a") as out, SystemProcessEffects().pause_gc():
        for name, plan in ((name, plan) for name, plan in plans if name not in known):
            if progress.seconds > max_seconds:
                break
            outcome, violation = _check_plan(plan, assemble, max_shrink_runs)
            out.write(f"{name} {outcome}\n")
            out.flush()
            if violation is not None:
                show(f"{name}: {violation}")
            progress.add(violation is not None, time.monotonic() - start)
            if progress.checked_now % _COLLECT_INTERVAL == 0:
                gc.collect()
            if progress.checked_now % _SHOW_INTERVAL == 0:
                show(str(progress))
    show(str(progress))
    return progress


def _check_plan(plan: Plan, assemble: Assemble, max_shrink_runs: int) -> tuple[str, str | None]:
    """Run a history; return its outcome as in the log, and its first violation if there is one."""
    result = Simulation(plan, assemble).run()
    if result.is_correct:
        return _PASSED, None
    violation = result.violations[0]
    trace = describe_result(shrink(result, assemble, max_shrink_runs)).replace("\n", "\n\t")
    return f"{_FAILED} {violation}\n\t{trace}", violation


def _read_log_lines(log: Path) -> list[str]:
    text = log.read_text() if log.exists() else ""
    return [line for line in text.splitlines() if line and not line.startswith("\t")]


def enumerate_fault_points(name: str, assemble: Assemble) -> Iterator[tuple[int, Fault, Plan]]:
    """Run a workload without faults and return one plan for each of its operations and each fault.

    Faults that an object store can have run on an object store, the others on a local disk.

    Parameters
    ----------
    name : str
        A key of `WORKLOADS`.
    assemble : callable
        Returns the engine of one process.

    Yields
    ------
    tuple
        The operation number, the fault, and the plan with this fault.
    """
    workload = WORKLOADS[name]
    for fault in Fault:
        plan = evolve(workload, is_store=fault in STORE_FAULTS)
        for number in range(1, Simulation(plan, assemble).run().operations + 1):
            yield number, fault, evolve(plan, faults={number: fault})
