"""Lazy frames of Polars over a scan, and conditions of Polars. Importing this module needs Polars.

Invariant: a frame has the rows of one snapshot. Polars evaluates its own conditions; what they imply prunes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl
from polars.io.plugins import register_io_source

from paimon.datasets.arrow_datasets import NarrowScan

_BATCH_ROWS = 100_000


def scan_rows(rows: NarrowScan) -> pl.LazyFrame:
    """Return a lazy frame that reads the rows when it is collected."""
    return register_io_source(partial(_read_frames, rows), schema=_to_frame(rows.arrow_schema.empty_table()).schema)


def _read_frames(
    rows: NarrowScan,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    most_rows: int | None,
    batch_rows: int | None,
) -> Iterator[pl.DataFrame]:
    """Yield the selected rows. Polars applies `most_rows` before the predicate, so they are not pushed together."""
    names = rows.arrow_schema.names if columns is None else columns
    roots = [] if predicate is None else predicate.meta.root_names()
    is_pushed = bool(roots) and most_rows is None and rows.takes_conditions
    needed = names if is_pushed else list(dict.fromkeys([*names, *roots]))
    scan = rows.narrow(needed or rows.arrow_schema.names[:1], predicate if is_pushed else None)
    left = most_rows
    for batch in scan.to_batches() if left != 0 else ():
        frame = _to_frame(batch)
        if left is not None:
            frame = frame.head(left)
            left -= frame.height
        if predicate is not None and not is_pushed:
            frame = frame.filter(predicate)
        yield from frame.select(names).iter_slices(batch_rows or _BATCH_ROWS)
        if left == 0:
            return


def _to_frame(rows: object) -> pl.DataFrame:
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame
