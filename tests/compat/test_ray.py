"""Datasets of Ray are written and committed as pypaimon does, and read with its names of columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon.compat

COLUMNS = pa.schema([("a", pa.int64()), ("r", pa.struct([("x", pa.string())])), ("p", pa.string())])
ROWS = pa.table({"a": [1, 2, 3], "r": [{"x": "u"}, {"x": "v"}, None], "p": ["m", "m", "n"]}, schema=COLUMNS)


class Blocks:
    """What `write_ray` uses of a dataset of Ray: its blocks as Arrow tables."""

    def __init__(self, *blocks: pa.Table) -> None:
        self.blocks = blocks

    def iter_batches(self, *, batch_size: int | None, batch_format: str) -> Iterator[pa.Table]:
        assert (batch_size, batch_format) == (None, "pyarrow")
        yield from self.blocks


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    paimon.compat.install()
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("d", False)
    catalog.create_table("d.t", Schema.from_pyarrow_schema(COLUMNS, partition_keys=["p"]), True)
    yield catalog.get_table("d.t")
    paimon.compat.uninstall()


def read(table: Any) -> list[int]:
    builder = table.new_read_builder()
    return sorted(builder.new_read().to_arrow(builder.new_scan().plan().splits())["a"].to_pylist())


def test_rows_of_a_dataset_are_committed_at_once(table: Any) -> None:
    write = table.new_batch_write_builder().new_write
    write().write_ray(Blocks(ROWS, ROWS.slice(0, 1)), concurrency=2)
    assert read(table) == [1, 1, 2, 3] and table.snapshot_manager().get_latest_snapshot().id == 1
    write().write_ray(Blocks(ROWS.slice(0, 1)), overwrite=True)
    assert read(table) == [1, 3]
    write().write_ray(Blocks(ROWS.slice(2)), static_partition={"p": "n"})
    table.new_batch_write_builder().overwrite({"p": "m"}).new_write().write_ray(Blocks(ROWS.slice(1, 1)))
    assert read(table) == [2, 3]


def test_tasks_that_write_are_refused(table: Any) -> None:
    writer = table.new_batch_write_builder().new_write()
    for refused in ({"ray_remote_args": {"num_cpus": 1}}, {"hash_fixed_precluster": "map_groups"}):
        with pytest.raises(NotImplementedError, match="write_ray with tasks of their own"):
            writer.write_ray(Blocks(ROWS), **refused)
    assert read(table) == []


def test_a_dataset_of_ray_is_written_and_read(table: Any) -> None:
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
    try:
        table.new_batch_write_builder().new_write().write_ray(data.from_arrow(ROWS))
        builder = table.new_read_builder().with_projection(["a", "r.x"])
        splits = builder.new_scan().plan().splits()
        rows = builder.new_read().to_ray(splits)
        assert sorted(rows.take_all(), key=str) == [
            {"a": 1, "r_x": "u"},
            {"a": 2, "r_x": "v"},
            {"a": 3, "r_x": None},
        ]
        with pytest.raises(ValueError, match="override_num_blocks must be at least 1"):
            builder.new_read().to_ray(splits, override_num_blocks=0)
    finally:
        ray.shutdown()
