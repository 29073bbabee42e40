"""Ten mistakes of a first hour, made with this library or with one of its peers; prints the message of each.

python benchmarks/first_mistakes.py paimon duckdb deltalake pyiceberg pypaimon

Each library that is named must be installed. A mistake that a library has no place for is not made with it.
"""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

ROWS = pa.table({"id": [1], "name": ["ann"], "day": pa.array([datetime.date(2026, 1, 31)], pa.date32())})
OTHER_COLUMN = ROWS.rename_columns(["id", "nam", "day"])
OTHER_TYPE = ROWS.set_column(0, "id", pa.array(["x"]))

Mistakes = Mapping[str, Callable[[], object]]


def make_with_paimon() -> Mistakes:
    """Return the mistakes with this library."""
    import paimon

    catalog = paimon.connect("lake")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", ROWS.schema)
    orders.write(ROWS)
    return {
        "a table without its database": lambda: catalog.table("orders"),
        "a table, misspelled": lambda: catalog.table("shop.oders"),
        "a column, misspelled": lambda: orders.scan(where="nam = 'ann'").to_arrow(),
        "a text in double quotes": lambda: orders.scan(where='name = "ann"').to_arrow(),
        "a day that does not exist": lambda: orders.scan(where="day = '2026-02-30'").to_arrow(),
        "rows with a misspelled column": lambda: orders.write(OTHER_COLUMN),
        "rows with texts for numbers": lambda: orders.write(OTHER_TYPE),
        "an option, misspelled": lambda: catalog.create_table("shop.o", ROWS.schema, options={"buckett": 1}),
        "a snapshot that does not exist": lambda: orders.scan(snapshot=99).to_arrow(),
        "a method of another library": lambda: orders.filter("id = 1"),  # type: ignore[attr-defined]
    }


def make_with_duckdb() -> Mistakes:
    """Return the mistakes with DuckDB, whose tables have no snapshots."""
    import duckdb

    database = duckdb.connect("store.db")
    database.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id BIGINT, name VARCHAR, day DATE)")
    database.register("rows", ROWS)
    database.execute("INSERT INTO shop.orders SELECT * FROM rows")
    database.register("other_column", OTHER_COLUMN)
    database.register("other_type", OTHER_TYPE)

    def run(statement: str) -> Callable[[], object]:
        return lambda: database.execute(statement).fetchall()

    return {
        "a table without its database": run("SELECT * FROM orders"),
        "a table, misspelled": run("SELECT * FROM shop.oders"),
        "a column, misspelled": run("SELECT * FROM shop.orders WHERE nam = 'ann'"),
        "a text in double quotes": run('SELECT * FROM shop.orders WHERE name = "ann"'),
        "a day that does not exist": run("SELECT * FROM shop.orders WHERE day = '2026-02-30'"),
        "rows with a misspelled column": run("INSERT INTO shop.orders BY NAME SELECT * FROM other_column"),
        "rows with texts for numbers": run("INSERT INTO shop.orders BY NAME SELECT * FROM other_type"),
        "an option, misspelled": run("SET memry_limit = '1GB'"),
        "a method of another library": lambda: database.table("shop.orders").collect(),
    }


def make_with_deltalake() -> Mistakes:
    """Return the mistakes with delta-rs, whose tables are named by their paths."""
    from deltalake import DeltaTable, write_deltalake

    write_deltalake("shop/orders", ROWS)
    orders = DeltaTable("shop/orders")
    return {
        "a table without its database": lambda: DeltaTable("orders"),
        "a table, misspelled": lambda: DeltaTable("shop/oders"),
        "a column, misspelled": lambda: orders.delete("nam = 'ann'"),
        "a text in double quotes": lambda: orders.delete('name = "ann"'),
        "a day that does not exist": lambda: orders.delete("day = '2026-02-30'"),
        "rows with a misspelled column": lambda: write_deltalake("shop/orders", OTHER_COLUMN, mode="append"),
        "rows with texts for numbers": lambda: write_deltalake("shop/orders", OTHER_TYPE, mode="append"),
        "an option, misspelled": lambda: write_deltalake("shop/o", ROWS, configuration={"delta.apendOnly": "true"}),
        "a snapshot that does not exist": lambda: DeltaTable("shop/orders", version=99),
        "a method of another library": lambda: orders.filter("id = 1"),
    }


