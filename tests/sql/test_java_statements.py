"""Statements leave the tables, rows and errors that they leave with Java's connector for Spark.

`tests/sql/java/expected.json` is what the connector of Paimon 0.9.0 for Spark 3.5 did with the statements next to it;
`tests/interop/record_statements.py` wrote it, and says how. `DIFFERENCES` lists each statement that does something else
here, with the reason. Statements after it run on our result. Some cases run on Spark, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.case_lists import mark_nightly
from support.statement_cases import DATABASE, Run, read_cases, run_case

import paimon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parent / "java"
CASES = read_cases(FOLDER / "statements.sql")
EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf8"))

_RANGE = "a value that does not fit is an error here; Java's connector stores null or the lowest bits"
_LIMIT = "Java's connector of this version refuses it"
_FLINK = "a type without a length or a kind means what it means in Flink"
_KEY_TYPE = "the key type of a map stays as it is written; Spark makes it NOT NULL"
_TEXT = "Spark pads and cuts CHAR and VARCHAR, Flink does not"
_FUNCTION = "queries have the functions of DuckDB"
_OWN_TABLES = "Java 1.4 shows partitions in this form"

DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "insert casts values": {
        "INSERT INTO t (a) VALUES (1000)": _RANGE,
        "INSERT INTO t (b) VALUES (99999999999)": _RANGE,
        "INSERT INTO t (d) VALUES (12345.1)": _RANGE,
        "INSERT INTO t (b) VALUES (2.7)": "INSERT rounds, as a cast in DuckDB does",
        "INSERT INTO t (b) VALUES (DATE": _RANGE,
    },
    "insert texts with blanks": {
        "INSERT INTO t VALUES (1,": _TEXT,
        "INSERT INTO t VALUES (5,": _TEXT,
    },
    "insert bytes": {
        "CREATE": _FLINK,
        "INSERT": "the column is BINARY(1) here",
        "SELECT": "the column is BINARY(1) here",
    },
    "insert into an append table": {"SHOW PARTITIONS": "the partition of null has the name that its directory has"},
    "overwrite partitions of the rows": {
        "SET spark.sql.sources.partitionOverwriteMode=dynamic": "settings of Spark are refused; this is the default",
        "SET spark.sql.sources.partitionOverwriteMode=static": "settings of Spark are refused; a table has an option",
    },
    "overwrite all partitions": {
        "INSERT OVERWRITE": "the option dynamic-partition-overwrite of the table decides, as in Flink",
    },
    "update with other types": {
        "UPDATE t SET amount = 0 WHERE NULL": "a condition may be null",
        "UPDATE t SET amount = 'text'": _RANGE,
        "UPDATE t SET amount = 3.7": _RANGE,
        "UPDATE t SET amount = '12'": "the row before is another",
    },
    "update that moves rows to other partitions": {"UPDATE": "rows do not move: delete them and write them again"},
    "update a part of a column": {"UPDATE": "a column is set as a whole"},
    "maps": {"CREATE": _KEY_TYPE},
    "functions of Spark": {"CREATE": _KEY_TYPE, "INSERT": _FUNCTION, "SELECT": _FUNCTION},
    "changes that merge engines refuse": {
        "UPDATE p": "Java's connector writes a null that the merge engine ignores",
        "DELETE FROM g": "a delete needs an option of the table, as Java 1.4 documents",
        "DELETE FROM f": "first-row keeps its rows; Java's connector deletes the row and all rows next to it",
    },
    "merge clauses that the connector refuses": {"MERGE": _LIMIT},
    "merge that changes a key": {"MERGE": "a key does not change; Java's connector rewrites it"},
    "rename a key column": {"ALTER": "Java 1.4 renames key columns"},
    "alter types to smaller ones": {"ALTER": "Spark refuses it before Paimon is asked; Flink does not"},
    "alter nested columns": {
        "ALTER TABLE t ADD COLUMN s.c": _LIMIT,
        "ALTER TABLE t ADD COLUMN s.d": _LIMIT,
        "ALTER TABLE t RENAME": _LIMIT,
        "ALTER TABLE t DROP COLUMN s.b": _LIMIT,
        "ALTER TABLE t ADD COLUMN l": _LIMIT,
    },
    "create a table like another": {"CREATE TABLE x": _LIMIT},
    "keys without a partition column": {"CREATE": "allowed with a warning, as in Java 1.4"},
    "nested types": {"CREATE": _KEY_TYPE},
    "timestamps without the name of a kind": {"CREATE": _FLINK},
    "defaults": {"CREATE TABLE v": _LIMIT},
    "drop partitions by a part of their columns": {"ALTER": _LIMIT},
    "time travel": {
        "SELECT count(*) AS n FROM t TIMESTAMP AS OF '2000": "a time before the first snapshot is an error"
    },
    "call compaction of partitions": {"CALL": _LIMIT},
    "metadata tables": {
        "SELECT * FROM `t$options`": "Spark adds the owner and the provider",
        "SELECT `partition`, record_count, file_count": _OWN_TABLES,
        "SELECT `partition`, bucket": _OWN_TABLES,
    },
    "tables with a sequence field": {"UPDATE t SET version = 3": "Java writes a version that no reader sees"},
    "column names in another case": {"SELECT": "DuckDB names a column as the table does"},
    "columns that differ in case": {"ALTER": "the catalog of Paimon compares names of columns with their case"},
}
"""By case: the beginning of the statements that leave something else, and why."""


def describe_outcome(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is compared: whether it failed, the rows of a query, and the changes of tables."""
    is_query = outcome["statement"].startswith(("SELECT", "SHOW PARTITIONS"))
    return {
        "failed": "error" in outcome,
        "rows": outcome.get("rows", []) if is_query else None,
        "tables": outcome["tables"],
    }


