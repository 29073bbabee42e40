"""Measure a MERGE into a large table: this library, on three kinds of tables, and delta-rs.

The target has `--target` rows with a random int64 key, two numbers and a text. The source has `--source` rows: half of
them match, half are new. Each measurement runs in a process of its own, and the result is checked by its counts.

Run ``python benchmarks/merges.py --delta PYTHON``, where PYTHON has `deltalake`, `pyarrow` and `numpy`.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

LIBRARIES = ("keyed", "append-vectors", "append", "delta")
BATCH_ROWS = 1_000_000
_TABLES: dict[str, dict[str, Any]] = {
    "keyed": {"primary_keys": ["id"], "options": {"bucket": "4"}},
    "append-vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "append": {},
}


def make_rows(keys: np.ndarray[Any, Any], version: int) -> pa.Table:
    """Return rows with these keys."""
    texts = pa.array([f"text {i:06d}" for i in range(1000)]).take(pa.array(keys % 1000))
    return pa.table({"id": keys, "a": keys % 97 + version, "x": keys / 7.0, "s": texts})


def iterate_target(count: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the target; the keys are even numbers in random order."""
    keys = np.random.default_rng(1).permutation(count).astype(np.int64) * 2
    for start in range(0, count, BATCH_ROWS):
        yield from make_rows(keys[start : start + BATCH_ROWS], 0).to_batches()


def make_source(target: int, count: int) -> pa.Table:
    """Return the rows of the source: keys that the target has, and as many odd ones."""
    random = np.random.default_rng(2)
    known = random.choice(target, count // 2, replace=False).astype(np.int64) * 2
    return make_rows(random.permutation(np.concatenate([known, known + 1])), 1)


def open_ours(kind: str, folder: Path, target: int) -> Callable[[pa.Table], tuple[int, int]]:
    """Write the target, and return a function that merges a source into it."""
    import paimon
    from paimon.builders import merge_builder  # noqa: F401  (imports are not measured)

    catalog = paimon.connect(folder)
    catalog.create_database("b")
    schema = make_rows(np.empty(0, np.int64), 0).schema
    fields = [f.with_nullable(f.name != "id") for f in schema]
    table = catalog.create_table("b.t", pa.schema(fields), **_TABLES[kind])
    table.write(pa.RecordBatchReader.from_batches(schema, iterate_target(target)))
    table.compact(full=True)

    def merge(source: pa.Table) -> tuple[int, int]:
        """Merge, and return the numbers of updated and inserted rows."""
        done = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all().execute()
        return done.updated, done.inserted

    return merge


def open_delta(folder: Path, target: int) -> Callable[[pa.Table], tuple[int, int]]:
    """Write the target with delta-rs, and return a function that merges a source into it."""
    import deltalake

    schema = make_rows(np.empty(0, np.int64), 0).schema
    deltalake.write_deltalake(folder, pa.RecordBatchReader.from_batches(schema, iterate_target(target)))
    table = deltalake.DeltaTable(folder)

    def merge(source: pa.Table) -> tuple[int, int]:
        """Merge, and return the numbers of updated and inserted rows."""
        job = table.merge(source, "target.id = source.id", source_alias="source", target_alias="target")
        done = job.when_matched_update_all().when_not_matched_insert_all().execute()
        return done["num_target_rows_updated"], done["num_target_rows_inserted"]

    return merge


def measure(library: str, target: int, source: int, folder: Path) -> dict[str, float]:
    """Measure one merge in this process."""
    merge = open_delta(folder, target) if library == "delta" else open_ours(library, folder, target)
    rows = make_source(target, source)
    before, start = time.process_time(), time.perf_counter()
    counts = merge(rows)
    seconds, cpu = time.perf_counter() - start, time.process_time() - before
    assert counts == (source // 2, source // 2), counts
    return {"seconds": seconds, "cpu": cpu, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    """Measure each library in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=int, default=10_000_000, help="rows of the target")
    parser.add_argument("--source", type=int, default=100_000, help="rows of the source")
    parser.add_argument("--repeat", type=int, default=3, help="measurements; the smallest CPU time counts")
    parser.add_argument("--delta", metavar="PYTHON", help="a Python with deltalake; without it delta-rs is left out")
    parser.add_argument("--only", help=f"comma list of {', '.join(LIBRARIES)}")
    parser.add_argument("--one", choices=LIBRARIES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        with tempfile.TemporaryDirectory(prefix="merge-") as folder:
            print(json.dumps(measure(given.one, given.target, given.source, Path(folder) / "t")))
        return
    print("| Table | Seconds | CPU seconds | Peak MiB |\n|---|---|---|---|")
    for library in given.only.split(",") if given.only else LIBRARIES:
        python = given.delta if library == "delta" else sys.executable
        if python is None or shutil.which(python) is None:
            continue
        sizes = ("--target", str(given.target), "--source", str(given.source))
        command = [python, __file__, "--one", library, *sizes]
        runs = [json.loads(subprocess.check_output(command)) for _ in range(given.repeat)]
        best = min(runs, key=lambda run: run["cpu"])
        print(f"| {library} | {best['seconds']:.2f} | {best['cpu']:.2f} | {best['peak_mib']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
