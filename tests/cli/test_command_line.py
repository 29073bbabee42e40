"""The command line: its output, its exit status, and that its help is correct."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import feather, orc
from pyarrow import parquet as pq
from support.terminal_commands import RUN
from support.warm_processes import run_code

import paimon
from paimon.cli.main import main

COMMANDS = ["init", "create", "write", "alter", "cat", "head", "show", "ls", "snapshots", "compact"]
DDL = "id BIGINT NOT NULL, day STRING, amount DECIMAL(10, 2), at TIMESTAMP(3)"
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "day": ["mon", None, "tue, or ∅"],
        "amount": pa.array(["1.50", None, "-7.25"]).cast(pa.decimal128(10, 2)),
        "at": pa.array([0, 1_500, None], pa.timestamp("ms")),
    }
)


class Shell:
    """Runs commands in a directory and returns what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        assert main(arguments) == code
        printed = self._capsys.readouterr()
        assert "Traceback" not in printed.err
        assert code == 0 or printed.err.startswith("paimon: ")
        return printed.out if code == 0 else printed.err

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*arguments, "--output", "json").splitlines()]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PAIMON_WAREHOUSE", raising=False)
    return Shell(capsys)


@pytest.fixture
def orders(shell: Shell) -> str:
    """A primary-key table with a commit."""
    shell("init", "lake")
    name = "lake/default.db/orders"
    shell("create", name, "--columns", DDL, "--primary-key", "id", "--option", "bucket=2", "--comment", "all [orders]")
    paimon.open_table(name).write(ROWS)  # type: ignore[union-attr]
    return name


# Help.


