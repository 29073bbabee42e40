"""Spark Connect: what works through a server, what is refused by name, and declarative pipelines, which need one."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkValueError
from pyspark.sql import SparkSession
from support.java_spark_statements import read_statements

import paimon
from paimon.spark import pipelines

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pipeline"
CLIENT = """
import gc, json, sys
import paimon, paimon.spark
from attrs import evolve
from pyspark.errors.exceptions.connect import SparkException
from pyspark.sql import SparkSession

lake = sys.argv[1]
spark = paimon.spark.register(SparkSession.builder.getOrCreate(), lake)


def refusal(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except paimon.PaimonError as error:
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
found["attach"] = refusal(paimon.spark.attach, spark, lake)
found["identifier"] = refusal(paimon.spark.write, frame, "db.keyed", commit_identifier=0)
for _ in range(2):
    paimon.spark.write(frame, "db.keyed", commit_user="job", commit_identifier=0)
for name in sys.argv[2:]:
    changed = paimon.spark.delete(name, "id = 1", spark=spark).rows
    changed = [changed, paimon.spark.update(name, {"amount": "amount + 1"}, "id > 1", spark=spark).rows]
    merge = paimon.spark.merge(frame.selectExpr("id + 1 AS id", "amount"), name, on="id")
    values = {"id": "source.id", "amount": "source.amount"}
    done = merge.when_matched_update({"amount": "source.amount"}).when_not_matched_insert(values).execute()
    found[name] = [*changed, done.updated, done.inserted]
shop = paimon.spark.connect(spark, lake)
own = [paimon.spark.read(spark, "db.keyed"), shop.sql("SELECT id, amount FROM db.keyed")]
paimon.connect(lake).table("db.keyed").write({"id": [2], "amount": [20]})
merges = [paimon.spark.merge(rows, "db.keyed", on="id").when_matched_delete() for rows in own]
found["own"] = [refusal(merge.execute) for merge in merges]
frame.createOrReplaceTempView("incoming")
joined = "incoming AS i JOIN db.keyed AS k ON i.id = k.id"
rows = shop.sql(f"SELECT i.id, '{{`x`}} ${{y}}' AS t FROM {joined} WHERE k.id > 2 ORDER BY 1")
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
day = shop.sql("SELECT CAST(TIMESTAMPTZ '2026-01-01 20:00:00Z' AS DATE) AS day, id FROM db.keyed LIMIT 1")
spark.conf.set("spark.sql.ansi.enabled", "false")
found["sql"] = [[tuple(row) for row in rows.collect()], str(day.first().day), "BatchScan" in shop.sql(
    "EXPLAIN SELECT id FROM db.keyed").toPandas().to_csv()]
statements = (
    "INSERT INTO db.copied SELECT id + 100, amount FROM incoming",
    "INSERT INTO db.copied SELECT * FROM db.keyed",
    "UPDATE db.copied SET amount = amount * 2 WHERE id IN (SELECT id + 100 FROM incoming WHERE id < 3)",
    "UPDATE db.copied c SET amount = (SELECT max(i.amount) FROM incoming i WHERE i.id + 100 = c.id) WHERE id > 102",
    "DELETE FROM db.copied WHERE id = 101",
    "MERGE INTO db.copied USING incoming AS s ON copied.id = s.id WHEN MATCHED THEN DELETE",
)
shop.sql("CREATE TABLE db.copied (id BIGINT, amount BIGINT)")
found["statements"] = [shop.sql(text).first()[0] for text in statements[: None if len(sys.argv) > 3 else 1]]
gc.collect()
found["text"] = shop.sql("SELECT '{x}' AS one").first()[0]
found["views"] = sum(table.name.startswith("paimon_result_") for table in spark.catalog.listTables())
found["unknown"] = refusal(shop.sql, "SELECT nosuch FROM db.keyed")
found["copied"] = sorted(map(tuple, shop.sql("SELECT id, amount FROM db.copied").collect()))
copy = paimon.connect(lake).table("db.copy")
stopping = copy.with_engine(evolve(copy.engine, callbacks={"stop": lambda done: spark.stop()}))
paimon.spark.write(spark.sql("SELECT 9L AS id, 0L AS amount"), stopping)  # the session stops in the commit
found["stopped"] = [refusal(paimon.spark.write, frame, copy), refusal(paimon.spark.delete, copy, "id = 9", spark=spark),
                    refusal(shop.sql, "SELECT id FROM db.keyed"), refusal(paimon.spark.merge, frame, copy, on="id")]
print(json.dumps(found))
"""


MAINTENANCE = """
import json, sys, types
import paimon, paimon.spark
from pyspark.sql import SparkSession

spark = paimon.spark.register(SparkSession.builder.getOrCreate(), sys.argv[1])
spark.createDataFrame([(4, 40)], "id BIGINT, amount BIGINT").write.format("paimon").mode("append").save("db.rows")
calls = {
    "data source": lambda: spark.read.format("paimon").load("db.rows").count(),
    "compact": lambda: paimon.spark.compact("db.keyed", full=True, spark=spark).snapshot_ids,
    "rescale": lambda: paimon.spark.rescale("db.keyed", 3, spark=spark).snapshot_ids,
    "check": lambda: paimon.spark.check("db.keyed", deep=True, spark=spark).is_whole,
    "maintain": lambda: paimon.spark.maintain("db", full=True, spark=spark).num_rows,
    "remove_orphans": lambda: paimon.spark.remove_orphans("db.keyed", spark=spark) is not None,
    "expire_snapshots": lambda: paimon.spark.expire_snapshots("db.keyed", retain_max=1, spark=spark) is not None,
}
found = {name: call() for name, call in calls.items()}
newer = types.ModuleType("paimon.newer")  # a module that the server lacks, as of a newer version of this package
exec("def keep(batches): yield from batches", vars(newer))
sys.modules["paimon.newer"] = newer
try:
    rows = spark.range(1).selectExpr("id", "id AS amount").mapInArrow(newer.keep, "id LONG, amount LONG")
    paimon.spark.write(rows, "db.rows")
except paimon.InvalidRequest as error:
    found["newer"] = str(error)
print(json.dumps(found))
"""
LIST = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "run-on-spark.md"


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


def run_client(server: str, *arguments: object, stdin: str | None = None) -> str:
    """Run a Python process whose session is one of the server, and return its output."""
    environment = {**os.environ, "SPARK_REMOTE": server}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


LAYOUTS: dict[str, dict[str, object]] = {
    "vectors": {"deletion-vectors.enabled": True},
    "append": {},
    "fixed": {"bucket": 2, "bucket-key": "id"},
    "dynamic": {},
    "crossed": {},
}


@pytest.mark.slow("starts a server and a client")
@pytest.mark.parametrize("count", [1, pytest.param(len(LAYOUTS), marks=pytest.mark.nightly)])
def test_connect_reads_writes_and_changes_rows(server: str, catalog: paimon.Catalog, count: int) -> None:
    ddl = "id BIGINT NOT NULL, amount BIGINT"
    keyed = catalog.create_table("db.keyed", ddl, primary_keys=["id"], options={"bucket": 2})
    copy = catalog.create_table("db.copy", ddl, primary_keys=["id"], options={"bucket": 2})
    incoming = Path(catalog.warehouse) / "incoming"
    incoming.mkdir()
    (incoming / "rows.json").write_text('{"id": 7, "amount": 70}')
    for name, options in list(LAYOUTS.items())[:count]:
        keys = ["id"] if name in ("dynamic", "crossed") else []
        partition = ["part"] if name == "crossed" else []
        table = catalog.create_table(f"db.{name}", f"{ddl}, part INT", primary_keys=keys, partition_keys=partition,
                                     options=options)  # fmt: skip
        table.write({"id": [1, 2, 3], "amount": [10, 20, 30], "part": [0, 0, 1]})
    names = [f"db.{name}" for name in list(LAYOUTS)[:count]]
    found = json.loads(run_client(server, "-c", CLIENT, catalog.warehouse, *names))
    assert (found["written"], sorted(found["read"])) == (3, [2, 3])
    assert keyed.scan().to_arrow().sort_by("id").to_pydict() == {"id": [1, 2, 3], "amount": [10, 20, 30]}
    assert copy.scan().to_arrow().sort_by("id").to_pydict() == {"id": [7, 9], "amount": [70, 0]}
    assert min(s.commit_identifier for s in copy.snapshots()) == 0
    assert "'commit_identifier' needs 'commit_user' through Spark Connect" in found["identifier"]
    assert len({s.commit_user for s in keyed.snapshots()}) == 3
    assert "Not supported: attach through Spark Connect. Use a classic Spark session, or paimon" in found["attach"]
    for name in names:
        assert found[name] == [1, 2, 2, 1]
        rows = catalog.table(name).scan(["id", "amount"]).to_arrow().sort_by("id")
        assert rows.to_pydict() == {"id": [2, 3, 4], "amount": [10, 20, 30]}
    for conflict in found["own"]:
        assert "changed rows after snapshot" in conflict
    assert found["sql"] == [[[3, "{`x`} ${y}"]], "2026-01-02", True]
    assert found["text"] == "{x}"
    assert found["views"] <= 4  # `rows`, `day`, one of `own`, and the last one
    assert found["statements"] == [3, 3, 2, 1, 1, 0][: 6 if len(names) > 1 else 1]
    assert found["copied"] == [[102, 40], [103, 30]] if len(names) > 1 else [[101, 10], [102, 20], [103, 30]]
    assert "Column 'nosuch' does not exist" in found["unknown"]
    assert found["stopped"] == ["The Spark session is stopped. Create another session."] * 4


@pytest.mark.nightly
@pytest.mark.slow("starts a client")
def test_maintenance_and_the_data_source_work_through_connect(
    server: str, catalog: paimon.Catalog, spark: SparkSession
) -> None:
    ddl = "id BIGINT NOT NULL, amount BIGINT"
    rows = {"id": [1, 2, 3], "amount": [10, 20, 30]}
    keyed = catalog.create_table("db.keyed", ddl, primary_keys=["id"], options={"bucket": 2, "write-only": True})
    for table in (keyed, keyed, catalog.create_table("db.rows", ddl)):
        table.write(rows)
    found = json.loads(run_client(server, "-c", MAINTENANCE, catalog.warehouse))
    assert (found["data source"], found["check"], found["expire_snapshots"]) == (4, True, True)
    assert len(found["compact"]) == len(found["rescale"]) == 1
    assert "no version of this package that fits this process: ModuleNotFoundError" in found["newer"]
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    tags = " ".join(jobs.apply(number).jobTags().toString() for number in range(jobs.size()))
    assert [verb for verb in ("compact", "rescale", "check") if f"paimon:{verb}:db.keyed" not in tags] == [], tags


def test_each_name_of_the_list_of_what_works_is_tested() -> None:
    listed = LIST.read_text().partition("| | Classic session | Spark Connect |")[2].partition("\n\n")[0]
    names = [line.split("|")[1] for line in listed.splitlines() if line.startswith("| ")]
    named = {name for cell in names for name in re.findall(r"`(\w+)`", cell)}
    tested = CLIENT + MAINTENANCE
    assert {name for name in named if f"paimon.spark.{name}" not in tested} == {"ReadConflict", "cdc"}


@pytest.mark.slow("starts programs of a pipeline")
@pytest.mark.nightly
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


@pytest.mark.slow("starts programs of a pipeline")
@pytest.mark.nightly
def test_a_live_pipeline_keeps_its_tables_up_to_date(tmp_path: Path) -> None:
    for program in (["create_tables.py", tmp_path], *[["live.py", tmp_path, "1"]] * 2):  # started again once
        command = [sys.executable, str(EXAMPLE / program[0]), *map(str, program[1:])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    catalog = paimon.connect(tmp_path / "lake")
    days = catalog.table("shop.days").scan().to_arrow().to_pydict()
    assert dict(zip(*days.values(), strict=True)) == {"mon": 500, "tue": 700, "wed": 900, "thu": 900, "fri": 1800}
    states = catalog.table("shop.states").scan(["id", "state"]).to_arrow().sort_by("id").to_pydict()
    assert states == {"id": [2, 3, 5, 7, 9, 11], "state": ["shipped"] * 4 + ["new"] * 2}


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


STATEMENTS = """
import json, sys
import paimon, paimon.spark
from pyspark.sql import SparkSession

shop = paimon.spark.connect(SparkSession.builder.getOrCreate(), sys.argv[1])
found = []
for text in json.loads(sys.stdin.read()):
    try:
        shop.sql(text).collect()
        found.append(None)
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}".split("\\n")[0])
print(json.dumps(found))
"""


@pytest.mark.nightly
@pytest.mark.slow("runs 76 statements")
def test_statements_of_java_work_through_connect_or_are_refused_as_listed(server: str, catalog: paimon.Catalog) -> None:
    statements = list(read_statements(through_connect=True))
    texts = [text.replace("lake.", "paimon.") for text, _ in statements]  # the name of the catalog there
    found = json.loads(run_client(server, "-c", STATEMENTS, catalog.warehouse, stdin=json.dumps(texts)))
    wrong = [
        (text, refused, error)
        for (text, refused), error in zip(statements, found, strict=True)
        if (refused is None) != (error is None) or not (error or "").startswith(refused or "")
    ]
    assert not wrong, "\n".join(map(str, wrong))
