"""SQL statements on Spark: the statements of `Catalog.sql`, whose queries Spark evaluates.

Invariant: statements have one parser and one meaning. Spark evaluates queries, and its tasks write the rows of INSERT.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen
from pyspark.sql import DataFrame, SparkSession

from paimon import engines
from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest
from paimon.spark.session import check_running, register
from paimon.spark.sql.queries import SparkQueries
from paimon.spark.sql.workers import SparkWorkers
from paimon.spark.types import complete_types, to_spark_frame
from paimon.sql.parse.parse_script import ParsedStatement
from paimon.sql.run.result import SqlResult
from paimon.sql.run.run_statements import SqlSession, open_session


def connect(spark: SparkSession, warehouse: str | os.PathLike[str] | Catalog, **options: Any) -> SparkCatalog:
    """Open a warehouse for SQL statements on Spark.

    Parameters
    ----------
    spark : SparkSession
        The session that evaluates queries; the data source is registered with it.
    warehouse : str, path or Catalog
        The warehouse, or a catalog that `paimon.connect` opened. Tasks must be able to read it.
    **options : object
        As in `paimon.connect`.

    Returns
    -------
    SparkCatalog
        A session of SQL statements.

    Raises
    ------
    InvalidRequest
        An option is not known.
    """
    if isinstance(warehouse, Catalog):
        if options:
            raise InvalidRequest("A catalog takes no options here.", subject="options", hint="give them to its connect")
        catalog = warehouse
    else:
        catalog = engines.open_warehouse(warehouse, options)
    return SparkCatalog(register(spark), catalog)


@frozen(eq=False)
class SparkCatalog:
    """A warehouse whose queries Spark evaluates; made by `paimon.spark.connect`. One thread uses it at a time.

    Parameters
    ----------
    spark : SparkSession
        The session.
    catalog : Catalog
        The warehouse.
    """

    spark: SparkSession
    catalog: Catalog
    _queries: SparkQueries = field(init=False, repr=False)
    _session: SqlSession = field(init=False, repr=False)

    @_queries.default
    def _make_queries(self) -> SparkQueries:
        return SparkQueries(self.spark)

    @_session.default
    def _open_session(self) -> SqlSession:
        return open_session(self.catalog, self.catalog.connect, self._queries, SparkWorkers(self._queries))

    def sql(self, text: str, /, **frames: Any) -> DataFrame:
        """Run SQL statements; `docs/reference/sql.md` lists them.

        ``USE``, ``SET`` and temporary views hold for the next call.

        Parameters
        ----------
        text : str
            One or more statements, separated by semicolons. Nothing runs if the syntax of one of them is wrong.
        **frames : object
            Data frames of Spark, Arrow tables and other tabular data that queries read by name, like tables.

        Returns
        -------
        DataFrame
            The last statement: a lazy frame of a query, which reads the snapshots of this call, or the report of any
            other statement.

        Raises
        ------
        InvalidRequest, NotFound, AlreadyExists, Unsupported
            A statement is not valid, names an unknown object, or is not supported. The statements before it have run.
        """
        check_running(self.spark)
        return self._to_frame(self._session.sql(text, **frames))

    def run_script(
        self, text: str, frames: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[ParsedStatement, DataFrame]]:
        """Run the statements of a script one after the other.

        Parameters
        ----------
        text : str
            The script.
        frames : mapping of str to object, optional
            As in `sql`.

        Yields
        ------
        (ParsedStatement, DataFrame)
            Each statement when it has run, with its rows as `sql` returns them.
        """
        check_running(self.spark)
        for statement, result in self._session.run_script(text, frames):
            yield statement, self._to_frame(result)

    def _to_frame(self, result: SqlResult) -> DataFrame:
        if result.query is not None:
            return complete_types(self._queries.to_frame(result.query.sql, result.query.sources))
        return to_spark_frame(self.spark, result.to_arrow())
