"""Batches are a part of the memory budget, whatever the files look like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from support.case_lists import mark_products
from support.tables import create_table

import paimon
from paimon.operations.data_files.read_data_file import BATCH_ROWS
from paimon.ports.engine import MemoryBudget

BUDGET = 16 << 20
ROWS = 40_000
DIGITS = np.random.default_rng(1).bytes(ROWS * 250).hex()
TEXTS = {"repeated": ["x" * 1_000] * ROWS, "different": [DIGITS[500 * n : 500 * n + 500] for n in range(ROWS)]}


def open_table(home: Path, texts: str, keys: Sequence[str], **options: str) -> paimon.Table:
    table = create_table(home, "k BIGINT NOT NULL, v STRING", primary_keys=keys, options={"bucket": "1"} | options)
    table.write(pa.table({"k": range(ROWS), "v": TEXTS[texts]}))
    return table.with_engine(evolve(table.engine, memory=MemoryBudget(BUDGET)))


class FormatRecorder:
    """Reads with a format, and records the requests and the sizes of the batches."""

    def __init__(self, actual: Any) -> None:
        self.actual, self.requests, self.sizes = actual, list[Any](), list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.actual, name)

    def read(self, source: pa.NativeFile, request: Any) -> Iterator[pa.RecordBatch]:
        self.requests.append(request)
        for batch in self.actual.read(source, request):
            self.sizes.append(batch.nbytes)
            yield batch


def record_reads(table: paimon.Table, form: str) -> tuple[FormatRecorder, paimon.Table]:
    recorder = FormatRecorder(table.engine.format(form))
    formats = {name: recorder if name == form else table.engine.format(name) for name in ("parquet", "orc", "avro")}
    return recorder, table.with_engine(evolve(table.engine, formats=formats))


@pytest.mark.parametrize(("verb", "texts", "keys"), mark_products(["scan", "check", "compact"], TEXTS, [["k"], []]))
def test_batches_are_a_part_of_the_budget(tmp_path: Path, keys: Sequence[str], texts: str, verb: str) -> None:
    options = {"bucket-key": "k"} if not keys else {}
    table = open_table(tmp_path, texts, keys, **options)
    table.write(pa.table({"k": [1, ROWS], "v": ["y", "z"]}))
    recorder, table = record_reads(table, "parquet")
    if verb == "scan":
        assert sum(batch.num_rows for batch in table.scan().to_batches()) == ROWS + (1 if keys else 2)
    elif verb == "check":
        assert table.maintain.check(deep=True).is_whole
    else:
        table.compact(full=True)
    assert recorder.sizes and max(recorder.sizes) <= BUDGET // 3


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_other_formats_estimate_the_size_of_a_row(tmp_path: Path, form: str) -> None:
    recorder, table = record_reads(open_table(tmp_path, "different", ["k"], **{"file.format": form}), form)
    assert sum(batch.num_rows for batch in table.scan().to_batches()) == ROWS
    assert max(recorder.sizes) <= BUDGET // 3


def test_narrow_rows_are_read_in_full_batches(tmp_path: Path) -> None:
    table = create_table(tmp_path, "k BIGINT NOT NULL", primary_keys=["k"], options={"bucket": "1"})
    table.write(pa.table({"k": range(2 * BATCH_ROWS)}))
    recorder, table = record_reads(table, "parquet")
    table.scan().to_arrow()
    assert {request.batch_rows for request in recorder.requests} == {BATCH_ROWS}


def test_a_read_of_few_rows_decodes_few(tmp_path: Path) -> None:
    table = create_table(tmp_path, "k BIGINT NOT NULL", primary_keys=["k"], options={"bucket": "1"})
    table.write(pa.table({"k": range(9_000)}))
    recorder, recorded = record_reads(table, "parquet")
    scan = recorded.scan()
    assert (scan.head(5).num_rows, recorded.scan(limit=5_000).count(), len(recorded.scan(limit=9).to_arrow())) == (
        5,
        5_000,
        9,
    )
    assert [request.batch_rows for request in recorder.requests] == [4_096, 5_000, 4_096]
    recorded.scan(where="k > 4", limit=9).to_arrow()
    assert recorder.requests[-1].batch_rows == BATCH_ROWS
    table.write(pa.table({"k": [9_000]}))
    assert scan.count() == 9_000, "the first rows pinned the snapshot"


def test_tasks_that_use_all_threads_decode_in_their_own(tmp_path: Path) -> None:
    options = {"bucket": "4", "num-sorted-run.compaction-trigger": "9"}
    table = create_table(tmp_path, "k BIGINT NOT NULL, v STRING", primary_keys=["k"], options=options)
    table.write(pa.table({"k": range(100), "v": ["a"] * 100}))
    for tasks, expected in [(1, True), (2, False), (8, True)]:
        shared = table.with_engine(evolve(table.engine, memory=MemoryBudget(BUDGET, tasks)))
        recorder, shared = record_reads(shared, "parquet")
        shared.scan().to_arrow()
        assert {request.is_concurrent for request in recorder.requests} == {expected}


def test_a_merge_of_few_rows_decodes_few(tmp_path: Path) -> None:
    options = {"bucket": "1", "write-only": "true"}
    table = create_table(tmp_path, "k BIGINT NOT NULL, v BIGINT", primary_keys=["k"], options=options)
    for value in range(3):
        table.write(pa.table({"k": range(9_000), "v": [value] * 9_000}))
    recorder, recorded = record_reads(table, "parquet")
    assert recorded.scan(limit=9).to_arrow().to_pylist() == [{"k": key, "v": 2} for key in range(9)]
    assert [request.batch_rows for request in recorder.requests] == [4_096] * 3
    assert len(recorder.sizes) == 3, "one batch of each run"
    recorded.write(pa.table({"k": range(9_000), "kind": ["-D"] * 9_000}), kind_column="kind")
    recorder.requests.clear()
    assert recorded.scan(limit=9).to_arrow().num_rows == 0
    assert [request.batch_rows for request in recorder.requests] == [BATCH_ROWS] * 4, "retracts hide most rows"
