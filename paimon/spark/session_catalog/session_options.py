"""Table options that the settings of a session give to tables of an attached catalog, as Java's connector reads them.

`SET spark.paimon.scan.tag-name = t` is for all tables, and `SET spark.paimon.lake.db.orders.scan.tag-name = t` for one;
`*` stands for each name. Those of one table take precedence.
Source: `OptionUtils.mergeSQLConfWithIdentifier`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.known_options import OPTIONS
from paimon.spark.options import explain_java_option, is_table_option
from paimon.spark.parquet_files import SETTING
from paimon.spark.tasks.routing import DISTRIBUTION
from paimon.spark.warehouse import WAREHOUSE_SETTING

_PREFIX = "spark.paimon."
_OWN = frozenset({SETTING, DISTRIBUTION, WAREHOUSE_SETTING})


def find_session_options(spark: SparkSession, table: Sequence[str]) -> dict[str, str]:
    """Return the options for a table, whose catalog, database and name are given; refuse unknown settings."""
    listed = str(spark.conf._jconf.getAllAsJava().keySet().toString())  # names alone
    names = [name for name in listed[1:-1].split(", ") if name.startswith(_PREFIX) and name not in _OWN]
    for_all: dict[str, str] = {}
    for_one: dict[str, str] = {}
    for name in sorted(names):
        option = name.removeprefix(_PREFIX)
        *pattern, last = option.split(".", 3)
        if is_table_option(option):
            for_all[option] = str(spark.conf.get(name))
        elif len(pattern) < 3 or not is_table_option(last):
            explain_java_option(option)
            raise InvalidRequest(f"Setting {name!r} is unknown.", subject=name, hint=did_you_mean(option, OPTIONS))
        elif all(given in ("*", part) for given, part in zip(pattern, table, strict=True)):
            for_one[last] = str(spark.conf.get(name))
    return for_all | for_one
