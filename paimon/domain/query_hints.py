"""Hints for errors of queries: what the engines and the SQL statements share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paimon.domain.errors import suggest_or

FUNCTION_LIST = "https://duckdb.org/docs/stable/sql/functions/overview lists the functions"
"""Where no function has a similar name: queries have the functions of DuckDB."""
FILES = "write read_parquet('path'), read_csv or read_json, and allow its directory: sql(text, allowed_files=['dir'])"
"""Queries read files by these functions alone."""
CASTS = "repair the value, or write TRY_CAST(x AS type), which is NULL for it"
"""A value cannot be converted to a type."""

_OTHER_FUNCTIONS: Mapping[str, str] = {
    "collect_list": "list(x)",
    "collect_set": "list(DISTINCT x)",
    "curdate": "current_date",
    "date_format": "strftime(x, '%Y-%m-%d')",
    "from_unixtime": "to_timestamp(x)",
    "get_json_object": "json_extract_string(x, path)",
    "getdate": "now()",
    "isnull": "x IS NULL",
    "percentile": "quantile_cont(x, 0.5)",
    "rlike": "regexp_matches(x, pattern)",
    "size": "len(x)",
    "sysdate": "now()",
    "to_date": "CAST(x AS DATE), or strptime(x, '%d.%m.%Y')",
    "unix_timestamp": "epoch(x)",
}
"""Functions of Spark, MySQL and other systems that DuckDB lacks, and what does the same."""


def suggest_function(name: str, known: Iterable[str]) -> str:
    """Return the hint for a function that DuckDB does not have; `known` has the names that it suggests.

    >>> suggest_function("to_date", ["to_days"]), suggest_function("uper", ["upper"])
    ("write CAST(x AS DATE), or strptime(x, '%d.%m.%Y')", "did you mean 'upper'?")
    """
    other = _OTHER_FUNCTIONS.get(name.lower())
    return f"write {other}" if other else suggest_or(name, known, None) or FUNCTION_LIST
