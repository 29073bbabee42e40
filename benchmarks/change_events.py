"""Measure change data capture: events as JSON text become rows of a table, compared with readers of the same text.

The rows have six columns. Two of three events are updates with the row before and after. The limit is pyarrow's JSON
reader, which returns the text as nested columns, without row kinds, types of the table, or checks of each event.

Run ``python benchmarks/change_events.py --events 200000 --repeat 5``.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

import paimon
from paimon.capture.convert_events import convert_events, split_events
from paimon.capture.event_formats import EventFormat, Routes, TargetTable

DDL = "id BIGINT NOT NULL, name STRING, email STRING, amount BIGINT, price DOUBLE, at TIMESTAMP(3)"
LIMIT = "limit: pyarrow"


def make_rows(number: int) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the rows before and after an event."""
    after = {
        "id": number, "name": f"customer {number}", "email": f"c{number}@example.org", "amount": number * 3 % 1000,
        "price": number / 7, "at": 1_577_836_800_000 + number,
    }  # fmt: skip
    return ({**after, "amount": 1} if number % 3 else None), after


def make_debezium(number: int) -> str:
    """Return an event of Debezium's connector for MySQL, without a schema."""
    before, after = make_rows(number)
    source = {
        "version": "2.7.3.Final", "connector": "mysql", "name": "shop", "ts_ms": 1_577_836_800_000, "snapshot": "false",
        "db": "shop", "sequence": None, "table": "customers", "server_id": 1, "gtid": None, "file": "binlog.000003",
        "pos": number, "row": 0, "thread": 7, "query": None,
    }  # fmt: skip
    op = "c" if before is None else "u"
    body = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1_577_836_800_007}
    return json.dumps({**body, "transaction": None})


def make_maxwell(number: int) -> str:
    """Return an event of Maxwell."""
    before, after = make_rows(number)
    named = {"database": "shop", "table": "customers", "type": "update" if before else "insert", "ts": 1_577_836_800}
    old = {} if before is None else {"old": {"amount": before["amount"]}}
    return json.dumps({**named, "xid": number, "commit": True, "data": after, **old})


def make_canal(number: int) -> str:
    """Return an event of Canal with one row, whose values are texts."""
    event = json.loads(make_maxwell(number))
    event["data"]["at"] = f"2020-01-01 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000"
    data, old = ([{k: str(v) for k, v in event[n].items()}] if n in event else None for n in ("data", "old"))
    types = {"id": "bigint", "name": "varchar(40)", "email": "varchar(80)", "amount": "bigint", "price": "double"}
    described = {"database": "shop", "table": "customers", "id": number, "isDdl": False, "pkNames": ["id"], "sql": ""}
    kind = {"type": event["type"].upper(), "mysqlType": types, "es": 1_577_836_800_000, "ts": 1_577_836_800_007}
    return json.dumps({**described, **kind, "data": data, "old": old})


FORMATS = {"debezium-json": make_debezium, "canal-json": make_canal, "maxwell-json": make_maxwell}


def list_jobs(texts: list[str], name: str, folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is measured: this library, and readers of the same text."""
    events = pa.table({"value": pa.array(texts, pa.string())})
    lines = "\n".join(texts).encode()
    path = folder / f"{name}.json"
    path.write_bytes(lines)
    catalog = paimon.connect(folder / name)
    catalog.create_database("shop")
    table = catalog.create_table("shop.customers", DDL, primary_keys=["id"], options={"bucket": 4})
    routes = Routes((TargetTable(table.name, table.table_schema),))

    def convert() -> None:
        rows = 0
        for part in split_events(events):
            converted = convert_events(part, EventFormat(name), routes, 0)
            assert not converted.rejected.num_rows, converted.rejected["reason"][0]
            rows += converted.rows[0].num_rows
        assert rows >= len(texts)

    def read_duckdb() -> object:
        import duckdb

        query = f"SELECT * FROM read_json('{path}', format = 'newline_delimited')"
        return duckdb.sql(query).to_arrow_table()

    return {
        LIMIT: lambda: pj.read_json(io.BytesIO(lines)),
        "DuckDB": read_duckdb,
        "json.loads": lambda: [json.loads(text) for text in texts],
        "ours, rows": convert,
        "ours, table": lambda: paimon.cdc(events, table, name),
    }


def measure(name: str, count: int, repeat: int, folder: Path) -> dict[str, float]:
    """Return the least CPU time of each job; the jobs take turns."""
    jobs = list_jobs([FORMATS[name](number) for number in range(count)], name, folder)
    seconds: dict[str, list[float]] = {job: [] for job in jobs}
    for _ in range(repeat):
        for job, run in jobs.items():
            start = time.process_time()
            run()
            seconds[job].append(time.process_time() - start)
    return {job: min(values) for job, values in seconds.items()}


def main(arguments: list[str] | None = None) -> None:
    """Measure the formats, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args(arguments)
    print("| Format | Job | CPU seconds | Events per CPU second | CPU / limit |\n|---|---|---|---|---|")
    for name in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(name, given.events, given.repeat, Path(folder))
        for job, seconds in found.items():
            speed = given.events / max(seconds, 1e-9)
            print(f"| {name} | {job} | {seconds:.2f} | {speed:,.0f} | {seconds / max(found[LIMIT], 1e-9):.2f} |")


if __name__ == "__main__":
    main()
