"""For any history of a primary-key table, a read equals the reference merge of all written rows.

Histories are drawn: options of every kind, writes of several flushes, compactions, overwrites, new columns, and reads
of every kind between them. Planted bugs prove that the comparison can fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from support.case_lists import mark_nightly
from support.table_machine import NEWEST, TableMachine

from paimon.domain.lsm.compaction.unit_plan import plan_unit
from paimon.domain.lsm.sorted_run import cut_into_sections
from paimon.domain.merge.windows import cut_into_windows
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import IntType, VarCharType
from paimon.operations.compact import plan_bucket
from paimon.operations.read import merge_read
from paimon.operations.rescale import rescale
from paimon.operations.write import buckets, row_writers
from paimon.testing.strategies import MergingTable, fields_of
from paimon.testing.strategies.histories import DELETE, INSERT

SETTINGS = settings(stateful_step_count=14, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)


@pytest.mark.slow("many histories")
@pytest.mark.parametrize("histories", mark_nightly([15, 40], always=[15]))
def test_a_table_equals_its_model(histories: int) -> None:
    drawn = settings(SETTINGS, max_examples=histories)
    run_state_machine_as_test(TableMachine, settings=drawn)  # type: ignore[no-untyped-call]


Plant = Callable[[pytest.MonkeyPatch], None]


def deletes_are_dropped_on_every_level(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan_bucket, "plan_unit", lambda *given: evolve(plan_unit(*given), drop_deletes=True))


def keep_deletes_on_the_top_level(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan_bucket, "plan_unit", lambda *given: evolve(plan_unit(*given), drop_deletes=False))


def restart_sequence_numbers(patch: pytest.MonkeyPatch) -> None:
    made = buckets.BucketState
    patch.setattr(buckets, "BucketState", lambda place, folder, number, *more: made(place, folder, 0, *more))


def a_spilled_run_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_writers, "cut_into_windows", lambda runs, *rest: cut_into_windows(runs[:1], *rest))


def a_run_is_not_read(patch: pytest.MonkeyPatch) -> None:
    def cut(files: Any, types: Any) -> Any:
        return [s[:1] for s in cut_into_sections(files, types)]

    patch.setattr(merge_read, "cut_into_sections", cut)


def files_are_merged_newest_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merge_read, "sort_oldest_first", lambda files: list(files))


def a_rescale_reads_one_run(patch: pytest.MonkeyPatch) -> None:
    def cut(files: Any, types: Any) -> Any:
        return [s[:1] for s in cut_into_sections(files, types)]

    patch.setattr(rescale, "cut_into_sections", cut)


def a_rescale_writes_deletes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rescale, "mask_retracts", lambda rows: np.zeros(rows.num_rows, np.bool_))


PLANTS: list[Plant] = [
    deletes_are_dropped_on_every_level, keep_deletes_on_the_top_level, restart_sequence_numbers,
    a_spilled_run_is_lost, a_run_is_not_read, files_are_merged_newest_first,
    a_rescale_reads_one_run, a_rescale_writes_deletes,
]  # fmt: skip


def run_history(options: dict[str, str]) -> None:
    """A history in which each of these mistakes matters: three levels, deletes on each, many flushes and spills."""
    machine = TableMachine()
    fields = fields_of([IntType(nullable=False), *[IntType()] * 4, VarCharType()], ["k", "s", "g", "a", "b", "t"])
    schema = TableSchema(0, fields, len(fields) - 1, (), ("k",), {"bucket": "1", "write-only": "true", **options})
    machine.begin(MergingTable(schema, (INSERT, DELETE)))
    for step, deleted in enumerate([(), (1,), (2, 3), (), (1, 2), (0,)]):
        rows = [({"k": k, "s": step, "a": step, "t": "x"}, int(k in deleted)) for k in range(4) if k != step]
        machine.write([[rows[:2], rows[2:]]], None)
        machine.compact(None if step == 0 else NEWEST | {"num-sorted-run.compaction-trigger": "2"}, None)
    machine.rescale(3)
    machine.write([[[({"k": k, "s": 9, "a": 9, "t": "x"}, 0) for k in range(2)]]], None)
    machine.compact(None, None)
    machine.write([[[({"k": k, "s": 9, "a": 9, "t": "x"}, int(k == 1)) for k in range(3)]]], None)
    machine.rescale(3)
    machine.write([[[({"k": k, "s": 10, "a": 10, "t": "x"}, k) for k in range(2)]]], None)
    machine.compact(None, None)


@pytest.mark.parametrize("options", [{}, {"sequence.field": "s", "file.format": "avro"}], ids=["plain", "sequence"])
def test_a_history_without_mistakes(options: dict[str, str]) -> None:
    run_history(options)


@pytest.mark.parametrize(
    "plant", mark_nightly(PLANTS, always=[PLANTS[0], PLANTS[-1]]), ids=lambda plant: plant.__name__
)
def test_a_planted_mistake_is_detected(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_history({"write-buffer-size": "1 b"})


def test_a_commit_replaces_a_compaction_of_the_writer() -> None:
    """Which of two equal sequences is the first depends on the compaction that is published."""
    options = {
        "bucket": "1", "merge-engine": "aggregation", "sequence.field": "s", "changelog-producer": "lookup",
        "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "1", "num-levels": "3",
        "fields.g.aggregate-function": "first_value",
    }  # fmt: skip
    machine = TableMachine()
    fields = fields_of([IntType(nullable=False), IntType(), IntType()], ["k", "s", "g"])
    machine.begin(MergingTable(TableSchema(0, fields, len(fields) - 1, (), ("k",), options), (INSERT,)))
    machine.write([[[({"k": 0, "s": 1, "g": None}, 0)]]], None)
    machine.write([[[({"k": 0, "s": None, "g": 7}, 0)]], [[({"k": 0, "s": None, "g": None}, 0)]]], None)
    assert machine.table.scan().to_arrow().to_pylist() == [{"k": 0, "s": 1, "g": 7}]
