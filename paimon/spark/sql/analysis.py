"""Analyze queries of SQL statements in a Spark session, and convert the errors of Spark to those of this library.

Invariant: the settings that decide what a query means are the same in every session. They and the views of a query
exist only while Spark analyzes it; the data frame keeps what was analyzed. What the text of a query caused is an
InvalidRequest, as with the embedded engine. Anything else is what the task raised, or a StorageError.
"""

from __future__ import annotations

import re
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from paimon.adapters.executors.spark import CONDITION, INTERNAL_CONDITIONS, is_remote
from paimon.domain.errors import InvalidRequest, PaimonError, did_you_mean, suggest_or
from paimon.domain.predicate.field_paths import DEFAULT, suggest_column
from paimon.domain.query_hints import CASTS
from paimon.engines import translate_spark_error
from paimon.ports.queries import TYPE_NAMES
from paimon.spark.frame_reads import forget_view, remember_view
from paimon.spark.sql.sql_dialect import translate_query

_SETTINGS: Mapping[str, str] = {
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
"""Settings of the session that change what a query means. Substitution would replace ``${…}`` in texts. The time zone
stays that of the session.
"""
_LOCK = threading.RLock()
_NUMBERS = count()
_LOGGER = "SQLQueryContextLogger"
"""PySpark writes each error of a query to the standard error stream as JSON; the raised error says the same."""
_RESULTS: WeakKeyDictionary[SparkSession, dict[str, weakref.ref[Any]]] = WeakKeyDictionary()
"""By session of Spark Connect: the views of query results, and the plans of the frames that read them."""
_GLOBAL = "global_temp"
"""The database of the temporary views that all sessions of an application share."""
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")


def analyze_query(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Analyze a query in DuckDB's dialect over named frames, without running it, and return its lazy data frame.

    The frame stays valid although the temporary views of the sources are dropped here.
    """
    names = {own: f"paimon_query_{next(_NUMBERS)}" for own in frames}
    translated = translate_query(sql, names)
    if is_remote(spark):
        return _analyze_on_server(spark, translated, {names[own]: frame for own, frame in frames.items()})
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


def _analyze_on_server(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Analyze a query through Spark Connect, where a frame is analyzed again at each use, with the settings of then.

    So the result is a temporary view of the session, which keeps what was analyzed. The view is dropped by a later
    query, once no frame reads it.
    """
    text = sql.replace("{", "{{").replace("}", "}}") if frames else sql  # Spark formats only with names
    for name in frames:
        text = text.replace(f"`{name}`", f"{{{name}}}")
    with use_settings(spark):
        _drop_unused_views(spark)
        try:
            view = f"paimon_result_{uuid.uuid4().hex}"
            result = spark.sql(text, **frames)
            result.createTempView(view)
        except PySparkException as error:
            raise to_query_error(error, lambda: _list_functions(spark)) from error
        found = spark.table(view)
        remember_view(view, result)
        _RESULTS.setdefault(spark, {})[view] = weakref.ref(found._plan)
    return found


def _drop_unused_views(spark: SparkSession) -> None:
    """Drop the views of results whose plans are in no frame of this process anymore."""
    known = _RESULTS.get(spark, {})
    for view in [view for view, plan in known.items() if plan() is None]:
        spark.catalog.dropTempView(view)
        del known[view]
        forget_view(view)


@contextmanager
def use_settings(spark: SparkSession) -> Iterator[None]:
    """Set what decides the meaning of queries, and restore it; threads wait for each other."""
    with _LOCK:
        changed = {key: _SETTINGS[key] for key, value in _read_settings(spark) if _differs(value, _SETTINGS[key])}
        earlier = {key: spark.conf.get(key, None) for key in changed}  # None if the session has the default
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


def quote_name(parts: Iterable[str]) -> str:
    """Return a name as Spark's SQL writes it."""
    return ".".join("`{}`".format(part.replace("`", "``")) for part in parts)


def has_temporary_view(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return whether a name means a temporary view of a session; databases of Spark are not asked."""
    if len(parts) > 1 and (len(parts) > 2 or parts[0].lower() != _GLOBAL):
        return False
    if not is_remote(spark):
        catalog = spark._jsparkSession.sessionState().catalog()
        found = catalog.getTempView(parts[0]) if len(parts) == 1 else catalog.getGlobalTempView(parts[1])
        return bool(found.isDefined())
    try:
        with mute_error_log():
            return bool(spark.catalog.getTable(quote_name(parts)).isTemporary)
    except AnalysisException:
        return False


def _read_settings(spark: SparkSession) -> Iterable[tuple[str, str | None]]:
    """Return the settings with their values or defaults; a server is asked once."""
    if is_remote(spark):
        return zip(_SETTINGS, spark._client.get_configs(*_SETTINGS), strict=True)
    return [(key, spark.conf.get(key)) for key in _SETTINGS]


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


def to_query_error(error: BaseException, list_functions: Callable[[], Iterable[str]] = tuple) -> PaimonError:
    """Convert an error that Spark raised; it becomes `InvalidRequest` where the query is at fault.

    `list_functions` returns the names of all functions, for the hint about an unknown one.
    """
    text = str(error)
    found = CONDITION.search(text)
    if "paimon.domain.errors." in text or found is None or found[1].startswith(INTERNAL_CONDITIONS):
        return translate_spark_error(Exception(text))
    condition, message = found[1], found[2]
    parameters = _read_parameters(error)
    if condition.startswith("UNRESOLVED_COLUMN"):
        return _to_column_error(parameters, message)
    if condition in ("UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        name = _last_name(parameters.get("routineName", message)).lower()
        hint = suggest_or(name, list(list_functions()), "spark.sql('SHOW FUNCTIONS') lists the functions of Spark")
        return InvalidRequest(f"Function {name!r} does not exist.", subject=name, hint=hint)
    if condition == "UNSUPPORTED_DATATYPE":
        kind = parameters.get("typeName", message).strip('"').lower()
        return InvalidRequest(
            f"Type {kind!r} does not exist.", subject=kind, hint=did_you_mean(kind.upper(), TYPE_NAMES)
        )
    if condition == "UNRESOLVED_USING_COLUMN_FOR_JOIN":
        name = _last_name(parameters.get("colName", message))
        return InvalidRequest(f"Column {name!r} of USING is not in both tables.", subject=name)
    if condition == "CAST_INVALID_INPUT":
        message = f"The query failed: Could not convert a value: {_first_sentence(message)}."
        return InvalidRequest(message, subject=condition, hint=CASTS)
    return InvalidRequest(f"The query failed: {_first_sentence(message)}.", subject=condition)


def _read_parameters(error: BaseException) -> Mapping[str, str]:
    return (error.getMessageParameters() or {}) if isinstance(error, PySparkException) else {}


def _to_column_error(parameters: Mapping[str, str], message: str) -> InvalidRequest:
    name = _last_name(parameters.get("objectName", message))
    proposed = [_QUOTED.findall(path) for path in parameters.get("proposal", "").split(", ")]
    table = _QUOTED.findall(parameters.get("objectName", ""))[:-1]
    if len(table) == 1 and any(path[-1:] == [name] and path[:-1] != table for path in proposed):
        tables = {path[-2] for path in proposed if len(path) > 1}
        hint = did_you_mean(table[0], tables)
        return InvalidRequest(f"Table {table[0]!r} is not in this part of the query.", subject=table[0], hint=hint)
    near = [part for path in proposed for part in path]
    found = suggest_column(name, near) or ""
    hint = found if found.startswith(("did", DEFAULT)) else None
    return InvalidRequest(f"Column {name!r} does not exist in this part of the query.", subject=name, hint=hint)


def _last_name(text: str) -> str:
    """Return the last part of a name in back quotes, such as ``t`.`a``."""
    names = _QUOTED.findall(text)
    return str(names[-1]).replace("``", "`") if names else text


def _first_sentence(message: str) -> str:
    return " ".join(message.split()).split(". ")[0].rstrip(".")
