"""The query engine, loaded with the first query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from paimon.domain.extras import missing_extra
from paimon.ports.queries import QueryEngine, QuerySource


class QueriesOnDemand:
    """`QueryEngine` whose library is loaded with the first query, which spills above `memory_bytes`."""

    reads_files = True
    time_zone = "UTC"

    def __init__(self, memory_bytes: int, threads: int) -> None:
        self.memory_bytes = memory_bytes
        self.threads = threads

    @cached_property
    def _engine(self) -> QueryEngine:
        try:
            from paimon.adapters.queries.duckdb_queries import DuckDBQueries
        except ModuleNotFoundError as missing:
            raise missing_extra("A SQL query", "duckdb", "sql") from missing
        return DuckDBQueries(self.memory_bytes, self.threads)

    def adopt(self, data: Any) -> QuerySource | None:
        """Return None: the engine has no data of its own; see `QueryEngine`."""
        return None

    def find_view(self, name: Sequence[str]) -> QuerySource | None:
        """Return None: each query has its own session; see `QueryEngine`."""
        return None

    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.RecordBatchReader:
        """Run one query; see `QueryEngine`."""
        return self._engine.run(sql, sources)

    def describe(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.Schema:
        """Return the columns of a query; see `QueryEngine`."""
        return self._engine.describe(sql, sources)

    def explain(self, sql: str, sources: Mapping[str, QuerySource]) -> str:
        """Return the engine's plan; see `QueryEngine`."""
        return self._engine.explain(sql, sources)

    def abandon(self, keep_for_ever: Callable[[object], None]) -> None:
        """Forget the objects of the parent process; called in a forked child."""
        engine = vars(self).get("_engine")
        if engine is not None:
            engine.abandon(keep_for_ever)

    def interrupt(self) -> None:
        """Stop running queries; see `QueryEngine`."""
        if "_engine" in vars(self):
            self._engine.interrupt()
