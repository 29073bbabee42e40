"""SQL sessions whose queries run embedded or on Spark, with one form of results, so that a test runs on both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pytest
from attrs import frozen

import paimon
from paimon.sql.parse.statements import Query
from paimon.sql.run.run_statements import SqlSession

if TYPE_CHECKING:
    from paimon.spark import SparkCatalog

ENGINES = ["embedded", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])]
"""Values of the parameter `engine`; a fixture that opens sessions requests the fixture `spark` for the second one."""


class SqlEngine(Protocol):
    """Runs statements of SQL."""

    def sql(self, text: str, **frames: Any) -> pa.Table:
        """Return the rows of the last statement."""

    def run_queries(self, script: str) -> list[pa.Table]:
        """Run a script, and return the rows of each of its queries."""


@frozen(eq=False)
class EmbeddedEngine:
    """A session whose queries DuckDB evaluates."""

    session: SqlSession

    def sql(self, text: str, **frames: Any) -> pa.Table:
        return self.session.sql(text, **frames).to_arrow()

    def run_queries(self, script: str) -> list[pa.Table]:
        return [result.to_arrow() for _, result in self.session.run_script(script) if result.is_query]


@frozen(eq=False)
class SparkEngine:
    """A session whose queries Spark evaluates."""

    catalog: SparkCatalog

    def sql(self, text: str, **frames: Any) -> pa.Table:
        return self.catalog.sql(text, **frames).toArrow()

    def run_queries(self, script: str) -> list[pa.Table]:
        done = self.catalog.run_script(script)
        return [frame.toArrow() for parsed, frame in done if isinstance(parsed.statement, Query)]


def open_engine(name: str, warehouse: Path, request: pytest.FixtureRequest) -> SqlEngine:
    """Open a warehouse with an engine of `ENGINES`."""
    if name == "embedded":
        return EmbeddedEngine(paimon.connect(warehouse).sql_session())
    from paimon.spark import connect

    return SparkEngine(connect(request.getfixturevalue("spark"), warehouse))
