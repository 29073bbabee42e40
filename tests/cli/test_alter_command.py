"""`paimon alter`: what it changes, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import run

import paimon
from paimon.cli.main import main


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    ddl = "id INT NOT NULL, v INT, place ROW<city STRING>"
    table = catalog.create_table("db.t", ddl, primary_keys=["id"], options={"bucket": "1", "num-levels": "4"})
    table.write([{"id": 1, "v": 7, "place": {"city": "a"}}])
    return table


def latest(table: paimon.Table) -> paimon.Table:
    opened = paimon.open_table(table.location)
    assert isinstance(opened, paimon.Table)
    return opened


def test_all_changes_are_one_version_of_the_schema(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--set", "num-levels=5", "--add-column", "note STRING COMMENT 'x=y' AFTER id",
             "--rename-column", "v=amount", "--comment", "all orders", "--output", "json")  # fmt: skip
    assert json.loads(run(capsys, "alter", orders.location, *words)) == {"table": "db.t", "schema": 1, "changes": 4}
    table = latest(orders)
    assert table.arrow_schema.names == ["id", "note", "amount", "place"]
    assert table.options["num-levels"] == "5"
    assert table.table_schema.comment == "all orders"
    assert table.scan(["id", "note", "amount"]).to_arrow().to_pylist() == [{"id": 1, "note": None, "amount": 7}]


def test_options_columns_and_the_comment_are_removed(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    orders.set_comment("all orders")
    assert "changes" in run(capsys, "alter", orders.location, "--unset", "num-levels", "--comment", "")
    table = latest(orders)
    assert "num-levels" not in table.options
    assert not table.table_schema.comment
    run(capsys, "alter", orders.location, "--add-column", "place.zip INT", "--drop-column", "v")
    run(capsys, "alter", orders.location, "--rename-column", "place.city=town")
    assert [(f.name, str(f.type)) for f in latest(orders).arrow_schema][1:] == [
        ("place", "struct<town: string, zip: int32>")
    ]


def test_changes_apply_in_the_order_of_the_arguments(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        capsys,
        "alter",
        orders.location,
        "--drop-column",
        "v",
        "--add-column",
        "v STRING",
        "--clause",
        "ALTER COLUMN v FIRST",
    )
    assert latest(orders).arrow_schema.field(0).name == "v"
    assert latest(orders).scan(["v"]).to_arrow()["v"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "needs at least one change"),
        (("--set", "num-levels"), "KEY=VALUE"),
        (("--set", "num-levls=5"), "did you mean 'num-levels'?"),
        (("--rename-column", "v"), "OLD=NEW"),
        (("--rename-column", "w=x"), "'w'"),
        (("--drop-column", "id"), "'id'"),
        (("--add-column", "v INT"), "'v'"),
        (("--add-column", "w NONSENSE"), "NONSENSE"),
        (("--clause", "ADD COLUMN w INT", "--clause", "FROBNICATE"), "FROBNICATE"),
    ],
)
def test_unsupported_alterations_are_refused_without_a_change(
    orders: paimon.Table, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in run(capsys, "alter", orders.location, *words, code=1)
    assert latest(orders).table_schema.id == 0


def test_system_tables_have_no_schema_of_their_own(orders: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert "system table" in run(capsys, "alter", f"{orders.location}$files", "--comment", "x", code=1)


def test_help_lists_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["alter", "--help"])
    printed = capsys.readouterr().out
    for option in ("--set", "--unset", "--add-column", "--drop-column", "--rename-column", "--comment", "--clause"):
        assert option in printed
