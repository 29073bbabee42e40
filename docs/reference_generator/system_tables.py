"""The page of the system tables, from those of a small table."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping

import pyarrow as pa

import paimon
from reference_generator.markdown import block, code, page, paragraph, sentence, table
from reference_generator.sample import open_sample

_INTRODUCTION = """A system table is a read-only table about a table. Its name is the table's name, `$`, and the name of
the system table. Open it with `table.system_table("snapshots")`, with `catalog.system_table("shop.orders$snapshots")`,
with `paimon.open_system_table("lake/shop.db/orders$snapshots")`, or on the command line:"""

_COMMAND = "paimon cat 'lake/shop.db/orders$snapshots'"

_COLUMNS = """The columns have the names and order of Java's system tables. The types are Arrow types. The columns below
are those of the table `orders`. The columns of `ro`, `audit_log` and `binlog` are different for each table."""

_SAMPLE = """CREATE TABLE orders (
  id BIGINT NOT NULL, day STRING NOT NULL, amount DECIMAL(10, 2), PRIMARY KEY (id, day) NOT ENFORCED
) PARTITIONED BY (day)"""

_VIEWS = {
    "audit_log": "The rows of the table, with their row kind in `rowkind`. Deleted rows are included.",
    "binlog": "The rows of the table, with their row kind in `rowkind`, and each column as a list: one value, or in "
    "an incremental read of an update the value before and the value after.",
    "ro": "The rows of the table without a merge at read time: of a primary-key table, only the files of the highest "
    "level are read. The read is faster, and rows that no full compaction has reached are missing.",
}


def generate_page() -> str:
    """Return the page."""
    with open_sample() as orders:
        described = [_describe_system_table(orders, name) for name in list_names()]
    return page(
        "System tables",
        _INTRODUCTION,
        block(_COMMAND, "console"),
        "`audit_log`, `binlog` and `ro` take a snapshot, a tag or a timestamp, as the table does.\n"
        "The others show the present state.",
        table(("System table", "Rows"), ([f"[{code(name)}](#{name})", summarize(name)] for name in list_names())),
        "## Columns",
        _COLUMNS,
        block(_SAMPLE, "sql"),
        *described,
    )


def list_names() -> list[str]:
    """Return the names of all system tables, in alphabetical order."""
    return sorted([*_sources(), *_VIEWS])


def _sources() -> Mapping[str, object]:
    sources: Mapping[str, object] = sys.modules[paimon.SystemTable.__module__].SYSTEM_TABLES
    return sources


def summarize(name: str) -> str:
    """Return one sentence about a system table."""
    text = _VIEWS.get(name) or (inspect.getdoc(_sources()[name]) or "").split("\n\n")[0]
    return sentence(text)


def _describe_system_table(orders: paimon.Table, name: str) -> str:
    schema: pa.Schema = orders.system_table(name).arrow_schema
    rows = ([code(field.name), code(str(field.type)), "yes" if field.nullable else "no"] for field in schema)
    return f"### {name}\n\n{paragraph(summarize(name))}\n\n{table(('Column', 'Type', 'May be null'), rows)}"
