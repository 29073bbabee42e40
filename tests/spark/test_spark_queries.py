"""Spark as a query engine keeps the contract of the port."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate
from paimon.ports.queries import QueryEngine
from paimon.spark.selection import decode_predicate, encode_predicate
from paimon.spark.sql.queries import SparkQueries
from paimon.spark.sql.sql_dialect import is_constant, translate_query
from paimon.testing.contracts.queries import QueryEngineContract

pytestmark = pytest.mark.spark


class TestSpark(QueryEngineContract):
    @pytest.fixture(autouse=True)
    def use_session(self, spark: SparkSession) -> None:
        self.session = spark

    def make_engine(self) -> QueryEngine:
        return SparkQueries(self.session)

    def create_view(self, rows: pa.Table) -> tuple[str, ...]:
        self.session.createDataFrame(rows).createOrReplaceGlobalTempView("contract_view")
        return ("global_temp", "contract_view")


PREDICATES = [
    And((Compare("a", Operator.LT, 3), Not(In("b", ("x", "'y'"), True)))),
    Or((Compare("d", Operator.EQ, date(2026, 1, 2)), Compare("n", Operator.GE, Decimal("1.50")), IsNull("e", True))),
    Like("t", "a%", None, True),
    Compare("f", Operator.NE, True),
]


@pytest.mark.parametrize("predicate", PREDICATES, ids=str)
def test_a_condition_reaches_the_tasks_unchanged(predicate: Predicate) -> None:
    sent = json.dumps(encode_predicate(predicate))
    assert decode_predicate(json.loads(sent)) == predicate


def test_a_condition_with_another_part_is_not_sent() -> None:
    assert encode_predicate(And((Compare("a", Operator.EQ, 1), Literal(True)))) is None
    assert encode_predicate(In("a", (1, 1.5))) is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('SELECT a FROM "x"', "SELECT a FROM `v` AS `x`"),
        ("SELECT MAP {'k': 1} AS m", "SELECT map('k', 1) AS m"),
        ("SELECT * FROM (VALUES (1, 'b')) AS r", "SELECT * FROM VALUES (1, 'b') AS r(col0, col1)"),
        ("SELECT 'a\\b' LIKE 'a\\b' AS y", "SELECT 'a\\\\b' LIKE 'a\\\\\\\\b' AS y"),
        ("SELECT CAST('1:02:03' AS TIME) AS t", "SELECT CAST('1:02:03' AS TIME) AS t"),
        ("SELECT i FROM range(3) AS r(i)", "SELECT i FROM (SELECT id AS range FROM range(0, 3)) AS r(i)"),
        ("SELECT week(DATE '2026-01-01') AS w", "SELECT weekofyear(CAST('2026-01-01' AS DATE)) AS w"),
        ("SELECT regexp_replace('aa', 'a', 'b', 'g') AS r", "SELECT regexp_replace('aa', 'a', 'b') AS r"),
        ("SELECT 1 AS a /* + hint */", "SELECT 1 AS a"),
        (
            "SELECT a[i] FROM x",
            "SELECT try_element_at(a, CASE WHEN typeof(a) LIKE 'array%' AND CAST(i AS STRING) = '0' "
            "THEN NULL ELSE i END) AS `a[i]` FROM `v` AS `x`",
        ),
        ("SELECT a[1][2] FROM x", "SELECT try_element_at(try_element_at(a, 1), 2) AS `a[1][2]` FROM `v` AS `x`"),
        ("SELECT MAP {1: 'a'}[1] AS m", "SELECT try_element_at(map(1, 'a'), 1) AS m"),
        (
            "SELECT a FROM x WHERE a[2][-1] > m['k']",
            "SELECT a FROM `v` AS `x` WHERE try_element_at(try_element_at(a, 2), -1) > m['k']",
        ),
    ],
)
def test_a_query_is_written_as_spark_has_it(query: str, expected: str) -> None:
    assert translate_query(query, {"x": "v"}) == expected


def test_a_position_of_zero_is_null_and_a_key_of_zero_is_not(spark: SparkSession) -> None:
    rows = "(SELECT [4, 5] AS a, MAP {0: 'z'} AS m, i FROM (VALUES (CAST(0 AS INT))) AS v(i))"
    found = SparkQueries(spark).run(f"SELECT a[i], a[0], a[i - 1], m[i], m[0] FROM {rows}", {}).read_all()
    assert found.to_pylist() == [{"a[i]": None, "a[0]": None, "a[i - 1]": 5, "m[i]": "z", "m[0]": "z"}]


def test_what_has_another_meaning_is_refused() -> None:
    with pytest.raises(Unsupported, match="first match"):
        translate_query("SELECT regexp_replace('aa', 'a', 'b') AS r", {})
    with pytest.raises(Unsupported, match="DISTINCT ON"):
        translate_query("SELECT DISTINCT ON (a) * FROM x", {"x": "v"})
    for table in ("parquet.`/tmp/x`".replace("`", '"'), "y", "read_csv('a')", "other.x"):
        with pytest.raises(InvalidRequest, match="does not exist"):
            translate_query(f"SELECT * FROM {table}", {"x": "v"})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT CAST(a AS INT) FROM (SELECT * FROM (VALUES (1)) AS v(a)) AS q", True),
        ("SELECT upper('a') AS a", True),
        ("SELECT * FROM range(10)", False),
        ("SELECT unnest([1, 2]) AS a", False),
        ("SELECT a FROM x", False),
    ],
)
def test_rows_that_a_query_writes_out_are_known(query: str, expected: bool) -> None:
    assert is_constant(query) is expected
