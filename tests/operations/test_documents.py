"""What README, guide and examples show runs as written."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

import paimon

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf8")
GUIDE = (ROOT / "docs" / "guide.md").read_text("utf8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def test_readme_begins_with_two_commands() -> None:
    first = re.findall(r"```sh\n(.*?)```", README, re.S)[:2]
    assert [block.strip() for block in first] == ["python3 dev.py flights", "python3 dev.py tests"]
    assert README.index("```") < 400


def test_python_blocks_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        if "paimon.spark" not in block:
            exec(compile(block, "README.md", "exec"), names)
    assert "11.50" in capsys.readouterr().out


def test_python_blocks_of_the_guide_run(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    catalog.create_database("shop")
    columns = "id BIGINT, day STRING, amount DECIMAL(10, 2), note STRING, seen BOOLEAN"
    orders = catalog.create_table("shop.orders", columns, partition_keys=["day"])
    orders.write([{"id": 1, "day": "2026-01-01", "amount": "10"}, {"id": 2, "day": "2026-01-01", "amount": "-1"}])
    for _ in range(9):
        orders.write([{"id": 3, "day": "2020-01-01", "amount": "0"}])
    found = blocks("python", GUIDE)
    shell = blocks("sh", GUIDE)  # what takes minutes or hours
    assert len(found) + len(shell) == GUIDE.count("```") // 2 >= 4, "blocks of another language are not run here"
    names = {"catalog": catalog, "orders": orders, "timedelta": timedelta, "paimon": paimon}
    for block in found:
        exec(compile(block, "guide.md", "exec"), dict(names))
    assert orders.scan(tag="year-end").count() == 10
    assert orders.scan(where="day > '2025'").to_arrow().to_pylist() == [
        {"id": 1, "day": "2026-01-01", "amount": Decimal("11.00"), "note": "raised", "seen": True}
    ]
    assert {"events", "users"} == set(catalog.tables("db"))
    assert catalog.table("db.users").schema.names == ["id", "name", "mail", "age"]


def test_commands_of_the_readme_run(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,note\n1,one\n2,two\n")
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("paimon ")]
    assert len(commands) >= 5
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    printed = {}
    for command in commands:
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        printed[words[3]] = done.stdout
    assert printed["cat"].strip() == '{"id": 2, "note": "two"}'
    assert "L0" in printed["show"]


@pytest.mark.parametrize("name", ["quickstart", "own_storage"])
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out
