"""`paimon tag`, `branch`, `consumer`, `expire`, `orphans`, `rollback`: what they do, print and refuse."""

from __future__ import annotations

import json
import os
import pty
from collections.abc import Callable
from pathlib import Path
from select import select
from typing import Any

import pytest
from support.terminal_commands import RUN
from support.warm_processes import start_code

import paimon
from paimon.cli.main import main

Run = Callable[..., Any]


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {"bucket": "1", "partition.timestamp-formatter": "yyyyMMdd", "partition.expiration-time": "7 d"}
    table = catalog.create_table(
        "db.t", "id INT NOT NULL, day STRING NOT NULL", primary_keys=["id", "day"], partition_keys=["day"],
        options=options,
    )  # fmt: skip
    for day in ("20200101", "20200101", "29990101"):
        table.write([{"id": 1, "day": day}])
    return table


@pytest.fixture
def run(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the table; return the records that it prints, or its error text."""

    def run(command: str, *words: str, code: int = 0) -> Any:
        first, *more = command.split()
        assert main([first, *more, orders.location, *words, "--output", "json"]) == code
        printed = capsys.readouterr()
        return printed.err if code else [json.loads(line) for line in printed.out.splitlines()]

    return run


def test_tags(run: Run, orders: paimon.Table) -> None:
    (made,) = run("tag create", "one", "--snapshot", "1", "--retain", "3 d")
    assert (made["tag"], made["snapshot"], made["lives_seconds"]) == ("one", 1, 259200.0)
    assert "already exists" in run("tag create", "one", code=1)
    assert "available are 1 to 3" in run("tag create", "nine", "--snapshot", "9", code=1)
    run("tag create", "latest")
    run("tag rename", "latest", "newest")
    run("tag replace", "newest", "--snapshot", "2")
    assert [(t["tag"], t["snapshot"]) for t in run("tag list")] == [("newest", 2), ("one", 1)]
    assert run("tag delete", "one") == [{"tag": "one", "files_deleted": 0}]
    assert "did you mean 'newest'" in run("tag delete", "newst", code=1)
    assert list(orders.tags) == ["newest"]


def test_branches(run: Run, orders: paimon.Table) -> None:
    run("tag create", "one", "--snapshot", "1")
    assert run("branch create", "trial", "--tag", "one") == [{"branch": "trial", "snapshot": 1}]
    run("branch create", "empty")
    assert "neither main nor a number" in run("branch create", "12", code=1)
    assert run("branch list")[0] == {"branch": "empty", "snapshot": None, "records": None}
    assert "has no snapshot" in run("branch fast-forward", "empty", code=1)
    assert run("branch fast-forward", "trial") == [{"branch": "trial", "snapshot": 1}]
    assert [s.id for s in orders.snapshots()] == [1]
    run("branch delete", "trial")
    assert "did you mean" in run("branch delete", "emty", code=1)
    assert list(orders.branches) == ["empty"]


def test_consumers(run: Run, orders: paimon.Table) -> None:
    run("consumer reset", "slow", "2")
    run("consumer reset", "test-1", "3")
    assert "give a snapshot id from 1 to 4" in run("consumer reset", "slow", "9", code=1)
    assert run("consumer list")[0] == {"consumer": "slow", "next_snapshot": 2}
    assert run("consumer clear", "--including", "test-.*") == [{"consumer": "test-1", "deleted": True}]
    assert run("consumer expire", "1 d") == []
    assert run("expire snapshots", "--retain-max", "1")[0]["last"] == 1
    run("consumer delete", "slow")
    assert run("expire snapshots", "--retain-max", "1")[0]["last"] == 2
    assert dict(orders.consumers) == {}


def test_expiry(run: Run, orders: paimon.Table) -> None:
    assert run("expire snapshots")[0]["snapshots"] == 0
    assert "is below num-retained.min" in run("expire snapshots", "--retain-min", "5", "--retain-max", "2", code=1)
    assert run("expire partitions") == [{"day": "20200101"}]
    assert orders.scan().count() == 1
    limits = ("--retain-min", "1", "--older-than", "0 ms", "--max-deletes", "2")
    (due,) = run("expire snapshots", *limits, "--dry-run")
    (reason,) = due.pop("retained_by")
    assert reason.startswith("option 'snapshot.expire.limit' at snapshot 3 since ")
    assert due == {"snapshots": 2, "first": 1, "last": 2, "files": 0}
    (done,) = run("expire snapshots", *limits)
    assert (done["snapshots"], done["first"], done["last"]) == (2, 1, 2)
    run("tag create", "short", "--retain", "1 ms")
    assert run("expire tags") == [{"tag": "short", "deleted": True}]
    nothing = {"changelogs": 0, "first": None, "last": None, "files": 0, "retained_by": []}
    assert run("expire changelogs", "--all") == [nothing]


def test_what_holds_snapshots_back_is_named(run: Run, orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    orders.consumers.reset("forgotten", 2)
    orders.tags.create("old", 1)
    orders.branches.create("test", "old")
    limits = ("--retain-max", "1", "--dry-run")
    (due,) = run("expire snapshots", *limits)
    assert (due["snapshots"], due["last"]) == (1, 1)
    kinds = ["tag 'old' at snapshot 1", "branch 'test' at snapshot 1", "consumer 'forgotten' at snapshot 2"]
    expected = [*kinds, "option 'snapshot.num-retained.min' at snapshot 3"]
    assert [text.partition(" since ")[0] for text in due["retained_by"]] == expected
    assert main(["expire", "snapshots", orders.location, *limits]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" since ")[0] for line in lines[-4:]] == [f"retained by {text}" for text in expected]
    found = orders.maintain.expire_snapshots(retain_max=1).retained_by
    assert [(reason.kind, reason.snapshot_id) for reason in found][2] == ("consumer", 2)
    assert [(r["reference"], r["name"], r["snapshot"]) for r in run("show")[0]["references"]] == [
        ("consumer", "forgotten", 2),
        ("tag", "old", 1),
        ("branch", "test", 1),
    ]
    assert main(["show", orders.location]) == 0
    assert "consumers, tags and branches" in capsys.readouterr().out


def test_orphans(run: Run, orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    orphan = Path(orders.location) / "manifest" / "manifest-orphan"
    orphan.write_bytes(b"x" * 7)
    assert run("orphans") == []
    (found,) = run("orphans", "--older-than", "0 ms")
    assert (found["path"], found["size"]) == (str(orphan), 7)
    assert "younger than a day" in run("orphans", "--older-than", "0 ms", "--delete", code=1)
    assert main(["orphans", orders.location, "--older-than", "0 ms"]) == 0
    assert "1 file, 7 bytes can be deleted" in capsys.readouterr().out
    assert len(run("orphans", "--older-than", "0 ms", "--delete", "--allow-young")) == 1
    assert not orphan.exists() and orders.scan().count() == 2


def test_maintain(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    warehouse = str(Path(orders.location).parent.parent)
    orders.alter(paimon.SetOption("write-only", "true"), paimon.SetOption("num-sorted-run.compaction-trigger", "2"))
    writer = paimon.open_table(orders.location)
    for _ in range(2):
        writer.write(writer.scan().to_arrow())
    before = len(writer.snapshots())
    assert main(["maintain", warehouse, "--dry-run", "-o", "json"]) == 0
    assert '"action":"compact"' in capsys.readouterr().out.replace(" ", "")
    assert len(writer.snapshots()) == before
    assert main(["maintain", warehouse, "--database", "shopp"]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert main(["maintain", warehouse]) == 0
    assert len(writer.snapshots()) == before + 2  # a compaction and a dropped partition
    Path(writer.location, "schema", "schema-1").write_bytes(b"{}")
    assert main(["maintain", warehouse]) == 1
    assert "1 action failed" in capsys.readouterr().err


def test_rollback(run: Run, orders: paimon.Table) -> None:
    run("tag create", "three")
    (done,) = run("rollback", "--snapshot", "2", "--yes")
    assert (done["snapshot"], done["snapshots_forgotten"], done["tags_forgotten"]) == (2, 1, "three")
    assert orders.scan().count() == 1
    assert "Snapshot '7' does not exist" in run("rollback", "--snapshot", "7", "--yes", code=1)
    with pytest.raises(SystemExit):
        main(["rollback", orders.location])


@pytest.mark.parametrize("words", [["tag"], ["branch"], ["consumer"], ["expire"], ["orphans"], ["rollback"]])
def test_help_teaches(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([*words, "--help"])
    assert left.value.code == 0
    assert f"example:\n  paimon {words[0]}" in capsys.readouterr().out


def test_follow(run: Run, orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    changes = run("follow", "--from", "earliest", "--idle-timeout", "0", "--consumer", "c", "--columns", "day")
    assert [(c["_snapshot_id"], c["_row_kind"], c["day"]) for c in changes] == [
        (1, "+I", "20200101"), (2, "+I", "20200101"), (3, "+I", "29990101")
    ]  # fmt: skip
    assert orders.consumers["c"] == 4
    assert run("follow", "--idle-timeout", "0", "--consumer", "c") == []
    assert "'earliest' or 'latest'" in run("follow", "--from", "first", code=1)
    assert main(["follow", orders.location, "--until", "3", "--columns", "id", "-o", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ['"_snapshot_id","_row_kind","id"', '3,"+I",1', '3,"+I",1']


def test_a_catalog_in_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake, rows = tmp_path / "lake", tmp_path / "rows.csv"
    rows.write_text("id\n7\n")
    jdbc = ("--catalog", "metastore=jdbc", "--catalog", f"uri=sqlite:///{tmp_path}/catalog.sqlite")
    assert main(["init", str(lake), *jdbc]) == 0
    made = ["create", "default.t", "-w", str(lake), "--columns", "id INT NOT NULL", "--primary-key", "id"]
    assert main([*made, "--option", "bucket=1", *jdbc]) == 0
    assert main(["write", "default.t", str(rows), "-w", str(lake), *jdbc]) == 0
    assert main(["tag", "create", f"{lake}/default.db/t", "kept", *jdbc]) == 0
    capsys.readouterr()
    assert main(["cat", "default.t", "-w", str(lake), "--tag", "kept", "-o", "json", *jdbc]) == 0
    assert main(["ls", str(lake), "-o", "json", *jdbc]) == 0
    printed = capsys.readouterr().out
    assert '{"id": 7}' in printed
    assert "default.t" in printed
    assert main(["ls", str(lake), "--catalog", "metastore=jdbc", "--catalog", "uri=nonsense"]) == 1


def run_on_terminal(words: list[str], question: str, answer: str | None, output: Path) -> int | None:
    """Run a command whose input and errors are a terminal; give an answer to its question. Return the exit code."""
    terminal, other_end = pty.openpty()
    output.touch()
    run = start_code(RUN, words, [os.ttyname(other_end), str(output), os.ttyname(other_end)])
    prompt = b""
    while answer is not None and b"[y/N]" not in prompt:
        assert run.is_alive(), prompt
        if select([terminal], [], [], 0.05)[0]:
            prompt += os.read(terminal, 1000)
    assert answer is None or question.encode() in prompt
    os.write(terminal, (answer or "").encode())
    run.join(60)
    os.close(other_end)
    os.close(terminal)
    return run.exitcode


@pytest.mark.parametrize(
    ("answer", "words", "left"),
    [("\n", [], 3), ("n\n", [], 3), ("y\n", [], 2), ("YES\n", [], 2), (None, ["--yes"], 2)],
)
def test_rollback_asks_on_a_terminal(
    orders: paimon.Table, answer: str | None, words: list[str], left: int, tmp_path: Path
) -> None:
    command = ["rollback", orders.location, "--snapshot", "2", *words]
    question, output = "is at snapshot 3. Roll back to snapshot 2?", tmp_path / "output"
    assert run_on_terminal(command, question, answer, output) == (0 if left == 2 else 1)
    assert ("snapshots forgotten" in output.read_text()) == (left == 2)
    assert orders.snapshots()[-1].id == left


@pytest.mark.parametrize(("answer", "words", "snapshots"), [("n\n", [], 3), ("y\n", [], 1), (None, ["--yes"], 1)])
def test_fast_forward_asks_on_a_terminal(
    orders: paimon.Table, answer: str | None, words: list[str], snapshots: int, tmp_path: Path
) -> None:
    orders.tags.create("one", 1)
    orders.branches.create("trial", "one")
    command = ["branch", "fast-forward", orders.location, "trial", *words]
    question = "is at snapshot 3. Fast-forward to branch trial?"
    assert run_on_terminal(command, question, answer, tmp_path / "output") == (0 if snapshots == 1 else 1)
    assert len(orders.snapshots()) == snapshots


def test_a_key_without_its_partition_columns_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--columns", "id INT NOT NULL, day STRING NOT NULL", "--primary-key", "id", "--option", "bucket=2"]
    assert main(["create", str(tmp_path / "lake/db.db/a"), *words, "--partition-by", "day"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("paimon: warning: Table 'db.a': The primary key (id) lacks the partition column 'day'")
    assert main(["create", str(tmp_path / "lake/db.db/b"), *words]) == 0
    assert capsys.readouterr().err == ""