def make_with_pyiceberg() -> Mistakes:
    """Return the mistakes with pyiceberg and a catalog in SQLite."""
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("peer", type="sql", uri="sqlite:///catalog.db", warehouse=f"file://{Path.cwd()}/lake")
    catalog.create_namespace("shop")
    orders = catalog.create_table("shop.orders", schema=ROWS.schema)
    orders.append(ROWS)
    misspelled = {"write.parquet.compresion-codec": "zstd"}
    return {
        "a table without its database": lambda: catalog.load_table("orders"),
        "a table, misspelled": lambda: catalog.load_table("shop.oders"),
        "a column, misspelled": lambda: orders.scan(row_filter="nam = 'ann'").to_arrow(),
        "a text in double quotes": lambda: orders.scan(row_filter='name = "ann"').to_arrow(),
        "a day that does not exist": lambda: orders.scan(row_filter="day = '2026-02-30'").to_arrow(),
        "rows with a misspelled column": lambda: orders.append(OTHER_COLUMN),
        "rows with texts for numbers": lambda: orders.append(OTHER_TYPE),
        "an option, misspelled": lambda: catalog.create_table("shop.o", schema=ROWS.schema, properties=misspelled),
        "a snapshot that does not exist": lambda: orders.scan(snapshot_id=99).to_arrow(),
        "a method of another library": lambda: orders.filter("id = 1"),
    }


def make_with_pypaimon() -> Mistakes:
    """Return the mistakes with pypaimon, whose conditions are no texts."""
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": f"{Path.cwd()}/lake"})
    catalog.create_database("shop", True)
    catalog.create_table("shop.orders", Schema.from_pyarrow_schema(ROWS.schema), True)
    orders = catalog.get_table("shop.orders")

    def write(rows: pa.Table) -> None:
        builder = orders.new_batch_write_builder()
        writer = builder.new_write()
        writer.write_arrow(rows)
        builder.new_commit().commit(writer.prepare_commit())

    def read(column: str, value: object, snapshot: str = "1") -> object:
        builder = orders.copy({"scan.snapshot-id": snapshot}).new_read_builder()
        builder = builder.with_filter(builder.new_predicate_builder().equal(column, value))
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    write(ROWS)
    misspelled = Schema.from_pyarrow_schema(ROWS.schema, options={"buckett": "1"})
    return {
        "a table without its database": lambda: catalog.get_table("orders"),
        "a table, misspelled": lambda: catalog.get_table("shop.oders"),
        "a column, misspelled": lambda: read("nam", "ann"),
        "a day that does not exist": lambda: read("day", "2026-02-30"),
        "rows with a misspelled column": lambda: write(OTHER_COLUMN),
        "rows with texts for numbers": lambda: write(OTHER_TYPE),
        "an option, misspelled": lambda: catalog.create_table("shop.o", misspelled, False),
        "a snapshot that does not exist": lambda: read("id", 1, snapshot="99"),
        "a method of another library": lambda: orders.filter("id = 1"),
    }


PEERS = {
    "paimon": make_with_paimon,
    "duckdb": make_with_duckdb,
    "deltalake": make_with_deltalake,
    "pyiceberg": make_with_pyiceberg,
    "pypaimon": make_with_pypaimon,
}


def collect_messages(peer: str) -> dict[str, str]:
    """Make the mistakes in the current directory; return the message of each, empty if it is accepted."""
    messages = {}
    for mistake, make in PEERS[peer]().items():
        try:
            make()
            messages[mistake] = ""
        except BaseException as error:  # libraries in Rust raise more than Exception
            messages[mistake] = f"{type(error).__name__}: {error}"
    return messages


def main() -> None:
    """Print the messages of each library that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="+", choices=list(PEERS))
    for peer in parser.parse_args().peers:
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            print(f"# {peer}")
            for mistake, message in collect_messages(peer).items():
                print(f"\n{mistake}\n    " + (message or "accepted").replace("\n", "\n    "))


if __name__ == "__main__":
    main()
