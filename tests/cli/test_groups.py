"""`paimon table` and `paimon db`: second names of commands, and the commands of databases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import paimon
from paimon.cli.groups import ALIASES, SECOND_NAMES
from paimon.cli.main import build_parser, find_command, list_commands, main


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def test_a_table_is_created_filled_read_and_dropped(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": 1, "name": "a"}) + "\n" + json.dumps({"id": 2, "name": "b"}) + "\n")
    table = f"{lake}/shop.db/orders"
    run(capsys, "table", "create", table, "--columns", "id BIGINT NOT NULL, name STRING", "--primary-key", "id")
    run(capsys, "table", "import", table, str(rows))
    assert run(capsys, "table", "read", table, "--columns", "name", "-o", "json") == '{"name": "a"}\n{"name": "b"}\n'
    assert run(capsys, "table", "read", table, "--select", "id", "-o", "json") == '{"id": 1}\n{"id": 2}\n'
    run(capsys, "tag", "create", table, "first", "--snapshot-id", "1")
    assert '"first"' in run(capsys, "tag", "list", table, "-o", "json")
    assert '"snapshot": 1' in run(capsys, "table", "snapshot", table, "-o", "json")
    assert "shop.orders" in run(capsys, "table", "get", table)
    run(capsys, "table", "rename", table, "sales")
    assert run(capsys, "db", "list-tables", "shop", "-w", lake, "-o", "json") == '{"table": "sales"}\n'
    run(capsys, "table", "drop", f"{lake}/shop.db/sales", "--yes")
    assert run(capsys, "db", "list-tables", "shop", "-w", lake, "-o", "json") == ""


def test_databases_are_created_listed_and_dropped(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "db", "create", "shop", "-w", lake)
    assert "already exists" in run(capsys, "db", "create", "shop", "-w", lake, code=1)
    run(capsys, "db", "create", "shop", "-i", "-w", lake)
    assert run(capsys, "db", "list", "-w", lake, "-o", "json") == '{"database": "shop", "tables": 0}\n'
    assert run(capsys, "db", "get", "shop", "-w", lake, "-o", "json") == '{"database": "shop", "tables": 0}\n'
    run(capsys, "table", "create", "shop.t", "--columns", "id INT", "-w", lake)
    assert "is not empty" in run(capsys, "db", "drop", "shop", "-w", lake, code=1)
    run(capsys, "db", "drop", "shop", "--cascade", "--yes", "-w", lake)
    assert "does not exist" in run(capsys, "db", "drop", "shop", "-w", lake, code=1)
    run(capsys, "db", "drop", "shop", "-i", "-w", lake)
    assert run(capsys, "db", "list", "-w", lake, "-o", "json") == ""


def test_a_command_of_databases_needs_a_warehouse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PAIMON_WAREHOUSE", raising=False)
    assert "needs a warehouse" in run(capsys, "db", "list", code=1)


@pytest.mark.parametrize(("name", "alias"), ALIASES.items())
def test_second_names_take_the_same_arguments(name: str, alias: str) -> None:
    commands = next(a for a in build_parser()._actions if a.choices and name in a.choices).choices
    verbs = next(a for a in commands["table"]._actions if a.choices and alias in a.choices).choices  # type: ignore[index]
    own = [(a.option_strings, a.dest, a.nargs) for a in commands[name]._actions]  # type: ignore[index]
    found = [(a.option_strings, a.dest, a.nargs) for a in verbs[alias]._actions]
    assert found[: len(own)] == own
    assert [(*names, target) for names, target, _ in found[len(own) :]] == list(SECOND_NAMES.get(alias, ()))
    assert f"paimon table {alias} " in verbs[alias].format_help()


def test_options_have_the_names_of_pypaimon(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = f"{lake}/shop.db/orders"
    run(capsys, "table", "create", table, "--columns", "id BIGINT")
    run(capsys, "sql", "-w", lake, "-e", "INSERT INTO shop.orders VALUES (1)")
    assert run(capsys, "catalog", "list-dbs", "-w", lake, "--format", "json") == '{"database": "shop", "tables": 1}\n'
    assert run(capsys, "table", "read", table, "--format", "json") == '{"id": 1}\n'
    for name in ("year-1", "month-1"):
        run(capsys, "tag", "create", table, name)
    assert "already exists" in run(capsys, "tag", "create", table, "year-1", code=1)
    run(capsys, "tag", "create", table, "year-1", "-i")
    listed = run(capsys, "tag", "list", table, "--prefix", "year", "--format", "json")
    assert [json.loads(line)["tag"] for line in listed.splitlines()] == ["year-1"]
    assert '"snapshot": 1' in run(capsys, "tag", "get", table, "month-1", "--format", "json")
    assert "did you mean 'month-1'" in run(capsys, "tag", "get", table, "month-2", code=1)
    run(capsys, "branch", "create", table, "trial", "-t", "year-1")
    assert '"trial"' in run(capsys, "branch", "list", table, "--format", "json")


def test_properties_of_databases_are_json(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "paimon.yaml"
    config.write_text(f"metastore: jdbc\nuri: sqlite:///{tmp_path}/catalog.db\nwarehouse: {lake}\n")
    start = ("-c", str(config), "db")
    run(capsys, *start, "create", "shop", "--properties", '{"owner": "ann"}')
    run(capsys, *start, "alter", "shop", "--set", '{"team": 1}', "--remove", "owner")
    assert "needs a change" in run(capsys, *start, "alter", "shop", code=1)
    assert "not a JSON object" in run(capsys, *start, "alter", "shop", "--set", "[1]", code=1)
    from paimon import connect

    catalog = connect(lake, metastore="jdbc", uri=f"sqlite:///{tmp_path}/catalog.db")
    properties = dict(catalog.database_properties("shop"))
    assert properties.pop("location").endswith("shop.db") and properties == {"team": "1"}


def test_verbs_of_pypaimon_do_what_other_commands_do(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = [{"id": 0, "name": "id", "type": "BIGINT"}, {"id": 1, "name": "day", "type": "STRING"}]
    declared = {"fields": fields, "partitionKeys": ["day"], "options": {"num-levels": "4"}, "comment": "c"}
    (tmp_path / "schema.json").write_text(json.dumps(declared))
    (tmp_path / "rows.csv").write_text("id,day\n1,mon\n2,tue\n3,tue\n")
    table, in_table = f"{lake}/shop.db/orders", ("table", "alter", f"{lake}/shop.db/orders")
    run(capsys, "table", "create", table, "-s", str(tmp_path / "schema.json"))
    run(capsys, "table", "create", table, "--schema", str(tmp_path / "schema.json"), "--ignore-if-exists")
    run(capsys, "table", "import", table, "-i", str(tmp_path / "rows.csv"))
    assert "needs a file" in run(capsys, "table", "import", table, code=1)
    assert run(capsys, "table", "read", table, "-s", "id", "-l", "1", "-f", "json") == '{"id": 1}\n'
    assert "reads 1 file" in run(capsys, "table", "explain", table, "--where", "id > 1")
    run(capsys, "table", "drop-partition", table, "-p", "day=mon", "--yes")
    assert run(capsys, "table", "read", table, "-f", "json", "--select", "id") == '{"id": 2}\n{"id": 3}\n'
    run(capsys, *in_table, "set-option", "-k", "num-levels", "-v", "5")
    run(capsys, *in_table, "remove-option", "--key", "num-levels")
    run(capsys, *in_table, "add-column", "-n", "note", "-t", "STRING", "-c", "it's", "--after", "id")
    run(capsys, *in_table, "rename-column", "-n", "note", "-m", "memo")
    run(capsys, *in_table, "alter-column", "--name", "id", "--comment", "key", "--after", "memo")
    run(capsys, *in_table, "add-column", "--name", "gone", "--type", "INT")
    run(capsys, *in_table, "drop-column", "-n", "gone")
    run(capsys, *in_table, "update-comment", "-c", "changed")
    schema = paimon.open_table(table).table_schema
    assert [(f.name, f.description) for f in schema.fields] == [("memo", "it's"), ("id", "key"), ("day", None)]
    assert schema.comment == "changed" and "num-levels" not in schema.options
    assert "needs a change" in run(capsys, *in_table, "alter-column", "-n", "id", code=1)
    missing = ("table", "alter", f"{lake}/shop.db/nope")
    assert "does not exist" in run(capsys, *missing, "drop-column", "-n", "x", code=1)
    run(capsys, *missing, "-i", "drop-column", "-n", "x")
    run(capsys, "table", "drop", table, "--yes")
    run(capsys, "table", "drop", table, "-i")


@pytest.mark.parametrize(
    "text", ["no json", "[]", '{"fields": [{"name": "a"}]}', '{"fields": [{"name": 1, "type": "X"}]}']
)
def test_a_file_that_declares_no_table_is_refused(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "schema.json").write_text(text)
    command = ("table", "create", f"{lake}/shop.db/t", "--schema", str(tmp_path / "schema.json"))
    assert "is no schema of a table" in run(capsys, *command, code=1)


def test_the_list_of_commands_is_that_of_their_modules() -> None:
    groups = [next(a for a in p._actions if a.choices) for p in (list_commands(), build_parser())]
    listed, built = ([(action.dest, action.help) for action in group._get_subactions()] for group in groups)
    assert listed == built


@pytest.mark.parametrize(
    "words",
    [
        ["--config", "ls", "show"],
        ["--profile=p", "show"],
        ["-c", "x", "show", "ls"],
        ["--conf", "ls", "show"],
        ["--p", "ls", "show"],
        ["--conf=ls", "show"],
    ],
)
def test_the_command_is_found_after_the_options(words: list[str]) -> None:
    assert find_command(words) == "show"
