"""What scans evaluate before a query: the rows of each query are the same as without, and EXPLAIN names the parts."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paimon
from paimon.domain.types.type_text import parse_type
from paimon.sql.plan.pushdown_predicates import fit_literal
from paimon.sql.run.run_statements import SqlSession

COLUMNS = (
    "id BIGINT NOT NULL, day DATE NOT NULL, word STRING, amount DECIMAL(6, 2), flag BOOLEAN, size DOUBLE, t TIMESTAMP"
)
WORDS = ["a", "b", "ab", "a%b", "A", "", None]
DAYS = [datetime.date(2026, 1, day) for day in (1, 2, 3)]


def make_rows(seed: int, count: int) -> list[dict[str, object]]:
    return [
        {
            "id": (i * 7 + seed) % 11,
            "day": DAYS[(i + seed) % 3],
            "word": WORDS[(i * 5 + seed) % 7],
            "amount": None if i % 5 == 0 else Decimal(i * 37 % 1000) / 100,
            "flag": (None, True, False)[(i + seed) % 3],
            "size": (None, 0.0, -0.0, 1.5, float("nan"))[(i * 3 + seed) % 5],
            "t": datetime.datetime(2026, 1, 1 + i % 4, i % 24),
        }
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[SqlSession, duckdb.DuckDBPyConnection]:
    """A session with a primary-key table of several runs and an append table, and DuckDB with the same rows."""
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    catalog.create_database("default")
    keyed = catalog.create_table("default.k", COLUMNS, primary_keys=["id", "day"], partition_keys=["day"],
                                 options={"bucket": 1, "write-only": True})  # fmt: skip
    plain = catalog.create_table("default.p", COLUMNS, partition_keys=["day"])
    for seed in range(3):
        keyed.write(make_rows(seed, 20))
        plain.write(make_rows(seed, 15))
    connection = duckdb.connect()
    for name, table in (("k", keyed), ("p", plain)):
        connection.register(name, table.scan().to_arrow())
    return catalog.sql_session(), connection


LITERALS = {
    "id": ["3", "-1", "7", "5 + 1"],
    "day": ["DATE '2026-01-02'", "'2026-01-01'", "DATE '2026-01-01' + INTERVAL 1 DAY"],
    "word": ["'a'", "'ab'", "''", "'b'"],
    "amount": ["1.11", "3", "0.37", "5.555"],
    "flag": ["true", "false"],
    "size": ["0", "1.5", "0.0"],
    "t": ["TIMESTAMP '2026-01-02 03:00:00'", "'2026-01-03 00:00:00'"],
}
names = st.sampled_from(sorted(LITERALS))


@st.composite
def comparisons(draw: st.DrawFn, prefix: str) -> str:
    name = draw(names)
    column, literals = f"{prefix}{name}", st.sampled_from(LITERALS[name])
    form = draw(st.sampled_from(["compare", "flipped", "in", "between", "null", "like", "is not null"]))
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    match form:
        case "flipped":
            return f"{draw(literals)} {operator} {column}"
        case "in":
            return f"{column} {draw(st.sampled_from(['IN', 'NOT IN']))} ({draw(literals)}, {draw(literals)})"
        case "between":
            return f"{column} BETWEEN {draw(literals)} AND {draw(literals)}"
        case "null":
            return f"{column} IS NULL"
        case "is not null":
            return f"{column} IS NOT NULL"
        case "like":
            return f"{prefix}word {draw(st.sampled_from(['LIKE', 'NOT LIKE']))} {draw(st.sampled_from(LIKES))}"
    return f"{column} {operator} {draw(literals)}"


LIKES = ["'a%'", "'%b'", "'_'", "'A'", "'a\\%b'"]


def conditions(prefix: str) -> st.SearchStrategy[str]:
    return st.recursive(
        comparisons(prefix),
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
        ),
        max_leaves=4,
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    table = draw(st.sampled_from(["k", "p"]))
    form = draw(st.sampled_from(["one", "joined", "nested", "counted"]))
    if form == "one":
        return f"SELECT * FROM {table} WHERE {draw(conditions(''))}"
    if form == "counted":
        return f"SELECT day, count(*) AS n, min(word) AS w FROM {table} WHERE {draw(conditions(''))} GROUP BY day"
    if form == "nested":
        inner = f"SELECT id, word AS other FROM k WHERE {draw(conditions(''))}"
        return f"SELECT x.id, x.other, p.t FROM ({inner}) AS x JOIN p ON x.id = p.id WHERE {draw(conditions('p.'))}"
    side = draw(st.sampled_from(["", "LEFT", "RIGHT", "FULL"]))
    on = f"a.id = b.id AND {draw(conditions(draw(st.sampled_from(['a.', 'b.']))))}"
    where = draw(conditions(draw(st.sampled_from(["a.", "b."]))))
    return f"SELECT a.id, a.word, b.id, b.amount FROM k AS a {side} JOIN p AS b ON {on} WHERE {where}"


def to_multiset(rows: pa.Table) -> list[str]:
    return sorted(repr(row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True))


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(query=queries())
def test_a_query_returns_what_duckdb_returns(lake: tuple[SqlSession, duckdb.DuckDBPyConnection], query: str) -> None:
    session, connection = lake
    assert to_multiset(session.sql(query).to_arrow()) == to_multiset(connection.sql(query).to_arrow_table())


PUSHED = {
    "SELECT id FROM k WHERE day = '2026-01-01' AND id > 3 AND word || 'x' = 'ax'": "day = 20454 AND id > 3",
    "SELECT id FROM k WHERE day < DATE '2026-01-01' + INTERVAL 1 DAY": "day < 20455",
    "SELECT a.id FROM k a LEFT JOIN p b ON a.id = b.id AND b.id > 4 WHERE a.id < 9 AND b.word = 'x'": "id < 9",
    "SELECT id FROM k WHERE size = 0": "everything",
    "SELECT id FROM k WHERE word = id": "everything",
    "SELECT id FROM k WHERE id = 1.5": "everything",
    "SELECT k.id FROM k RIGHT JOIN p ON k.id = p.id WHERE k.id = 1": "everything",
}


@pytest.mark.parametrize("query", PUSHED)
def test_conditions_reach_the_scan(lake: tuple[SqlSession, duckdb.DuckDBPyConnection], query: str) -> None:
    lines = lake[0].sql(f"EXPLAIN {query}").to_arrow()["plan"].to_pylist()
    found = [line.removeprefix("  where:   ") for line in lines if line.startswith("  where:")]
    assert found[0] == PUSHED[query]


ALL = "id, day, word, amount, flag, size, t"
READ = {
    "SELECT word FROM k WHERE amount > 1": "word, amount",
    "SELECT count(*) AS n FROM k": "id",
    "SELECT * EXCLUDE (t) FROM k": "id, day, word, amount, flag, size, t",
    "SELECT x.id FROM k AS x JOIN p USING (word)": "id, word",
    "SELECT x.id FROM p AS x WHERE EXISTS (SELECT * FROM k WHERE k.id = x.id AND k.flag)": "id, flag",
    "SELECT x.id FROM p AS x WHERE EXISTS (SELECT DISTINCT * FROM k WHERE k.id > 0 OFFSET 1)": ALL,
    "SELECT k FROM k": "id, day, word, amount, flag, size, t",
    "SELECT (SELECT max(y.size) FROM p y WHERE y.id = x.id) AS m FROM k AS x": "id, size",
}


@pytest.mark.parametrize("query", READ)
def test_only_columns_that_a_query_names_are_read(
    lake: tuple[SqlSession, duckdb.DuckDBPyConnection], query: str
) -> None:
    lines = lake[0].sql(f"EXPLAIN {query}").to_arrow()["plan"].to_pylist()
    scans = [
        lines[number + 1] for number, line in enumerate(lines) if line.startswith("scan of") and "default.k" in line
    ]
    assert scans == [f"  columns: {READ[query]}"]


def test_a_limit_reaches_the_scan(lake: tuple[SqlSession, duckdb.DuckDBPyConnection]) -> None:
    lines = lake[0].sql("EXPLAIN SELECT id FROM k LIMIT 3 OFFSET 2").to_arrow()["plan"].to_pylist()
    assert "  limit:   5" in lines
    lines = lake[0].sql("EXPLAIN SELECT id FROM k WHERE id > 1 LIMIT 3").to_arrow()["plan"].to_pylist()
    assert not [line for line in lines if line.startswith("  limit:")]


METADATA = {
    "SELECT count(*) AS n FROM p": True,
    "SELECT min(day) AS a, max(day) AS b, count(*) AS n FROM p": True,
    "SELECT day, count(*) AS n FROM p WHERE day > '2026-01-01' GROUP BY day HAVING count(*) > 1 ORDER BY n": True,
    "SELECT DISTINCT day FROM p": True,
    "SELECT count(DISTINCT day) AS n FROM p": True,
    "SELECT day FROM p": False,
    "SELECT count(word) AS n FROM p": False,
    "SELECT count(*) AS n FROM p WHERE word = 'a'": False,
    "SELECT sum(id) AS n FROM p": False,
    "SELECT count(*) AS n FROM k": False,
    "SELECT count(*) AS word FROM p WHERE word = 'a'": False,
}


@pytest.mark.parametrize("query", METADATA)
def test_counts_of_partitions_come_from_metadata(
    lake: tuple[SqlSession, duckdb.DuckDBPyConnection], query: str
) -> None:
    session, connection = lake
    plan = session.sql(f"EXPLAIN {query}").to_arrow()["plan"].to_pylist()
    assert any(line.startswith("metadata of default.p") for line in plan) == METADATA[query]
    assert to_multiset(session.sql(query).to_arrow()) == to_multiset(connection.sql(query).to_arrow_table())


def test_an_empty_table_has_no_rows(tmp_path: Path) -> None:
    session = paimon.connect(tmp_path).sql_session()
    session.sql("CREATE TABLE t (a INT, d STRING) PARTITIONED BY (d)")
    assert session.sql("SELECT count(*) AS n, max(d) AS d FROM t").to_arrow().to_pylist() == [{"n": 0, "d": None}]
    assert session.sql("SELECT * FROM t").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (3, "INT", 3),
        (True, "INT", None),
        (2**70, "BIGINT", None),
        ("3", "INT", None),
        (Decimal("1.5"), "DECIMAL(3, 1)", Decimal("1.5")),
        (Decimal("1.55"), "DECIMAL(3, 1)", None),
        (1000, "DECIMAL(3, 1)", None),
        (datetime.datetime(2026, 1, 1), "DATE", datetime.date(2026, 1, 1)),
        (datetime.datetime(2026, 1, 1, 5), "DATE", None),
        ("2026-1-1", "DATE", None),
        ("2026-01-01 00:00:00.5", "TIMESTAMP(6)", "2026-01-01 00:00:00.5"),
        ("2026-01-01", "TIMESTAMP(6)", None),
        (0, "DOUBLE", None),
        ("2026-01-01 00:00:00", "TIMESTAMP_LTZ(6)", None),
    ],
)
def test_only_values_that_compare_equally_are_pushed(value: object, kind: str, expected: object) -> None:
    assert fit_literal(value, parse_type(kind)) == expected
