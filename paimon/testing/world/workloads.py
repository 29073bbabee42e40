"""Six fixed histories, in which every single operation can be made to go wrong in every way.

Law: one fault at a time, at each operation that the history has when nothing goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from paimon.testing.faulty_files import Fault
from paimon.testing.world.plan import HIDES_LEVEL_0, STORE_FAULTS, Plan, Role
from paimon.testing.world.world import Assemble, World

_KEYED = {"bucket": "1", "file.format": "avro", "commit.max-retries": "60"}
_COMPACTS = {**_KEYED, "num-sorted-run.compaction-trigger": "2"}
_ASIDE = {**_KEYED, "write-only": "true"}
WORKLOADS: Mapping[str, Plan] = {
    "writers": Plan(1, (Role.WRITER, Role.WRITER), 2, options=_ASIDE),
    "writer and compactor": Plan(2, (Role.WRITER, Role.COMPACTOR), 2, options=_ASIDE),
    "inline compaction": Plan(3, (Role.STREAMER, Role.WRITER), 2, options=_COMPACTS),
    "expiry, tags and cleaning": Plan(
        4, (Role.WRITER, Role.EXPIRER, Role.TAGGER, Role.CLEANER), 2, nights=(60, 140), options=_ASIDE
    ),
    "lookup changelog": Plan(
        5, (Role.WRITER, Role.READER), 2, options={**_COMPACTS, "changelog-producer": "lookup"}
    ),
    "hidden level 0": Plan(6, (Role.WRITER, Role.STREAMER, Role.READER), 2, options={**_KEYED, **HIDES_LEVEL_0}),
}


def fault_points(name: str, assemble: Assemble) -> Iterator[tuple[int, Fault, Plan]]:
    """Each operation of a workload with each fault: those of a local disk there, the others on an object store."""
    plan = WORKLOADS[name]
    for fault in Fault:
        stage = evolve(plan, is_store=fault in STORE_FAULTS)
        for number in range(1, World(stage, assemble).run().operations + 1):
            yield number, fault, evolve(stage, faults={number: fault})
