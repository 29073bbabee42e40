"""Analyze queries of SQL statements in a Spark session.

Invariant: the settings that decide what a query means are the same in every session. They and the views of a query
exist only while Spark analyzes it; the data frame keeps what was analyzed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from paimon.spark.sql.query_errors import to_query_error
from paimon.spark.sql.sql_dialect import translate_query
from paimon.spark.warehouse import TIME_ZONE

QUERY_ZONE = "UTC"
"""The time zone of dates and times of day in a query."""
_SETTINGS: Mapping[str, str] = {
    TIME_ZONE: QUERY_ZONE,
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
}
"""Settings of the session that change what a query means. Substitution would replace ``${…}`` in texts."""
_LOCK = threading.RLock()
_NUMBERS = count()
_LOGGER = "SQLQueryContextLogger"
"""PySpark writes each error of a query to the standard error stream as JSON; the raised error says the same."""


def analyze_query(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Analyze a query in DuckDB's dialect over named frames, without running it, and return its lazy data frame.

    The frame stays valid although the temporary views of the sources are dropped here.
    """
    names = {own: f"paimon_query_{next(_NUMBERS)}" for own in frames}
    translated = translate_query(sql, names)
    created: list[str] = []
    with use_settings(spark):
        try:
            for own, frame in frames.items():
                frame.createTempView(names[own])
                created.append(names[own])
            return spark.sql(translated)
        except PySparkException as error:
            raise to_query_error(error, lambda: _list_functions(spark)) from error
        finally:
            for name in created:
                spark.catalog.dropTempView(name)


@contextmanager
def use_settings(spark: SparkSession) -> Iterator[None]:
    """Set what decides the meaning of queries, and restore it; threads wait for each other."""
    with _LOCK:
        earlier = {key: spark.conf.get(key, None) for key in _SETTINGS}
        changed = {key: value for key, value in _SETTINGS.items() if _differs(earlier[key], value)}
        try:
            for key, value in changed.items():
                spark.conf.set(key, value)
            with mute_error_log():
                yield
        finally:
            for key in changed:
                before = earlier[key]
                if before is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, before)


@contextmanager
def mute_error_log() -> Iterator[None]:
    """Keep PySpark from writing errors of queries to the standard error stream."""
    logger = PySparkLogger.getLogger(_LOGGER)
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled


def _differs(found: str | None, wanted: str) -> bool:
    return found is None or found.lower() != wanted.lower()


def _list_functions(spark: SparkSession) -> list[str]:
    return [row[0].rpartition(".")[2] for row in spark.sql("SHOW FUNCTIONS").collect()]
