"""The contract of ExpressionEvaluator as tests.

An adapter that keeps the contract of `paimon.ports.expressions` passes. Derive a class from
`ExpressionEvaluatorContract`, whose `make_evaluator` returns the adapter.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from attrs import evolve

from paimon.domain.assignment.expression import SqlValue
from paimon.domain.assignment.sql import convert_expression
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import ScalarSql
from paimon.domain.predicate.scalar_sql import to_scalar_sql
from paimon.domain.predicate.sql import parse_sql
from paimon.ports.expressions import ExpressionEvaluator
from paimon.testing.contracts.files import expect_error

_TEXTS = ("a", "Bc", None, "it's", "'; DROP TABLE x; --", '"c0"', "", "ä\0b")
_ROWS = pa.RecordBatch.from_pydict(
    {
        "n": pa.array([3, None, 1, -7, 0, 5, 2, 9], pa.int64()),
        "weird \"name' ; --": pa.array(_TEXTS),
        "N": pa.array(range(8), pa.int32()),
        "day": pa.array([datetime.date(2026, month, 28) for month in range(1, 9)], pa.date32()),
        "x": pa.array([0.5, None, -1.25, 2.0, 0.0, 1e300, -0.0, 4.0]),
    }
)
_WEIRD = "weird \"name' ; --"


class ExpressionEvaluatorContract(ABC):
    """The tests of the port. A subclass implements `make_evaluator`."""

    @abstractmethod
    def make_evaluator(self) -> ExpressionEvaluator:
        """Return a new adapter."""

    def test_values_have_the_order_of_the_rows(self) -> None:
        """Also of many rows, and where columns have names that differ in the case of letters only."""
        assert self._compute('n * 10 + "N"') == _over(lambda n, m: n * 10 + m, "n", "N")
        many = pa.RecordBatch.from_pydict({"n": pa.array(range(300_000))})
        found = self.make_evaluator().evaluate(_parse("abs(n - 150000)"), many)
        assert found.to_pylist() == [abs(n - 150_000) for n in range(300_000)]

    def test_functions_casts_and_conditions(self) -> None:
        """CASE, CAST, LIKE, functions of texts and of dates, and comparisons of columns."""
        assert self._compute("CASE WHEN n > 2 THEN 'many' WHEN n IS NULL THEN NULL ELSE 'few' END") == _over(
            lambda n: "many" if n > 2 else "few", "n"
        )
        assert self._compute("CAST(n AS VARCHAR)") == _over(str, "n")
        assert self._compute("month(day)") == list(range(1, 9))
        assert self._compute("day + INTERVAL 1 DAY > DATE '2026-03-01'") == [False, False, *[True] * 6]
        assert self._compute('n > "N"') == _over(lambda n, m: n > m, "n", "N")
        assert self._compute("n / 2") == _over(lambda n: n / 2, "n")

    def test_values_of_the_table_stay_values(self) -> None:
        """Texts with quotes and SQL, also in the names of columns, and literals with quotes."""
        name = _WEIRD.replace('"', '""')
        assert self._compute(f"\"{name}\" || 'x'") == [None if t is None else t + "x" for t in _TEXTS]
        assert self._compute(f"upper(\"{name}\") = 'IT''S'") == [None if t is None else t == "it's" for t in _TEXTS]

    def test_an_expression_without_columns_has_a_value_for_each_row(self) -> None:
        """Also where there is no row."""
        assert self._compute("upper('a')") == ["A"] * 8
        assert self.make_evaluator().evaluate(_parse("upper('a')"), _ROWS.slice(0, 0)).to_pylist() == []

    def test_the_type_is_known_without_rows(self) -> None:
        """It is the type of the values of any rows with this schema."""
        for text in ("n * 2", "CAST(n AS DECIMAL(12, 3))", "upper('a')", "n > 1", "day + INTERVAL 1 DAY", "x + n"):
            evaluator, expression = self.make_evaluator(), _parse(text)
            kind = evaluator.find_type(expression, _ROWS.schema)
            assert kind == evaluator.evaluate(expression, _ROWS).type
            assert kind == evaluator.evaluate(expression, _ROWS.slice(2, 0)).type

    def test_times_are_those_of_the_zone_of_the_expression(self) -> None:
        """Hours and days of instants, and texts that are compared with instants, also when clocks change."""
        first = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        instants = [first + datetime.timedelta(hours=397 * number) for number in range(40)]
        rows = pa.RecordBatch.from_pydict({"at": pa.array(instants, pa.timestamp("us", "UTC"))})
        zones: dict[str, datetime.tzinfo] = {name: ZoneInfo(name) for name in ("UTC", "Asia/Tokyo", "America/New_York")}
        zones["+05:30"] = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
        evaluator, border = self.make_evaluator(), datetime.datetime(2026, 7, 3, 9)
        for name, zone in zones.items():
            local = [instant.astimezone(zone) for instant in instants]
            expected = {
                "hour(at)": [time.hour for time in local],
                "CAST(at AS DATE)": [time.date() for time in local],
                "upper('2026-07-03 09:00:00')::TIMESTAMPTZ <= at": [t >= border.replace(tzinfo=zone) for t in local],
                "at + INTERVAL 0 DAY": instants,
            }
            for text, values in expected.items():
                found = evaluator.evaluate(evolve(_parse(text), time_zone=name), rows)
                assert found.to_pylist() == values, (name, text)
        assert found.type == pa.timestamp("us", "UTC")
        lists = evaluator.evaluate(evolve(_parse("[at]"), time_zone="Asia/Tokyo"), rows)
        assert lists.type.value_type == found.type
        wrong = evolve(_parse("hour(at)"), time_zone="nowhere")
        expect_error(InvalidRequest, partial(evaluator.evaluate, wrong, rows))

    def test_a_wrong_expression_is_refused(self) -> None:
        """Unknown functions, types that do not fit, and aggregates that the parser does not know."""
        for text in ("no_such_function(n)", "sqrt(day)", "n + day + x", "favg(n)"):
            expect_error(InvalidRequest, partial(self.make_evaluator().find_type, _parse(text), _ROWS.schema))
        for text in ("CAST('x' AS INT) + n", "favg(n)"):
            expect_error(InvalidRequest, partial(self.make_evaluator().evaluate, _parse(text), _ROWS))

    def test_files_of_the_machine_are_out_of_reach(self) -> None:
        """An expression reads no file, whatever a caller writes."""
        for text in ("read_text('/etc/hostname')", "getenv('HOME')"):
            expect_error(InvalidRequest, partial(self.make_evaluator().evaluate, _parse(text), _ROWS))

    def test_threads_do_not_disturb_each_other(self) -> None:
        """Each call gets the values of its own rows."""
        evaluator, expression = self.make_evaluator(), _parse("n + 1")

        def compute(start: int) -> list[int]:
            rows = pa.RecordBatch.from_pydict({"n": pa.array(range(start, start + 1_000))})
            found: list[int] = evaluator.evaluate(expression, rows).to_pylist()
            return found

        with ThreadPoolExecutor(4) as pool:
            starts = range(0, 40_000, 1_000)
            for start, found in zip(starts, pool.map(compute, starts), strict=True):
                assert found == list(range(start + 1, start + 1_001))

    def _compute(self, text: str) -> list[Any]:
        found: list[Any] = self.make_evaluator().evaluate(_parse(text), _ROWS).to_pylist()
        return found


def _parse(text: str) -> ScalarSql:
    found = parse_sql(text, "expression", "", lambda node: (convert_expression(node), to_scalar_sql(node)))
    return found[0].expression if isinstance(found[0], SqlValue) else found[1]


def _over(compute: Callable[..., Any], *names: str) -> list[Any]:
    """Return the value of a Python function for each row; null if an argument is null."""
    rows: Iterable[tuple[Any, ...]] = zip(*(_ROWS[name].to_pylist() for name in names), strict=True)
    return [None if None in row else compute(*row) for row in rows]
