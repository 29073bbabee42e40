"""The levels of the tests: static checks, tests chosen for a change, nightly cases, recorded durations."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import changed_tests, recorded_durations, shared_servers, static_checks

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "dev.py").touch()
    return tmp_path


def test_static_checks_run_again_after_a_failure_and_after_a_change(project: Path) -> None:
    runs = project / "runs"
    count = [sys.executable, "-c", f"open({str(runs)!r}, 'a').write('x')"]
    fail = [sys.executable, "-c", "import sys; print('found'); sys.exit('and why')"]
    stamp = project / "stamp"
    assert static_checks.run_checks({"a": count, "b": fail}, project, stamp) == {"b": "found\nand why\n"}
    assert static_checks.run_checks({"a": count}, project, stamp) == {}
    assert static_checks.run_checks({"a": count}, project, stamp) == {}
    assert runs.read_text() == "xx"
    (project / "dev.py").write_text("changed = True\n")
    assert static_checks.run_checks({"a": count}, project, stamp) == {}
    assert runs.read_text() == "xxx"


PLANTED = {
    "lint": "import os\n",
    "format": "x = {  'a':1 }\n",
    "types": "def add(a: int) -> str:\n    return a\n",
    "docstrings": 'def f():\n    """Add"""\n',
    "imports": "import paimon.operations\n",
}
"""A mistake for each static check; it goes to a module of the domain."""


@pytest.mark.nightly
@pytest.mark.slow("mypy reads the whole package anew")
def test_static_checks_find_a_planted_mistake(tmp_path: Path) -> None:
    copy_package(tmp_path)
    for name in ("examples", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    for check, mistake in PLANTED.items():
        planted = tmp_path / "paimon" / "domain" / "planted.py"
        planted.write_text(mistake)
        assert static_checks.run_check(static_checks.list_checks(tmp_path)[check], tmp_path), check
        planted.unlink()


def copy_package(home: Path) -> None:
    for source in (ROOT / "paimon").rglob("*.py"):
        target = home / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())


FILES = {
    "paimon/domain/a.py": "",
    "paimon/operations/b.py": "def f():\n    from paimon.domain import a\n",
    "paimon/table.py": "from paimon.operations.b import f\n",
    "tests/conftest.py": "",
    "tests/support/rows.py": '"""Rows.\n\nimport, or\nfrom a table.\n"""\nfrom paimon import (  # two\n    table,\n)\n',
    "tests/domain/test_a.py": "",
    "tests/operations/test_b.py": "import paimon.operations.b\n",
    "tests/public/test_table.py": "import support.rows\n",
    "tests/public/test_other.py": "",
}

ALL = ("domain/test_a", "operations/test_b", "public/test_table", "public/test_other")


@pytest.mark.parametrize(
    ("changed", "distances"),
    [
        ("paimon/domain/a.py", {"domain/test_a": 1, "operations/test_b": 2, "public/test_table": 4}),
        ("paimon/operations/b.py", {"operations/test_b": 1, "public/test_table": 3}),
        ("paimon/table.py", {"public/test_table": 1, "public/test_other": 1}),
        ("tests/support/rows.py", {"public/test_table": 1}),
        ("tests/public/test_other.py", {"public/test_other": 0}),
        ("tests/domain/rows.jsonl", {"domain/test_a": 1}),
        ("tests/conftest.py", dict.fromkeys(ALL, 1)),
        ("LICENSE", {}),
    ],
)  # fmt: skip
def test_a_change_reaches_the_tests_that_import_it(changed: str, distances: dict[str, int]) -> None:
    found = changed_tests.measure_distances([changed], FILES)
    assert found == {f"tests/{name}.py": distance for name, distance in distances.items()}


def test_the_nearest_and_quickest_modules_fit_into_the_budget() -> None:
    distances = {"near": 1, "near_long": 1, "far": 3, "farther": 4}
    seconds = {"core": 2.0, "near": 3.0, "near_long": 90.0, "far": 4.0, "farther": 4.0}
    assert changed_tests.choose_modules(distances, seconds, 10.0, ["core"]) == ["core", "near", "far"]


def test_the_first_module_of_a_server_pays_its_start() -> None:
    seconds = {"s/a": 2.0, "s/b": 3.0, "c": 4.0}
    distances, groups = dict.fromkeys(seconds, 1), {"s/a": "spark", "s/b": "spark"}
    start = changed_tests.START_SECONDS["spark"]
    assert changed_tests.choose_modules(distances, seconds, start + 5.0, [], groups) == ["s/a", "s/b"]
    assert changed_tests.choose_modules(distances, seconds, start + 1.0, [], groups) == ["c"]


def test_a_module_that_is_not_recorded_counts_as_the_others_of_its_folder() -> None:
    seconds = {"spark/test_a.py": 8.0, "spark/test_b.py": 30.0}
    paths = ["spark/test_a.py", "spark/test_b.py", "spark/test_new.py", "domain/test_short.py"]
    found = changed_tests.estimate_seconds(paths, seconds)
    assert (found["spark/test_new.py"], found["domain/test_short.py"]) == (8.0, recorded_durations.SMALLEST_SECONDS)


def test_the_core_modules_exist() -> None:
    assert [path for path in changed_tests.CORE if not (ROOT / path).exists()] == []
    recorded = recorded_durations.read_module_seconds()
    assert sum(recorded.get(path, 0.0) for path in changed_tests.CORE) < changed_tests.BUDGET_SECONDS / 3


def find_marked(path: Path, marker: str) -> set[str]:
    """Return the functions of a test module that have a marker, on the function or on one of its cases."""
    tree = ast.parse(path.read_text("utf8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {f.name for f in functions if any(f"mark.{marker}" in ast.unparse(d) for d in f.decorator_list)}


def test_slow_cases_state_why() -> None:
    lacking = []
    for node in recorded_durations.read_slow_cases():
        path, *_, name = node.split("::")
        marked = find_marked(ROOT / path, "slow") | find_marked(ROOT / path, "nightly")
        if name not in marked and "long" not in node:
            lacking.append(node)
    assert lacking == []


def test_recorded_modules_and_functions_exist() -> None:
    hint = "rename it in tests/durations.json, too"
    assert [path for path in recorded_durations.read_module_seconds() if not (ROOT / path).exists()] == [], hint
    for node in recorded_durations.read_slow_cases():
        path, *_, name = node.split("::")
        assert f"def {name}(" in (ROOT / path).read_text("utf8"), f"{node}: {hint}"


def test_modules_that_share_a_server_run_in_one_worker() -> None:
    modules = sorted(path.relative_to(ROOT).as_posix() for path in TESTS.rglob("test_*.py"))
    groups = {module: shared_servers.find_group(module) for module in modules}
    assert groups["tests/domain/scan/test_splits.py"] == "tests/domain/scan/test_splits.py"
    assert groups["tests/spark/test_spark_cluster.py"] == "tests/spark/test_spark_cluster.py", "it has its own machines"
    for name, module in (
        ("spark", "tests/spark/test_spark_merges.py"), ("spark", "tests/sql/test_scripts.py"),
        ("spark", "tests/sql/test_specification_statements.py"),
        ("java", "tests/interop/test_rescale_with_java.py"),
        ("postgres", "tests/adapters/catalogs/test_jdbc_catalog.py"),
    ):  # fmt: skip
        assert groups[module] == name
        assert list(groups.values()).count(name) > 1


def test_durations_of_modules_that_did_not_run_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "durations.json"
    monkeypatch.setattr(recorded_durations, "PATH", path)
    calls = {"a.py::test_x[1]": 3.0, "a.py::test_x[2]": 7.04, "b.py::test_y": 2.0}
    recorded_durations.write_durations(calls | {"b.py::test_y": 30.0}, calls)
    recorded_durations.write_durations({"b.py::test_y": 0.2, "c.py::test_z": 1.5}, {})
    assert recorded_durations.read_module_seconds() == {"a.py": 10.0, "c.py": 1.5}
    assert recorded_durations.read_slow_cases() == {"a.py::test_x": 7.0}


CASES = """
import pytest
from hypothesis import given, settings, strategies as st

