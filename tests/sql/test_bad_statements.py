"""Wrong statements, as a stranger writes them: the error shows where, and what was meant. Nothing changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot.errors import ParseError

import paimon
from paimon.domain.errors import InvalidRequest, NotFound, Unsupported
from paimon.domain.types.sql_tokens import StatementReader, split_statements
from paimon.sql.parse.parse_query import parse_query
from paimon.sql.run.run_statements import SqlSession

HOSTILE = "'); DELETE FROM orders; --"

PARSER_MESSAGES = {
    "SELECT (1": "Expecting )",
    "SELECT [1": "Expected ]",
    "SELECT * FROM": "Expected table name but got <Token ",
    "SELECT CAST(a INT) FROM t": "Expected AS after CAST",
    "SELECT CAST(a AS FROM t": "Expected TYPE after CAST",
    "SELECT CASE WHEN a THEN 1 FROM t": "Expected END after CASE",
    "SELECT a BETWEEN 1 FROM t": "Required keyword: 'high' missing for ",
    "SELECT a FROM t WHERE": "Required keyword: 'this' missing for ",
    "SELECT a b c FROM t": "Invalid expression / Unexpected token",
}
"""What sqlglot says about wrong queries, by query. `query_errors.py` reads these messages; the bound of sqlglot in
`pyproject.toml` moves only together with them."""


def test_the_parser_has_the_messages_that_explanations_are_made_from() -> None:
    for query, message in PARSER_MESSAGES.items():
        with pytest.raises(ParseError) as raised:
            sqlglot.parse_one(query, dialect="duckdb")
        assert raised.value.errors[0]["description"].startswith(message), query


def test_a_text_of_unclosed_comments_is_refused_at_once() -> None:
    for text in ("/* ", "/*+ ", "'\""):
        with pytest.raises(InvalidRequest, match="is not closed"):
            split_statements("SELECT 1; " + text * 200_000)


SYNTAX = [
    ("SELEC * FROM orders", 1, "expected a statement, not 'SELEC'", "SELECT"),
    ("SELECT * FORM orders", 10, "unexpected 'FORM'", "FROM"),
    ("SELECT * FROM orders o WEHRE id = 1", 24, "unexpected 'WEHRE'", "WHERE"),
    ("SELECT id customer amount FROM orders", 20, "expected ',', an operator or FROM, not 'amount'", None),
    ("SELECT id word text FROM orders", 16, "expected ',', an operator or FROM, not 'text'", None),
    ("SELECT id FROM orders o p", 25, "or a clause such as JOIN, WHERE, GROUP BY, ORDER BY or LIMIT, not 'p'", None),
    ("SELECT * FROM orders WHERE", 27, "expected an expression, not the end of the statement", None),
    ("SELECT * FROM orders WHERE id =", 32, "expected an expression, not the end of the statement", None),
    ("SELECT 1 + FROM orders", 12, "expected an expression, not 'FROM'", None),
    ("SELECT substr() FROM orders", 15, "expected an expression, not ')'", None),
    ("SELECT * FROM orders GROUP id", 28, "expected BY after GROUP, not 'id'", None),
    ("SELECT * FROM orders ORDER id", 28, "expected BY after ORDER, not 'id'", None),
    ("SELECT * FROM orders LEFT logs ON true", 27, "expected JOIN after LEFT, not 'logs'", None),
    ("SELECT * FROM", 14, "expected the name of a table, not the end of the statement", None),
    ("SELECT (id FROM orders", 12, "expected ), not 'FROM'", None),
    ("SELECT id FROM orders WHERE id IN (1,", 38, "expected ), not the end of the statement", None),
    ("SELECT CAST(id AS ) FROM orders", 19, "expected a type after AS, not ')'", None),
    ("SELECT CASE WHEN id = 1 THEN 1 FROM orders", 32, "expected END after CASE, not 'FROM'", None),
    ("SELECT id FROM orders WHERE id BETWEEN 1", 41, "expected AND and a value, not the end of the statement", None),
    ("SELECT 'abc FROM orders", 8, "the text is not closed", None),
    ('SELECT "id FROM orders', 8, "the name is not closed", None),
    ("SELECT id /* FROM orders", 11, "the comment is not closed", None),
    ("SELECT * FROM orders /*+ OPTION('a' = 'b') */", 22, "the hint is not OPTIONS('key' = 'value')", None),
    ("SELECT * FROM orders VERSION AS OF", 35, "expected a value after VERSION AS OF", None),
    ("42", 1, "expected a statement, not '42'", None),
    ("EXPLAIN", 8, "expected a statement, not the end of the statement", None),
    ("EXPLAIN SELECT * FROM", 22, "expected the name of a table, not the end of the statement", None),
    ("CREATE TABLE x", 15, "expected columns, LIKE or AS", None),
    ("CREATE TABLE x (id)", 19, "')' is not a type", None),
    ("CREATE TABLE x (id INTEGR)", 20, "'INTEGR' is not a type", "INT"),
    ("CREATE TABLE x (id INT) WITH (bucket 1)", 38, "expected =, not '1'", None),
    ("ALTER TABLE orders ADD COLUMN", 30, "expected a name, not the end of the statement", None),
    ("ALTER TABLE orders FOO", 20, "expected a clause of ALTER TABLE", None),
    ("ALTER TABLE orders ADD COLUMN n STRNG", 33, "'STRNG' is not a type", "STRING"),
    ("ALTER TABLE orders DROP COLUMN msg id", 36, "expected the end of the statement, not 'id'", None),
    ("INSERT orders VALUES (1)", 8, "expected INTO or OVERWRITE after INSERT, not 'orders'", None),
    ("INSERT INTO orders", 19, "expected VALUES or a query, not the end of the statement", None),
    ("DELETE orders", 8, "expected FROM after DELETE, not 'orders'", None),
    ("UPDATE orders amount = 1", 22, "expected SET, not '='", None),
    ("UPDATE orders SET amount = 1 WHERE", 35, "expected an expression, not the end of the statement", None),
    ("MERGE INTO orders USING df ON orders.id = df.id", 48, "expected WHEN, not the end of the statement", None),
    ("DROP", 5, "TEMPORARY or VIEW after DROP, not the end of the statement", None),
    ("TRUNCATE orders", 10, "expected TABLE after TRUNCATE, not 'orders'", None),
    ("CALL sys.compact('orders'", 26, "expected ',' or ')', not the end of the statement", None),
    ("USE", 4, "expected a name, not the end of the statement", None),
]
"""A statement, the column of the caret, what the message says, and the nearest name."""

NAMES = [
    ("SELECT * FROM oders", NotFound, "Table 'oders' does not exist", "orders"),
    ("SELECT * FROM defualt.orders", NotFound, "Database 'defualt' does not exist", "default"),
    ("SELECT * FROM paimn.default.orders", NotFound, "Catalog 'paimn' does not exist", "paimon"),
    ("SELECT * FROM orders$snapshot", InvalidRequest, "no system table 'snapshot'", "snapshots"),
    ("SELECT idd FROM orders", InvalidRequest, "Column 'idd' does not exist", "id"),
    ("SELECT o.idd FROM orders o", InvalidRequest, "Column 'idd' does not exist", "id"),
    ("SELECT oo.id FROM orders o", InvalidRequest, "Table 'oo' is not in this part of the query", "o"),
    ("SELECT * FROM orders WHERE custmer = 'a'", InvalidRequest, "Column 'custmer' does not exist", "customer"),
    ("SELECT uper(customer) FROM orders", InvalidRequest, "Function 'uper' does not exist", "upper"),
    ("SELECT CAST(customer AS INTT) FROM orders", InvalidRequest, "Type 'INTT' does not exist", "INT"),
    ("SELECT * FROM paimon_incremental_qury('orders', 1, 2)", InvalidRequest, "function", "paimon_incremental_query"),
    ("SELECT * FROM orders /*+ OPTIONS('scan.snapshot-idd' = '1') */", InvalidRequest, "unknown", "scan.snapshot-id"),
    ("SET 'paimon.scan.snapshot-idd' = '1'", InvalidRequest, "unknown", "scan.snapshot-id"),
    ("CREATE TABLE x (id INT) WITH ('buckett' = '1')", InvalidRequest, "'buckett' is unknown", "bucket"),
    ("CREATE TABLE x (id INT, PRIMARY KEY (idd) NOT ENFORCED)", InvalidRequest, "Column 'idd'", "id"),
    ("ALTER TABLE orders SET ('bukket' = '2')", InvalidRequest, "'bukket' is unknown", "bucket"),
    ("ALTER TABLE orders RESET ('bukket')", InvalidRequest, "'bukket' is unknown", "bucket"),
    ("ALTER TABLE orders DROP COLUMN custmer", NotFound, "Column 'custmer' does not exist", "customer"),
    ("ALTER TABLE oders ADD COLUMN x INT", NotFound, "'default.oders' does not exist", "orders"),
    ("DROP TABLE oders", NotFound, "'default.oders' does not exist", "orders"),
    ("INSERT INTO oders VALUES (1)", NotFound, "'default.oders' does not exist", "orders"),
    ("INSERT INTO orders (id, custmer) VALUES (1, 'a')", InvalidRequest, "no column 'custmer'", "customer"),
    ("INSERT OVERWRITE orders PARTITION (dya = 'x') SELECT 1, 'a', 1", InvalidRequest, "'dya' is not a", "day"),
    ("UPDATE orders SET amout = 1", InvalidRequest, "Column 'amout' does not exist", "amount"),
    ("UPDATE orders SET amount = amout + 1", InvalidRequest, "Column 'amout' does not exist", "amount"),
    ("UPDATE orders SET customer = uper(customer)", InvalidRequest, "name uper does not exist", "upper"),
    ("DELETE FROM orders WHERE uper(customer) = 'A'", InvalidRequest, "name uper does not exist", "upper"),
    ("DELETE FROM orders WHERE id IN (SELECT idd FROM orders)", InvalidRequest, "Column 'idd'", "id"),
    ("MERGE INTO orders USING dff ON orders.id = dff.id WHEN MATCHED THEN DELETE", NotFound, "Table 'dff'", "df"),
    ("MERGE INTO orders USING df ON orders.idd = df.id WHEN MATCHED THEN DELETE", InvalidRequest, "'idd'", "id"),
    ("CALL sys.compactt('orders')", NotFound, "Procedure 'compactt' does not exist", "compact"),
    ("CALL sys.compact(tabl => 'orders')", InvalidRequest, "no parameter 'tabl'", "table"),
    ("CALL sys.compact(table => 'oders')", NotFound, "'default.oders' does not exist", "orders"),
    ("CREATE TABEL x (id INT)", Unsupported, "statement CREATE TABEL", "CREATE TABLE"),
    ("SHOW TABELS", Unsupported, "statement SHOW TABELS", "SHOW TABLES"),
]
"""A statement, its error, what the message says, and the nearest name."""

OTHERS = [
    ("OPTIMIZE orders", Unsupported, "statement OPTIMIZE. CALL sys.compact("),
    ("COPY orders TO 'x.csv'", InvalidRequest, "COPY needs files, and SQL may open none"),
    ("COPY orders FROM 'x.csv'", Unsupported, "COPY … FROM"),
    ("GRANT SELECT ON orders TO bob", Unsupported, "statement GRANT"),
    ("CREATE INDEX i ON orders (id)", Unsupported, "statement CREATE INDEX"),
    ("DELETE FROM orders WHERE id", InvalidRequest, "Column 'id' is not TRUE or FALSE, but of type BIGINT"),
    ("SHOW PARTITIONS logs", InvalidRequest, "Table 'default.logs' has no partitions"),
    ("SELECT * FROM read_parquet('x.parquet')", InvalidRequest, "SQL may open none"),
    ("INSERT INTO orders VALUES (1, 'a')", InvalidRequest, "needs 4 columns, and the query has 2"),
    ("INSERT INTO orders VALUES (NULL, 'a', 1, 'mon')", InvalidRequest, "'id' is NOT NULL"),
    ("UPDATE orders SET id = 5", InvalidRequest, "part of the primary key"),
    ("SELECT id FROM orders GROUP BY day", InvalidRequest, "must appear in the GROUP BY clause"),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlSession]:
    opened = paimon.connect(tmp_path_factory.mktemp("lake")).sql_session()
    opened.sql(
        "CREATE TABLE orders (id BIGINT NOT NULL, customer STRING, amount INT, `day` STRING NOT NULL,"
        " PRIMARY KEY (`day`, id) NOT ENFORCED) PARTITIONED BY (`day`) WITH ('bucket' = '1');"
        "CREATE TABLE logs (msg STRING); INSERT INTO orders VALUES (1, 'a', 1, 'mon')"
    )
    yield opened
    state = opened.sql("SELECT max(snapshot_id) AS s FROM orders$snapshots").to_arrow()["s"].to_pylist()
    assert state == [1]
    assert opened.sql("SELECT schema_id FROM orders$schemas").to_arrow().num_rows == 1


def fail(session: SqlSession, statement: str) -> str:
    with pytest.raises(paimon.PaimonError) as refused:
        session.sql(statement, df=pa.table({"id": [1]})).to_arrow()
    return f"{type(refused.value).__name__}: {refused.value}"


@pytest.mark.parametrize(("statement", "column", "reason", "near"), SYNTAX, ids=[case[0] for case in SYNTAX])
def test_a_syntax_error_shows_its_place(
    session: SqlSession, statement: str, column: int, reason: str, near: str | None
) -> None:
    lines = fail(session, f"SHOW TABLES;\n  {statement}").splitlines()
    assert lines[0].startswith(f"InvalidRequest: SQL syntax error in line 2, column {column + 2}: ")
    assert reason in lines[0]
    assert lines[1].rstrip() == f"    {statement}".rstrip()
    assert lines[2] == " " * (column + 3) + "^"
    if near is not None:
        assert lines[3] == f"Did you mean {near!r}?"


@pytest.mark.parametrize(("statement", "kind", "reason", "near"), NAMES, ids=[case[0] for case in NAMES])
def test_an_unknown_name_gets_the_nearest_one(
    session: SqlSession, statement: str, kind: type, reason: str, near: str
) -> None:
    message = fail(session, statement)
    assert message.startswith(kind.__name__)
    assert reason in message
    assert f"id you mean {near!r}?" in message


@pytest.mark.parametrize(("statement", "kind", "reason"), OTHERS, ids=[case[0] for case in OTHERS])
def test_other_refusals_name_the_cause(session: SqlSession, statement: str, kind: type, reason: str) -> None:
    message = fail(session, statement)
    assert message.startswith(kind.__name__)
    assert reason in message


UNFINISHED = [
    ("SELECT count(*) FROM logs group", 27, "unexpected 'group'"),
    ("SELECT count(*) FROM logs order", 27, "unexpected 'order'"),
    ("SELECT count(*) FROM logs AS", 29, "expected more after 'AS'"),
    ("SELECT msg order FROM logs", 12, "unexpected 'order'"),
    ("SELECT count(*) FROM logs JOIN orders", 27, "expected a condition for JOIN"),
    ("SELECT count(*) FROM logs LEFT JOIN orders ON", 46, "expected more after 'ON'"),
    ("SELECT msg FROM logs FETCH FIRST 1", 22, "FETCH is not complete"),
    ("SELECT msg FROM logs WINDOW w", 22, "WINDOW is not complete"),
    ("VALUES (1, 2) ORDER", 15, "unexpected 'ORDER'"),
    ("INSERT INTO logs SELECT 'x' group", 29, "unexpected 'group'"),
    ("CREATE TABLE x AS SELECT msg FROM logs order", 40, "unexpected 'order'"),
    (
        "MERGE INTO orders USING (SELECT id FROM df order) AS s ON orders.id = s.id WHEN MATCHED THEN DELETE",
        25,
        "table",
    ),
]


@pytest.mark.parametrize(("statement", "column", "reason"), UNFINISHED, ids=[case[0] for case in UNFINISHED])
def test_an_unfinished_clause_is_not_an_alias(session: SqlSession, statement: str, column: int, reason: str) -> None:
    message = fail(session, statement)
    assert f"column {column}: " in message
    assert reason in message


@pytest.mark.parametrize("change", ["DELETE FROM orders", "UPDATE orders SET amount = 2"])
def test_an_unfinished_subquery_changes_no_row(session: SqlSession, change: str) -> None:
    assert "unexpected 'order'" in fail(session, f"{change} WHERE id IN (SELECT id FROM orders order)")


PREFIXES = [
    "SELECT count(*) FROM t AS x LEFT JOIN u AS y ON x.a = y.a WHERE x.b IS NOT NULL AND x.c BETWEEN 1 AND 2"
    " GROUP BY x.b HAVING count(*) > 1 ORDER BY x.b DESC NULLS LAST LIMIT 10 OFFSET 2",
    "WITH q AS (SELECT a, b FROM t) SELECT DISTINCT a FROM q UNION ALL SELECT a FROM u EXCEPT SELECT 1 ORDER BY a ASC",
    "SELECT sum(a) OVER (PARTITION BY b ORDER BY c ROWS UNBOUNDED PRECEDING) AS s FROM t QUALIFY s > 1",
    "SELECT a FROM t NATURAL JOIN u WINDOW w AS (PARTITION BY a)",
    "SELECT a FROM t CROSS JOIN u WHERE t.a IN (SELECT a FROM u) AND EXISTS (SELECT 1) AND b LIKE 'x%' ESCAPE '!'",
    "SELECT a FROM t FULL OUTER JOIN u USING (a) FETCH FIRST 3 ROWS ONLY",
    "SELECT string_agg(b, ',' ORDER BY a) FILTER (WHERE a > 1) FROM t"
    " ASOF JOIN u ON t.a >= u.a SEMI JOIN u ON t.a = u.a",
    "FROM t JOIN (u JOIN t AS z ON u.a = z.a) ON t.a = u.a SELECT t.a",
    "VALUES (1, 2), (3, 4) ORDER BY 1 LIMIT 1",
]


@pytest.mark.parametrize("query", PREFIXES)
def test_no_prefix_of_a_query_is_read_as_another_query(query: str) -> None:
    """A text that DuckDB's own parser refuses is refused, too; the whole query is read."""
    words = re.findall(r"'[^']*'|\w+|[^\w\s]+|\s+", query)
    wrongly_read = [
        text
        for text in ("".join(words[:end]).rstrip() for end in range(1, len(words)))
        if can_parse(text) and not can_duckdb_parse(text)
    ]
    assert wrongly_read == []
    assert can_parse(query)


