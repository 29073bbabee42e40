"""Rows as datasets of PyTorch and Ray, each where the package is installed.

The rules of the PyTorch datasets (shares of workers, batches) are also tested with a module in its place that has the
three names which the datasets use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import paimon
from paimon.domain.extras import MissingExtra


@pytest.fixture
def orders(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", "id BIGINT NOT NULL, name STRING", options={"write-only": "true"})
    for start in (0, 50):
        table.write({"id": range(start, start + 50), "name": [str(i) for i in range(50)]})
    return table


@pytest.fixture
def torch_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Put the names that the datasets use in place of PyTorch; `worker` is the present worker of a DataLoader."""
    state = SimpleNamespace(worker=None)
    data = ModuleType("torch.utils.data")
    data.Dataset = type("Dataset", (), {})  # type: ignore[attr-defined]
    data.IterableDataset = type("IterableDataset", (), {})  # type: ignore[attr-defined]
    data.get_worker_info = lambda: state.worker  # type: ignore[attr-defined]
    for name, module in (
        ("torch", ModuleType("torch")),
        ("torch.utils", ModuleType("torch.utils")),
        (data.__name__, data),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "paimon.datasets.torch_datasets", raising=False)
    yield state
    sys.modules.pop("paimon.datasets.torch_datasets", None)


def list_numbers(batch: pa.RecordBatch) -> list[int]:
    """Return the ids of a batch; workers that are spawned import this function."""
    return batch["id"].to_pylist()  # type: ignore[no-any-return]


def open_dataset(table: paimon.Table, **options: Any) -> Any:
    builder = table.new_read_builder()
    return builder.new_read().to_torch(builder.new_scan().plan().splits(), **options)


def test_a_dataset_has_rows_by_number(orders: paimon.Table, torch_names: SimpleNamespace) -> None:
    dataset = open_dataset(orders)
    assert len(dataset) == 100
    assert dataset[51] == {"id": 51, "name": "1"}
    with pytest.raises(IndexError):
        dataset[100]


@pytest.mark.parametrize(("world_size", "workers"), [(1, 1), (2, 3), (3, 2)])
def test_ranks_and_workers_share_the_rows(
    orders: paimon.Table, torch_names: SimpleNamespace, world_size: int, workers: int
) -> None:
    parts = []
    for rank in range(world_size):
        dataset = open_dataset(orders, streaming=True, rank=rank, world_size=world_size)
        for worker in range(workers):
            torch_names.worker = SimpleNamespace(id=worker, num_workers=workers)
            parts.append([row["id"] for row in dataset])
    assert sorted(number for part in parts for number in part) == list(range(100))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_limit_counts_over_all_ranks_and_workers(orders: paimon.Table, torch_names: SimpleNamespace) -> None:
    builder = orders.new_read_builder().with_limit(60)
    splits = builder.new_scan().plan().splits()
    rows = []
    for rank in range(2):
        dataset = builder.new_read().to_torch(splits, streaming=True, rank=rank, world_size=2)
        for worker in range(3):
            torch_names.worker = SimpleNamespace(id=worker, num_workers=3)
            rows += [row["id"] for row in dataset]
    assert len(rows) == len(set(rows)) == 60


def test_batches_have_one_size_across_files(orders: paimon.Table, torch_names: SimpleNamespace) -> None:
    dataset = open_dataset(orders, streaming=True, batch_size=30, convert=lambda batch: batch["id"].to_pylist())
    batches = list(dataset)
    assert [len(batch) for batch in batches] == [30, 30, 30, 10]
    assert [number for batch in batches for number in batch] == list(range(100))
    assert all(isinstance(batch, pa.RecordBatch) for batch in open_dataset(orders, streaming=True, batch_size=7))


@pytest.mark.parametrize(
    "options",
    [{"batch_size": 5}, {"streaming": True, "batch_size": 0}, {"streaming": True, "rank": 2, "world_size": 2}],
)
def test_impossible_arguments_are_refused(orders: paimon.Table, options: dict[str, Any]) -> None:
    with pytest.raises(paimon.InvalidRequest):
        open_dataset(orders, **options)


@pytest.mark.parametrize("package", ["torch", "ray"])
def test_a_missing_package_is_reported(orders: paimon.Table, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"paimon.{package}_datasets", raising=False)
    read = orders.new_read_builder().new_read()
    with pytest.raises(MissingExtra, match=f"needs the package '{package}'"):
        getattr(read, f"to_{package}")([])


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_a_data_loader_of_pytorch_reads_all_rows(orders: paimon.Table, start: str) -> None:
    data = pytest.importorskip("torch.utils.data")
    workers: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": start}
    for options in ({}, {"batch_size": 30, "convert": list_numbers}):
        dataset = open_dataset(orders, streaming=True, **options)
        loader = data.DataLoader(dataset, batch_size=None, persistent_workers=True, **workers)
        for _ in range(2):
            numbers = [n for found in loader for n in (found if options else [found["id"]])]
            assert sorted(numbers) == list(range(100))
    shuffled = data.DataLoader(open_dataset(orders), batch_size=10, shuffle=True, **workers)
    assert len(shuffled) == 10
    assert sorted(number for batch in shuffled for number in batch["id"].tolist()) == list(range(100))
    limited = orders.new_read_builder().with_limit(60)
    rows = limited.new_read().to_torch(limited.new_scan().plan().splits(), streaming=True)
    assert sum(1 for _ in data.DataLoader(rows, batch_size=None, **workers)) == 60


def test_a_dataset_of_ray_reads_all_rows(orders: paimon.Table) -> None:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
    try:
        builder = orders.new_read_builder().with_filter("id >= 10")
        read = builder.new_read()
        rows = read.to_ray(builder.new_scan().plan().splits()).take_all()
        assert sorted(row["id"] for row in rows) == list(range(10, 100))
        assert read.to_ray([]).count() == 0
        assert read.to_ray(builder.new_scan().plan().splits()).count() == 90
        limited = builder.with_limit(7)
        assert limited.new_read().to_ray(limited.new_scan().plan().splits()).count() == 7
        plain = orders.new_read_builder()
        assert plain.new_read().to_ray(plain.new_scan().plan().splits()).count() == 100
    finally:
        ray.shutdown()