def examples(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The commands of the example that a help ends with."""
    with pytest.raises(SystemExit) as ended:
        main([*([command] if command else []), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    _, found, example = text.partition("example:\n" if command else "a first tour:\n")
    assert found, f"the help of {command!r} ends with no example"
    joined = example.partition("\n\n")[0].replace("\\\n", " ")
    return [line.partition("   ")[0] for line in (line.strip() for line in joined.splitlines()) if line]


def test_every_help_ends_with_an_example_that_runs_as_written(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    Path("orders.csv").write_text("id,amount\n1,9.5\n2,3.0\n")
    for command in COMMANDS:
        (line,) = examples(command, capsys)
        words = shlex.split(line)
        assert words[:2] == ["paimon", command]
        assert shell(*words[1:])


def test_the_first_tour_runs_as_written(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    Path("orders.csv").write_text("id,day,amount\n1,mon,9.50\n2,tue,3.00\n")
    with pytest.raises(SystemExit):
        main(["--help"])
    tour = capsys.readouterr().out.partition("a first tour:\n")[2].partition("\n\n")[0].replace("\\\n", " ")
    commands = [shlex.split(line) for line in tour.splitlines() if not line.strip().startswith("#")]
    names = {"init", "create", "write", "cat", "show", "sql", "tag"}
    assert {words[1] for words in commands} == names
    for words in commands:
        assert words[0] == "paimon"
        assert shell(*words[1:])


def test_no_command_prints_the_help_and_a_wrong_one_is_a_usage_error(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2
    assert "a first tour" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["frobnicate"])
    assert ended.value.code == 2


# Making and listing.


def test_tables_are_created_and_listed(shell: Shell) -> None:
    assert "ready" in shell("init", "lake", "--database", "shop")
    assert "databases without tables: shop" in shell("ls", "lake")
    shell("create", "shop.t", "-w", "lake", "--columns", "k INT NOT NULL, p STRING NOT NULL", "--partition-by", "p")
    shell("create", "shop.t", "-w", "lake", "--columns", "other INT", "--if-not-exists")
    assert "--if-not-exists" in shell("create", "shop.t", "-w", "lake", "--columns", "k INT", code=1)
    assert shell.json("ls", "lake") == [
        {
            "table": "shop.t", "columns": 2, "primary_key": "", "partitioned_by": "p", "snapshot": None,
            "records": None, "rows": None,
        }
    ]  # fmt: skip
    assert "shop.t" in shell("ls", "lake")


def test_the_warehouse_can_be_set_in_the_environment(shell: Shell, orders: str) -> None:
    assert orders
    ran = subprocess.run(
        [sys.executable, "-m", "paimon", "head", "default.orders", "-n", "1", "-o", "json"],
        env=os.environ | {"PAIMON_WAREHOUSE": "lake", "PYTHONPATH": str(Path(paimon.__file__).parents[1])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(ran.stdout.splitlines()) == 1


def test_a_damaged_table_does_not_hide_the_others(shell: Shell, orders: str) -> None:
    shell("create", "default.broken", "-w", "lake", "--columns", "k INT")
    Path("lake/default.db/broken/schema/schema-0").write_text("{")
    assert "broken/schema/schema-0" in shell("ls", "lake", code=1)
    assert main(["ls", "lake"]) == 1


def test_columns_can_be_read_from_a_file(shell: Shell) -> None:
    shell("init", "lake")
    pq.write_table(ROWS, "rows.parquet")
    shell("create", "lake/default.db/t", "--like", "rows.parquet")
    shell("write", "lake/default.db/t", "rows.parquet")
    assert paimon.open_table("lake/default.db/t").scan().to_arrow().equals(ROWS)
    Path("empty.jsonl").write_text("")
    assert "empty.jsonl" in shell("create", "lake/default.db/u", "--like", "empty.jsonl", code=1)


# Writing.


def _as_json_lines(path: str) -> None:
    lines = (json.dumps(row, default=str) for row in ROWS.to_pylist())
    Path(path).write_text("\n".join(lines) + "\n")


WRITERS: dict[str, Callable[[str], object]] = {
    "csv": lambda path: arrow_csv.write_csv(ROWS, path),
    "jsonl": _as_json_lines,
    "parquet": lambda path: pq.write_table(ROWS, path),
    "orc": lambda path: orc.write_table(ROWS, path),
    "arrow": lambda path: feather.write_feather(ROWS, path),
    "ipc": lambda path: _as_stream(path),
}


def _as_stream(path: str) -> None:
    with pa.ipc.new_stream(path, ROWS.schema) as sink:
        sink.write_table(ROWS)


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_files_of_every_format_are_written(shell: Shell, ending: str) -> None:
    shell("init", "lake")
    shell("create", "lake/default.db/t", "--columns", DDL)
    WRITERS[ending](f"rows.{ending}")
    assert shell("write", "lake/default.db/t", f"rows.{ending}") == "snapshot 1: 3 rows in 1 file\n"
    assert paimon.open_table("lake/default.db/t").scan().to_arrow().to_pylist() == ROWS.to_pylist()


def test_several_files_make_one_commit(shell: Shell, orders: str) -> None:
    Path("a.csv").write_text("id,day\n1,\n4,wed\n")
    Path("b.data").write_text('id,day\n5,""\n')
    command = ("write", orders, "a.csv", "b.data", "--format", "csv")
    assert "has the columns 'amount', 'at'" in shell(*command, code=1)
    assert shell(*command, "--missing-columns", "null").startswith("snapshot 2: 3 rows in ")
    days = {row["id"]: row["day"] for row in shell.json("cat", orders, "--columns", "id,day")}
    assert days == {1: None, 2: None, 3: "tue, or ∅", 4: "wed", 5: ""}
    assert len(shell.json("snapshots", orders)) == 2


def test_row_kinds_overwrites_and_empty_writes(shell: Shell, orders: str) -> None:
    Path("changes.jsonl").write_text('{"op":"-D","id":1}\n{"op":"+I","id":9,"amount":"0.10","day":null,"at":null}\n')
    assert shell.json("write", orders, "changes.jsonl", "--kind-column", "op")[0]["rows"] == 2
    assert {row["id"] for row in shell.json("cat", orders)} == {2, 3, 9}
    Path("all.csv").write_text("id\n7\n")
    shell("write", orders, "all.csv", "--overwrite", "--missing-columns", "null")
    assert [row["id"] for row in shell.json("cat", orders)] == [7]
    Path("none.csv").write_text("id\n")
    assert "no snapshot was created" in shell("write", orders, "none.csv")
    assert "row kinds" in shell("write", orders, "changes.jsonl", "--overwrite", "--kind-column", "op", code=1)


def test_json_lines_that_arrow_does_not_take_are_written_as_plain_rows(shell: Shell) -> None:
    shell("init", "lake")
    shell("create", "lake/default.db/t", "--columns", "id INT, m MAP<STRING, INT>, day DATE")
    Path("rows.jsonl").write_text('{"id":1,"m":[["a",1]],"day":"2026-01-31"}\n\n{"id":"2","m":null}\n')
    shell("write", "lake/default.db/t", "rows.jsonl")
    assert shell.json("cat", "lake/default.db/t") == [
        {"id": 1, "m": [["a", 1]], "day": "2026-01-31"},
        {"id": 2, "m": None, "day": None},
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "'gone.csv' does not exist"),
        ("rows.txt", b"id\n1\n", "'.txt' names no known format"),
        ("rows.csv", b"id,day\n1\n", "rows.csv: cannot be read as csv"),
        ("rows.csv", b"id\nmany\n", "rows.csv: cannot be read as csv"),
        ("rows.jsonl", b'{"id":1}\n[2]\n', "line 2 is not a JSON object"),
        ("rows.jsonl", b'{"id":1\n', "rows.jsonl: cannot be read as json"),
        ("rows.parquet", b"PAR1", "rows.parquet: cannot be read as parquet"),
        ("rows.orc", b"ORC", "rows.orc: cannot be read as orc"),
        ("rows.arrow", b"nothing", "rows.arrow: cannot be read as arrow"),
        ("rows.csv", b"id,colour\n1,red\n", "colour"),
        ("rows.csv", b"day\nmon\n", "NOT NULL"),
    ],
)
def test_files_that_do_not_fit_are_named(
    shell: Shell, orders: str, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    assert message in shell("write", orders, name, code=1)
    assert len(shell.json("snapshots", orders)) == 1


# Reading.


def test_rows_as_json_lines_csv_and_a_drawn_table(shell: Shell, orders: str) -> None:
    assert sorted(shell.json("cat", orders), key=lambda row: row["id"]) == [
        {"id": 1, "day": "mon", "amount": "1.50", "at": "1970-01-01 00:00:00.000"},
        {"id": 2, "day": None, "amount": None, "at": "1970-01-01 00:00:01.500"},
        {"id": 3, "day": "tue, or ∅", "amount": "-7.25", "at": None},
    ]
    text = shell("cat", orders, "--output", "csv", "--columns", "day,id", "--where", "id = 3")
    assert list(csv.reader(io.StringIO(text))) == [["day", "id"], ["tue, or ∅", "3"]]
    drawn = shell("cat", orders, "--where", "amount > 1")
    for part in ("id", "mon", "1.50", "1 row"):
        assert part in drawn
    assert "2 rows" in shell("head", orders, "-n", "2")


def test_printed_csv_and_json_can_be_written_back(shell: Shell, orders: str) -> None:
    for form in ("csv", "json"):
        Path(f"out.{form}").write_text(shell("cat", orders, "--output", form))
        name = f"lake/default.db/copy_{form}"
        shell("create", name, "--columns", DDL)
        shell("write", name, f"out.{form}")
        assert sorted(shell.json("cat", name), key=str) == sorted(shell.json("cat", orders), key=str)


def test_values_without_a_python_or_json_form_are_printed(shell: Shell) -> None:
    shell("init", "lake")
    ddl = "f DOUBLE, t TIMESTAMP(9), d DATE, b BYTES, m MAP<STRING, TIMESTAMP(9)>, a ARRAY<FLOAT>, r ROW<x DATE>"
    shell("create", "lake/default.db/t", "--columns", ddl)
    table = paimon.open_table("lake/default.db/t")
    far = pa.array([2_932_897 + 366], pa.date32())  # in the year 10001
    nanos = pa.array([1_000_000_001], pa.timestamp("ns"))
    table.write(  # type: ignore[union-attr]
        {
            "f": pa.array([float("nan")]),
            "t": nanos,
            "d": far,
            "b": pa.array([b"\x00\xff"]),
            "m": pa.MapArray.from_arrays([0, 1], pa.array(["k"]), nanos),
            "a": pa.array([[float("inf"), None]], pa.list_(pa.float32())),
            "r": pa.StructArray.from_arrays([far], names=["x"]),
        }
    )
    (row,) = shell.json("cat", "lake/default.db/t")
    second = "1970-01-01 00:00:01.000000001"
    assert row["f"] == "NaN"
    assert row["t"] == second
    assert row["m"] == [["k", second]]
    assert row["a"] == ["Infinity", None]
    assert row["b"] == "AP8="
    assert "10001" in row["d"]
    assert row["r"]["x"] == row["d"]
    assert second in shell("cat", "lake/default.db/t")
    assert "that CSV cannot represent" in shell("cat", "lake/default.db/t", "--output", "csv", code=1)


def test_markup_in_values_is_printed_as_it_is(shell: Shell) -> None:
    shell("init", "lake")
    shell("create", "lake/default.db/t", "--columns", "`[b]` STRING")
    paimon.open_table("lake/default.db/t").write({"[b]": ["[red]x[/red]"]})  # type: ignore[union-attr]
    drawn = shell("cat", "lake/default.db/t")
    assert "[red]x[/red]" in drawn
    assert "[b]" in drawn
    assert "[b]" in shell("show", "lake/default.db/t")


def test_time_travel_branches_and_plans(shell: Shell, orders: str) -> None:
    paimon.open_table(orders).write([{"id": 4}], missing_columns="null")  # type: ignore[union-attr]
    Path(orders, "tag").mkdir()
    Path(orders, "tag", "tag-one").write_bytes(Path(orders, "snapshot", "snapshot-1").read_bytes())
    for travel in (["--snapshot", "1"], ["--tag", "one"], ["--option", "scan.snapshot-id=1"]):
        assert len(shell.json("cat", orders, *travel)) == 3
    assert "'two'" in shell("cat", orders, "--tag", "two", code=1)
    assert "'dev'" in shell("cat", orders, "--branch", "dev", code=1)
    assert "KEY=VALUE" in shell("cat", orders, "--option", "bucket", code=1)
    assert "reads 2 files" in shell("cat", orders, "--snapshot", "1", "--explain")
    assert [row["tags"] for row in shell.json("snapshots", orders)] == ["one", ""]
    assert "APPEND" in shell("snapshots", orders)


def test_system_tables_are_read_like_tables(shell: Shell, orders: str) -> None:
    files = shell.json("cat", f"{orders}$files", "--columns", "bucket,level", "--where", "record_count > 0")
    assert {row["level"] for row in files} == {0}
    assert {row["rowkind"] for row in shell.json("cat", f"{orders}$audit_log", "--snapshot", "1")} == {"+I"}
    assert "no time travel" in shell("cat", f"{orders}$files", "--snapshot", "1", code=1)
    assert "no plan" in shell("cat", f"{orders}$files", "--explain", code=1)
    assert "did you mean 'files'" in shell("cat", f"{orders}$file", code=1)
    assert "is a system table" in shell("show", f"{orders}$files", code=1)


def test_show_draws_files_by_bucket_and_level(shell: Shell, orders: str) -> None:
    for number in range(9):
        options = {"write-only": True, "write.missing-columns": "null"}
        paimon.open_table(orders, options).write([{"id": 1, "amount": number}])  # type: ignore[union-attr]
    drawn = shell("show", orders)
    for part in ("BIGINT NOT NULL", "all [orders]", "bucket", "snapshot 10", "L0 ▪", "▪×10"):
        assert part in drawn
    (description,) = shell.json("show", orders)
    assert description["primary_keys"] == ["id"]
    assert sum(b["files_by_level"]["0"] for b in description["buckets"]) == 11
    assert sum(b["records"] for b in description["buckets"]) == description["records"] == 12
    assert description["rows"] is None, "files are to be merged"
    shell("create", "lake/default.db/new", "--columns", "p INT")
    assert "the table has no snapshot yet" in shell("show", "lake/default.db/new")
    assert shell.json("show", "lake/default.db/new")[0]["snapshot"] is None


def test_records_are_not_called_rows(shell: Shell, orders: str) -> None:
    table = paimon.open_table(orders, {"write-only": True})
    table.write(ROWS)  # type: ignore[union-attr]
    shell("create", "lake/default.db/log", "--columns", "id INT")
    paimon.open_table("lake/default.db/log").write([{"id": 1}, {"id": 2}])  # type: ignore[union-attr]

    def counts() -> list[tuple[int, int | None]]:
        return [(record["records"], record["rows"]) for record in shell.json("ls", "lake")]

    assert counts() == [(2, 2), (6, None)]
    assert "6 stored records, not all merged" in shell("show", orders)
    shell("compact", orders, "--full")
    assert counts() == [(2, 2), (3, 3)]
    assert "3 stored records, 3 rows" in shell("show", orders)
    history = [(s["records"], s["records_change"], s["rows"]) for s in shell.json("snapshots", orders)]
    assert history == [(3, 3, None), (6, 3, None), (3, -3, 3)]
    assert [s["rows"] for s in shell.json("snapshots", "lake/default.db/log")] == [2]


# Errors.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cat", "nowhere"], "does not exist"),
        (["cat", "default.nothing", "-w", "lake"], "'default.nothing' does not exist"),
        (["cat", "defautl.orders", "-w", "lake"], "did you mean 'default'?"),
        (["cat", "lake/default.db/orders", "--where", "id >"], "hint:"),
        (["cat", "lake/default.db/orders", "--limit", "-1"], "negative"),
        (["head", "lake/default.db/orders", "--columns", "idd"], "did you mean 'id'?"),
        (["ls", "nowhere"], "warehouse"),
        (["ls"], "The command needs a warehouse"),
        (["create", "orders", "--columns", "k INT"], "WAREHOUSE/DATABASE.db/TABLE"),
        (["create", "lake/default.db/x", "--columns", "k INTT"], "INTT"),
        (["create", "lake/default.db/x", "--columns", "k INT", "--primary-key", "kk"], "kk"),
        (["snapshots", "lake/default.db"], "does not exist"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_errors_are_one_sentence_and_a_hint(shell: Shell, orders: str, arguments: Sequence[str], message: str) -> None:
    assert message in shell(*arguments, code=1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_printed_on_a_terminal(orders: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paimon.cli.terminal._PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr("paimon.cli.terminal._PAUSE_SECONDS", -1.0)
    Path("more.csv").write_text("id\n8\n9\n")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["write", orders, "more.csv", "--missing-columns", "null"]) == 0
    assert "writing more.csv: 2 rows" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K"), "the line is wiped"
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert main(["write", orders, "more.csv", "--missing-columns", "null"]) == 0
    assert pipe.getvalue() == ""


def test_the_module_runs_as_a_program(shell: Shell, orders: str) -> None:
    command = [sys.executable, "-m", "paimon", "cat", orders, "--where", "id = 1", "--output", "json"]
    surrounding = os.environ | {"PYTHONPATH": str(Path(paimon.__file__).parents[1])}
    good = subprocess.run(command, env=surrounding, capture_output=True, text=True)
    assert (good.returncode, json.loads(good.stdout)["day"], good.stderr) == (0, "mon", "")


def test_a_program_ends_with_its_code_and_its_errors(orders: str) -> None:
    bad = run_code(RUN, "cat", str(Path(orders).resolve()), "--where", "idd = 1")
    assert (bad.code, bad.output) == (1, b"")
    assert bad.errors == b"paimon: Column 'idd' does not exist\nhint: did you mean 'id'?\n"
    assert run_code(RUN, "--version").output.startswith(b"paimon ")
