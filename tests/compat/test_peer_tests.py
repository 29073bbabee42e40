"""The tests of pypaimon run against the alias, and each that does not pass is listed with its reason.

Tests of internals are recognized when they run, and do not count; nor do those that pypaimon itself fails. The rate
counts all others. The lists may only become shorter: a listed test that passes fails this test, too.
`support.peer_sources` fetches the tests; without GitHub, those of 1.4.2 run instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.peer_sources import NotFetched, find_tests

HERE = Path(__file__).parent
MODULES = HERE / "peer_modules.txt"
CATEGORIES = {
    "fails": "pypaimon itself does not pass it in the same environment: another version, or a package is missing",
    "limit": "it expects that pypaimon refuses, or does not do, what this library offers",
    "outside": "it uses a feature that no part of this library has, such as files of the row format",
    "refused": "it uses a feature that is not offered, and is refused by name",
    "differs": "the result differs, and the reason says why",
}
NOT_COUNTED = "fails"
"""All other failures count, those of features that this library does not have included."""
NOT_CALLED = "limit"
"""Tests that expect a refusal. They count in the first rate; the second is the rate of what programs can call."""
LEAST_RATES = (0.955, 0.977)
LONGEST = {"2.1.0": 65, "1.4.2": 33}
"""The length of each list, which may only become smaller."""
LEAST_PASSED = {"2.1.0": 780, "1.4.2": 253}
LONG = [
    f"shard_table_updator_test.py::ShardTableUpdatorTest::test_compute_column_{name}"
    for name in ("d_equals_c_plus_b_minus_a2", "with_existing_column")
]
"""Tests that commit a thousand times each, and pass: they run by night, and do not count in the rates.

Others do the same with few commits.
"""


def read_exceptions(version: str) -> dict[str, tuple[str, str]]:
    """Return the category and the reason of each listed test."""
    found = {}
    for line in (HERE / f"peer_exceptions_{version}.txt").read_text("utf8").splitlines():
        if line and not line.startswith("#"):
            test, category, reason = line.split(" | ")
            assert test not in found, test
            found[test] = (category, reason)
    return found


@pytest.mark.parametrize("version", LONGEST)
def test_each_exception_has_a_category_and_a_reason(version: str) -> None:
    listed = read_exceptions(version)
    assert 0 < len(listed) <= LONGEST[version]
    assert {category for category, _ in listed.values()} <= set(CATEGORIES)
    assert [test for test, (_, reason) in listed.items() if len(reason) < 10] == []
    modules = MODULES.read_text("utf8").split()
    assert {test.split("::")[0] for test in listed} <= set(modules)


@pytest.mark.nightly
@pytest.mark.slow("commits thousands of times")
def test_the_long_tests_of_pypaimon_pass(tmp_path: Path) -> None:
    try:
        tests = find_tests("2.1.0")
    except NotFetched:
        tests = find_older_tests()
    found = run_tests(tests, tmp_path / "outcomes.json", LONG)
    assert {test: outcome for test, (outcome, _) in found.items()} == dict.fromkeys(LONG, "passed")


@pytest.mark.slow("runs the whole suite of pypaimon")
def test_the_tests_of_pypaimon_pass_or_are_listed(tmp_path: Path) -> None:
    try:
        run_and_compare("2.1.0", find_tests("2.1.0"), tmp_path)
    except NotFetched as error:
        run_and_compare("1.4.2", find_older_tests(), tmp_path)
        pytest.skip(f"the tests of pypaimon 2.1.0 did not run ({error}). Those of 1.4.2 ran, and pass or are listed")


def find_older_tests() -> Path:
    """Return the tests of 1.4.2; where CI requires tests of pypaimon, their absence is a failure."""
    try:
        return find_tests("1.4.2")
    except NotFetched as error:
        if os.environ.get("REQUIRE_PEER_TESTS") == "1":
            raise
        pytest.skip(f"no tests of pypaimon ran: {error}")


def run_and_compare(version: str, tests: Path, tmp_path: Path) -> None:
    found = run_tests(tests, tmp_path / "outcomes.json", list_modules(tests))
    listed = read_exceptions(version)
    counts = Counter(outcome for outcome, _ in found.values())
    print(version, dict(counts))
    failed = {test for test, (outcome, _) in found.items() if outcome == "failed"}
    assert sorted(failed - set(listed)) == [], "these tests fail and are not listed"
    assert sorted(set(listed) - failed) == [], "these tests pass: remove them from the list"
    assert counts["passed"] >= LEAST_PASSED[version]
    if version == "2.1.0":
        rates = compute_rates(found, listed)
        assert all(rate >= least for rate, least in zip(rates, LEAST_RATES, strict=True)), rates


def list_modules(tests: Path) -> list[str]:
    """Return the modules that this version has, and the arguments that leave out the long tests."""
    modules = [module for module in MODULES.read_text("utf8").split() if (tests / module).is_file()]
    return [*modules, *(f"--deselect={test}" for test in LONG)]


def run_tests(tests: Path, outcomes: Path, selected: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the outcome of each selected test, with the text of its failure."""
    environment = os.environ | {
        "PYPAIMON_TESTS": str(tests),
        "PYPAIMON_OUTCOMES": str(outcomes),
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "peer_plugin", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", ".", "--continue-on-collection-errors", *selected]
    done = subprocess.run(command, cwd=tests, env=environment, capture_output=True, text=True, check=False)
    assert outcomes.is_file(), done.stderr[-2000:]
    return json.loads(outcomes.read_text("utf8"))  # type: ignore[no-any-return]


def compute_rates(found: Mapping[str, tuple[str, str]], listed: Mapping[str, tuple[str, str]]) -> tuple[float, float]:
    """Return the rate of the tests with public names that pypaimon passes: of all, and of what programs can call."""
    passed = sum(outcome == "passed" for outcome, _ in found.values())
    failed = [test for test, (outcome, _) in found.items() if outcome == "failed"]
    counts = Counter(listed[test][0] if test in listed else "differs" for test in failed)
    counted = passed + len(failed) - counts[NOT_COUNTED]
    called = counted - counts[NOT_CALLED]
    print(f"rate {passed / counted:.4f} ({passed} of {counted}; {dict(counts)})")
    print(f"without the {counts[NOT_CALLED]} tests that expect a refusal: {passed / called:.4f} ({passed} of {called})")
    return passed / counted, passed / called