@pytest.mark.parametrize("clause", ["group", "order", "limit", "union", "where", "having", "left", "in", "desc", "as"])
def test_reserved_words_are_quoted_aliases_only(session: SqlSession, clause: str) -> None:
    assert not can_parse(f"SELECT count(*) FROM logs {clause}")
    found = session.sql(f'SELECT count(*) AS "{clause}" FROM logs AS "{clause}"').to_arrow()
    assert found.to_pylist() == [{clause: 0}]


def can_parse(text: str) -> bool:
    try:
        parse_query(StatementReader(text))
    except paimon.PaimonError:
        return False
    return True


def can_duckdb_parse(text: str) -> bool:
    try:
        return len(duckdb.extract_statements(text)) == 1
    except duckdb.Error:
        return False


def test_a_script_has_a_limit_of_words(session: SqlSession) -> None:
    for statement in ("SELECT " + ",".join("1" * 200_000), "SELECT '" + "x" * 1_000_000 + "'"):
        assert "The limit is" in fail(session, statement)
    table = session.state.catalog("paimon").table("default.logs")
    with pytest.raises(InvalidRequest, match="The limit is 200,000"):
        table.scan(where=" AND ".join(["msg = 1"] * 60_000)).count()


def test_text_from_data_never_becomes_sql(tmp_path: Path) -> None:
    """Values and names of columns and tables that would change a statement if they were copied into it."""
    session = paimon.connect(tmp_path).sql_session()
    session.sql(
        f'CREATE TABLE orders (id INT, "{HOSTILE}" STRING); CREATE TABLE k (id INT, n STRING);'
        f"INSERT INTO orders VALUES (1, '{HOSTILE.replace(chr(39), chr(39) * 2)}'), (2, NULL)"
    )
    frame = pa.table({"id": [1], "n": [HOSTILE]})
    session.sql("INSERT INTO k SELECT * FROM f", f=frame)
    session.sql("UPDATE k SET n = (SELECT max(n) FROM f WHERE f.id = k.id)", f=frame)
    session.sql(f'UPDATE orders SET "{HOSTILE}" = (SELECT max(n) FROM k WHERE k.id = orders.id) WHERE id = 2')
    session.sql(
        f'MERGE INTO k USING orders AS o ON k.id = o.id AND k.n = o."{HOSTILE}" '
        f"WHEN MATCHED THEN UPDATE SET n = o.\"{HOSTILE}\" WHEN NOT MATCHED THEN INSERT (id, n) VALUES (o.id, 'new')"
    )
    assert session.sql("SELECT * FROM k ORDER BY id").to_arrow().to_pylist() == [
        {"id": 1, "n": HOSTILE}, {"id": 2, "n": "new"}
    ]  # fmt: skip
    found = session.sql(f'SELECT id, "{HOSTILE}" AS s FROM orders ORDER BY id').to_arrow().to_pylist()
    assert found == [{"id": 1, "s": HOSTILE}, {"id": 2, "s": None}]
