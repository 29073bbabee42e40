"""Strategies for histories: what happened to a table, step by step.

Law: the rows of a history collide often (keys come from a small pool), so that merging has something to do; a
history is plain data that any driver can replay.
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
    """One commit: rows in arrival order and the kind of each (0 +I, 1 -U, 2 +U, 3 -D)."""

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
    """Rows whose primary keys come from `key_pool` (values in primary-key order), or from a small drawn one."""
    names = schema.primary_keys
    pool = list(key_pool) if key_pool is not None else draw(key_pools(schema))
    drawn = []
    for _ in range(draw(st.integers(0, max_size))):
        key = dict(zip(names, draw(st.sampled_from(pool)), strict=True))
        drawn.append(tuple(key[f.name] if f.name in key else draw(values_of(f.type, nan=nan)) for f in schema.fields))
    return drawn


def key_pools(schema: TableSchema, max_size: int = 4) -> st.SearchStrategy[list[Row]]:
    """A few distinct primary keys (values in primary-key order)."""
    key = st.tuples(*(values_of(schema.field_of(n).type, nan=False) for n in schema.primary_keys))
    return st.lists(key, min_size=1, max_size=max_size, unique_by=repr)


@st.composite
def histories(
    draw: st.DrawFn,
    schema: TableSchema,
    *,
    max_steps: int = 5,
    max_rows: int = 6,
    kinds: Sequence[int] = (INSERT,),
    compactions: bool = False,
    nan: bool = True,
) -> list[Step]:
    """Writes, with row kinds out of `kinds`, and where `compactions` says so compactions between them."""
    pool = draw(key_pools(schema)) if schema.primary_keys else [()]
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, max_steps))):
        if compactions and draw(st.integers(0, 3)) == 0:
            steps.append(CompactStep(draw(st.booleans())))
            continue
        written = draw(keyed_rows(schema, key_pool=pool, max_size=max_rows, nan=nan))
        drawn = draw(st.lists(st.sampled_from(kinds), min_size=len(written), max_size=len(written)))
        steps.append(WriteStep(tuple(written), tuple(drawn)))
    return steps
