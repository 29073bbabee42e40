"""Java Paimon as tests call it: complete tables of rows as JSON lines, never row by row."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from support.java_options import SHORT_RUN
from support.maven_jars import find_home, resolve_jars

_INTEROP = Path(__file__).resolve().parents[1] / "interop"
_OPEN = [f"--add-opens=java.base/java.{part}=ALL-UNNAMED" for part in ("nio", "lang", "util")]


class JavaPaimon:
    """One JVM with our driver."""

    def __init__(self, classpath: str) -> None:
        options = [
            "-Xmx1g",
            *SHORT_RUN,
            "-Duser.timezone=UTC",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            *_OPEN,
        ]
        port = launch_gateway(classpath=classpath, javaopts=options, die_on_exit=True)
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self._driver = self._gateway.jvm.interop.TableDriver

    def catalog(self, options: Mapping[str, str]) -> Any:
        """Java's own catalog object."""
        jvm = self._gateway.jvm
        java_options = jvm.org.apache.paimon.options.Options.fromMap(dict(options))
        return jvm.org.apache.paimon.catalog.CatalogFactory.createCatalog(
            jvm.org.apache.paimon.catalog.CatalogContext.create(java_options)
        )

    def identifier(self, name: str) -> Any:
        """A table's name as Java has it."""
        return self._gateway.jvm.org.apache.paimon.catalog.Identifier.fromString(name)

    def schema(self, table: Any) -> Any:
        """Java's declaration of the same table as ours: its columns are INT NOT NULL."""
        jvm = self._gateway.jvm
        builder = jvm.org.apache.paimon.schema.Schema.newBuilder()
        for name in table.table_schema.names:
            builder.column(name, jvm.org.apache.paimon.types.DataTypes.INT().notNull())
        builder.primaryKey(list(table.primary_keys))
        for key, value in table.options.items():
            builder.option(key, value)
        return builder.build()

    def create(
        self,
        directory: Path,
        fields: Mapping[str, Any],
        *,
        primary_keys: Iterable[str] = (),
        partition_keys: Iterable[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Make a table; types as schema files have them."""
        definition = {
            "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
            "primaryKeys": list(primary_keys),
            "partitionKeys": list(partition_keys),
            "options": dict(options or {}),
        }
        self._driver.create(str(directory), json.dumps(definition))

    def read(self, directory: Path, *, kinds: bool = False, options: Mapping[str, str] | None = None) -> list[Any]:
        """All rows, in a canonical order."""
        lines = self._driver.read(str(directory), json.dumps({"kinds": kinds, "options": dict(options or {})}))
        return canonical(json.loads(line) for line in lines.split("\n") if line)

    def count_equal(
        self, directory: Path, column: int, value: int | str, options: Mapping[str, str] | None = None
    ) -> tuple[int, int]:
        """Return how many files Java plans, and how many rows it reads of them, if a column must equal a value.

        Java filters no rows here: those that it leaves out are left out by statistics and file indexes.
        """
        request = {"column": column, "value": value, "options": dict(options or {})}
        files, rows = json.loads(self._driver.countEqual(str(directory), json.dumps(request)))
        return files, rows

    def write(
        self,
        directory: Path,
        rows: Iterable[Mapping[str, Any]],
        *,
        identifier: int = 1,
        user: str = "java",
        overwrite: Mapping[str, str] | None = None,
        compact: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """One commit of rows; `_ROW_KIND` in a row is its kind."""
        request: dict[str, Any] = {"identifier": identifier, "user": user, "compact": compact}
        request["options"] = dict(options or {})
        if overwrite is not None:
            request["overwrite"] = dict(overwrite)
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        self._driver.write(str(directory), text, json.dumps(request))

    def delete(self, directory: Path, column: str, values: Iterable[int], *, identifier: int = 1) -> None:
        """Delete the rows of an append table whose integer column has one of the values, by deletion vectors."""
        rows = self._gateway.jvm.interop.RowDriver
        rows.delete(str(directory), column, json.dumps(list(values)), self._long(identifier))

    def compact_append(self, directory: Path, *, identifier: int = 1) -> None:
        """Compact an append table without buckets, as long as Java plans tasks."""
        self._gateway.jvm.interop.RowDriver.compact(str(directory), self._long(identifier))

    def build_global_index(self, directory: Path, column: str, options: Mapping[str, str] | None = None) -> int:
        """Build a B-tree index of a column of all rows; return the number of its files."""
        driver = self._gateway.jvm.interop.GlobalIndexDriver
        return int(driver.build(str(directory), column, json.dumps(dict(options or {}))))

    def select_by_index(self, directory: Path, column: int, operator: str, value: object = None) -> list[int]:
        """Return the first column, INT, of the rows that Java reads for a condition; it filters no rows itself."""
        driver, text = self._gateway.jvm.interop.GlobalIndexDriver, "" if value is None else json.dumps(value)
        return sorted(json.loads(driver.select(str(directory), column, operator, text)))

    def compact_postponed(self, directory: Path, buckets: int, *, identifier: int = 1, user: str = "java") -> None:
        """Move the postponed rows of a table to real buckets. New partitions get this number of buckets."""
        self._gateway.jvm.interop.PostponeDriver.compact(str(directory), buckets, user, self._long(identifier))

    def stream(self, directory: Path, batches: Iterable[Iterable[Mapping[str, Any]]], *, user: str = "java") -> None:
        """One writer, and a commit for each batch of rows, with identifiers from 1 on."""
        lines = [[*(json.dumps(row, ensure_ascii=False) for row in batch), "."] for batch in batches]
        text = "\n".join(line for batch in lines for line in batch)
        self._driver.stream(str(directory), text, json.dumps({"identifier": 1, "user": user}))

    def snapshot(self, directory: Path, snapshot_id: int = 0) -> Any:
        """Java's own view of a snapshot (0: the latest), as parsed JSON."""
        return json.loads(self._driver.snapshot(str(directory), self._long(snapshot_id)))

    def statistics(self, directory: Path) -> str:
        """The statistics file of the latest snapshot, as Java reads it and writes it again."""
        return str(self._driver.statistics(str(directory)))

    def retention(self, directory: Path, verb: str, **request: Any) -> str:
        """One maintenance operation. `RetentionDriver` lists the operations and their results."""
        return str(self._gateway.jvm.interop.RetentionDriver.run(str(directory), verb, json.dumps(request)))

    def picks(self, cases: Iterable[str]) -> list[str]:
        """The files that Java's compaction strategies pick. `CompactionPicks` describes the format of a case."""
        return str(self._gateway.jvm.interop.CompactionPicks.pick("\n".join(cases))).split("\n")

    def curves(self) -> str:
        """The positions of rows on Java's curves; see `CurveVectors`."""
        return str(self._gateway.jvm.interop.CurveVectors.lines())

    def __enter__(self) -> JavaPaimon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gateway.shutdown()

    def _long(self, value: int) -> Any:
        return self._gateway.jvm.java.lang.Long.valueOf(str(value))


def canonical(rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Rows in an order that depends on their values only."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def compile_driver() -> str:
    """The class path: the resolved jars and our driver, compiled once for each version of its sources."""
    sources = sorted((_INTEROP / "java").glob("*.java"))
    pom = _INTEROP / "pom.xml"
    home = find_home(pom, *sources)
    classes, text = home / "classes", os.pathsep.join(resolve_jars(pom, home))
    if not (classes / "interop" / "TableDriver.class").exists():
        command = ["javac", "-nowarn", "-encoding", "UTF-8", "-cp", text, "-d", str(classes), *map(str, sources)]
        subprocess.run(command, check=True, capture_output=True)
    return f"{classes}{os.pathsep}{text}"
