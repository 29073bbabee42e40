"""Convert errors of Spark's queries to those of this library.

Invariant: what the text of a query caused is an InvalidRequest, as with the embedded engine. Anything else is what the
task raised, or a StorageError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from pyspark.errors import PySparkException

from paimon.domain.errors import InvalidRequest, PaimonError, did_you_mean
from paimon.domain.predicate.field_paths import DEFAULT, suggest_column
from paimon.engines import translate_spark_error
from paimon.ports.queries import TYPE_NAMES

_CONDITION = re.compile(r"\[([A-Z][A-Z_0-9]+(?:\.[A-Z_0-9]+)*)\] (.*?)(?= SQLSTATE|\n|$)", re.DOTALL)
"""An error condition of Spark with its text, anywhere in a message."""
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_INTERNAL = ("INTERNAL_ERROR", "FAILED_READ_FILE", "TASK_WRITE_FAILED", "STREAM_FAILED", "PYTHON_DATA_SOURCE_ERROR")


def to_query_error(error: BaseException, list_functions: Callable[[], Iterable[str]] = tuple) -> PaimonError:
    """Convert an error that Spark raised; it becomes `InvalidRequest` where the query is at fault.

    `list_functions` returns the names of all functions, for the hint about an unknown one.
    """
    text = str(error)
    found = _CONDITION.search(text)
    if "paimon.domain.errors." in text or found is None or found[1].startswith(_INTERNAL):
        return translate_spark_error(Exception(text))
    condition, message = found[1], found[2]
    parameters = _read_parameters(error)
    if condition.startswith("UNRESOLVED_COLUMN"):
        return _to_column_error(parameters, message)
    if condition in ("UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        name = _last_name(parameters.get("routineName", message)).lower()
        hint = did_you_mean(name, list(list_functions()))
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
        return InvalidRequest(f"The query failed: Could not convert a value: {_first_sentence(message)}.")
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
