"""The tests of pypaimon run against the alias, and each that does not pass is listed with its reason.

The distribution of pypaimon contains no tests. Set PYPAIMON_TESTS to the folder `paimon-python/pypaimon/tests` of a
checkout of Apache Paimon, install `parameterized`, and pass ``--long``. Tests of internals are recognized when they
run, and do not count. The lists may only become shorter: a listed test that passes fails this test, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = os.environ.get("PYPAIMON_TESTS")
MODULES = HERE / "peer_modules.txt"
EXCEPTIONS = HERE / "peer_exceptions.txt"
CATEGORIES = {
    "fails": "pypaimon 2.1.0 itself does not pass it: it tests a later version, or needs a package",
    "limit": "it expects that pypaimon refuses what this library offers",
    "refused": "it uses a feature that is not offered, and is refused by name",
    "differs": "the result differs, and the reason says why",
}


def read_exceptions() -> dict[str, tuple[str, str]]:
    """Return the category and the reason of each listed test."""
    found = {}
    for line in EXCEPTIONS.read_text("utf8").splitlines():
        if line and not line.startswith("#"):
            test, category, reason = line.split(" | ")
            assert test not in found, test
            found[test] = (category, reason)
    return found


def test_each_exception_has_a_category_and_a_reason() -> None:
    listed = read_exceptions()
    assert listed
    assert {category for category, _ in listed.values()} == set(CATEGORIES)
    assert [test for test, (_, reason) in listed.items() if len(reason) < 10] == []
    modules = MODULES.read_text("utf8").split()
    assert {test.split("::")[0] for test in listed} <= set(modules)


@pytest.mark.long
@pytest.mark.skipif(TESTS is None, reason="PYPAIMON_TESTS does not name the tests of a checkout of Apache Paimon")
def test_the_tests_of_pypaimon_pass_or_are_listed(tmp_path: Path) -> None:
    assert TESTS is not None
    outcomes = tmp_path / "outcomes.json"
    environment = os.environ | {
        "PYPAIMON_TESTS": TESTS,
        "PYPAIMON_OUTCOMES": str(outcomes),
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "peer_plugin", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", ".", "--continue-on-collection-errors", *MODULES.read_text("utf8").split()]
    subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, check=False)
    found: dict[str, tuple[str, str]] = json.loads(outcomes.read_text("utf8"))
    counts = Counter(outcome for outcome, _ in found.values())
    print(dict(counts))
    listed = read_exceptions()
    failed = {test for test, (outcome, _) in found.items() if outcome == "failed"}
    assert counts["passed"] >= 400
    assert sorted(failed - set(listed)) == [], "these tests fail and are not listed"
    assert sorted(set(listed) - failed) == [], "these tests pass: remove them from the list"