def test_all_cases_are_recorded() -> None:
    assert {name: [o["statement"] for o in outcomes] for name, outcomes in EXPECTED.items()} == CASES
    assert sum(map(len, CASES.values())) > 400
    assert set(DIFFERENCES) <= set(CASES)


def compare_with_java(name: str, run: Run, warehouse: Path) -> None:
    """Run a case in an empty database, and compare what each statement leaves."""
    run(f"CREATE DATABASE {DATABASE}")
    run(f"USE {DATABASE}")
    listed, found = DIFFERENCES.get(name, {}), set()
    for java, ours in zip(EXPECTED[name], run_case(CASES[name], run, warehouse), strict=True):
        starts = [start for start in listed if java["statement"].startswith(start)]
        if describe_outcome(ours) != describe_outcome(java):
            assert starts, (java, ours)
            found.update(starts)
    assert found == set(listed), "a listed difference is gone"


def to_result(rows: pa.Table) -> tuple[list[str], list[Mapping[str, Any]]]:
    return rows.column_names, rows.to_pylist(maps_as_pydicts="strict")


DAILY = ("insert rows of a primary key", "insert casts values", "insert into an append table", "overwrite partitions",
    "overwrite all partitions", "update a primary key table", "update an append table with deletion vectors",
    "update that moves rows to other partitions", "delete from a primary key table", "delete from an append table",
    "changes that merge engines refuse", "tables with a sequence field", "merge with all clauses",
    "merge into an append table", "alter columns", "alter types of columns", "options", "create tables",
    "create tables from queries", "types", "functions of Spark", "nested types", "truncate and drop partitions",
    "time travel", "call procedures", "call branches", "call compaction and expiry", "metadata tables", "databases",
    "dynamic buckets")  # fmt: skip
"""A case of each kind of statement."""


@pytest.mark.filterwarnings("ignore::paimon.PaimonWarning")
@pytest.mark.parametrize("name", mark_nightly(CASES, always=DAILY))
def test_statements_leave_what_java_leaves(tmp_path: Path, name: str) -> None:
    session = paimon.connect(tmp_path).sql_session()
    compare_with_java(name, lambda statement: to_result(session.sql(statement).to_arrow()), tmp_path)


ON_SPARK = {
    "short": ("types", "maps"),
    "long": (
        *("insert rows of a primary key", "insert casts values", "insert bytes", "overwrite partitions of the rows"),
        *("update a primary key table", "update columns of other types", "merge with all clauses"),
        *("merge into an append table", "create tables from queries", "time travel"),
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize(
    "name", [*ON_SPARK["short"], *(pytest.param(name, marks=pytest.mark.long) for name in ON_SPARK["long"])]
)
def test_statements_on_spark_leave_what_java_leaves(spark: SparkSession, tmp_path: Path, name: str) -> None:
    from paimon.spark import connect

    on_spark, embedded = connect(spark, tmp_path), paimon.connect(tmp_path).sql_session()

    def run(statement: str) -> tuple[list[str], list[Mapping[str, Any]]]:
        if statement.startswith(f"SELECT * FROM {DATABASE}."):  # the table after a statement
            return to_result(embedded.sql(statement).to_arrow())
        return to_result(on_spark.sql(statement).toArrow())

    compare_with_java(name, run, tmp_path)
