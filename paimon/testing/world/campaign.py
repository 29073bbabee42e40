"""Many histories, with a log that says which were judged: what was stopped goes on where it was.

Law: a history is in the log once it was judged, one line each; what went wrong is told below it, and looked at again
only where its line is taken out.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define

from paimon.testing.world.plan import Plan, drawn
from paimon.testing.world.workloads import WORKLOADS, fault_points
from paimon.testing.world.world import Assemble, World, shrunk, told

_SHOWN_EVERY = 100
_COLLECT_EVERY = 20
_WELL = "well"
_WRONG = "WRONG"


@define
class Progress:
    """How far a campaign is: histories in its log, of these wrong ones, and those judged by this run."""

    judged: int = 0
    wrong: int = 0
    now: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        pace = self.now / self.seconds if self.seconds else 0.0
        return f"{self.judged} histories, {self.wrong} wrong; {self.now} in this run, {pace:.2f} a second"


def seeds(first: int, last: int) -> Iterator[tuple[str, Plan]]:
    """The plans of the seeds from `first` up to, not including, `last`, with their names."""
    return ((f"seed-{seed}", drawn(seed)) for seed in range(first, last))


def points(assemble: Assemble) -> Iterator[tuple[str, Plan]]:
    """Every fault point of the fixed workloads, with their names."""
    for workload in WORKLOADS:
        for number, fault, plan in fault_points(workload, assemble):
            yield f"{workload.replace(' ', '-')}/{fault.name}/{number}", plan


def campaign(
    plans: Iterable[tuple[str, Plan]],
    assemble: Assemble,
    log: Path,
    show: Callable[[str], None] = print,
    seconds: float = float("inf"),
    runs_to_shrink: int = 100,
) -> Progress:
    """Judge the plans that the log does not hold yet.

    Parameters
    ----------
    plans : iterable of (str, Plan)
        Histories with names, which hold no white space.
    log : Path
        Made where it is missing.
    seconds : float
        Stop after this time.
    runs_to_shrink : int
        How many runs may be spent to make a wrong history smaller.
    """
    known = dict(line.split(" ", 1) for line in _lines(log))
    progress = Progress(len(known), sum(v.startswith(_WRONG) for v in known.values()))
    started = time.monotonic()
    with log.open("a") as out, _rare_collections() as collect:
        for name, plan in plans:
            if name in known:
                continue
            if progress.seconds > seconds:
                break
            verdict = World(plan, assemble).run()
            progress.judged, progress.now = progress.judged + 1, progress.now + 1
            if verdict.is_well:
                out.write(f"{name} {_WELL}\n")
            else:
                progress.wrong += 1
                story = told(shrunk(verdict, assemble, runs_to_shrink)).replace("\n", "\n\t")
                out.write(f"{name} {_WRONG} {verdict.wrongs[0]}\n\t{story}\n")
                show(f"{name}: {verdict.wrongs[0]}")
            out.flush()
            collect(progress.now)
            progress.seconds = time.monotonic() - started
            if progress.now % _SHOWN_EVERY == 0:
                show(str(progress))
    show(str(progress))
    return progress


@contextmanager
def _rare_collections() -> Iterator[Callable[[int], None]]:
    """Python looks for garbage a fifth of the time where it is left to choose when; here once in some histories."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield _collect
    finally:
        if was_enabled:
            gc.enable()


def _collect(count: int) -> None:
    if count % _COLLECT_EVERY == 0:
        gc.collect()


def _lines(log: Path) -> list[str]:
    text = log.read_text() if log.exists() else ""
    return [line for line in text.splitlines() if line and not line.startswith("\t")]
