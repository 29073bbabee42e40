"""Data frames of Daft over the splits of a scan; made by `paimon.scan_daft`. Importing this module needs Daft.

Invariant: a frame has the rows of one snapshot, and a task reads the rows of one split. Daft evaluates its own
conditions, because their meaning differs from that of pyarrow for NaN and in some functions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pyarrow as pa
from daft import DataFrame, Schema
from daft.io.pushdowns import Pushdowns
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import RecordBatch

from paimon.datasets.arrow_datasets import TableDataset, TableFragment


def scan_dataset(dataset: TableDataset) -> DataFrame:
    """Return a frame that reads the rows when it is collected."""
    return _TableSource(dataset).read()


class _TableSource(DataSource):
    """The splits of a scan as tasks, which read the columns that a query needs."""

    def __init__(self, dataset: TableDataset) -> None:
        self._dataset = dataset

    @property
    def name(self) -> str:
        """The name of the source in plans."""
        return "paimon"

    @property
    def schema(self) -> Schema:
        """The columns."""
        return Schema.from_pyarrow_schema(self._dataset.schema)

    async def get_tasks(self, pushdowns: Pushdowns) -> AsyncIterator[DataSourceTask]:
        """Yield a task for each split."""
        names = list(self._dataset.schema.names) if pushdowns.columns is None else pushdowns.columns
        needed = {*names, *pushdowns.filter_required_column_names()}
        columns = [name for name in self._dataset.schema.names if name in needed]
        for fragment in self._dataset.get_fragments():
            yield _SplitTask(fragment, columns)


class _SplitTask(DataSourceTask):
    """The rows of one split."""

    def __init__(self, fragment: TableFragment, columns: list[str]) -> None:
        self._fragment = fragment
        self._columns = columns

    @property
    def schema(self) -> Schema:
        """The columns that are read."""
        return Schema.from_pyarrow_schema(self._select())

    async def read(self) -> AsyncIterator[RecordBatch]:
        """Yield the rows in batches."""
        for batch in self._fragment.to_batches(columns=self._columns):
            yield RecordBatch.from_arrow_record_batches([batch], self._select())

    def _select(self) -> pa.Schema:
        return pa.schema([self._fragment.physical_schema.field(name) for name in self._columns])
