"""Mistakes planted into busy modules of the domain: the tests of their package find each.

Each mutant replaces one text of a module. By --nightly, the tests run with the mutant. They draw the examples of
`python3 dev.py tests`. If a change removes the text, choose another one. `support.mutants` makes and runs many more.
"""

from __future__ import annotations

import pytest
from support.case_lists import check_each
from support.mutants import BUSY_MODULES, DOMAIN, TESTS, make_mutants, run_tests

MUTANTS = [
    ("merge/windows.py", "min((run.last for run in", "max((run.last for run in", "merge/test_merge_windows.py"),
    ("merge/windows.py", "[sorted(window, key=_age)]", "[window]", "merge/test_merge_windows.py"),
    ("merge/partial_update_columnar.py", "np.where(adds, SET, CLEAR)", "np.where(adds, SET, SKIP)",
     "merge/test_merge_engine_contract.py"),
    ("merge/partial_update_columnar.py", "np.where(in_order, ADD, ADD_OLDER)", "np.where(in_order, ADD, ADD)",
     "merge/test_merge_engines.py"),
    ("merge/partial_update_columnar.py", "len(order)) + 1, 0)", "len(order)), 0)", "merge/test_merge_engines.py"),
    ("lsm/compaction/unit_plan.py", "if len(group) > 1 or len(group[0]) > 1:", "if len(group[0]) > 1:",
     "lsm/test_compaction_units.py"),
    ("lsm/compaction/unit_plan.py", "level != 0 and (not above or", "level != 0 and (", "lsm/test_compaction_units.py"),
    ("lsm/compaction/unit_plan.py", "if run.level > level", "if run.level >= level", "lsm/test_compaction_units.py"),
    ("lsm/compaction/pick.py", "level = max(0, runs[count].level - 1)", "level = max(0, runs[count].level)",
     "lsm/test_compaction_picks.py"),
    ("lsm/compaction/pick.py", "newer * 100 > rules", "newer * 100 >= rules", "lsm/test_compaction_picks.py"),
    ("maintenance/snapshot_expiry.py", "latest - retention.num_min + 1", "latest - retention.num_min + 2",
     "maintenance/test_expiry_rules.py"),
    ("maintenance/snapshot_expiry.py", "since >= before", "since > before", "maintenance/test_expiry_rules.py"),
    ("scan/splits.py", "self.row_count - sum(known)", "self.row_count", "scan/test_splits.py"),
    ("commit/conflicts/files.py", "if low <= high:", "if low < high:", "commit/test_file_conflicts.py"),
    ("commit/next_snapshot.py", "total + content.delta_rows", "content.delta_rows", "commit/test_commit_rules.py"),
    ("commit/next_snapshot.py", "max(known, default=None)", "min(known, default=None)", "commit/test_commit_rules.py"),
    ("bucket/bucket_columnar.py", "np.int32(31) + _hive_column", "np.int32(33) + _hive_column",
     "bucket/test_buckets.py"),
    ("bucket/bucket_columnar.py", "np.abs(hash_rows(columns, types))", "hash_rows(columns, types)",
     "bucket/test_buckets.py"),
    ("predicate/pruning_columnar.py", "& (row_counts > 0)", "& (row_counts > 1)", "predicate/test_file_pruning.py"),
    ("changelog/difference_columnar.py", "last[~same]", "last", "changelog/test_changelog_rules.py"),
    ("changelog/difference_columnar.py", " & ~mask_retracts(after)[new]", "", "changelog/test_changelog_rules.py"),
]  # fmt: skip
"""Module, its text, the text of the mutant, and the tests that find it."""


def test_the_mutated_texts_exist_once() -> None:
    check_each(MUTANTS, check_text)


def check_text(mutant: tuple[str, str, str, str]) -> None:
    module, text, _, tests = mutant
    assert (DOMAIN / module).read_text("utf8").count(text) == 1
    assert (TESTS / tests).exists()


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant[0]}-{mutant[1]}")
def test_a_mutant_is_found(mutant: tuple[str, str, str, str]) -> None:
    module, text, wrong, tests = mutant
    done = run_tests(module, (DOMAIN / module).read_text("utf8").replace(text, wrong), (tests,))
    assert done is not None
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]


def test_mutants_of_busy_modules_are_made() -> None:
    mutants = {str(mutant) for mutant in make_mutants("lsm/sorted_run.py")}
    assert any("self.low <= other.high -> self.low < other.high" in text for text in mutants)
    assert any("heap.append(run) -> pass" in text for text in mutants)
    assert not any("strict" in text for text in mutants)
    check_each(BUSY_MODULES.items(), check_tests_of_module)


def check_tests_of_module(item: tuple[str, tuple[str, ...]]) -> None:
    module, tests = item
    assert make_mutants(module)
    assert all((TESTS / name).exists() for name in tests)
