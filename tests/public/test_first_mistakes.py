"""The mistakes of a first hour: each error has the remedy that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon
from paimon.cli.main import main
from paimon.sql.missing_tables import suggest_table

STATEMENTS = {
    "SELECT * FROM orders": "Did you mean 'shop.orders'? After USE shop, the short name is enough.",
    "SELECT * FROM Orders": "Did you mean 'shop.orders'?",
    "DESCRIBE orders": "Did you mean 'shop.orders'?",
    "INSERT INTO orders SELECT 1": "Did you mean 'shop.orders'?",
    "SELECT * FROM something": "Write database.table, or USE a database first; databases: shop.",
    "SHOW TABLES": "USE shop makes it current; databases: shop.",
    "SELECT * FROM 'rows.csv'": "'rows.csv' is a file, and not a table. Load it with 'paimon write TABLE FILE'",
    "SELECT * FROM rows.csv": "is a file, and not a table",
    "SELECT * FROM '/data/rows.parquet'": "is a file, and not a table",
    "SELECT * FROM shop.csv": "Known are: orders",
    'SELECT * FROM shop.orders WHERE name = "ann"': "a text is in single quotes: 'ann'",
    'SELECT * FROM shop.orders WHERE name = "nam"': "Did you mean 'name'?",
    "SELECT zqwxy(id) FROM shop.orders": "overview lists the functions",
    "SELECT uper(name) FROM shop.orders": "Did you mean 'upper'?",
    "DESCRIBE HISTORY shop.orders": "SELECT * FROM table$snapshots lists the snapshots",
    "DESC DETAIL shop.orders": "DESCRIBE EXTENDED table",
    "OPTIMIZE shop.orders": "CALL sys.compact('database.table')",
    "VACUUM shop.orders": "CALL sys.expire_snapshots('database.table')",
}
CONDITIONS = {
    'name = "ann"': "a text is in single quotes: 'ann'",
    '"x" = "ann"': "a text is in single quotes",
    "\"nam\" = 'a'": "Did you mean 'name'?",
    "nothing = 1": "Known are: at, id, name",
    "at > TIMESTAMP '2024-13-01'": "Give a time such as '2026-01-31 12:30:00'.",
    "zqwxy(id) = 1": "overview lists the functions",
    "uper(name) = 'A'": "Did you mean 'upper'?",
}


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    opened = paimon.connect(tmp_path / "lake")
    opened.create_database("shop")
    opened.create_table("shop.orders", "id BIGINT, name STRING, at TIMESTAMP").write(
        [{"id": 1, "name": "a", "at": None}]
    )
    return opened


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement(catalog: paimon.Catalog, statement: str) -> None:
    with pytest.raises(paimon.PaimonError) as refused:
        catalog.sql(statement)
    assert STATEMENTS[statement] in str(refused.value)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition(catalog: paimon.Catalog, condition: str) -> None:
    table = catalog.table("shop.orders")
    for run in (lambda: table.scan(where=condition).to_arrow(), lambda: table.delete(condition)):
        with pytest.raises(paimon.InvalidRequest) as refused:
            run()
        assert CONDITIONS[condition] in str(refused.value)


def test_a_table_or_a_database_may_be_called_history(catalog: paimon.Catalog) -> None:
    catalog.create_database("history")
    catalog.create_table("history.history", "id INT")
    assert catalog.sql("DESCRIBE history.history").to_arrow().num_rows == 1
    assert catalog.sql("USE history; DESCRIBE history").to_arrow().num_rows == 1


def test_a_path(catalog: paimon.Catalog, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    hints = {
        f"{lake}/shop.db/oders": f"Did you mean '{lake}/shop.db/orders'?",
        f"{lake}/shp.db/orders": f"Did you mean '{lake}/shop.db/orders'?",
        f"{lake}/shop.db/zzz": f"Tables in '{lake}/shop.db' are: orders.",
        f"{lake}/shop.db": "The directory contains orders: give the path of a table.",
        lake: "The directory contains shop.db: give the path of a table.",
        f"{tmp_path}/nowhere/at/all": "Check the path",
        str(tmp_path): "A table directory contains schema/schema-0.",
    }
    for path, hint in hints.items():
        with pytest.raises(paimon.NotFound) as refused:
            paimon.open_table(path)
        assert hint in str(refused.value)


def test_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in ((["lss"], "'lss' is unknown; did you mean 'ls'?"), (["tag", "creat"], "mean 'create'?")):
        with pytest.raises(SystemExit):
            main(words)
        assert expected in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["xyzzy"])
    assert "choose from" in capsys.readouterr().err


def test_a_temporary_view_of_spark(catalog: paimon.Catalog) -> None:
    missing = paimon.NotFound("database", "default")
    hint = suggest_table(("my_view",), catalog, missing, on_spark=True)
    assert hint is not None and "sql(text, my_view=spark.table('my_view'))" in hint
