"""Commands that delete ask on a terminal, and need --yes without one; expiry asks only below the table's
retention, and a repair only on a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import paimon
from paimon.cli.main import main

Answer = Callable[[str], io.StringIO]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def lake(tmp_path: Path) -> str:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id INT, day STRING", partition_keys=["day"])
    for number in (1, 2, 3):
        table.write([{"id": number, "day": f"2020010{number}"}])
    table.tags.create("one", 1)
    catalog.create_database("empty")
    return str(tmp_path / "lake")


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Sits at a terminal, types a line, and returns what was printed there."""

    def sit_down(line: str) -> io.StringIO:
        printed = Terminal()
        monkeypatch.setattr(sys, "stdin", Terminal(f"{line}\n"))
        monkeypatch.setattr(sys, "stderr", printed)
        return printed

    return sit_down


def is_done(lake: str, command: Sequence[str]) -> bool:
    """Whether the command of a name has changed the warehouse."""
    catalog = paimon.connect(lake)
    if "empty" in command:
        return "empty" not in catalog.databases()
    if "shop" not in catalog.databases() or "t" not in catalog.tables("shop"):
        return True
    table = catalog.table("shop.t")
    assert isinstance(table, paimon.Table)
    return len(table.snapshots()) != 3 or list(table.tags) != ["one"] or table.scan().count() != 3


LOSSES = {
    "drop": ["drop", "{}/shop.db/t"],
    "drop if exists": ["drop", "{}/shop.db/t", "--if-exists"],
    "table drop": ["table", "drop", "{}/shop.db/t"],
    "truncate": ["truncate", "{}/shop.db/t"],
    "drop partition": ["table", "drop-partition", "{}/shop.db/t", "-p", "day=20200101"],
    "drop database": ["db", "drop", "empty", "-w", "{}"],
    "drop database with tables": ["db", "drop", "shop", "--cascade", "-w", "{}"],
    "rollback": ["rollback", "{}/shop.db/t", "--snapshot", "2"],
}
EXPIRIES = {
    "snapshots by number": ["expire", "snapshots", "{}/shop.db/t", "--retain-max", "2"],
    "snapshots by age": ["expire", "snapshots", "{}/shop.db/t", "--retain-min", "1", "--older-than", "0 ms"],
    "tags": ["expire", "tags", "{}/shop.db/t", "--older-than", "0 ms"],
    "partitions": ["expire", "partitions", "{}/shop.db/t", "--age", "1 d", "--option",
                   "partition.timestamp-formatter=yyyyMMdd"],
    "repairs": ["doctor", "{}/shop.db/t", "--fix", "--option", "manifest.merge-min-count=2"],
}  # fmt: skip


def fill(lake: str, command: Sequence[str]) -> list[str]:
    return [word.format(lake) for word in command]


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_needs_yes_without_a_terminal(lake: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = fill(lake, LOSSES[name])
    assert main(command) == 1
    assert "there is no terminal to ask on.\nhint: pass --yes" in capsys.readouterr().err
    assert not is_done(lake, command)
    assert main([*command, "--yes"]) == 0
    assert is_done(lake, command)


@pytest.mark.parametrize("name", [*LOSSES, *EXPIRIES])
def test_a_terminal_is_asked(lake: str, name: str, answer: Answer) -> None:
    command = fill(lake, (LOSSES | EXPIRIES)[name])
    for refusal in ("", "n", "no"):
        printed = answer(refusal)
        assert main(command) == 1
        assert " [y/N] " in printed.getvalue() and "Nothing was changed." in printed.getvalue()
        assert not is_done(lake, command)
    answer("y")
    assert main(command) == 0
    assert is_done(lake, command)


@pytest.mark.parametrize("name", EXPIRIES)
def test_expiry_runs_in_scripts(lake: str, name: str) -> None:
    command = fill(lake, EXPIRIES[name])
    assert main(command) == 0
    assert is_done(lake, command)


def test_expiry_by_the_options_of_the_table_is_not_asked(lake: str, answer: Answer) -> None:
    table = f"{lake}/shop.db/t"
    printed = answer("n")
    for words in (
        ["expire", "snapshots", table],
        ["expire", "snapshots", table, "--retain-max", "2", "--dry-run"],
        ["expire", "snapshots", table, "--retain-min", "20", "--older-than", "2 h"],
        ["expire", "changelogs", table],
        ["expire", "tags", table],
        ["expire", "partitions", table, "--age", "99999 d", "--option", "partition.expiration-time=1 d",
         "--option", "partition.timestamp-formatter=yyyyMMdd"],
        ["orphans", table, "--delete"],
    ):  # fmt: skip
        assert main(words) == 0
    assert "[y/N]" not in printed.getvalue()
    assert main(["expire", "changelogs", table, "--all"]) == 1
    assert "[y/N]" in printed.getvalue()


def test_young_orphans_are_asked_for_on_a_terminal(lake: str, answer: Answer) -> None:
    orphan = Path(lake) / "shop.db" / "t" / "manifest" / "manifest-orphan"
    orphan.write_bytes(b"x")
    command = ["orphans", f"{lake}/shop.db/t", "--older-than", "0 ms", "--delete", "--allow-young"]
    answer("n")
    assert main(command) == 1
    assert orphan.exists()
    assert main([*command, "--yes"]) == 0
    assert not orphan.exists()


def test_what_does_not_exist_is_not_asked_for(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drop", f"{lake}/shop.db/nope"]) == 1
    assert main(["db", "drop", "shop", "-w", lake]) == 1
    assert main(["db", "drop", "nope", "-w", lake]) == 1
    printed = capsys.readouterr().err
    assert printed.count("does not exist") == 2 and "is not empty" in printed and "--yes" not in printed
    assert main(["drop", f"{lake}/nope.db/t", "--if-exists"]) == 0
