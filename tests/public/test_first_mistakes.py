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
    "SELECT * FROM 'rows.csv'": "'rows.csv' is a file, and not a table. Write read_parquet('path')",
    "SELECT * FROM rows.csv": "is a file, and not a table",
    "SELECT * FROM '/data/rows.parquet'": "is a file, and not a table",
    "SELECT * FROM shop.csv": "Known are: orders",
    'SELECT * FROM shop.orders WHERE name = "ann"': "a text is in single quotes: 'ann'",
    'SELECT * FROM shop.orders WHERE name = "nam"': "Did you mean 'name'?",
    "SELECT zqwxy(id) FROM shop.orders": "overview lists the functions",
    "SELECT uper(name) FROM shop.orders": "Did you mean 'upper'?",
    "SELECT * FROM shop.orders WHERE name = ann": "Known are: at, day, id, name, t; a text is in single quotes: 'ann'",
    "SELECT * FROM shop.orders WHERE name = `ann`": "Known are: at, day, id, name, t.",
    "SELECT * FROM orders$snapshots": "Did you mean 'shop.orders$snapshots'?",
    "SELECT * FROM df": "A data frame is passed by name: sql(text, df=df).",
    "SELECT * FROM read_csv('rows.csv')": "Allow a directory: sql(text, allowed_files=['dir'])",
    "DROP TABLE orders": "Did you mean 'shop.orders'?",
    "DROP TABLE shop.order": "Did you mean 'orders'?",
    "ALTER TABLE orders RENAME TO x": "Did you mean 'shop.orders'?",
    "ALTER TABLE shop.orders ADD COLUMN x": "a type is missing",
    "EXPLAIN shop.orders": "Write SELECT * FROM shop.orders.",
    "INSERT INTO shop.orders (id) VALUES ('x')": "from source column id. Repair the value, or write TRY_CAST",
    "SELECT DATE 'x'": "expected format is (YYYY-MM-DD)",
    "UPDATE shop.orders SET day = DATE 'x'": "'x' is not a valid DATE. Give a day of the calendar",
    "SELECT to_date(name) FROM shop.orders": "Write CAST(x AS DATE)",
    "RESTORE TABLE shop.orders TO VERSION AS OF 1": "CALL sys.rollback('database.table', 'snapshot or tag')",
    "MSCK REPAIR TABLE shop.orders": "Each statement reads the latest snapshot",
    "UPSERT INTO shop.orders VALUES (1)": "INSERT INTO replaces the rows of the same primary key",
    "DESCRIBE HISTORY shop.orders": "SELECT * FROM table$snapshots lists the snapshots",
    "DESC DETAIL shop.orders": "DESCRIBE EXTENDED table",
    "OPTIMIZE shop.orders": "CALL sys.compact('database.table')",
    "VACUUM shop.orders": "CALL sys.expire_snapshots('database.table')",
}
CONDITIONS = {
    'name = "ann"': "a text is in single quotes: 'ann'",
    '"x" = "ann"': "a text is in single quotes",
    "\"nam\" = 'a'": "Did you mean 'name'?",
    "nothing = 1": "Known are: at, day, id, name, t.",
    "name = ann": "Known are: at, day, id, name, t; a text is in single quotes: 'ann'.",
    "name = `ann`": "Known are: at, day, id, name, t.",
    "day = DATE '123'": "'123' is not a valid DATE. Give a day of the calendar, such as DATE '2026-01-31'.",
    "day = DATE 'x'": "'x' is not a valid DATE. Give a day of the calendar, such as DATE '2026-01-31'.",
    "day > DATE '2026-02-30' AND id = 1": "'2026-02-30' is not a valid DATE. Give a day of the calendar",
    "day = '2026-02-30'": "The calendar has no such day; give one such as '2026-01-31'.",
    "day = 'x'": "Give a day such as '2026-01-31'.",
    "at > TIMESTAMP '2024-13-01'": "The calendar has no such day; give one such as '2026-01-31'.",
    "at > TIMESTAMP 'x'": "Give a date and a time such as '2026-01-31 12:30:00'.",
    "t = TIME '25:00'": "give a time of day such as '12:30:00.123'.",
    "id = DATE '2026-01-31'": "2026-01-31 is not a valid BIGINT",
    "date_format(day, 'x') = 'y'": "Write strftime(x, '%Y-%m-%d').",
    "zqwxy(id) = 1": "overview lists the functions",
    "uper(name) = 'A'": "Did you mean 'upper'?",
}
COMMANDS = {
    "lss": "'lss' is unknown; did you mean 'ls'?",
    "tag|creat": "did you mean 'create'?",
    "read|lake": "did you mean 'cat'?",
    "select|lake": "did you mean 'sql'?",
    "history|lake": "did you mean 'snapshots'?",
    "vacuum|lake": "did you mean 'maintain'?",
    "sql|lake|SELECT 1": 'write statements after -e: paimon sql WAREHOUSE -e "SELECT …"',
    "cat|lake|shop.orders": "a table is one argument: its path, or database.table with --warehouse WAREHOUSE",
    "cat|lake|--were|x": "'paimon COMMAND --help' lists the options of a command",
}
VALUES = {
    "id": ("x", "'x' is not a valid BIGINT. Give a whole number."),
    "name": (5, "Write the value in quotes."),
    "day": ("2026-02-30", "The calendar has no such day; give one such as '2026-01-31'."),
    "at": ("x", "Give a date and a time such as '2026-01-31 12:30:00'."),
    "t": ("25:00", "Hours end at 23, minutes and seconds at 59; give a time of day such as '12:30:00.123'."),
}


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    opened = paimon.connect(tmp_path / "lake")
    opened.create_database("shop")
    columns = "id BIGINT, name STRING, at TIMESTAMP, day DATE, t TIME(3)"
    opened.create_table("shop.orders", columns).write([{"id": 1, "name": "a"}])
    return opened


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement(catalog: paimon.Catalog, statement: str) -> None:
    with pytest.raises(paimon.PaimonError) as refused:
        catalog.sql(statement).to_arrow()
    assert STATEMENTS[statement] in str(refused.value)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition(catalog: paimon.Catalog, condition: str) -> None:
    table = catalog.table("shop.orders")
    for run in (lambda: table.scan(where=condition).to_arrow(), lambda: table.delete(condition)):
        with pytest.raises(paimon.InvalidRequest) as refused:
            run()
        assert CONDITIONS[condition] in str(refused.value)


