"""The page of the system tables, from those of a small table."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping

import pyarrow as pa

import paimon
from paimon.system_table import CATALOG_TABLES
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
    "row_tracking": "The rows of a table with `row-tracking.enabled`, with their row id and the number of the snapshot "
    "that changed them last.",
}

_OF_CATALOGS = """The database `sys` has system tables about all tables of a catalog: `catalog.table("sys.tables")`,
`SELECT * FROM sys.tables`, `paimon cat sys.tables --warehouse lake`. It is read-only, and not among the databases.
`all_tables` is another name of `tables`. Columns without a value are those that only a REST catalog has."""


def generate_page() -> str:
    """Return the page."""
    with open_sample() as orders:
        described = [_describe_system_table(orders, name) for name in list_names()]
    return page(
        "System tables",
        _INTRODUCTION,
        block(_COMMAND, "console"),
        "`audit_log`, `binlog`, `ro` and `row_tracking` take a snapshot, a tag or a timestamp, as the table does.\n"
        "The others show the present state.",
        table(("System table", "Rows"), ([f"[{code(name)}](#{name})", summarize(name)] for name in list_names())),
        "## Columns",
        _COLUMNS,
        block(_SAMPLE, "sql"),
        *described,
        "## Tables about a catalog",
        _OF_CATALOGS,
        *(_describe_catalog_table(name) for name in CATALOG_TABLES),
    )


def _describe_catalog_table(name: str) -> str:
    schema, source = CATALOG_TABLES[name]
    rows = ([code(f.name), code(str(f.type)), "yes" if f.nullable else "no"] for f in schema)
    text = sentence((inspect.getdoc(source) or "").split("\n\n")[0])
    return f"### sys.{name}\n\n{paragraph(text)}\n\n{table(('Column', 'Type', 'May be null'), rows)}"


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
    if name == "row_tracking":  # the sample does not track rows
        columns = "The columns are those of the table, then `_ROW_ID` and `_SEQUENCE_NUMBER`, which are never null."
        return f"### {name}\n\n{paragraph(summarize(name))}\n\n{columns}"
    schema: pa.Schema = orders.system_table(name).arrow_schema
    rows = ([code(field.name), code(str(field.type)), "yes" if field.nullable else "no"] for field in schema)
    return f"### {name}\n\n{paragraph(summarize(name))}\n\n{table(('Column', 'Type', 'May be null'), rows)}"
