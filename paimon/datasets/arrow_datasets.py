"""A dataset of pyarrow over a scan, which query engines read with their own columns and conditions.

Invariant: each row is returned once, from one snapshot, and only if the whole filter is true for it.
"""

# Engines know `pyarrow.dataset.Dataset` and call different methods of it:
#
#     DuckDB, Polars      scanner(columns=..., filter=...)       afterwards they do not evaluate the filter again
#     DataFusion, Daft    get_fragments(filter=...), then scanner(...) of each fragment
#     write_dataset       scanner()
#
# Each call becomes a narrower scan of the same snapshot. Its condition is the whole filter: the part that the scan
# understands prunes partitions, buckets, files and row groups, and pyarrow evaluates the filter on the rows that
# remain. A scan with a limit, and one of a table with defaults for nulls, cannot take a condition: there the scanner of
# pyarrow filters the rows that the scan returns.
#
# A dataset is an object of C++, which other functions of pyarrow use directly (`Scanner.from_dataset`, a union of
# datasets, Acero). They would find nothing, or crash. So the object of C++ has one file, and opening it raises an error
# that names the methods to use.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import acero, fs

from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported, did_you_mean
from paimon.domain.predicate.expression_tree import find_columns

Columns = Sequence[str] | Mapping[str, pc.Expression]
"""Names of columns, or expressions by the name of their result."""

_BATCH_ROWS = 131_072
"""The default of pyarrow."""


class NarrowScan(Protocol):
    """What a dataset reads: a `Scan` of a pinned snapshot."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns."""

    @property
    def takes_conditions(self) -> bool:
        """Whether a condition means the same before the scan as after it."""

    def plan(self) -> object:
        """Find what to read."""

    def narrow(self, columns: Sequence[str], condition: pc.Expression | None) -> NarrowScan:
        """Return a scan of the same snapshot with these columns, and the rows where a condition is also true."""

    def divide(self) -> Sequence[NarrowScan]:
        """Return a scan for each split."""

    def to_arrow(self) -> pa.Table:
        """Return the rows in memory."""

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""

    def count(self) -> int:
        """Return the number of rows."""


class _Rows:
    """The methods of pyarrow that a dataset and its fragments have in common."""

    _scan: NarrowScan
    _filter: pc.Expression | None

    def scanner(  # noqa: PLR0913  (the arguments of pyarrow)
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = _BATCH_ROWS,
        *,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        fragment_scan_options: object = None,
        use_threads: bool | None = None,
        cache_metadata: bool | None = None,
        memory_pool: object = None,
    ) -> TableScanner:
        """Return the rows where `filter` is true, with these columns, in batches of at most `batch_size` rows.

        The other arguments are those of pyarrow, and have no effect: the scan decides how files are read.
        """
        wanted = self._scan.arrow_schema.names if columns is None else columns
        scan, rest = self._narrow(_list_names(wanted, self._scan.arrow_schema), filter)
        scan.plan()  # what cannot be planned is an error here, not inside an engine
        return TableScanner(scan, dict(wanted) if isinstance(wanted, Mapping) else list(wanted), rest, batch_size)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:
        """Return the number of rows where `filter` is true; `options` are those of `scanner`."""
        return self.scanner(columns=[], filter=filter, **options).count_rows()

    def _narrow(self, names: list[str], filter: pc.Expression | None) -> tuple[NarrowScan, pc.Expression | None]:
        """Return the scan of some columns, and the filter that pyarrow has to evaluate on its rows."""
        condition, schema = _join(self._filter, filter), self._scan.arrow_schema
        needed = () if condition is None else find_columns(condition)
        if needed is not None and (condition is None or self._scan.takes_conditions):
            return self._scan.narrow(names or schema.names[:1], condition), None
        names = schema.names if needed is None else list(dict.fromkeys((*names, *needed)))
        return self._scan.narrow(names or schema.names[:1], None), condition


class TableScanner:
    """The rows of a scan with the methods of `pyarrow.dataset.Scanner`; each of them reads the rows anew."""

    # That class reads a stream of Python in threads of its own, and hangs if it stops before the end.

    def __init__(
        self,
        scan: NarrowScan,
        columns: dict[str, pc.Expression] | list[str],
        rest: pc.Expression | None,
        batch_rows: int,
    ) -> None:
        self._scan = scan
        self._columns = columns
        self._rest = rest
        self._batch_rows = batch_rows
        self.dataset_schema: pa.Schema = scan.arrow_schema
        self.projected_schema: pa.Schema = self._project(self.dataset_schema.empty_table()).schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a stream of the rows."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._read())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        return self._read()

    def to_table(self) -> pa.Table:
        """Return the rows in memory."""
        return self._project(self._scan.to_arrow())

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows, and read no more than they need."""
        found: list[pa.RecordBatch] = []
        for batch in self._read() if num_rows > 0 else ():
            found.append(batch.slice(0, num_rows))
            num_rows -= found[-1].num_rows
            if num_rows <= 0:
                break
        return pa.Table.from_batches(found, self.projected_schema)

    def take(self, indices: object) -> pa.Table:
        """Return the rows at these positions."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """Return the number of rows."""
        if self._rest is None:
            return self._scan.count()
        return sum(self._filter(pa.Table.from_batches([batch])).num_rows for batch in self._scan.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows; an error has no traceback, because engines make it a part of their message."""
        try:
            for batch in self._scan.to_batches():
                yield from self._project(pa.Table.from_batches([batch])).to_batches(self._batch_rows)
        except PaimonError as error:
            raise error.with_traceback(None) from None

    def _project(self, rows: pa.Table) -> pa.Table:
        rows = self._filter(rows)
        if isinstance(self._columns, dict):
            return _run(
                rows,
                acero.Declaration("project", acero.ProjectNodeOptions([*self._columns.values()], [*self._columns])),
            )
        for name in self._columns:
            if name not in rows.schema.names:
                raise InvalidRequest(
                    f"Column {name!r} does not exist.", subject=name, hint=did_you_mean(name, rows.schema.names)
                )
        return rows.select(self._columns)

    def _filter(self, rows: pa.Table) -> pa.Table:
        return rows if self._rest is None else rows.filter(self._rest)


