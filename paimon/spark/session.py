"""Sessions that know the data source `paimon`.

Law: what must be set for the source to work is set here and nowhere else.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from paimon.spark.java import ensure_java
from paimon.spark.source import PaimonDataSource

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def session(
    master: str = "local[2]", app_name: str = "paimon", config: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session that knows `paimon`; brings a Java runtime where none is found.

    Parameters
    ----------
    master : str
        Spark's master URL.
    app_name : str
        Shown in Spark's UI.
    config : mapping
        Further Spark settings.
    """
    ensure_java()
    _find_shell()
    # Workers would take any `python3` of the PATH, which may lack this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(app_name)
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    for key, value in (defaults | dict(config or {})).items():
        builder = builder.config(key, value)
    return register(builder.getOrCreate())


def _find_shell() -> None:
    # Spark starts through shell scripts, which look for bash and its tools on the PATH.
    if shutil.which("bash") is None:
        os.environ["PATH"] = os.pathsep.join(filter(None, [os.environ.get("PATH", ""), os.defpath]))


def register(spark: SparkSession) -> SparkSession:
    """Make `format("paimon")` known to a session; answers the session."""
    # Without it every read of a source that can push filters is refused.
    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(PaimonDataSource)
    return spark
