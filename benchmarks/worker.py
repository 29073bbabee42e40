"""Run one workload of one library in a process of its own: `worker.py LIBRARY WORKLOAD FOLDER`.

The worker prints its figures as one line of JSON. CPU time is that of all threads of the process during the measured
part, without imports, random rows and preparations.

A workload is a function of three parameters. `library` is an `Ours` or a `Peer`, or None for the limit. `folder` is the
directory of the table. The third parameter is what `WORKLOADS` names with the function. A workload returns the figures
of `measure`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import import_order  # noqa: F401

# isort: split
import bucket_modes
import data
import libraries
import maintenance
import merge_engines
import numpy as np
import plain_files
import pyarrow as pa
import warm_up

LARGE_FILE = "large.arrow"
LARGE_BYTES = int(200e6 * data.SCALE)
BATCH_ROWS = 50_000
"""File, bytes and rows per batch of the large commit."""


def measure(work: Callable[[], Any]) -> dict[str, Any]:
    """Run a function, and return its CPU and wall seconds, its page faults, its memory in MiB and its result."""
    pa.array(np.zeros(1))  # imports pandas, if it is installed, when it is called for the first time
    warm_up.prepare_memory()
    before = _resident_mib()
    faults = _faults()
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return took | {"grown_mib": _peak_mib() - before, "faults": _faults() - faults, "result": result}


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _resident_mib() -> int:
    """Return the resident memory, and reset the peak of the process."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak_mib() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(f"{name}:"))
    return int(line.split()[1]) // 1024


def load_rows(kind: str) -> list[pa.Table]:
    """Return the rows of all commits."""
    return data.load_parts(kind, data.RUNS, partial(merge_engines.draw_rows, kind))


def write_rows(library: Any, folder: Path, kind: str) -> dict[str, Any]:
    """Measure ten commits into a primary-key table.

    `kind` is a kind of rows, as in `merge_engines.ROWS`.
    """
    return _write_commits(library, folder, kind, {})


def write_engine(library: Any, folder: Path, engine: str) -> dict[str, Any]:
    """Measure ten commits into a table with a merge engine.

    `engine` is a name in `merge_engines.ENGINES`.
    """
    return _write_commits(library, folder, merge_engines.ROWS[engine], merge_engines.ENGINES[engine])


def _write_commits(library: Any, folder: Path, kind: str, options: dict[str, str]) -> dict[str, Any]:
    tables = load_rows(kind)
    if library is None:
        folder.mkdir(parents=True, exist_ok=True)
        return measure(lambda: plain_files.write_keyed(folder, tables))
    buckets = {"bucket": os.environ.get("BENCHMARK_BUCKETS", str(data.BUCKETS))}
    table = library.create_table(folder, data.make_schema(kind), ["id"], [], libraries.KEYED | buckets | options)
    return measure(lambda: [library.write(table, rows) for rows in tables] and None)


