"""One measured run in a process of its own: `worker.py LIBRARY WORKLOAD FOLDER`, answering one JSON line.

CPU is the process's own time, all threads, of the measured part alone; imports, data and set-up are outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import first  # noqa: F401

# isort: split
import data
import engines
import keeping
import limit
import pyarrow as pa
import settling

COLUMNS_2 = ["id", "price"]
KEYED = {"bucket": str(data.BUCKETS), "write-only": "true"}
POURED = "poured.arrow"
POURED_BYTES = int(200e6 * data.SCALE)
POURED_ROWS = 50_000
"""What is written in one commit, and in batches of so many rows."""


def measured(work: Callable[[], Any]) -> dict[str, Any]:
    """CPU and wall seconds of `work`, the pages it fetched, and what it answered."""
    settling.settle()
    before = _resident_mib()
    faults = _faults()
    cpu, wall = time.process_time(), time.perf_counter()
    answer = work()
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return took | {"grown_mib": _peak_mib() - before, "faults": _faults() - faults, "answer": answer}


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _resident_mib() -> int:
    """What the process holds now; its peak is counted anew from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak_mib() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(f"{name}:"))
    return int(line.split()[1]) // 1024


class Ours:
    """This library."""

    name = "ours"

    def __init__(self) -> None:
        import paimon
        import paimon.catalog
        import paimon.domain.predicate.build
        import paimon.engines  # imports are no part of what is measured

        self._paimon = paimon
        budget = os.environ.get("BENCHMARK_BUDGET")
        self._options = {"memory_budget": budget} if budget else {}

    def make(
        self, folder: Path, schema: pa.Schema, keys: list[str], partitions: list[str], options: dict[str, str]
    ) -> Any:
        catalog = self._paimon.connect(folder, **self._options)
        catalog.create_database("b", exist_ok=True)
        return catalog.create_table("b.t", schema, primary_keys=keys, partition_keys=partitions, options=options)

    def open(self, folder: Path) -> Any:
        return self._paimon.connect(folder, **self._options).table("b.t")

    def write(self, table: Any, rows: pa.Table | Iterator[pa.RecordBatch]) -> None:
        table.write(rows)

    def scan(self, table: Any, columns: list[str] | None = None, where: tuple[str, Any] | None = None) -> int:
        return table.scan(columns=columns, where=where and self._equal(where)).to_arrow().num_rows

    def stream(self, table: Any) -> int:
        return sum(batch.num_rows for batch in table.scan().to_batches())

    def compact(self, table: Any) -> None:
        table.compact(full=True)

    def plan(self, table: Any, where: tuple[str, Any] | None = None) -> int:
        return sum(len(s.files) for s in table.scan(where=where and self._equal(where)).plan().splits)

    def _equal(self, where: tuple[str, Any]) -> Any:
        return self._paimon.col(where[0]) == where[1]


class Peer:
    """pypaimon, in its default mode or with its native extension."""

    def __init__(self, native: bool) -> None:
        import pypaimon

        if native:
            import pypaimon_rust  # noqa: F401  # imports are no part of what is measured

        self.name = "peer-native" if native else "peer"
        self._pypaimon = pypaimon
        switches = ("scan.native-plan.enabled", "read.native.enabled", "write.native.enabled", "commit.native.enabled")
        self._native = dict.fromkeys(switches, "true") if native else {}

    def make(
        self, folder: Path, schema: pa.Schema, keys: list[str], partitions: list[str], options: dict[str, str]
    ) -> Any:
        catalog = self._pypaimon.CatalogFactory.create({"warehouse": str(folder)})
        catalog.create_database("b", True)
        made = self._pypaimon.Schema.from_pyarrow_schema(schema, partitions, keys, {**options, **self._native})
        catalog.create_table("b.t", made, False)
        return catalog.get_table("b.t")

    def open(self, folder: Path) -> Any:
        catalog = self._pypaimon.CatalogFactory.create({"warehouse": str(folder)})
        table = catalog.get_table("b.t")
        return table.copy(self._native) if self._native else table

    def write(self, table: Any, rows: pa.Table) -> None:
        builder = table.new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(rows)
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def scan(self, table: Any, columns: list[str] | None = None, where: tuple[str, Any] | None = None) -> int:
        builder = self._builder(table, columns, where)
        return builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows

    def plan(self, table: Any, where: tuple[str, Any] | None = None) -> int:
        splits = self._builder(table, None, where).new_scan().plan().splits()
        return sum(len(s.files) for s in splits)

    def _builder(self, table: Any, columns: list[str] | None, where: tuple[str, Any] | None) -> Any:
        builder = table.new_read_builder()
        if where is not None:
            builder = builder.with_filter(builder.new_predicate_builder().equal(*where))
        return builder.with_projection(columns) if columns else builder


