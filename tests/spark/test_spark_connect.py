"""Spark Connect: what works through a server, what is refused by name, and declarative pipelines, which need one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkValueError
from pyspark.sql import SparkSession

import paimon
from paimon.spark import pipelines

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pipeline"
CLIENT = """
import json, sys
import paimon, paimon.spark
from pyspark.errors.exceptions.connect import SparkException
from pyspark.sql import SparkSession

lake = sys.argv[1]
spark = paimon.spark.register(SparkSession.builder.getOrCreate(), lake)


def refusal(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except (paimon.Unsupported, paimon.InvalidRequest) as error:
        return str(error)


frame = spark.createDataFrame([(1, 10), (2, 20), (3, 30)], "id BIGINT, amount BIGINT")
found = {"written": paimon.spark.write(frame, "db.keyed").rows}
found["read"] = [row.id for row in paimon.spark.read(spark, "db.keyed", where="amount > 10").collect()]
stream = spark.readStream.schema(frame.schema).json(f"{lake}/incoming")
for attempt in range(12):
    try:
        query = paimon.spark.write_stream(stream, "db.copy", f"{lake}/checkpoint", trigger={"availableNow": True})
        break
    except SparkException as error:  # Spark gives a Python process ten seconds to start, which a busy machine exceeds
        if "failed to connect back" not in str(error) or attempt == 11:
            raise
query.awaitTermination()
found["refused"] = [
    refusal(paimon.spark.delete, "db.keyed", "id = 1"),
    refusal(paimon.spark.update, "db.keyed", {"amount": "1"}, "id = 1"),
    refusal(paimon.spark.merge, frame, "db.keyed", on="id"),
    refusal(paimon.spark.connect, spark, lake),
]
found["identifier"] = refusal(paimon.spark.write, frame, "db.keyed", commit_identifier=0)
for _ in range(2):
    paimon.spark.write(frame, "db.keyed", commit_user="job", commit_identifier=0)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[str]:
    """The address of a server of Spark Connect, in the Java process of the session of all tests."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    context = spark.sparkContext
    context._jsc.sc().conf().set("spark.connect.grpc.binding.port", str(port))
    plugin = context._jvm.org.apache.spark.sql.connect.SparkConnectPlugin().driverPlugin()
    plugin.init(context._jsc.sc(), None)
    yield f"sc://localhost:{port}"
    plugin.shutdown()


def run_client(server: str, *arguments: object) -> str:
    """Run a Python process whose session is one of the server, and return its output."""
    environment = {**os.environ, "SPARK_REMOTE": server}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow("starts a server and a client")
def test_connect_reads_and_writes_and_refuses_by_name(server: str, catalog: paimon.Catalog) -> None:
    ddl = "id BIGINT NOT NULL, amount BIGINT"
    keyed = catalog.create_table("db.keyed", ddl, primary_keys=["id"], options={"bucket": 2})
    copy = catalog.create_table("db.copy", ddl, primary_keys=["id"], options={"bucket": 2})
    incoming = Path(catalog.warehouse) / "incoming"
    incoming.mkdir()
    (incoming / "rows.json").write_text('{"id": 7, "amount": 70}')
    found = json.loads(run_client(server, "-c", CLIENT, catalog.warehouse))
    assert (found["written"], sorted(found["read"])) == (3, [2, 3])
    assert keyed.scan().to_arrow().sort_by("id").to_pydict() == {"id": [1, 2, 3], "amount": [10, 20, 30]}
    assert copy.scan().to_arrow().to_pydict() == {"id": [7], "amount": [70]}
    assert [s.commit_identifier for s in copy.snapshots()] == [0]
    assert "'commit_identifier' needs 'commit_user' through Spark Connect" in found["identifier"]
    assert len({s.commit_user for s in keyed.snapshots()}) == 2
    for message, name, way in zip(
        found["refused"],
        ("delete", "update", "merge", "SQL statements"),
        ("Table.delete", "Table.update", "Table.merge", "Catalog.sql"),
        strict=True,
    ):
        assert f"Not supported: {name} through Spark Connect. Use a classic Spark session, or {way}" in message


@pytest.mark.slow("starts programs of a pipeline")
def test_a_pipeline_writes_each_row_once(server: str, tmp_path: Path) -> None:
    run_client(server, EXAMPLE / "create_tables.py", tmp_path)
    catalog = paimon.connect(tmp_path / "lake")
    large = catalog.table("shop.large_orders")
    for ids, identifiers in (([2, 3], [0]), ([2, 3, 5], [0, 1])):
        output = run_client(server, "-m", "paimon.spark.pipelines", "run", "--spec", tmp_path / "spark-pipeline.yml")
        assert "Run is COMPLETED." in output
        assert sorted(large.scan().to_arrow()["id"].to_pylist()) == ids
        assert [s.commit_identifier for s in large.snapshots()] == identifiers
        catalog.table("shop.orders").write({"id": [4, 5], "day": ["wed", "wed"], "amount": [1, 900]})


def test_a_pipeline_ends_as_its_run_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.pipelines import cli

    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    error: list[PySparkValueError] = []

    def fail() -> None:
        raise error[0]

    monkeypatch.setattr(cli, "main", fail)
    counters = "Plan observed(__python_accumulator__=[])"  # of PySpark 4.3, after the run completed
    for condition, parameters in (
        ("UNKNOWN_RESPONSE", {"response": "Plan observed(other=[])"}),
        ("CANNOT_BE_NONE", {"arg_name": counters}),
    ):
        error[:] = [PySparkValueError(errorClass=condition, messageParameters=parameters)]
        with pytest.raises(PySparkValueError):
            pipelines.main()
    error[:] = [PySparkValueError(errorClass="UNKNOWN_RESPONSE", messageParameters={"response": counters})]
    assert pipelines.main() == 0


def test_pipelines_of_an_older_pyspark_and_without_packages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    for missing, message in (("pyspark.pipelines", "PySpark 4.1 or newer"), ("grpc", "extra 'connect'")):
        with monkeypatch.context() as patch:
            for name in [n for n in sys.modules if n.startswith(("pyspark.pipelines", "pyspark.sql.connect", "grpc"))]:
                patch.delitem(sys.modules, name)
            patch.setitem(sys.modules, missing, None)
            with pytest.raises(paimon.PaimonError, match=message):
                pipelines.main()
