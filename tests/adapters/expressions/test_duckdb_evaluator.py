"""DuckDB keeps the contract of ExpressionEvaluator, and refuses what it would change."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon.adapters.expressions.duckdb_evaluator import DuckdbEvaluator
from paimon.domain.errors import Unsupported
from paimon.domain.predicate.expression import ScalarSql
from paimon.ports.expressions import ExpressionEvaluator
from paimon.testing.contracts.expressions import ExpressionEvaluatorContract


class TestDuckdb(ExpressionEvaluatorContract):
    def make_evaluator(self) -> ExpressionEvaluator:
        return DuckdbEvaluator()


def test_nanoseconds_with_time_zone_are_refused_by_name() -> None:
    expression = ScalarSql("hour(at)", 'hour("c0")', ("at",))
    schema = pa.schema([("at", pa.timestamp("ns", "UTC"))])
    with pytest.raises(Unsupported, match="'at'"):
        DuckdbEvaluator().find_type(expression, schema)
    assert DuckdbEvaluator().find_type(expression, pa.schema([("at", pa.timestamp("us", "UTC"))])) == pa.int64()
