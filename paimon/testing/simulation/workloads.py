"""Six fixed workloads, in which each fault is put on each storage operation.

Invariant: a plan has one fault, at one of the operations that the workload has without faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from paimon.testing.faulty_files import Fault
from paimon.testing.simulation.simulation import Assemble, Simulation
from paimon.testing.simulation.simulation_plan import HIDDEN_LEVEL_0, STORE_FAULTS, Plan, Role

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
