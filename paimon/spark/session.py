"""Sessions that know the data source `paimon`.

Law: what must be set for the source to work is set here and nowhere else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from paimon.domain.errors import InvalidRequest
from paimon.spark.java import ensure_java
from paimon.spark.source import PaimonDataSource

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_PYTHON = "PYSPARK_PYTHON"


def session(
    master: str = "local[*]", app_name: str = "paimon", config: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session that knows `paimon`; brings a Java runtime where none is found.

    Parameters
    ----------
    master : str
        Spark's master URL; all cores of this machine by default.
    app_name : str
        Shown in Spark's UI.
    config : mapping
        Further Spark settings.
    """
    ensure_java()
    _find_shell()
    # Workers would take any `python3` of the PATH, which may lack this package.
    os.environ.setdefault(_PYTHON, sys.executable)
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
    """Make `format("paimon")` known to a session; answers the session.

    The workers of a local session run this program's Python, unless PYSPARK_PYTHON (or ``spark.pyspark.python``) chose
    another one.

    Raises
    ------
    InvalidRequest
        The Python that the workers run cannot import this package.
    """
    # Without it every read of a source that can push filters is refused.
    spark.conf.set(_PUSHDOWN, "true")
    if not _is_registered(spark):
        _choose_python(spark)
        spark.dataSource.register(PaimonDataSource)
    return spark


def _is_registered(spark: SparkSession) -> bool:
    """Whether the session knows the source: to register it again would make Spark warn."""
    if not hasattr(spark, "_jsparkSession"):  # Spark Connect does not tell
        return False
    return bool(spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists(PaimonDataSource.name()))


def _choose_python(spark: SparkSession) -> None:
    if not hasattr(spark, "_jsparkSession"):
        return
    context = spark.sparkContext
    chosen = _PYTHON in os.environ or context.getConf().contains("spark.pyspark.python")
    if not chosen and context.master.startswith("local"):
        context.pythonExec = sys.executable
    found = shutil.which(context.pythonExec)
    if found is None or Path(found) == Path(sys.executable):  # (a path of executors alone cannot be tried here)
        return
    trial = [found, "-c", "import paimon, pyarrow, pyspark"]
    tried = subprocess.run(trial, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        reason = (tried.stderr.strip().splitlines() or ["it fails"])[-1]
        raise InvalidRequest(
            f"Spark's workers run {found}, which cannot use this package: {reason}",
            subject=_PYTHON,
            hint=f"set {_PYTHON} to a Python that has paimon-lake[spark], before the session starts",
        )
