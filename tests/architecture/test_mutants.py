"""Mistakes planted into busy modules of the domain: the tests of their package find each.

Each mutant replaces one text of a module. By --nightly, the tests run on a copy of the package with the mutant. They
draw the examples of `python3 dev.py tests`. If a change removes the text, choose another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.case_lists import check_each

ROOT = Path(__file__).resolve().parents[2]
DOMAIN = ROOT / "paimon" / "domain"

MUTANTS = [
    ("merge/windows.py", "min((run.last for run in", "max((run.last for run in", "merge/test_merge_windows.py"),
    ("merge/partial_update_columnar.py", "np.where(adds, SET, CLEAR)", "np.where(adds, SET, SKIP)",
     "merge/test_merge_engine_contract.py"),
    ("merge/sequence_groups_columnar.py", "len(order)) + 1, 0)", "len(order)), 0)",
     "merge/test_merge_engine_contract.py"),
    ("lsm/compaction/unit_plan.py", "if len(group) > 1 or len(group[0]) > 1:", "if len(group[0]) > 1:",
     "lsm/test_compaction_units.py"),
    ("lsm/compaction/pick.py", "level = max(0, runs[count].level - 1)", "level = max(0, runs[count].level)",
     "lsm/test_compaction_picks.py"),
    ("lsm/compaction/pick.py", "newer * 100 > rules", "newer * 100 >= rules", "lsm/test_compaction_picks.py"),
    ("maintenance/snapshot_expiry.py", "latest - retention.num_min + 1", "latest - retention.num_min + 2",
     "maintenance/test_expiry_rules.py"),
    ("commit/next_snapshot.py", "total + content.delta_rows", "content.delta_rows", "commit/test_commit_rules.py"),
    ("commit/next_snapshot.py", "max(known, default=None)", "min(known, default=None)", "commit/test_commit_rules.py"),
    ("bucket/bucket_columnar.py", "np.int32(31) + _hive_column", "np.int32(33) + _hive_column",
     "bucket/test_buckets.py"),
    ("bucket/bucket_columnar.py", "np.abs(hash_rows(columns, types))", "hash_rows(columns, types)",
     "bucket/test_buckets.py"),
    ("predicate/pruning_columnar.py", "& (row_counts > 0)", "& (row_counts > 1)", "predicate/test_file_pruning.py"),
    ("changelog/difference_columnar.py", "last[~same]", "last", "changelog/test_changelog_rules.py"),
]  # fmt: skip
"""Module, its text, the text of the mutant, and the tests that find it."""


def test_the_mutated_texts_exist_once() -> None:
    check_each(MUTANTS, check_text)


def check_text(mutant: tuple[str, str, str, str]) -> None:
    module, text, _, tests = mutant
    assert (DOMAIN / module).read_text("utf8").count(text) == 1
    assert (ROOT / "tests" / "domain" / tests).exists()


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant[0]}-{mutant[1]}")
def test_a_mutant_is_found(tmp_path: Path, mutant: tuple[str, str, str, str]) -> None:
    module, text, wrong, tests = mutant
    shutil.copytree(ROOT / "paimon", tmp_path / "paimon", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "paimon" / "domain" / module
    path.write_text(path.read_text("utf8").replace(text, wrong), "utf8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), str(ROOT / "tests" / "domain" / tests)],
        cwd=tmp_path, env=os.environ | {"PAIMON_TEST_PROFILE": "ci", "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
