"""The first page and the hand-written reference pages agree with the code and the golden tables."""

from __future__ import annotations

import ast
import re
import tarfile
from pathlib import Path

import pytest

from paimon.sql.parse.parse_script import list_statement_words

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
VARIABLE = re.compile(r"(?!CS_)[A-Z]+(_[A-Z]+)+|PATH")
"""Names with CS_ are those of `os.confstr`."""


def environment_variables(path: Path) -> set[str]:
    """The names of environment variables in a module that uses the environment."""
    text = path.read_text("utf8")
    if "os.environ" not in text and "getenv" not in text:
        return set()
    constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str) and VARIABLE.fullmatch(value)}


def test_every_environment_variable_is_listed() -> None:
    used = set().union(*map(environment_variables, [*(ROOT / "paimon").rglob("*.py"), ROOT / "dev.py"]))
    assert {"PAIMON_WAREHOUSE", "JAVA_HOME"} <= used
    text = (REFERENCE / "environment.md").read_text("utf8")
    assert [name for name in sorted(used) if f"`{name}`" not in text] == []


def golden_notes() -> str:
    """Return the versions that wrote the golden tables, read in one pass over the archive."""
    notes = []
    with tarfile.open(ROOT / "tests" / "data" / "golden.tar.xz") as archive:
        for member in archive:
            is_of_old_version = "/v0" in member.name and member.name.endswith("/README")
            if is_of_old_version or member.name.endswith("README.md"):
                file = archive.extractfile(member)
                notes.append(file.read().decode() if file is not None else "")
    return " ".join(notes)


def test_tested_versions_are_those_of_the_golden_tables() -> None:
    written = set(re.findall(r"(?:Java Paimon|\(Java, release) (\d[\d.]*\d(?:-incubating)?)", golden_notes()))
    page = (REFERENCE / "compatibility.md").read_text("utf8")
    assert set(re.findall(r"^\| (\S+) \| yes, tested with tables", page, re.M)) == written


def test_code_of_the_reference_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for page in (ROOT / "docs" / "index.md", *sorted(REFERENCE.glob("*.md"))):
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf8"), re.S):
            exec(compile(block, page.name, "exec"), {})
    printed = capsys.readouterr().out
    assert "11.50" in printed and "20.00" in printed and "9.99" not in printed
    assert "use one of parquet, orc, avro" in printed


def test_lines_outside_tables_have_at_most_120_columns() -> None:
    lines = [(path.name, line) for path in REFERENCE.glob("*.md") for line in path.read_text("utf8").splitlines()]
    assert [(name, line) for name, line in lines if len(line) > 120 and line[0] != "|"] == []


def test_the_page_of_sql_statements_has_every_statement() -> None:
    page = (REFERENCE / "sql.md").read_text("utf8")
    missing = [words for words in list_statement_words() if not all(word in page for word in words.split())]
    assert missing == []
