"""Strategies for rows and Arrow tables of given columns.

Invariant: a table has the Arrow types of its columns, and `rows` draws the same rows as internal values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from paimon.domain.row.values import to_array
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.testing.strategies.values import values_of

Row = tuple[Any, ...]


def rows(
    fields: Sequence[DataField], *, min_size: int = 0, max_size: int = 8, nan: bool = True
) -> st.SearchStrategy[list[Row]]:
    """Draw lists of rows.

    Parameters
    ----------
    fields : sequence of DataField
        The columns.
    min_size, max_size : int
        The number of rows.
    nan : bool
        Whether floating-point values can be NaN.

    Returns
    -------
    SearchStrategy
        Draws lists of tuples of internal values, in the order of the columns.
    """
    row = st.tuples(*(values_of(f.type, nan=nan) for f in fields))
    return st.lists(row, min_size=min_size, max_size=max_size)


def to_arrow_table(fields: Sequence[DataField], table_rows: Sequence[Row]) -> pa.Table:
    """Return rows of internal values as an Arrow table."""
    columns = [to_array([row[i] for row in table_rows], f.type) for i, f in enumerate(fields)]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def arrow_tables(
    fields: Sequence[DataField], *, min_size: int = 0, max_size: int = 8, nan: bool = True
) -> st.SearchStrategy[pa.Table]:
    """Draw Arrow tables.

    Parameters
    ----------
    fields : sequence of DataField
        The columns.
    min_size, max_size : int
        The number of rows.
    nan : bool
        Whether floating-point values can be NaN.

    Returns
    -------
    SearchStrategy
        Draws tables with the Arrow types of the columns.
    """
    return rows(fields, min_size=min_size, max_size=max_size, nan=nan).map(lambda drawn: to_arrow_table(fields, drawn))
