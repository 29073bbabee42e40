"""For any history of a table with dynamic, cross-partition or postponed buckets, a read equals its model.

Each key is in one bucket, and in one partition where the primary key lacks the partition. Planted bugs prove that the
comparison can fail.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from support.bucket_machine import ALL_KINDS, MACHINES, MODES, BucketModeMachine, BucketModeTable, Kinded
from support.bucket_mistakes import CROSS_PARTITION_MISTAKES, DYNAMIC_MISTAKES, POSTPONED_MISTAKES
from support.case_lists import mark_nightly

SETTINGS = settings(stateful_step_count=12, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
MISTAKES = {
    "dynamic": DYNAMIC_MISTAKES["index files of other writers are ignored"],
    "cross-partition": CROSS_PARTITION_MISTAKES["a moved key is not deleted in its old partition"],
    "postponed": POSTPONED_MISTAKES["postponed files are replayed in reverse order"],
}


@pytest.mark.slow("several histories of many commits")
@pytest.mark.parametrize("histories", mark_nightly([5, 15], always=[5]))
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.mode)
def test_a_table_of_each_bucket_mode_equals_its_model(machine: type[BucketModeMachine], histories: int) -> None:
    drawn = settings(SETTINGS, max_examples=histories)
    run_state_machine_as_test(machine, settings=drawn)  # type: ignore[no-untyped-call]


def run_history(machine: BucketModeMachine) -> None:
    """A history in which each of these mistakes matters: old keys are written again and move, buckets become full."""
    options = {**MODES[machine.mode], "dynamic-bucket.target-row-num": "2", "postpone.default-bucket-num": "2"}
    machine.begin(BucketModeTable(machine.mode, options, ALL_KINDS))
    machine.write(batch_of(0, "aab"))
    machine.write(batch_of(1, "baba"))
    machine.compact(False, None)
    machine.stream([batch_of(2, "bb"), batch_of(3, "aaaaa")])
    machine.change_rows(1, 7, False)
    machine.compact(True, None)


def batch_of(value: int, partitions: str) -> list[Kinded]:
    """One new row for each of the first keys, in these partitions."""
    return [({"k": k, "p": p, "s": value, "a": value, "b": None}, 0) for k, p in enumerate(partitions)]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.mode)
def test_a_planted_mistake_is_detected(machine: type[BucketModeMachine], monkeypatch: pytest.MonkeyPatch) -> None:
    run_history(machine())
    for target, name, wrong in MISTAKES[machine.mode]():
        monkeypatch.setattr(target, name, wrong)
    with pytest.raises(AssertionError):
        run_history(machine())
