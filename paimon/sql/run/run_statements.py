"""Run statements: each kind has one function, which calls the public methods of catalogs and tables.

Invariant: a statement has the effect of the method that it calls, and reports what it did as rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, fields, frozen

from paimon.display.notebook import NotebookDisplay
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.text_checks import check_names, check_text
from paimon.ports.queries import QueryEngine
from paimon.sql.parse.parse_script import ParsedStatement, parse_script
from paimon.sql.parse.statements import CreateView, Delete, Explain, MergeWhen, Query, Statement, TableName, Update
from paimon.sql.plan.plan_query import Frames, describe_query, plan_query, qualify_query, query_engine
from paimon.sql.run.expressions import SubqueryError
from paimon.sql.run.query_changes import build_change_query
from paimon.sql.run.result import SqlResult, StatementRun, note_line, report
from paimon.sql.run.run_rows import ROW_RUNNERS, find_changed_rows
from paimon.sql.run.run_show import SHOW_RUNNERS
from paimon.sql.run.run_tables import TABLE_RUNNERS
from paimon.sql.session import DEFAULT_CATALOG, Connect, Session, SqlCatalog, View, Workers

_MOST_KNOWN_SCRIPTS = 100
_LONGEST_KNOWN_SCRIPT = 20_000


@frozen(eq=False, repr=False)
class SqlSession(NotebookDisplay):
    """A session of SQL statements; made by `Catalog.sql_session`. One thread uses it at a time.

    Parameters
    ----------
    state : Session
        The catalogs, the current database, the views and the settings.
    """

    state: Session

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        return f"{self.state.catalog_name}.{self.state.database}", {}

    def sql(self, text: str, /, *, allowed_files: Sequence[str] | None = None, **frames: Any) -> SqlResult:
        """Run statements and return the rows of the last one; see `Catalog.sql`.

        Parameters
        ----------
        text : str
            One or more statements, separated by semicolons.
        allowed_files : sequence of str, optional
            Directories and URLs of files; see `Catalog.sql`. None means those of the session.
        **frames : object
            Tabular data that queries read by name.

        Returns
        -------
        SqlResult
            The rows of the last statement.

        Raises
        ------
        InvalidRequest
            The text contains no statement.
        """
        result: SqlResult | None = None
        allowed = self.state.allowed_files
        try:
            self.state.allowed_files = allowed if allowed_files is None else _check_roots(allowed_files)
            for _, latest in self.run_script(text, frames):
                result = latest
        finally:
            self.state.allowed_files = allowed
        if result is None:
            raise InvalidRequest(
                "The text contains no statement.", subject="text", hint="write one, such as SHOW TABLES"
            )
        return result

    def run_script(self, text: str, frames: Frames | None = None) -> Iterator[tuple[ParsedStatement, SqlResult]]:
        """Run the statements of a script one after the other.

        Parameters
        ----------
        text : str
            The script.
        frames : mapping of str to object, optional
            Tabular data that queries read by name.

        Yields
        ------
        (ParsedStatement, SqlResult)
            Each statement when it has run; a query runs when its rows are requested.

        Raises
        ------
        PaimonError
            A statement failed, and those after it do not run. In a script of several statements the message names its
            line.
        """
        parsed = self._parse(check_text(text, "SQL"))
        for statement in parsed:
            line = statement.line if len(parsed) > 1 else None
            with note_line(line):
                result = run_statement(self.state, statement, frames or {})
            result.script_line = line
            yield statement, result

    def interrupt(self) -> None:
        """Stop the queries that run in this process, from another thread; each raises InvalidRequest."""
        queries = self.state.queries or self.state.engine.queries
        if queries is not None:
            queries.interrupt()

    def _parse(self, text: str) -> list[ParsedStatement]:
        """Return the statements of a script; programs run the same queries again and again."""
        known = self.state.parsed
        if text not in known:
            parsed = parse_script(text)
            if len(text) > _LONGEST_KNOWN_SCRIPT:
                return parsed
            if len(known) >= _MOST_KNOWN_SCRIPTS:
                known.clear()
            known[text] = parsed
        return known[text]


def open_session(
    catalog: SqlCatalog,
    connect: Connect | None,
    queries: QueryEngine | None = None,
    workers: Workers | None = None,
    allowed_files: Sequence[str] = (),
) -> SqlSession:
    """Return a new session whose current catalog is `paimon`, and whose current database is `default`.

    `connect` opens a warehouse for CREATE CATALOG. Statements may open files below `allowed_files`.
    """
    allowed = _check_roots(allowed_files)
    state = Session({DEFAULT_CATALOG: catalog}, connect, queries=queries, workers=workers, allowed_files=allowed)
    return SqlSession(state)


def _check_roots(given: Sequence[object]) -> tuple[str, ...]:
    """Return directories and URLs as texts; refuse a single text."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        given = [root.__fspath__() if hasattr(root, "__fspath__") else root for root in given]
    roots = check_names(given, "allowed_files")
    if "" in roots:
        raise InvalidRequest("A root of 'allowed_files' is empty.", subject="allowed_files", hint="write '.'")
    return roots