def runs(kind: str) -> list[pa.Table]:
    """The rows of all commits; drawn once for all workers of a benchmark."""
    kept = Path(os.environ.get("BENCHMARK_DATA", "."), f"rows-{kind}.arrow")
    if not kept.exists():
        drawn = [engines.draw(kind, i) for i in range(data.RUNS)]
        if "BENCHMARK_DATA" in os.environ:
            with pa.OSFile(str(kept), "wb") as sink, pa.ipc.new_file(sink, drawn[0].schema) as writer:
                for rows in drawn:
                    writer.write_table(rows)
        return drawn
    with pa.OSFile(str(kept)) as source:
        reader = pa.ipc.open_file(source)
        return [pa.Table.from_batches([reader.get_batch(i)]) for i in range(reader.num_record_batches)]


def write(library: Any, folder: Path, kind: str) -> dict[str, Any]:
    """Ten commits of these rows into a table with a key."""
    return _write(library, folder, kind, {})


def write_engine(library: Any, folder: Path, engine: str) -> dict[str, Any]:
    """Ten commits into a table of this merge engine."""
    return _write(library, folder, engines.ROWS[engine], engines.ENGINES[engine])


def _write(library: Any, folder: Path, kind: str, options: dict[str, str]) -> dict[str, Any]:
    tables = runs(kind)
    if library is None:
        folder.mkdir(parents=True, exist_ok=True)
        return measured(lambda: limit.write_keyed(folder, tables))
    buckets = {"bucket": os.environ.get("BENCHMARK_BUCKETS", str(data.BUCKETS))}
    table = library.make(folder, data.schema(kind), ["id"], [], KEYED | buckets | options)
    return measured(lambda: [library.write(table, rows) for rows in tables] and None)


def drawn(_: Any, folder: Path, __: Any) -> dict[str, Any]:
    """The rows of `pour`, in a process of their own: to draw them takes more memory than to write them."""
    folder.mkdir(parents=True, exist_ok=True)
    size, number = 0, 0
    with pa.OSFile(str(folder / POURED), "wb") as sink, pa.ipc.new_file(sink, data.schema()) as writer:
        while size < POURED_BYTES:
            rows = data.run(number)
            writer.write_table(rows, max_chunksize=POURED_ROWS)
            size, number = size + rows.nbytes, number + 1
    return measured(lambda: size)


