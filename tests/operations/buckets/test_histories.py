"""Drawn histories of tables with dynamic buckets: a key is in one bucket, and reads equal a model."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from support.warm_processes import start_code

import paimon

KEYS = st.lists(st.integers(0, 60), min_size=1, max_size=25)
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "write", "delete", "overwrite"]), st.sampled_from("ab"), KEYS)
    | st.tuples(st.just("compact"), st.sampled_from("ab"), st.just([])),
    min_size=2, max_size=8,
)  # fmt: skip


def create(root: str | Path, options: dict[str, str]) -> paimon.Table:
    catalog = paimon.connect(root)
    catalog.create_database("d")
    columns = "p STRING NOT NULL, k BIGINT NOT NULL, v INT"
    return catalog.create_table("d.t", columns, primary_keys=["p", "k"], partition_keys=["p"], options=options)


def as_table(partition: str, keys: list[int], value: int) -> pa.Table:
    return pa.table({"p": [partition] * len(keys), "k": keys, "v": pa.array([value] * len(keys), pa.int32())})


def find_buckets(table: paimon.Table) -> dict[tuple[Any, Any], set[int]]:
    """The buckets whose files contain a key, deleted or not."""
    found: dict[tuple[Any, Any], set[int]] = {}
    builder = table.new_read_builder()
    for split in builder.new_scan().plan().splits():
        for row in builder.new_read().to_arrow([split]).to_pylist():
            found.setdefault((row["p"], row["k"]), set()).add(split.bucket)
    return found


@settings(max_examples=25, deadline=None)
@given(
    STEPS, st.sampled_from(["1", "7", "1000"]), st.sampled_from(["-1", "3"]),
    st.lists(st.sampled_from(["1", "2", "3"]), min_size=8, max_size=8),
)  # fmt: skip
def test_a_key_stays_in_one_bucket(steps: list[Any], target: str, limit: str, assigners: list[str]) -> None:
    options = {"dynamic-bucket.target-row-num": target, "dynamic-bucket.max-buckets": limit}
    model: dict[tuple[str, int], int] = {}
    with tempfile.TemporaryDirectory() as root:
        table = create(root, {**options, "num-sorted-run.compaction-trigger": "2"})
        for number, (verb, partition, keys) in enumerate(steps):
            # A new handle with another number of assigners, as after a restart of the job.
            table = paimon.open_table(table.location, {"dynamic-bucket.assigner-parallelism": assigners[number]})
            rows = as_table(partition, keys, number)
            if verb == "compact":
                table.compact(full=True)
            elif verb == "delete":
                table.write(rows.append_column("op", pa.array(["-D"] * len(keys))), kind_column="op")
                model = {key: v for key, v in model.items() if key[0] != partition or key[1] not in keys}
            else:
                replaces = verb == "overwrite"
                table.overwrite(rows) if replaces else table.write(rows)
                model = {key: v for key, v in model.items() if not replaces or key[0] != partition}
                model |= {(partition, k): number for k in keys}
            assert {(r["p"], r["k"]): r["v"] for r in table.scan().to_arrow().to_pylist()} == model
            assert all(len(buckets) == 1 for buckets in find_buckets(table).values())
        assert [f.reason for f in table.maintain.check(deep=True).faults] == []


WRITER = """
import sys
import pyarrow as pa
import paimon

table = paimon.open_table(sys.argv[1])
for step in range(12):
    keys = [(step * 20 + i) % 150 for i in range(40)]
    values = pa.array([int(sys.argv[2]) * 100 + step] * 40, pa.int32())
    table.write(pa.table({"p": ["ab"[k % 2] for k in keys], "k": keys, "v": values}))
"""


def test_two_processes_write_the_same_partitions(tmp_path: Path) -> None:
    table = create(tmp_path, {"dynamic-bucket.target-row-num": "10"})
    logs = [tmp_path / f"errors-{number}" for number in (1, 2)]
    for log in logs:
        log.touch()
    processes = [
        start_code(WRITER, [table.location, str(number)], [os.devnull, os.devnull, str(log)])
        for number, log in enumerate(logs, 1)
    ]
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0, 0], [log.read_text() for log in logs]
    rows = table.scan().to_arrow().to_pylist()
    assert sorted(row["k"] for row in rows) == list(range(150))
    assert len({row["v"] // 100 for row in rows}) <= 2
    assert all(len(buckets) == 1 for buckets in find_buckets(table).values())
    index = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    assert sum(row["row_count"] for row in index) == 150
    assert table.maintain.check(deep=True).faults == ()
