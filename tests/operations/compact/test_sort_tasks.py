"""The parts of a sorted compaction that tasks share: ranges follow from samples, and options decide how."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.tables import create_table

import paimon
from paimon.domain.errors import InvalidRequest
from paimon.domain.maintenance.sort_order import bind_sort_order
from paimon.operations.compact.compact import plan_buckets
from paimon.operations.compact.plan_bucket import BucketWork
from paimon.operations.compact.sort_tasks import choose_step, divide_into_shares, plan_ranges, sample_share
from paimon.operations.metadata.snapshots import latest_snapshot


def plan_works(table: paimon.Table) -> list[BucketWork]:
    snapshot = latest_snapshot(table.context)
    assert snapshot is not None
    return plan_buckets(table.context, snapshot, False, None, bind_sort_order(table.definition, "order", ["a"]))


def test_an_option_balances_ranges_by_bytes_or_by_rows(tmp_path: Path) -> None:
    """Rows below 500 have a long text, so half of the bytes are far below half of the rows."""
    table = create_table(tmp_path, "a INT, b STRING", options={"target-file-size": "1 kb"})
    table.write({"a": pa.array(range(500), pa.int32()), "b": [f"{i}" * 200 for i in range(500)]})
    table.write({"a": pa.array(range(500, 1000), pa.int32()), "b": pa.nulls(500, pa.string())})
    works = plan_works(table)
    shares = divide_into_shares(works, 2)
    assert {f.file_name for s in shares for f in s.work.rewritten} == {f.file_name for f in works[0].rewritten}

    def find_bound(strategy: str) -> int:
        context = table.with_options({"sort-compaction.range-strategy": strategy}).context
        samples = [sample_share(context, 1, share) for share in shares]
        (bounds,) = plan_ranges(context, works, shares, samples, 2)
        (bound,) = bounds.column(0).to_pylist()
        return int(bound)

    assert abs(find_bound("quantity") - 500) <= 2
    assert find_bound("size") < 450


def test_an_option_decides_how_many_rows_are_sampled(tmp_path: Path) -> None:
    table = create_table(tmp_path, "a INT")
    table.write({"a": pa.array(range(4000), pa.int32())})
    works = plan_works(table)
    assert choose_step(table.context, works, 2) == 2
    fewer = table.with_options({"sort-compaction.local-sample.magnification": 20})
    assert choose_step(fewer.context, works, 2) == 100
    assert sample_share(fewer.context, 100, divide_into_shares(works, 1)[0]).num_rows == 40
    too_few = table.with_options({"sort-compaction.local-sample.magnification": 19})
    with pytest.raises(InvalidRequest, match="Set it to 20 or more"):
        too_few.compact(order_strategy="order", order_by="a")
