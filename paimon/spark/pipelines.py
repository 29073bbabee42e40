"""Run a declarative pipeline of Spark: ``python -m paimon.spark.pipelines run --spec spark-pipeline.yml``.

The command has the arguments of ``spark-pipelines``. It finds Java as `paimon.spark.session` does, workers run the
Python of this process, and a run that completed ends with exit code 0.
"""

from __future__ import annotations

import os
import sys

from pyspark.errors import PySparkException

from paimon.domain.errors import Unsupported
from paimon.domain.extras import missing_extra
from paimon.engines import set_environment
from paimon.spark.session import prepare_environment

_REMOTE, _LOCAL = "SPARK_REMOTE", "local[*]"
_UNKNOWN, _COUNTERS = "[UNKNOWN_RESPONSE]", "__python_accumulator__"


def main() -> int:
    """Run the pipeline that the arguments of this process name, with the server of SPARK_REMOTE or a local one.

    Raises `Unsupported` if this version of PySpark has no pipelines.
    """
    try:
        from pyspark.pipelines import cli
    except ImportError as missing:
        if (missing.name or "").startswith("pyspark"):
            raise Unsupported("pipelines with this PySpark", hint="install PySpark 4.1 or newer") from missing
        raise missing_extra("paimon.spark.pipelines", missing.name or "grpc", "connect") from missing
    prepare_environment()
    if _REMOTE not in os.environ:
        set_environment(_REMOTE, _LOCAL)
    try:
        cli.main()
    except PySparkException as error:
        if not _reports_counters(error):
            raise
    return 0


def _reports_counters(error: PySparkException) -> bool:
    """Return whether a run completed, and PySpark 4.3 did not know the counters of Python workers at its end."""
    return _UNKNOWN in str(error) and _COUNTERS in str(error)


if __name__ == "__main__":
    sys.exit(main())