def pour(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """One commit of many rows, which come batch by batch, into a table with a key."""
    buffer = os.environ["BENCHMARK_BUFFER"]
    table = library.make(folder / buffer, data.schema(), ["id"], [], KEYED | {"write-buffer-size": buffer})
    return measured(lambda: library.write(table, _poured(folder / POURED)))


def _poured(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(file)) as source:
        reader = pa.ipc.open_file(source)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


def append(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Ten commits into a table without a key."""
    tables = runs("int")
    if library is None:
        folder.mkdir(parents=True, exist_ok=True)
        return measured(lambda: limit.write_plain(folder, tables))
    table = library.make(folder, data.schema(), [], [], {"write-only": "true"})
    return measured(lambda: [library.write(table, rows) for rows in tables] and None)


def changelog(library: Any, folder: Path, engine: str) -> dict[str, Any]:
    """Ten commits with the lookup changelog, which compact what they write."""
    tables = runs(engines.ROWS[engine])
    if library is None:
        folder.mkdir(parents=True, exist_ok=True)
        return measured(lambda: limit.write_changelog(folder, tables))
    options = {"bucket": str(data.BUCKETS), "changelog-producer": "lookup", **engines.ENGINES[engine]}
    table = library.make(folder, data.schema(), ["id"], [], options)
    return measured(lambda: [library.write(table, rows) for rows in tables] and None)


def compact(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """A full compaction; the folder holds a copy of a table that nobody else needs."""
    if library is None:
        return measured(lambda: limit.rewrite(folder))
    table = library.open(folder)
    return measured(lambda: library.compact(table))


def scan(library: Any, folder: Path, columns: list[str] | None) -> dict[str, Any]:
    """Read a table whole, or two columns of it."""
    if library is None:
        files = sorted(folder.glob("b.db/t/bucket-*/*.parquet"))
        named = columns or data.schema().names
        return measured(lambda: limit.read(files, named))
    table = library.open(folder)
    return measured(lambda: library.scan(table, columns))


def stream(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Read a table whole, keeping nothing."""
    table = library.open(folder)
    return measured(lambda: library.stream(table))


def lookup(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """One row by its key."""
    table = library.open(folder)
    return measured(lambda: library.scan(table, where=("id", 123_456)))


def plan(library: Any, folder: Path, where: tuple[str, Any] | None) -> dict[str, Any]:
    """Plan a table of many files."""
    table = library.open(folder)
    return measured(lambda: library.plan(table, where))


def latency(library: Any, folder: Path, commits: int) -> dict[str, Any]:
    """Wall and CPU milliseconds of each of many one-row commits, and whether it merged manifests."""
    table = library.make(folder, pa.schema([("a", pa.int64())]), [], [], {"write-only": "true"})
    times = []
    known = _manifests(folder)
    for i in range(commits):
        rows = pa.table({"a": [i]})
        begin, cpu = time.perf_counter(), time.process_time()
        library.write(table, rows)
        worked = 1000 * (time.process_time() - cpu)
        took = 1000 * (time.perf_counter() - begin)
        found = _manifests(folder)
        times.append((took, worked, found - known > 1))
        known = found
    return {"cpu": 0.0, "wall": sum(took for took, _, _ in times) / 1000, "answer": times}


def _manifests(folder: Path) -> int:
    """How many manifests (no lists) there are: a commit that adds more than its own has merged old ones."""
    with contextlib.suppress(FileNotFoundError):
        files = (folder / "b.db" / "t" / "manifest").iterdir()
        return sum(file.name.startswith("manifest-") and "-list-" not in file.name for file in files)
    return 0


WORKLOADS: dict[str, tuple[Callable[..., dict[str, Any]], Any]] = {
    "write-int": (write, "int"),
    "write-string": (write, "string"),
    **{f"write-{engine}": (write_engine, engine) for engine in engines.ENGINES},
    **{f"changelog-{engine}": (changelog, engine) for engine in engines.ENGINES},
    "write-append": (append, None),
    "drawn": (drawn, None),
    "pour": (pour, None),
    "compact": (compact, None),
    "scan-all": (scan, None),
    "stream": (stream, None),
    "scan-2": (scan, COLUMNS_2),
    "lookup": (lookup, None),
    "plan-all": (plan, None),
    "plan-partition": (plan, ("p", 7)),
    "plan-value": (plan, ("v", 12_345)),
    "latency": (latency, 2000),
    "latency-short": (latency, 200),
    **{name: (work, measured) for name, work in keeping.WORKLOADS.items()},
}


def main(library: str, workload: str, folder: str) -> None:
    chosen = {"ours": Ours, "peer": lambda: Peer(False), "peer-native": lambda: Peer(True), "limit": lambda: None}
    function, argument = WORKLOADS[workload]
    result = function(chosen[library](), Path(folder), argument)
    result["peak_mib"] = _peak_mib()
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:4])