def _run(rows: pa.Table, step: acero.Declaration) -> pa.Table:
    """Return the result of one step of Acero on rows, in order."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    return acero.Declaration.from_sequence([source, step]).to_table(use_threads=False)


class TableFragment(_Rows):
    """The rows of one split of a scan, with the methods of `pyarrow.dataset.Fragment` that read."""

    partition_expression = pc.scalar(True)

    def __init__(self, scan: NarrowScan, filter: pc.Expression | None) -> None:
        self._scan = scan
        self._filter = filter

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns."""
        return self._scan.arrow_schema

    def scanner(  # type: ignore[override]  # as pyarrow has it
        self, schema: pa.Schema | None = None, *arguments: Any, **options: Any
    ) -> TableScanner:
        """Return a scanner as that of the dataset; `schema` can only be that of the dataset."""
        if schema is not None and not schema.equals(self.physical_schema):
            _refuse_schema()
        return super().scanner(*arguments, **options)

    def to_batches(self, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows; the arguments are those of `scanner`."""
        return iter(self.scanner(*arguments, **options).to_batches())

    def to_table(self, *arguments: Any, **options: Any) -> pa.Table:
        """Return the rows; the arguments are those of `scanner`."""
        return self.scanner(*arguments, **options).to_table()

    def head(self, num_rows: int, *arguments: Any, **options: Any) -> pa.Table:
        """Return the first rows; the other arguments are those of `scanner`."""
        return self.scanner(*arguments, **options).head(num_rows)


class TableDataset(_Rows, ds.UnionDataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a scan as a `pyarrow.dataset.Dataset`; made by `Scan.to_dataset`."""

    def __init__(self, scan: NarrowScan, filter: pc.Expression | None = None) -> None:
        super().__init__(scan.arrow_schema, [_make_child(scan.arrow_schema)])
        self._scan = scan
        self._filter = filter

    def __reduce__(self) -> tuple[Any, ...]:
        return TableDataset, (self._scan, self._filter)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[TableFragment]:
        """Yield a fragment for each split that can contain a row where `filter` is true, with these rows."""
        scan, rest = self._narrow(self._scan.arrow_schema.names, filter)
        return (TableFragment(part, rest) for part in scan.divide())

    def filter(self, expression: pc.Expression) -> TableDataset:
        """Return a dataset of the rows where `expression` is also true."""
        return TableDataset(self._scan, _join(self._filter, expression))

    def sort_by(self, sorting: str | list[tuple[str, str]], **options: Any) -> ds.Dataset:
        """Return all rows in memory in an order, as pyarrow does."""
        return ds.dataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: ds.Dataset | pa.Table, *arguments: Any, **options: Any) -> ds.Dataset:
        """Return the join with another dataset in memory; the arguments are those of `pyarrow.Table.join`."""
        return ds.dataset(self.to_table().join(_to_table(right_dataset), *arguments, **options))

    def join_asof(self, right_dataset: ds.Dataset | pa.Table, *arguments: Any, **options: Any) -> ds.Dataset:
        """Return the as-of join in memory; the arguments are those of `pyarrow.Table.join_asof`."""
        return ds.dataset(self.to_table().join_asof(_to_table(right_dataset), *arguments, **options))

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Refuse another schema."""
        _refuse_schema()


def _refuse_schema() -> NoReturn:
    """Refuse a schema that is not that of the table."""
    hint = "select and cast columns with scanner(columns={name: expression})"
    raise Unsupported("another schema for the dataset of a table", hint=hint)


def _to_table(data: ds.Dataset | pa.Table) -> pa.Table:
    return data if isinstance(data, pa.Table) else data.to_table()


def _join(first: pc.Expression | None, second: pc.Expression | None) -> pc.Expression | None:
    return second if first is None else first if second is None else first & second


def _list_names(columns: Columns, schema: pa.Schema) -> list[str]:
    """Return the columns of a schema that a selection of pyarrow reads."""
    if not isinstance(columns, Mapping):
        return [name for name in dict.fromkeys(columns) if name in schema.names]
    read = [find_columns(expression) for expression in columns.values()]
    if None in read:
        return list(schema.names)
    return list(dict.fromkeys(name for names in read for name in names or () if name in schema.names))


def _refuse(*_: object) -> NoReturn:
    raise Unsupported(
        "a function of pyarrow that reads the dataset of a table by itself",
        hint="give it dataset.scanner().to_reader() or dataset.to_table()",
    )


_Refusing = type("_Refusing", (fs.FileSystemHandler,), dict.fromkeys(fs.FileSystemHandler.__abstractmethods__, _refuse))


def _make_child(schema: pa.Schema) -> ds.Dataset:
    """Return a dataset of one file that cannot be opened."""
    files, form = fs.PyFileSystem(_Refusing()), ds.IpcFileFormat()
    return ds.FileSystemDataset([form.make_fragment("rows", files)], schema, form, files)
