"""The seeds of the simulation that show the planted mistakes, and the command that searches new ones.

A change of the operations on the storage moves them. Then run, from the root of the repository::

    PYTHONPATH=tests python -m support.pin_seeds

It searches the mistakes that are named, or all, whose seed no longer shows them, and writes `planted_seeds.json`.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from paimon.testing.simulation.simulation import Simulation
from paimon.testing.simulation.simulation_plan import (
    Plan,
    draw_cross_partition_plan,
    draw_dynamic_plan,
    draw_hidden_level_0_plan,
    draw_lasting_faults_plan,
    draw_plan,
    draw_postponed_plan,
    draw_power_loss_plan,
    draw_replaced_plan,
    draw_rescale_plan,
)
from support.simulated_engines import assemble, plant_mistake

DETECTED_WITHIN = 500
"""The simulation shows each mistake within so many seeds."""
COMMAND = "PYTHONPATH=tests python -m support.pin_seeds"
DRAWS: Mapping[str, Callable[[int], Plan]] = {
    "fixed_buckets": draw_plan,
    "lasting_faults": draw_lasting_faults_plan,
    "hidden_level_0": draw_hidden_level_0_plan,
    "rescales": draw_rescale_plan,
    "dynamic_buckets": draw_dynamic_plan,
    "cross_partition": draw_cross_partition_plan,
    "postponed_buckets": draw_postponed_plan,
    "replaced_tables": draw_replaced_plan,
    "power_losses": draw_power_loss_plan,
}
"""What draws the histories of each kind."""
_PATH = Path(__file__).with_name("planted_seeds.json")


def read_pinned_seeds() -> dict[str, dict[str, int]]:
    """Return the pinned seed of each mistake, by the kind of histories that can show it."""
    pinned: dict[str, dict[str, int]] = json.loads(_PATH.read_text("utf8"))
    return pinned


def shows_mistake(kind: str, mistake: str, seed: int) -> bool:
    """Return whether the history of a seed is wrong while a mistake is planted."""
    plan = DRAWS[kind](seed)
    with plant_mistake(mistake):
        return not Simulation(plan, assemble).run().is_correct


def find_seed(kind: str, mistake: str) -> int | None:
    """Return the first seed that shows a mistake; None if it is not within `DETECTED_WITHIN`."""
    return next((seed for seed in range(DETECTED_WITHIN) if shows_mistake(kind, mistake, seed)), None)


def main(names: Sequence[str]) -> int:
    """Pin a seed again for each mistake, or those that are named, whose seed does not show it."""
    warnings.simplefilter("ignore")
    pinned, failed = read_pinned_seeds(), 0
    for kind, seeds in pinned.items():
        for mistake, seed in seeds.items():
            if (names and mistake not in names) or shows_mistake(kind, mistake, seed):
                continue
            found = find_seed(kind, mistake)
            print(f"{mistake}: {seed} -> {found}", flush=True)
            failed += found is None
            seeds[mistake] = seed if found is None else found
            _PATH.write_text(json.dumps(pinned, indent=2) + "\n", "utf8")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
