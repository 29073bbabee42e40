"""Strategies for histories: the steps that change a table.

Invariant: keys come from a small pool, so that many rows have the same key and are merged. A history is plain data,
which any test can replay.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from hypothesis import strategies as st

from paimon.domain.schema.table_schema import TableSchema
from paimon.testing.strategies.tables import Row
from paimon.testing.strategies.values import values_of

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


@frozen
class WriteStep:
    """One commit: rows in the order of writing, and the row kind of each (0 +I, 1 -U, 2 +U, 3 -D)."""

    rows: tuple[Row, ...]
    kinds: tuple[int, ...]


@frozen
class CompactStep:
    """One compaction."""

    full: bool


Step = WriteStep | CompactStep


@st.composite
def keyed_rows(
    draw: st.DrawFn,
    schema: TableSchema,
    *,
    key_pool: Sequence[Row] | None = None,
    max_size: int = 8,
    nan: bool = True,
) -> list[Row]:
    """Draw rows whose primary keys come from a small pool.

    Parameters
    ----------
    draw : callable
        Supplied by Hypothesis; callers omit it.
    schema : TableSchema
        A schema with a primary key.
    key_pool : sequence of tuple, optional
        Primary keys to choose from, as internal values in the order of the primary key. By default they are drawn.
    max_size : int
        The number of rows at most.
    nan : bool
        Whether floating-point values can be NaN.

    Returns
    -------
    list of tuple
        Rows as internal values, in the order of the columns.
    """
    names = schema.primary_keys
    pool = list(key_pool) if key_pool is not None else draw(key_pools(schema))
    drawn_rows = []
    for _ in range(draw(st.integers(0, max_size))):
        key = dict(zip(names, draw(st.sampled_from(pool)), strict=True))
        drawn_rows.append(
            tuple(key[f.name] if f.name in key else draw(values_of(f.type, nan=nan)) for f in schema.fields)
        )
    return drawn_rows


def key_pools(schema: TableSchema, max_size: int = 4) -> st.SearchStrategy[list[Row]]:
    """Draw a few distinct primary keys, as internal values in the order of the primary key."""
    key = st.tuples(*(values_of(schema.field_of(n).type, nan=False) for n in schema.primary_keys))
    return st.lists(key, min_size=1, max_size=max_size, unique_by=repr)


def histories(
    schema: TableSchema,
    *,
    max_steps: int = 5,
    max_rows: int = 6,
    kinds: Sequence[int] = (INSERT,),
    compactions: bool = False,
    nan: bool = True,
) -> st.SearchStrategy[list[Step]]:
    """Draw lists of writes and compactions.

    Parameters
    ----------
    schema : TableSchema
        The schema of the table.
    max_steps : int
        The number of steps at most; there is at least one.
    max_rows : int
        The number of rows of each write at most.
    kinds : sequence of int
        The row kinds to choose from (0 +I, 1 -U, 2 +U, 3 -D); repeat a kind to draw it more often.
    compactions : bool
        Whether a step can be a compaction.
    nan : bool
        Whether floating-point values can be NaN.

    Returns
    -------
    SearchStrategy
        Draws lists of `WriteStep` and `CompactStep`.
    """
    compaction_steps = st.builds(CompactStep, st.booleans())
    numbers = st.integers(0, 3) if compactions else st.just(1)  # 0 draws a compaction

    def draw_steps(pool: list[Row]) -> st.SearchStrategy[list[Step]]:
        """Draw the steps of a history with these primary keys."""
        rows = keyed_rows(schema, key_pool=pool, max_size=max_rows, nan=nan)
        writes = rows.flatmap(lambda written: _write_steps(written, kinds))

        def draw_step(number: int) -> st.SearchStrategy[Step]:
            """Draw a write or a compaction."""
            return writes if number else compaction_steps

        return st.lists(numbers.flatmap(draw_step), min_size=1, max_size=max_steps)

    return (key_pools(schema) if schema.primary_keys else st.just([()])).flatmap(draw_steps)


def _write_steps(rows: Sequence[Row], kinds: Sequence[int]) -> st.SearchStrategy[WriteStep]:
    drawn_kinds = st.lists(st.sampled_from(kinds), min_size=len(rows), max_size=len(rows))
    return drawn_kinds.map(lambda drawn: WriteStep(tuple(rows), tuple(drawn)))
