"""Run the steps of `spark_connectors.py` in one Spark session: with this library, or with Paimon's connector for Java.

    python benchmarks/spark_worker.py ours FOLDER            each line of the input is a step; each answer is JSON

The same file runs under the Python of each connector, so it imports neither at its top.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

TABLE = "b.t"
COLUMNS = (
    "id BIGINT NOT NULL, quantity INT, price DOUBLE, total BIGINT, name STRING, city STRING, note STRING, "
    "moment {moment}, day DATE, flag BOOLEAN"
)
ALL_COLUMNS = [
    "sum(id) AS ids", "sum(quantity)", "sum(price)", "sum(total)", "sum(length(name))", "count(city)",
    "sum(length(note))", "max(moment)", "max(day)", "count(flag)",
]  # fmt: skip


class Ours:
    """The library of this repository, on the PySpark of its environment."""

    def __init__(self, folder: Path, master: str) -> None:
        import paimon
        import paimon.spark

        self._api = paimon.spark
        self.spark: Any = paimon.spark.session(master, "ours", settings_of(folder))
        catalog = paimon.connect(folder / "ours")
        catalog.create_database("b", exist_ok=True)
        options = {"bucket": "4", "write-only": "true"}
        columns = COLUMNS.format(moment="TIMESTAMP_LTZ(6)")
        self._table = catalog.create_table(TABLE, columns, primary_keys=["id"], options=options)
        self.catalog = "lake"
        paimon.spark.attach(self.spark, catalog, self.catalog)

    def write(self, rows: Any) -> None:
        """Commit the rows of a frame."""
        self._api.write(rows, self._table)

    def read(self, columns: list[str] | None = None, where: str | None = None) -> Any:
        """Return a frame of the table."""
        return self._api.read(self.spark, self._table, columns, where)

    def compact(self) -> None:
        """Compact each bucket to one run."""
        self._api.compact(self._table, full=True, spark=self.spark)


class Java:
    """Paimon's connector for Java, on the PySpark that it was made for."""

    def __init__(self, folder: Path, master: str) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(master).appName("java").config("spark.jars", os.environ["PAIMON_JAR"])
        settings = settings_of(folder) | {
            "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.paimon.warehouse": f"file:{folder}/java",
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark: Any = builder.getOrCreate()
        self.catalog = "paimon"
        self.spark.sql("USE paimon")
        self.spark.sql("CREATE DATABASE IF NOT EXISTS b")
        properties = "'primary-key' = 'id', 'bucket' = '4', 'write-only' = 'true', 'file.format' = 'parquet'"
        columns = COLUMNS.format(moment="TIMESTAMP")
        self.spark.sql(f"CREATE TABLE {TABLE} ({columns}) TBLPROPERTIES ({properties})")

    def write(self, rows: Any) -> None:
        """Commit the rows of a frame."""
        rows.write.mode("append").insertInto(TABLE)

    def read(self, columns: list[str] | None = None, where: str | None = None) -> Any:
        """Return a frame of the table."""
        frame = self.spark.table(TABLE)
        frame = frame if where is None else frame.where(where)
        return frame if columns is None else frame.select(*columns)

    def compact(self) -> None:
        """Compact each bucket to one run."""
        self.spark.sql(f"CALL sys.compact(table => '{TABLE}')").collect()


def settings_of(folder: Path) -> dict[str, str]:
    """Return the settings that both sessions have."""
    return {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "3g", "spark.local.dir": str(folder / "spark")}


MERGE = "USING rows AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
IDIOMS = {
    "sql": "SELECT city, count(*), max(day) FROM {table} WHERE quantity > 500 GROUP BY city ORDER BY city LIMIT 5",
    "table": "spark.table(…).where(…).selectExpr(…)",
    "writeTo": "df.writeTo(…).append()",
    "insertInto": "df.write.insertInto(…)",
    "saveAsTable": "df.write.saveAsTable(…)",
    "INSERT": "INSERT INTO {table} SELECT * FROM rows",
    "DELETE": "DELETE FROM {table} WHERE id % 20 = {number}",
    "UPDATE": "UPDATE {table} SET total = total + 1 WHERE id % 20 = {number}",
    "MERGE": f"MERGE INTO {{table}} AS t {MERGE}",
}
"""What users of Spark write, by name: a statement, or the calls of `run_idiom`."""


def run_idiom(spark: Any, catalog: str, name: str, number: int, folder: Path) -> Any:
    """Run an idiom through the catalog of a session; a number is used once for an idiom."""
    table = f"{catalog}.{TABLE}"
    rows = spark.read.parquet(str(folder / f"rows-{number}.parquet"))
    rows.createOrReplaceTempView("rows")
    if name == "table":
        return list(spark.table(table).where("id < 5000").selectExpr("count(*)", "sum(total)").first())
    if name == "writeTo":
        rows.writeTo(table).append()
    elif name == "insertInto":
        rows.write.insertInto(table)
    elif name == "saveAsTable":
        rows.write.format("paimon").saveAsTable(f"{catalog}.b.saved_{number}")
    else:
        found = spark.sql(IDIOMS[name].format(table=table, number=number)).collect()
        return [str(row) for row in found] if name == "sql" else None
    return None


def run_step(connector: Ours | Java, step: str, folder: Path) -> Any:
    """Run one step, and return what both connectors must agree on."""
    name, *given = step.split()
    if name == "write":
        connector.write(connector.spark.read.parquet(str(folder / f"rows-{given[0]}.parquet")))
    elif name == "compact":
        connector.compact()
    elif name == "count":
        return connector.read(["id"]).count()
    elif name in IDIOMS:
        return run_idiom(connector.spark, connector.catalog, name, int(given[0]), folder)
    elif name == "aggregate":
        return [str(value) for value in connector.read().selectExpr(*ALL_COLUMNS).first()[::7]]
    elif name == "noop":
        connector.read().write.format("noop").mode("overwrite").save()
    else:
        assert name == "lookup", name
        return [str(value) for value in connector.read(where=f"id = {given[0]}").collect()[0]]
    return None


def count_cpu_seconds() -> float:
    """Return the CPU time of this process and of all that it started, with those that have ended."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(used.get(pid, 0) for pid in own)


def main() -> None:
    """Run the steps of the standard input."""
    kind, folder = sys.argv[1], Path(sys.argv[2])
    connector = {"ours": Ours, "java": Java}[kind](folder, sys.argv[3])
    connector.spark.sparkContext.setLogLevel("OFF")
    print("ready", flush=True)
    for line in sys.stdin:
        before, start = count_cpu_seconds(), time.perf_counter()
        result = run_step(connector, line.strip(), folder)
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "cpu": count_cpu_seconds() - before, "result": result}), flush=True)
    connector.spark.stop()


if __name__ == "__main__":
    main()
