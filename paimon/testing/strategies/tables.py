"""Strategies for rows and Arrow tables of given columns.

Law: a table is in canonical Arrow types, and `rows` of the same columns are its rows as internal values.
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
    """Lists of rows: one tuple of internal values a row."""
    row = st.tuples(*(values_of(f.type, nan=nan) for f in fields))
    return st.lists(row, min_size=min_size, max_size=max_size)


def columns_of(fields: Sequence[DataField], table_rows: Sequence[Row]) -> pa.Table:
    """The rows as an Arrow table."""
    columns = [to_array([row[i] for row in table_rows], f.type) for i, f in enumerate(fields)]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def arrow_tables(
    fields: Sequence[DataField], *, min_size: int = 0, max_size: int = 8, nan: bool = True
) -> st.SearchStrategy[pa.Table]:
    """Arrow tables of these columns."""
    return rows(fields, min_size=min_size, max_size=max_size, nan=nan).map(lambda drawn: columns_of(fields, drawn))