def make_rows(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Make the rows of `write_large_commit` in a process of their own, because to draw them needs more memory."""
    folder.mkdir(parents=True, exist_ok=True)
    size, number = 0, 0
    with pa.OSFile(str(folder / LARGE_FILE), "wb") as sink, pa.ipc.new_file(sink, data.make_schema()) as writer:
        while size < LARGE_BYTES:
            rows = data.draw_rows(number)
            writer.write_table(rows, max_chunksize=BATCH_ROWS)
            size, number = size + rows.nbytes, number + 1
    return measure(lambda: size)


def write_large_commit(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Measure one large commit, whose rows arrive in batches, into a primary-key table."""
    buffer = os.environ["BENCHMARK_BUFFER"]
    options = libraries.KEYED | {"write-buffer-size": buffer}
    table = library.create_table(folder / buffer, data.make_schema(), ["id"], [], options)
    return measure(lambda: library.write(table, _read_batches(folder / LARGE_FILE)))


def _read_batches(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(file)) as source:
        reader = pa.ipc.open_file(source)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


def append_rows(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Measure ten commits into an append table."""
    tables = load_rows("int")
    if library is None:
        folder.mkdir(parents=True, exist_ok=True)
        return measure(lambda: plain_files.write_plain(folder, tables))
    table = library.create_table(folder, data.make_schema(), [], [], {"write-only": "true"})
    return measure(lambda: [library.write(table, rows) for rows in tables] and None)


def write_changelog(library: Any, folder: Path, engine: str) -> dict[str, Any]:
    """Measure ten commits with a lookup changelog and compaction.

    `engine` is a name in `merge_engines.ENGINES`.
    """
    tables = load_rows(merge_engines.ROWS[engine])
    if library is None:
        folder.mkdir(parents=True, exist_ok=True)
        return measure(lambda: plain_files.write_changelog(folder, tables))
    options = {"bucket": str(data.BUCKETS), "changelog-producer": "lookup", **merge_engines.ENGINES[engine]}
    table = library.create_table(folder, data.make_schema(), ["id"], [], options)
    return measure(lambda: [library.write(table, rows) for rows in tables] and None)


def compact_table(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Measure a full compaction; the directory is a copy of a table."""
    if library is None:
        return measure(lambda: plain_files.rewrite_newest(folder))
    table = library.open_table(folder)
    return measure(lambda: library.compact(table))


def rescale_table(library: Any, folder: Path, factor: float) -> dict[str, Any]:
    """Measure a rescale; the directory is a copy of a table.

    Parameters
    ----------
    library : Ours, Peer or None
        The library, or None for the limit.
    folder : Path
        Directory of the table.
    factor : float
        The new number of buckets as a multiple of the old one.

    Returns
    -------
    dict
        The figures of `measure`.
    """
    buckets = max(1, round(data.BUCKETS * factor))
    if library is None:
        return measure(lambda: plain_files.rescale_newest(folder, buckets))
    return measure(lambda: library.rescale(folder, buckets))


def scan_table(library: Any, folder: Path, columns: list[str] | None) -> dict[str, Any]:
    """Measure a scan of a table.

    `columns` is a list of names, or None for all columns.
    """
    if library is None:
        files = sorted(folder.glob("b.db/t/bucket-*/*.parquet"))
        named = columns or data.make_schema().names
        return measure(lambda: plain_files.read_files(files, named))
    table = library.open_table(folder)
    return measure(lambda: library.scan(table, columns))


def stream_table(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Measure a scan that keeps no batch."""
    table = library.open_table(folder)
    return measure(lambda: library.stream(table))


def look_up_key(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Measure a scan for one key."""
    table = library.open_table(folder)
    return measure(lambda: library.scan(table, where=("id", 123_456)))


def plan_scan(library: Any, folder: Path, where: tuple[str, Any] | None) -> dict[str, Any]:
    """Measure the plan of a scan of many files.

    `where` is a column and the value that it must have, or None.
    """
    table = library.open_table(folder)
    return measure(lambda: library.plan(table, where))


def sort_manifests(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Measure a merge of all manifests."""
    table = library.open_table(folder)
    return measure(lambda: table.maintain.compact_manifests().manifests_after)


def plan_sorted(library: Any, folder: Path, where: tuple[str, Any]) -> dict[str, Any]:
    """Measure the plan of a partition, from a process that did not merge the manifests."""
    merge = "import sys, paimon; paimon.open_table(sys.argv[1]).maintain.compact_manifests()"
    subprocess.run([sys.executable, "-c", merge, str(folder / "b.db" / "t")], check=True)
    return plan_scan(library, folder, where)


def list_files(library: Any, folder: Path, _: Any) -> dict[str, Any]:
    """Measure a scan of the system table of files."""
    import paimon

    table = paimon.open_table(f"{folder}/b.db/t$files")
    return measure(lambda: table.scan().to_arrow().num_rows)


def find_slowest_commit(library: Any, folder: Path, commits: int) -> dict[str, Any]:
    """Measure commits of one row; the CPU time is that of the slowest."""
    table = library.open_table(folder)
    rows = pa.table({"p": pa.array([7], pa.int32()), "v": [1], "text": ["row"]})
    library.write(table, rows)  # imports what commits need

    def time_commit(_: int) -> float:
        before = time.process_time()
        library.write(table, rows)
        return time.process_time() - before

    found = measure(lambda: max(map(time_commit, range(commits))))
    return found | {"cpu": found["result"]}


def measure_latency(library: Any, folder: Path, commits: int) -> dict[str, Any]:
    """Measure the wall and CPU milliseconds of each one-row commit, and whether it merged manifests."""
    table = library.create_table(folder, pa.schema([("a", pa.int64())]), [], [], {"write-only": "true"})
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
    return {"cpu": 0.0, "wall": sum(took for took, _, _ in times) / 1000, "result": times}


def _manifests(folder: Path) -> int:
    """Count manifests without manifest lists; a commit that adds more than one has merged older manifests."""
    with contextlib.suppress(FileNotFoundError):
        files = (folder / "b.db" / "t" / "manifest").iterdir()
        return sum(file.name.startswith("manifest-") and "-list-" not in file.name for file in files)
    return 0


WORKLOADS: dict[str, tuple[Callable[..., dict[str, Any]], Any]] = {
    "write-int": (write_rows, "int"),
    "write-string": (write_rows, "string"),
    **{f"write-{engine}": (write_engine, engine) for engine in merge_engines.ENGINES},
    **{f"changelog-{engine}": (write_changelog, engine) for engine in merge_engines.ENGINES},
    "write-append": (append_rows, None),
    "make-rows": (make_rows, None),
    "large-commit": (write_large_commit, None),
    "compact": (compact_table, None),
    "rescale-double": (rescale_table, 2),
    "rescale-half": (rescale_table, 0.5),
    "scan-all": (scan_table, None),
    "stream": (stream_table, None),
    "scan-2": (scan_table, libraries.COLUMNS_2),
    "lookup": (look_up_key, None),
    "plan-all": (plan_scan, None),
    "plan-partition": (plan_scan, ("p", 7)),
    "plan-value": (plan_scan, ("v", 12_345)),
    "plan-sorted": (plan_sorted, ("p", 7)),
    "list-files": (list_files, None),
    "sort-manifests": (sort_manifests, None),
    "slowest-commit": (find_slowest_commit, 80),
    "latency": (measure_latency, 2000),
    "latency-short": (measure_latency, 200),
    **{name: (work, measure) for name, work in maintenance.WORKLOADS.items()},
    **{name: (work, (measure, argument)) for name, (work, argument) in bucket_modes.WORKLOADS.items()},
}


def main(library: str, workload: str, folder: str) -> None:
    """Run a workload, and print its figures.

    Parameters
    ----------
    library : str
        ``ours``, ``peer``, ``peer-native`` or ``limit``.
    workload : str
        A name in `WORKLOADS`.
    folder : str
        Directory of the table.
    """
    chosen: dict[str, Callable[[], Any]] = {
        "ours": libraries.Ours,
        "peer": lambda: libraries.Peer(False),
        "peer-native": lambda: libraries.Peer(True),
        "limit": lambda: None,
    }
    function, argument = WORKLOADS[workload]
    result = function(chosen[library](), Path(folder), argument)
    result["peak_mib"] = _peak_mib()
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:4])
