"""The index of a syntax tree answers as the tree itself, and repeated statements see what changed since."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import paimon
from paimon.domain.types.sql_tokens import split_statements
from paimon.sql.parse.parse_script import parse_script
from paimon.sql.parse.query_tree import QueryTree
from paimon.sql.parse.statements import Query
from paimon.sql.plan.plan_query import plan_query, query_engine

QUERIES = [
    reader.text for reader in split_statements((Path(__file__).parent / "tpch" / "queries.sql").read_text("utf8"))
]
KINDS = [(exp.Table,), (exp.Select,), (exp.Column, exp.Star), (exp.AggFunc,), (exp.Query, exp.Join), (exp.Lambda,)]


@pytest.mark.parametrize("query", QUERIES, ids=range(1, len(QUERIES) + 1))
def test_the_index_finds_what_the_tree_finds(query: str) -> None:
    root = sqlglot.parse_one(query, dialect="duckdb")
    tree = QueryTree(root)
    for kinds in KINDS:
        assert [id(node) for node in tree.find_all(*kinds)] == [id(node) for node in root.find_all(*kinds)]
        assert tree.has(*kinds) == (root.find(*kinds) is not None)
    for scope in root.find_all(exp.Select):
        inside = [t for t in scope.find_all(exp.Table) if t.find_ancestor(exp.Select) is scope]
        assert {id(t) for t in tree.tables_of(scope)} == {id(t) for t in inside}
    assert tree.sql == root.sql(dialect="duckdb")


def test_a_repeated_statement_sees_what_changed(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    session = catalog.sql_session()
    session.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    query = "SELECT count(*) AS n, max(id) AS id FROM t"

    def read(**frames: pa.Table) -> tuple[int, int]:
        (row,) = session.sql(query, **frames).to_arrow().to_pylist()
        return row["n"], row["id"]

    assert read() == (1, 1)
    session.sql("INSERT INTO t VALUES (2)")
    assert read() == (2, 2)
    session.sql("SET 'paimon.scan.snapshot-id' = '1'")
    assert read() == (1, 1)
    session.sql("RESET 'paimon.scan.snapshot-id'")
    session.sql("ALTER TABLE t RENAME COLUMN id TO old; ALTER TABLE t ADD COLUMN id INT; INSERT INTO t VALUES (3, 30)")
    assert read() == (3, 30)
    assert read(t=pa.table({"id": [7, 8, 9, 10]})) == (4, 10)
    session.sql("CREATE TEMPORARY VIEW t AS SELECT 5 AS id")
    assert read() == (1, 5)
    session.sql("DROP TEMPORARY VIEW t")
    assert read() == (3, 30)
    session.sql("CREATE DATABASE other; USE other; CREATE TABLE t (id INT); INSERT INTO t VALUES (6)")
    assert read() == (1, 6)


def test_a_repeated_query_finds_its_conditions_once_and_each_table_is_opened_once(tmp_path: Path) -> None:
    session = paimon.connect(tmp_path).sql_session()
    session.sql("CREATE TABLE t (id INT, word STRING); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    (parsed,) = parse_script("SELECT a.id FROM t AS a JOIN t ON a.id = t.id WHERE a.id > 1")
    query = parsed.statement
    assert isinstance(query, Query)
    planned, again = plan_query(session.state, query, {}), plan_query(session.state, query, {})
    first, second = (source.origin for source in planned.sources.values())
    assert first.table is second.table
    assert [source.origin.where for source in again.sources.values()] == [first.where, second.where]
    assert next(iter(again.sources.values())).origin.where is first.where
    session.sql("ALTER TABLE t ADD COLUMN more INT")
    assert next(iter(plan_query(session.state, query, {}).sources.values())).origin.where is not first.where


def test_the_engine_finds_each_table_by_a_quoted_alias(tmp_path: Path) -> None:
    session = paimon.connect(tmp_path).sql_session()
    session.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1), (2)")
    (parsed,) = parse_script("SELECT A.id FROM t AS a, t")
    assert isinstance(parsed.statement, Query)
    planned = plan_query(session.state, parsed.statement, {})
    assert planned.sql == 'SELECT A.id FROM "__paimon_0" AS "a", "__paimon_1" AS "t"'
    assert sorted(query_engine(session.state).run(planned.sql, planned.sources).read_all()["id"].to_pylist()) == [
        1,
        1,
        2,
        2,
    ]


def test_columns_with_a_subquery_are_named_by_their_text(tmp_path: Path) -> None:
    session = paimon.connect(tmp_path).sql_session()
    session.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1), (2)")
    query = (
        "SELECT (SELECT max(id) FROM t AS b), id = (SELECT min(id) FROM `default`.t VERSION AS OF 1), (FROM t LIMIT 1),"
        " a.* REPLACE ((SELECT 5 FROM t AS c LIMIT 1) AS id), (SELECT 6 FROM t AS d LIMIT 1) AS x FROM t AS a LIMIT 1"
    )
    assert session.sql(query).to_arrow().to_pydict() == {
        "(SELECT MAX(id) FROM t AS b)": [2],
        "id = (SELECT MIN(id) FROM default.t)": [True],
        "(SELECT * FROM t LIMIT 1)": [1],
        "id": [5],
        "x": [6],
    }