def run_statement(session: Session, parsed: ParsedStatement, frames: Frames) -> SqlResult:
    """Run one statement, which may change the session; `frames` has tabular data that queries read by name.

    Raises `Unsupported` for an unknown kind of statement, and refuses a statement that is nested too deep.
    """
    run = StatementRun(session, parsed.text, frames)
    runner = _RUNNERS.get(type(parsed.statement))
    if runner is None:
        raise Unsupported(f"statement {parsed.text.split(None, 1)[0].upper()}")
    try:
        result: SqlResult = runner(run, parsed.statement)
    except RecursionError as error:
        raise InvalidRequest("The statement is nested too deep.", hint="split it into several ones") from error
    return result


def _run_query(run: StatementRun, query: Query) -> SqlResult:
    planned = plan_query(run.session, query, run.frames)
    engine = query_engine(run.session)
    schema = describe_query(run.session, planned)
    session = run.session.copy()  # later statements may set another database
    return SqlResult(
        run.text,
        schema,
        run=lambda: engine.run(planned.sql, planned.sources),
        query=planned,
        run_again=lambda: _run_query(evolve(run, session=session).renew(), query),
    )


def _create_view(run: StatementRun, statement: CreateView) -> SqlResult:
    key = statement.name.lower()
    if key in run.session.views and not statement.replace:
        if statement.exist_ok:
            return report(run, f"View {statement.name!r} exists.")
        raise InvalidRequest(
            f"View {statement.name!r} exists already.", subject=statement.name, hint="write CREATE OR REPLACE"
        )
    query = qualify_query(run.session, statement.query)
    if any(name.text.lower() == key for name in query.tables.values()):
        raise InvalidRequest(
            f"View {statement.name!r} reads itself.", subject=statement.name, hint="give the view another name"
        )
    plan_query(run.session, query, {})  # an unknown name is refused now
    run.session.views[key] = View(query, statement.columns)
    return report(run, f"View {statement.name!r} is created for this session.")


def _explain(run: StatementRun, statement: Explain) -> SqlResult:
    inner = statement.statement
    lines = [f"statement: {type(inner).__name__}", *_describe_parts(inner)]
    query = inner if isinstance(inner, Query) else getattr(inner, "query", None)
    if isinstance(query, Query):
        lines += _explain_query(run, query)
    elif isinstance(inner, Update | Delete):
        lines += _explain_change(run, inner)
    return run.to_result({"plan": lines})


def _explain_query(run: StatementRun, query: Query) -> list[str]:
    planned = plan_query(run.session, query, run.frames)
    plan = query_engine(run.session).explain(planned.sql, planned.sources)
    return [
        *"\n".join(describe() for describe in planned.describe).splitlines(),
        f"query: {planned.sql}",
        *plan.splitlines(),
    ]


def _explain_change(run: StatementRun, statement: Update | Delete) -> list[str]:
    """Return how the changed rows are found: by a scan, or by a query if subqueries use columns of the changed row."""
    table = run.session.open_table(statement.name)
    try:
        where = find_changed_rows(run, table, statement)
    except SubqueryError:
        query, reading = build_change_query(run, table, statement)
        return _explain_query(reading, query)
    return table.scan(where=where).explain().splitlines()


def _describe_parts(statement: Statement) -> list[str]:
    """Return a line for each part of a statement that the user wrote, without its query."""
    if isinstance(statement, Query):
        return []
    parts = {column.name: getattr(statement, column.name) for column in fields(type(statement))}
    return [
        f"{name}: {_describe_part(part)}"
        for name, part in parts.items()
        if part is not None and part is not False and part not in ((), {}) and not isinstance(part, Query)
    ]


def _describe_part(part: object) -> str:
    if isinstance(part, TableName):
        return part.text
    if isinstance(part, tuple):
        return ", ".join(map(_describe_part, part))
    return part.describe() if isinstance(part, MergeWhen) else str(part)


_RUNNERS: Mapping[type, Any] = {
    Query: _run_query,
    CreateView: _create_view,
    Explain: _explain,
    **TABLE_RUNNERS,
    **ROW_RUNNERS,
    **SHOW_RUNNERS,
}
"""The function of each kind of statement."""
