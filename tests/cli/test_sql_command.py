"""`paimon sql`, its shell and its completion; `paimon drop`, `rename` and `partitions`."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from support.command_line import run

import paimon
from paimon.cli import sql_shell
from paimon.cli.main import main
from paimon.cli.sql_completion import complete
from paimon.cli.sql_shell import highlight, is_complete, run_shell

SCRIPT = "CREATE TABLE t (id BIGINT, word STRING); -- a comment\nINSERT INTO t VALUES (1, 'a'), (2, 'b');"


@pytest.fixture
def lake(tmp_path: Path) -> str:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.sql(SCRIPT)
    return catalog.warehouse


def test_statements_of_an_argument_print_their_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = run(capsys, "sql", str(tmp_path), "-e", SCRIPT + "SELECT word FROM t ORDER BY id")
    assert printed.splitlines()[0] == "Table 'default.t' is created."
    assert printed.splitlines()[-3:] == ["a", "b", "(2 rows)"]


def test_the_output_is_a_table_json_or_csv(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT * FROM t WHERE id = 2"
    assert json.loads(run(capsys, "sql", lake, "-e", query, "-o", "json")) == {"id": 2, "word": "b"}
    assert run(capsys, "sql", lake, "-e", query, "-o", "csv").splitlines() == ['"id","word"', '2,"b"']
    assert "PRIMARY KEY" not in run(capsys, "sql", lake, "-e", "SHOW CREATE TABLE t")
    assert json.loads(run(capsys, "sql", lake, "-e", "DROP TABLE t", "-o", "json"))["result"].endswith("is dropped.")


def test_a_failed_statement_stops_the_script_with_its_line(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.sql"
    script.write_text("INSERT INTO t VALUES (3, 'c');\n\nSELECT wrod FROM t;\nDROP TABLE t;\n")
    assert main(["sql", lake, "-f", str(script)]) == 1
    error = capsys.readouterr().err
    assert "Column 'wrod' does not exist" in error
    assert "hint: did you mean 'word'?" in error
    assert "The statement begins in line 3 of the script." in error
    assert paimon.connect(lake).sql("SELECT count(*) AS n FROM t").to_arrow()["n"].to_pylist() == [3]


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_an_error_of_rows_names_the_line_too(lake: str, capsys: pytest.CaptureFixture[str], output: str) -> None:
    """A query computes its rows when they are printed."""
    failing = "SELECT 1 AS a;\n\nSELECT CAST(word AS INT) AS b FROM t;\nDROP TABLE t"
    assert main(["sql", lake, "-e", failing, "-o", output]) == 1
    printed, error = capsys.readouterr()
    assert "1" in printed and "Could not convert" in error
    assert error.splitlines()[-1] == "The statement begins in line 3 of the script."
    assert main(["sql", lake, "-e", "SELECT CAST(word AS INT) AS b FROM t", "-o", output]) == 1
    assert "begins in line" not in capsys.readouterr().err
    assert paimon.connect(lake).tables("default") == ["t"]


def test_a_script_that_does_not_exist(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", lake, "-f", "nothing.sql"]) == 1
    error = capsys.readouterr().err
    assert error.splitlines()[0] == "paimon: File 'nothing.sql' does not exist"


def test_a_syntax_error_runs_nothing_and_shows_the_place(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", lake, "-e", "DROP TABLE t;\nCREATE TABLE u (id BIGNT)"]) == 1
    error = capsys.readouterr().err
    assert "line 2, column 20: 'BIGNT' is not a type" in error
    assert error.splitlines()[1:3] == ["  CREATE TABLE u (id BIGNT)", " " * 21 + "^"]
    assert paimon.connect(lake).tables("default") == ["t"]


def test_statements_come_from_the_standard_input(
    lake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ((), ("-f", "-")):
        monkeypatch.setattr("sys.stdin", io.StringIO("SELECT max(id) AS m FROM t;"))
        assert json.loads(run(capsys, "sql", lake, *words, "-o", "json")) == {"m": 2}


def test_a_database_may_be_chosen(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "sql", lake, "-e", "CREATE DATABASE shop; CREATE TABLE shop.items (id INT)")
    assert "items" in run(capsys, "sql", lake, "-d", "shop", "-e", "SHOW TABLES")
    assert main(["sql", lake, "-d", "nothing", "-e", "SHOW TABLES"]) == 1
    assert main(["sql", lake, "-f", "missing.sql"]) == 1


def answers(*texts: str) -> Callable[[str], str]:
    remaining = list(texts)

    def prompt(shown: str) -> str:
        assert shown.startswith("paimon.")
        if not remaining:
            raise EOFError
        return remaining.pop(0)

    return prompt


def test_the_shell_runs_statements_and_survives_errors(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = (
        "SELECT word FROM t ORDER BY id;",
        "SELECT nothing FROM t;",
        "SELEC 1;",
        "help",
        "SHOW TABLES;",
        "exit",
        "x",
    )
    run_shell(paimon.connect(lake).sql_session(), lake, answers(*texts))
    printed = capsys.readouterr().out
    assert printed.index("(2 rows)") < printed.index("Column 'nothing' does not exist")
    assert "expected a statement, not 'SELEC'" in printed
    assert "INSERT OVERWRITE" in printed
    assert "(1 row)" in printed
    assert " s\n" in printed


def test_a_command_of_another_shell_has_a_statement(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ("\\dt", "\\d t", ".tables;", "\\l", "\\zzz")
    assert all(is_complete(text) for text in texts)
    run_shell(paimon.connect(lake).sql_session(), lake, answers(*texts))
    printed = capsys.readouterr().out
    assert printed.count("hint: write SHOW TABLES;") == 2 and "write SHOW TABLES, or DESCRIBE table;" in printed
    assert "write SHOW DATABASES;" in printed
    assert "Command '\\zzz' is unknown.\nhint: type help for the statements and commands" in printed


def test_the_next_query_of_the_shell_goes_to_a_file(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, query = tmp_path / "rows.parquet", "SELECT * FROM t ORDER BY id;"
    texts = (f"\\o {file}", "SHOW TABLES;", query, query, "\\o rows.xyz", "\\o", "\\o /nowhere/x.csv", query, "exit")
    run_shell(paimon.connect(lake).sql_session(), lake, answers(*texts))
    printed = capsys.readouterr().out
    assert f"2 rows written to {file}" in printed
    assert printed.count("(2 rows)") == 1
    assert "file 'rows.xyz' names no format" in printed
    assert "/nowhere/x.csv" in printed
    assert pq.read_table(file).to_pylist() == [{"id": 1, "word": "a"}, {"id": 2, "word": "b"}]
    assert [path.name for path in tmp_path.iterdir() if path.name != "lake"] == ["rows.parquet"]
    assert is_complete("\\o rows.csv") and not is_complete("SELECT 1")


def test_the_editor_reads_a_statement_of_several_lines(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("SELECT word\rFROM t\rWHERE id = 2;\rexit\r")
        run_shell(paimon.connect(lake).sql_session(), lake)
    assert "b\n(1 row)" in capsys.readouterr().out
    assert "+WHERE id = 2;" in (tmp_path / "paimon" / "sql_history").read_text()


def test_the_history_stays_in_memory_where_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    assert type(sql_shell._open_history()).__name__ == "InMemoryHistory"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1; -- c", True),
        ("/* ;", False),
        ("", True),
        ("exit", True),
        ("INSERT INTO t VALUES (';')", False),
    ],
)
def test_enter_runs_a_complete_statement(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("SELECT wo", " FROM t", ["word"]),
        ("SELECT x.wo", " FROM t AS x", ["x.word"]),
        ("SELECT x.", " FROM t x JOIN t y ON x.id = y.id", ["x.id", "x.word"]),
        ("SELECT t.wo", " FROM t", ["t.word"]),
        ("SELECT z.wo", " FROM t AS x", []),
        ("SELECT * FROM t WHERE word = 'buck", "", []),
        ("CREATE TABLE x (id INT) WITH ('bucket' = '1', 'merge-e", "", ["merge-engine"]),
        ("SET 'paimon.scan.snap", "", ["paimon.scan.snapshot-id"]),
        ("CALL sys.compact(table => 't', wh", "", ["where => "]),
        ("CALL sys.compact(table => 'default.", "", ["default.t"]),
        ("CALL sys.compact('default.", "", ["default.t"]),
        ("CALL sys.nothing(", "", []),
        ("USE de", "", ["default"]),
        ("DROP TABLE IF EXISTS default.", "", ["default.t"]),
        ("MERGE INTO x USING default.", "", ["default.t"]),
        ("ALTER TABLE t REN", "", ["RENAME COLUMN", "RENAME TO"]),
    ],
)
def test_words_depend_on_their_place(lake: str, before: str, after: str, expected: list[str]) -> None:
    assert complete(paimon.connect(lake).sql_session().state, before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("SELECT orders.", "", ['orders."unit price"', "orders.address", "orders.id"]),
        ("SELECT shop.orders.i", "", ["shop.orders.id"]),
        ("SELECT O.i", "\nFROM orders AS o", ["O.id"]),
        ("SELECT o.u", " FROM shop.orders o", ['o."unit price"']),
        ("SELECT o.id, o.ad", " FROM shop.orders o", ["o.address"]),
        ("SELECT o.address.", " FROM orders o", ["o.address.city", "o.address.zip"]),
        ("SELECT address.z", " FROM orders", ["address.zip"]),
        ("SELECT * FROM orders o, items i WHERE i.", "", ["i.item"]),
        ("SELECT o.i", "FROM orders VERSION AS OF 1 o", ["o.id"]),
        ("SELECT o.i", " FROM orders FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01' AS o", ["o.id"]),
        ("SELECT o.i", " FROM orders /*+ OPTIONS('scan.mode' = 'latest') */ o", ["o.id"]),
        ("SELECT orders$tags.tag_n", "", ["orders$tags.tag_name"]),
        ("SELECT v.", "", ["v.double_id"]),
        ("SELECT x.", " FROM v x", ["x.double_id"]),
        ("SELECT q.", " FROM (SELECT id AS a FROM orders) AS q", ["q.a"]),
        ("WITH w AS (SELECT max(id) AS m FROM orders) SELECT w.", "", ["w.m"]),
        ("SELECT q.", " FROM (SELECT id AS a FROM nothing) AS q", []),
        ("MERGE INTO orders t USING items s ON s.", "", ["s.item"]),
        ("UPDATE items SET items.", "", ["items.item"]),
        ("INSERT INTO items SELECT ord", " FROM items", ["ORDER"]),
        ("SELECT nothing.", "", []),
        ("SELECT `orders.", "", []),
    ],
)
def test_columns_follow_after_a_name_and_a_dot(tmp_path: Path, before: str, after: str, expected: list[str]) -> None:
    session = paimon.connect(tmp_path).sql_session()
    session.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE items (item INT);"
        "CREATE TABLE orders (id INT, `unit price` INT, address ROW<city STRING, zip INT>);"
        "CREATE TEMPORARY VIEW v AS SELECT id * 2 AS double_id FROM orders"
    )
    assert complete(session.state, before, after) == expected


def test_words_complete_a_statement(lake: str) -> None:
    session = paimon.connect(lake).sql_session().state
    assert complete(session, "SELECT * FROM d") == ["default.t"]
    assert complete(session, "SELECT * FROM ") == ["default.t", "t"]
    assert "t$snapshots" in complete(session, "SELECT * FROM t$sn")
    assert "word" in complete(session, "SELECT * FROM t WHERE wo")
    assert complete(session, "CALL sys.expire_par") == ["sys.expire_partitions"]
    assert "bucket-key" in complete(session, "CREATE TABLE x (id INT) WITH ('bucket-")
    assert "SHOW TABLES" in complete(session, "sho")
    assert complete(session, "SELECT * FROM nothing WHERE zzz") == []


def test_a_line_is_highlighted_completely() -> None:
    line = "SELECT a, 'x' FROM t WHERE b = 5 -- note"
    parts = highlight(line)
    assert "".join(text for _, text in parts) == line
    styles = {text: style for style, text in parts if text.strip()}
    assert styles["SELECT"] == "class:keyword"
    assert styles["'x'"] == "class:literal"
    assert styles["5"] == "class:number"
    assert styles[" -- note"] == "class:comment"
    assert highlight("SELECT 'open") == [("", "SELECT 'open")]


def test_tables_are_dropped_renamed_and_listed(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = paimon.connect(lake)
    catalog.sql(
        "CREATE TABLE p (id INT, d STRING) PARTITIONED BY (d); INSERT INTO p VALUES (1, 'x'), (2, 'y'), (3, 'y')"
    )
    listed = run(capsys, "partitions", f"{lake}/default.db/p", "-o", "json").splitlines()
    assert [(json.loads(line)["partition"], json.loads(line)["record_count"]) for line in listed] == [
        ("d=x", 1),
        ("d=y", 2),
    ]
    assert "default.p is now default.q" in run(capsys, "rename", f"{lake}/default.db/p", "q")
    assert catalog.tables("default") == ["q", "t"]
    run(capsys, "drop", f"{lake}/default.db/q", "--yes")
    assert catalog.tables("default") == ["t"]
    assert main(["drop", f"{lake}/default.db/q"]) == 1
    assert run(capsys, "drop", f"{lake}/default.db/q", "--if-exists") == "there is no table default.q\n"


def test_ctrl_c_stops_a_query(lake: str) -> None:
    text = "SELECT 1 AS a; SELECT count(*) FROM range(1000000000000) AS a, range(1000) AS b"
    command = [sys.executable, "-u", "-m", "paimon", "sql", lake, "-e", text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().strip() == "a"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate()
    assert errors == "paimon: interrupted\n"
    assert running.returncode == 130


def test_a_script_may_begin_with_a_byte_order_mark(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.sql").write_text("\ufeffSELECT 1 AS a", "utf8")
    assert main(["sql", lake, "-f", str(tmp_path / "script.sql"), "-o", "json"]) == 0
    assert capsys.readouterr().out == '{"a": 1}\n'
