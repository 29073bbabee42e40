"""The contract of QueryEngine as tests.

An adapter that keeps the contract of `paimon.ports.queries` passes. Derive a class from `QueryEngineContract`, whose
`make_engine` returns the adapter.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

import pyarrow as pa

from paimon.domain.errors import CorruptTable, InvalidRequest, PaimonError
from paimon.ports.queries import QueryEngine, QuerySource

_ROWS = pa.table({"id": [3, 1, 2], "name": ["c", None, "it's"]})


class QueryEngineContract(ABC):
    """The tests of the port. A subclass implements `make_engine`."""

    @abstractmethod
    def make_engine(self) -> QueryEngine:
        """Return the adapter."""

    def test_a_query_reads_its_sources(self) -> None:
        """Rows keep their values, and ORDER BY their order."""
        found = self.make_engine().run('SELECT id, name FROM "x" ORDER BY id', {"x": _to_source(_ROWS)}).read_all()
        expected = [{"id": 1, "name": None}, {"id": 2, "name": "it's"}, {"id": 3, "name": "c"}]
        assert found.to_pylist() == expected

    def test_a_source_may_be_read_twice(self) -> None:
        """A join of a source with itself opens it more than once."""
        sql = 'SELECT count(*) AS n FROM "x" AS a JOIN "x" AS b ON a.id = b.id'
        assert self.make_engine().run(sql, {"x": _to_source(_ROWS)}).read_all()["n"].to_pylist() == [3]

    def test_calls_are_independent(self) -> None:
        """Two readers of one name are consumed alternately."""
        engine = self.make_engine()
        readers = [
            engine.run('SELECT sum(id) AS s FROM "x"', {"x": _to_source(_ROWS.slice(0, rows))}) for rows in (3, 1)
        ]
        assert [int(reader.read_all()["s"][0].as_py()) for reader in reversed(readers)] == [3, 6]

    def test_columns_are_known_without_reading(self) -> None:
        """`describe` returns the schema of `run`."""
        sources = {"x": QuerySource(_ROWS.schema, _refuse_to_open)}
        engine, sql = self.make_engine(), 'SELECT id + 1 AS more, name FROM "x"'
        described = engine.describe(sql, sources)
        assert described == engine.run(sql, {"x": _to_source(_ROWS)}).schema
        assert described.names == ["more", "name"]

    def test_times_are_those_of_the_zone_of_the_engine(self) -> None:
        """An instant as a local time, and a local time as an instant."""
        engine = self.make_engine()
        instant = datetime.datetime(2026, 7, 1, 20, tzinfo=datetime.UTC)
        local = instant.astimezone(ZoneInfo(engine.time_zone)).replace(tzinfo=None)
        sql = f"SELECT CAST(TIMESTAMPTZ '{instant}' AS TIMESTAMP) AS local, CAST('{local}' AS TIMESTAMPTZ) AS instant"
        assert engine.run(sql, {}).read_all().to_pylist() == [{"local": local, "instant": instant}]

    def test_unknown_names_are_invalid_requests(self) -> None:
        """Names of columns, functions and tables."""
        engine = self.make_engine()
        for sql in ('SELECT ident FROM "x"', 'SELECT nosuch(id) FROM "x"', 'SELECT * FROM "y"'):
            for call in (engine.run, engine.describe, engine.explain):
                _expect_error(InvalidRequest, lambda call=call, sql=sql: call(sql, {"x": _to_source(_ROWS)}))

    def test_a_value_that_cannot_be_computed_is_an_invalid_request(self) -> None:
        """The error is raised while the rows are read, or before."""
        engine = self.make_engine()
        sql = 'SELECT CAST(name AS INTEGER) AS n FROM "x"'
        _expect_error(InvalidRequest, lambda: engine.run(sql, {"x": _to_source(_ROWS)}).read_all())

    def test_the_error_of_a_source_is_unchanged(self) -> None:
        """A damaged file is reported as itself."""

        def open_damaged() -> pa.RecordBatchReader:
            """Return a reader that fails after its first batch."""
            return pa.RecordBatchReader.from_batches(_ROWS.schema, _fail_after(_ROWS))

        source = QuerySource(_ROWS.schema, open_damaged)
        error = _expect_error(
            CorruptTable, lambda: self.make_engine().run('SELECT sum(id) FROM "x"', {"x": source}).read_all()
        )
        assert error.message.startswith("data-1.parquet")

    def create_view(self, rows: pa.Table) -> Sequence[str] | None:
        """Create a view in the engine's own session, and return its name; None if the engine has no session.

        Parameters
        ----------
        rows : pyarrow.Table
            The rows of the view.

        Returns
        -------
        sequence of str or None
            The parts of the name, for `find_view` of an engine that `make_engine` returns.
        """
        return None

    def test_only_views_of_the_engine_are_found(self) -> None:
        """A view is a source with its rows; an unknown name, also one of a table that no source has, is none."""
        engine, name = self.make_engine(), self.create_view(_ROWS)
        for unknown in (("no_such_view",), ("no_such_database", "x")):
            assert engine.find_view(unknown) is None
        if name is not None:
            found = engine.find_view(name)
            assert found is not None and found.schema.names == _ROWS.column_names
            sql = 'SELECT name FROM "x" WHERE id = 3'
            assert engine.run(sql, {"x": found}).read_all()["name"].to_pylist() == ["c"]

    def test_a_query_neither_reads_nor_writes_files(self) -> None:
        """Only the sources are read."""
        engine = self.make_engine()
        for sql in ("SELECT * FROM read_csv('/etc/hostname')", "SELECT * FROM '/etc/hostname'"):
            _expect_error(InvalidRequest, lambda sql=sql: engine.run(sql, {}).read_all())


def _to_source(rows: pa.Table) -> QuerySource:
    return QuerySource(rows.schema, rows.to_reader)


def _refuse_to_open() -> pa.RecordBatchReader:
    raise AssertionError("a source was read")


def _fail_after(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches()
    raise CorruptTable("data-1.parquet", "the file is cut")


def _expect_error(kind: type[PaimonError], call: object) -> PaimonError:
    assert callable(call)
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
