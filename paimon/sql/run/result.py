"""What a statement gets and returns: its context while it runs, and its rows in all forms, also as a table of text.

Invariant: the rows of a query are computed when they are requested, from the snapshots that its planning selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from attrs import evolve, frozen

from paimon.display.notebook import NotebookDisplay, read_or_explain
from paimon.display.other_names import RESULT_NAMES, explain_attribute
from paimon.domain.errors import PaimonError
from paimon.domain.report import Report
from paimon.domain.secrets import mask_statement
from paimon.results import SHOWN_ROWS, Results, SourceReads, find_reads
from paimon.sql.session import Session

if TYPE_CHECKING:
    from paimon.sql.plan.plan_query import PlannedQuery

_REPORTED_ROWS = 200
"""How many rows of a statement that is not a query a card shows."""
_TEXT_COLUMNS = (["plan"], ["statement"])
"""The column of EXPLAIN, which has a row for each line, and that of SHOW CREATE TABLE."""


class SqlResult(NotebookDisplay, Results):
    """The rows of one statement; made by `Catalog.sql`.

    A query computes its rows at each request. Any other statement has run already, and its rows say what it did.

    Parameters
    ----------
    statement : str
        The text of the statement.
    schema : pyarrow.Schema
        The columns.
    rows : pyarrow.Table, optional
        The rows of a statement that has run.
    run : callable, optional
        Computes the rows of a query.
    query : PlannedQuery, optional
        The query, for an engine that has a form of results of its own.
    run_again : callable, optional
        Plans the query again, on the newest snapshots.
    """

    def __init__(
        self,
        statement: str,
        schema: pa.Schema,
        rows: pa.Table | None = None,
        run: Callable[[], pa.RecordBatchReader] | None = None,
        query: PlannedQuery | None = None,
        run_again: Callable[[], SqlResult] | None = None,
    ) -> None:
        self.statement = statement
        self._schema = schema
        self._rows = rows
        self._run = run
        self.query = query
        self.run_again = run_again
        self.script_line: int | None = None
        """The line of the statement in a script of several ones."""

    @property
    def is_query(self) -> bool:
        """Whether the rows are those of a query."""
        return self._run is not None

    @property
    def is_text(self) -> bool:
        """Whether the rows are the lines of one text: those of EXPLAIN and SHOW CREATE TABLE."""
        return not self.is_query and self._schema.names in _TEXT_COLUMNS

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self._schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._run is not None:
            with note_line(self.script_line):
                yield from self._run()
        elif self._rows is not None:
            yield from self._rows.to_batches()

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table.

        Returns
        -------
        pyarrow.Table
            The rows; their order is that of ORDER BY.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://sql-to-arrow")
        >>> created = catalog.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY NOT ENFORCED, amount INT)")
        >>> written = catalog.sql("INSERT INTO orders VALUES (1, 5), (2, 9)")
        >>> catalog.sql("SELECT max(amount) AS most FROM orders").to_arrow().to_pylist()
        [{'most': 9}]
        """
        return super().to_arrow()

    def to_text(self, rows: int | None = None) -> str:
        """Return the first rows as the lines of a table: by default 20 of a query, and all of another statement.

        The lines of EXPLAIN and SHOW CREATE TABLE are returned as they are.
        """
        if self.is_text:
            return "\n".join(self.to_arrow()[0].to_pylist())
        return super().to_text(self._rows.num_rows if rows is None and self._rows is not None else rows)

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return " ".join(mask_statement(self.statement).split()), {}

    if not TYPE_CHECKING:  # a type checker must not accept these names

        def __getattr__(self, name: str) -> NoReturn:
            raise explain_attribute(self, name, RESULT_NAMES)

    def _report(self) -> Report:
        from paimon.display.cards import report_rows, report_text

        title = self._describe()[0]
        if self.is_text or self._schema.names == ["result"]:
            return report_text(title, "Result", "\n".join(self.to_arrow()[0].to_pylist()))
        most = SHOWN_ROWS if self.is_query else _REPORTED_ROWS
        return report_rows(title, "Result", read_or_explain(lambda: self.head(most + 1)), most=most)


def _find_result_reads(result: SqlResult) -> SourceReads:
    if result.query is None:
        return SourceReads()
    return SourceReads(result.query.reads, result.run_again)


find_reads.register(SqlResult, _find_result_reads)


@contextmanager
def note_line(line: int | None) -> Iterator[None]:
    """Add the line number of a statement to errors of the block; None, for a single statement, adds nothing."""
    try:
        yield
    except PaimonError as error:
        if line is not None:
            error.add_note(f"The statement begins in line {line} of the script.")
        raise


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
