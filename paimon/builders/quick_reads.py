"""Reads of a whole table in one call, by the names that data frames have for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from paimon.domain.predicate.expression import Predicate
from paimon.scan import Scan
from paimon.system_table import open_system_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from paimon.operations.table_context import TableContext


class OtherName:
    """A name that other libraries have: the attribute does not exist, and its error says what does the same."""

    def __init__(self, way: str) -> None:
        self._way = way

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> OtherName:
        if instance is None:
            return self
        message = f"{owner.__name__!r} object has no attribute {self._name!r}. Write {self._way}."
        raise AttributeError(message, name=self._name, obj=instance)

    def __set__(self, instance: object, value: object) -> NoReturn:  # so that `inspect` takes it for no method
        raise AttributeError(f"{self._name!r} cannot be set")


class QuickReads:
    """Mixin: a class provides `context`, and gets reads of the whole table."""

    __slots__ = ()
    if TYPE_CHECKING:
        context: TableContext

    if not TYPE_CHECKING:  # a type checker must not accept these names
        filter = OtherName("table.scan(where='…')")
        where = OtherName("table.scan(where='…')")
        select = OtherName("table.scan(columns=['…'])")
        limit = OtherName("table.scan(limit=…), or table.head(…)")
        append = OtherName("table.write(rows)")
        insert = OtherName("table.write(rows)")
        upsert = OtherName("table.write(rows)")
        optimize = OtherName("table.compact()")
        vacuum = OtherName("table.maintain.expire_snapshots() and table.maintain.remove_orphans()")

        def __len__(self) -> NoReturn:
            raise TypeError(
                f"Table {self.context.table.table_name!r} has no len(). Write table.count(), which reads it."
            )

        def __getitem__(self, key: object) -> NoReturn:
            # Iteration calls it too. A method `__iter__` would make every table an `Iterable`.
            message = f"Table {self.context.table.table_name!r} is not iterable, and has no items."
            raise TypeError(f"{message} Write 'for batch in table.scan()', or table.scan(columns=['…']).")

        def __bool__(self) -> bool:
            return True  # without it, `if table` would call len

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return [field.name for field in self.context.schema.fields]

    def count(self, where: str | Predicate | None = None) -> int:
        """Return the number of rows of the latest snapshot.

        Parameters
        ----------
        where : str or Predicate, optional
            Count only the rows where this is true; as in `scan`.

        Returns
        -------
        int
            The number of rows.
        """
        return Scan(self.context, where=where).count()

    def head(self, rows: int = 10) -> pa.Table:
        """Read the first rows of the latest snapshot, and no more batches than necessary.

        Parameters
        ----------
        rows : int
            The largest number of rows.

        Returns
        -------
        pyarrow.Table
            The rows. Their order is not defined.

        Raises
        ------
        InvalidRequest
            `rows` is not a number, or negative.
        """
        return Scan(self.context).head(rows)

    def to_arrow(self) -> pa.Table:
        """Return all rows of the latest snapshot as one Arrow table; `scan` selects rows, columns and snapshots."""
        return Scan(self.context).to_arrow()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows of the latest snapshot as a pandas DataFrame.

        Parameters
        ----------
        **options
            Arguments of `pyarrow.Table.to_pandas`.

        Returns
        -------
        pandas.DataFrame
            The rows; column types are those that pyarrow selects.

        Raises
        ------
        MissingExtra
            The extra ``pandas`` is not installed.
        """
        return Scan(self.context).to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """Return all rows of the latest snapshot as a polars DataFrame.

        Raises
        ------
        MissingExtra
            The extra ``polars`` is not installed.
        """
        return Scan(self.context).to_polars()

    def history(self) -> pa.Table:
        """Return the live snapshots with the columns of ``$snapshots``, newest first.

        Returns
        -------
        pyarrow.Table
            A row for each snapshot; `snapshots` returns them as values, oldest first.
        """
        return open_system_table(self.context, "snapshots").scan().to_arrow().sort_by([("snapshot_id", "descending")])

    def partitions(self) -> pa.Table:
        """Return the partitions with the columns of ``$partitions``, such as rows, bytes and files.

        Returns
        -------
        pyarrow.Table
            A row for each partition.
        """
        return open_system_table(self.context, "partitions").scan().to_arrow()
