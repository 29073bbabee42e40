"""The table law: whatever happens to a primary-key table, a read answers the reference merge of all that was written.

Histories are drawn: options of every kind, writes of several flushes, compactions, overwrites, new columns, and reads
of every kind between them. That such a law can fail at all is shown by mistakes planted on purpose.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from table_machine import NEWEST, TableMachine

from paimon.domain.lsm.compaction.unit_plan import unit_plan
from paimon.domain.lsm.sorted_run import sections
from paimon.domain.merge.windows import windows
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import IntType, VarCharType
from paimon.operations.maintain import work
from paimon.operations.read import merge_read
from paimon.operations.write import buckets, merge_tree
from paimon.testing.strategies import MergingTable, fields_of
from paimon.testing.strategies.histories import DELETE, INSERT

SETTINGS = settings(
    max_examples=40, stateful_step_count=14, suppress_health_check=list(HealthCheck), report_multiple_bugs=False
)


def test_a_table_is_what_its_model_says() -> None:
    run_state_machine_as_test(TableMachine, settings=SETTINGS)  # type: ignore[no-untyped-call]


Plant = Callable[[pytest.MonkeyPatch], None]


def deletes_are_dropped_on_every_level(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(work, "unit_plan", lambda *given: evolve(unit_plan(*given), drop_deletes=True))


def deletes_are_kept_on_the_top_level(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(work, "unit_plan", lambda *given: evolve(unit_plan(*given), drop_deletes=False))


def sequence_numbers_begin_anew(patch: pytest.MonkeyPatch) -> None:
    made = buckets.BucketState
    patch.setattr(buckets, "BucketState", lambda place, folder, number, *more: made(place, folder, 0, *more))


def a_spilled_run_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merge_tree, "windows", lambda runs, keys, size: windows(runs[:1], keys, size))


def a_run_is_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merge_read, "sections", lambda files, types: [s[:1] for s in sections(files, types)])


def files_are_merged_newest_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merge_read, "oldest_first", lambda files: list(files))


PLANTS: list[Plant] = [
    deletes_are_dropped_on_every_level, deletes_are_kept_on_the_top_level, sequence_numbers_begin_anew,
    a_spilled_run_is_lost, a_run_is_not_read, files_are_merged_newest_first,
]  # fmt: skip


def live_through(options: dict[str, str]) -> None:
    """A history in which each of these mistakes matters: three levels, deletes on each, many flushes and spills."""
    machine = TableMachine()
    fields = fields_of([IntType(nullable=False), *[IntType()] * 4, VarCharType()], ["k", "s", "g", "a", "b", "t"])
    schema = TableSchema(0, fields, len(fields) - 1, (), ("k",), {"bucket": "1", "write-only": "true", **options})
    machine.begin(MergingTable(schema, (INSERT, DELETE)))
    for turn, deleted in enumerate([(), (1,), (2, 3), (), (1, 2), (0,)]):
        rows = [({"k": k, "s": turn, "a": turn, "t": "x"}, int(k in deleted)) for k in range(4) if k != turn]
        machine.write([[rows[:2], rows[2:]]], None)
        machine.compact(None if turn == 0 else NEWEST | {"num-sorted-run.compaction-trigger": "2"}, None)
    machine.compact(None, None)


@pytest.mark.parametrize("options", [{}, {"sequence.field": "s", "file.format": "avro"}], ids=["plain", "sequence"])
def test_a_history_without_mistakes(options: dict[str, str]) -> None:
    live_through(options)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        live_through({"write-buffer-size": "1 b"})