@pytest.mark.parametrize("column", VALUES)
def test_a_value(catalog: paimon.Catalog, column: str) -> None:
    value, expected = VALUES[column]
    table = catalog.table("shop.orders")
    with pytest.raises(paimon.InvalidRequest) as refused:
        table.write([{"id": 1, column: value}])
    assert expected in str(refused.value) and f"Column {column!r}" in str(refused.value)


def test_a_table_or_a_database_may_be_called_history(catalog: paimon.Catalog) -> None:
    catalog.create_database("history")
    catalog.create_table("history.history", "id INT")
    assert catalog.sql("DESCRIBE history.history").to_arrow().num_rows == 1
    assert catalog.sql("USE history; DESCRIBE history").to_arrow().num_rows == 1


NAMES = {
    "orders": "Table name 'orders' is not valid. Did you mean 'shop.orders'?",
    "ordrs$files": "Did you mean 'shop.orders$files'?",
    "nothing": "Write it as 'database.table'; databases: shop.",
    "/lake/shop.db/orders": "paimon.open_table(path) opens a table by its path",
    "shop.order": "Did you mean 'orders'?",
    "shp.orders": "Did you mean 'shop'?",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_table(catalog: paimon.Catalog, name: str) -> None:
    with pytest.raises(paimon.PaimonError) as refused:
        catalog.table(name)
    assert NAMES[name] in str(refused.value)
    if "$" not in name:
        for run in (catalog.drop_table, lambda old: catalog.rename_table(old, "shop.other")):
            with pytest.raises(paimon.PaimonError):
                run(name)


def test_a_tag_a_branch_or_a_consumer_of_a_table_without_one(catalog: paimon.Catalog) -> None:
    table = catalog.table("shop.orders")
    calls = {
        "The table has no tags.": lambda: table.scan(tag="x").to_arrow(),
        "The table has only the branch 'main'.": lambda: table.branches.delete("x"),
        "The table has no consumers.": lambda: table.consumers.delete("x"),
    }
    for hint, call in calls.items():
        with pytest.raises(paimon.NotFound) as refused:
            call()
        assert hint in str(refused.value)


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
        "shop.orders": "As a name, it needs a warehouse: paimon.connect(warehouse).table('shop.orders')",
    }
    for path, hint in hints.items():
        with pytest.raises(paimon.NotFound) as refused:
            paimon.open_table(path)
        assert hint in str(refused.value)


def test_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in COMMANDS.items():
        with pytest.raises(SystemExit):
            main(words.split("|"))
        assert expected in " ".join(capsys.readouterr().err.split())
    assert main(["sql", "SELECT 1"]) == 1
    assert 'paimon sql WAREHOUSE -e "SELECT …"' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["xyzzy"])
    assert "choose from" in capsys.readouterr().err


def test_a_temporary_view_of_spark(catalog: paimon.Catalog) -> None:
    missing = paimon.NotFound("database", "default")
    hint = suggest_table(("my_view",), catalog, missing, on_spark=True)
    assert hint is not None and "sql(text, my_view=spark.table('my_view'))" in hint
