"""The context that the function of each statement gets, and the result that it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

from paimon.source_reads import find_reads
from paimon.sql.run.result import SqlResult
from paimon.sql.session import Session


@frozen(eq=False)
class StatementRun:
    """One statement that runs."""

    # Read and changed by the statement
    session: Session
    text: str
    # Tabular data that queries read by name
    frames: Mapping[str, Any]

    def renew(self) -> StatementRun:
        """Return the statement as it is when it runs again: frames that read tables have the newest rows."""
        found = {name: find_reads(frame).again for name, frame in self.frames.items()}
        frames = {name: frame if (again := found[name]) is None else again() for name, frame in self.frames.items()}
        return evolve(self, frames=frames)

    def to_result(self, columns: Mapping[str, Sequence[object]], schema: pa.Schema | None = None) -> SqlResult:
        """Return rows, whose columns are texts unless a schema is given."""
        types = schema or pa.schema([(name, pa.string()) for name in columns])
        return self.to_rows(pa.table({name: list(columns[name]) for name in types.names}, schema=types))

    def to_rows(self, rows: pa.Table) -> SqlResult:
        """Return rows as the result of the statement."""
        return SqlResult(self.text, rows.schema, rows)


def report(run: StatementRun, sentence: str) -> SqlResult:
    """Return the result of a statement without rows: one sentence about what it did."""
    return run.to_result({"result": [sentence]})