DRAWN = []

def test_always(): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_kinds(n): pass

@pytest.mark.long
def test_hours(): pass

@settings(max_examples=60, database=None, derandomize=True)
@given(st.integers())
def test_property(n): DRAWN.append(n)

@settings(max_examples=12, database=None, derandomize=True)
@given(st.integers())
def test_small_property(n): DRAWN.append(n)

@settings(max_examples=30, database=None, derandomize=True)
@given(st.integers())
def test_equals_its_reference(n): DRAWN.append(n)
"""


@pytest.mark.parametrize(
    ("options", "ran"),
    [
        ([], {"test_always", "test_kinds[1]", "test_property", "test_small_property", "test_equals_its_reference"}),
        (["--nightly"], {"test_kinds[2]", "test_property", "test_small_property", "test_equals_its_reference"}),
    ],
)
def test_a_case_runs_at_one_level_and_a_property_at_both(
    tmp_path: Path, options: list[str], ran: set[str], capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text("utf8"))
    count = (
        "\n\ndef pytest_sessionfinish(session):\n    print('DRAWN', max(len(i.module.DRAWN) for i in session.items))\n"
    )
    with (tmp_path / "conftest.py").open("a") as file:
        file.write(count)
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS} {ROOT}\nmarkers =\n    nightly\n    long\n")
    command = [sys.executable, "-m", "pytest", "-v", "-s", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert set(re.findall(r"::(\S+) PASSED", done.stdout)) == ran, done.stdout + done.stderr
    drawn = int(re.search(r"DRAWN (\d+)", done.stdout)[1])  # type: ignore[index]
    assert drawn == (102 if options else 60)
