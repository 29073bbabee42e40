"""The order in which a compaction sorts rows, which tables and columns can be sorted, and ranges of sort keys.

Invariant: ranges have about the same number of bytes or rows. They are disjoint and ascend, and each row is in exactly
one. Samples are taken at fixed distances, so the same files give the same ranges.
Source: `SortCompactAction`, `OrderSorter`, `CompactProcedure` of Spark; `RangeShuffle`, which samples at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.columns.buffers import combine_column
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.maintenance.curves_columnar import compute_hilbert_positions, compute_zorder_positions
from paimon.domain.merge.ordering.merge_order import argsort_keys
from paimon.domain.merge.ordering.normalized_keys import pack_keys, to_key_parts
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.rules.layout import check_sort_columns, option_error
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import KEY_PREFIX

STRATEGIES = ("order", "zorder", "hilbert")
NO_STRATEGY = "none"
_FIRST_HILBERT_COLUMNS = 5
"""From so many columns on, `auto` takes a Hilbert curve, as in Java."""
_LEAST_SAMPLES = 20
"""With fewer samples a task, ranges would differ much in size; Java refuses them, too."""
_SORT_KEY = f"{KEY_PREFIX}#sort"
"""The prefix of the columns that a sort adds; no column of a table has such a name."""
_POSITION = dt.VarBinaryType(dt.MAX_LENGTH)
_ARRIVAL = DataField(0, f"{_SORT_KEY}-arrival", dt.BigIntType(nullable=False))


@frozen
class SortOrder:
    """A strategy and the columns that it applies to, the most significant first."""

    strategy: str
    fields: tuple[DataField, ...]
    # the bytes of a text in a Z-order
    text_bytes: int = 8

    @property
    def keys(self) -> tuple[DataField, ...]:
        """The columns that `add_sort_keys` adds; no two rows have the same values in them."""
        types = [f.type for f in self.fields] if self.strategy == "order" else [_POSITION]
        return (*(DataField(i, f"{_SORT_KEY}-{i}", kind) for i, kind in enumerate(types)), _ARRIVAL)


def bind_sort_order(table: TableDefinition, strategy: str, columns: Sequence[str] | str | None) -> SortOrder | None:
    """Bind a strategy and columns, a list or a text with commas, to an order; None for ``none``."""
    given = columns.split(",") if isinstance(columns, str) else columns or ()
    names = tuple(stripped for name in given if (stripped := name.strip()))
    if strategy == NO_STRATEGY:
        if names:
            raise InvalidRequest(
                "Columns to sort by are given, but no order strategy.",
                subject="order_by",
                hint=f"set order_strategy to {' or '.join(STRATEGIES)}",
            )
        return None
    if strategy not in STRATEGIES:
        known = ", ".join((NO_STRATEGY, *STRATEGIES))
        raise InvalidRequest(f"Order strategy {strategy!r} is not known.", subject=strategy, hint=f"known are: {known}")
    if not names:
        raise InvalidRequest(
            f"Order strategy {strategy!r} needs columns.", subject="order_by", hint="name the columns in order_by"
        )
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InvalidRequest(f"Column {twice[0]!r} is given twice in order_by.", subject=twice[0], hint="name it once")
    if table.options.clustering_incremental or table.options.pk_clustering_override:
        raise InvalidRequest(
            f"Table {table.table_name!r} is clustered, so its compactions sort by its own columns.",
            subject="order_by",
            hint="leave out order_strategy and order_by, or change the option 'clustering.columns'",
        )
    _check_table(table)
    return _bind(table, strategy, names, "order_by")


def is_clustered_locally(options: TableOptions) -> bool:
    """Return whether the new files of incremental clustering are sorted one by one, so that they may overlap."""
    return options.clustering_incremental and options.clustering_incremental_mode == "local-sort"


def bind_clustering_order(table: TableDefinition) -> SortOrder:
    """Return the order in which the options `clustering.*` of a table sort its rows."""
    names, strategy = table.options.clustering_columns, table.options.clustering_strategy
    if is_clustered_locally(table.options):
        strategy = "order"  # as in Java, whatever the strategy is
    if strategy == "auto":
        few = "order" if len(names) == 1 else "zorder"
        strategy = few if len(names) < _FIRST_HILBERT_COLUMNS else "hilbert"
    return _bind(table, strategy, names, "clustering.columns")


def _bind(table: TableDefinition, strategy: str, names: Sequence[str], given_in: str) -> SortOrder:
    check_sort_columns(table.schema, strategy, names, given_in)
    _check_options(table.options, strategy)
    return SortOrder(strategy, tuple(table.schema.field_of(name) for name in names), table.options.zorder_text_bytes)


def _check_options(options: TableOptions, strategy: str) -> None:
    text_bytes, samples = options.zorder_text_bytes, options.sort_sample_magnification
    if strategy == "zorder" and text_bytes < 1:
        raise option_error("zorder.var-length-contribution", f"is {text_bytes}, and a text needs a byte", "set it to 8")
    if samples < _LEAST_SAMPLES:
        raise option_error(
            "sort-compaction.local-sample.magnification", f"is {samples}", f"set it to {_LEAST_SAMPLES} or more"
        )


def _check_table(table: TableDefinition) -> None:
    """Refuse tables whose layout follows from their keys or row ids."""
    if table.options.data_evolution_enabled:
        raise Unsupported(
            f"a sorted compaction of table {table.table_name!r} with option 'data-evolution.enabled'",
            hint="compact it without an order: its files have the order of the row ids",
        )
    if table.schema.primary_keys and table.bucket_mode is not BucketMode.DYNAMIC:
        raise Unsupported(
            f"a sorted compaction of a primary-key table with bucket mode {table.bucket_mode.value}",
            hint="sort append tables, or tables with dynamic buckets",
        )


def add_sort_keys(rows: pa.Table, order: SortOrder, arrived: int) -> pa.Table:
    """Append the columns `order.keys`; `arrived` counts the rows that came before."""
    keys = compute_sort_keys(rows, order)
    for name in keys.column_names:
        rows = rows.append_column(name, keys[name])
    arrivals = pa.array(np.arange(arrived, arrived + rows.num_rows, dtype=np.int64))
    return rows.append_column(_ARRIVAL.name, arrivals)


def compute_sort_keys(rows: pa.Table, order: SortOrder) -> pa.Table:
    """Return the columns `order.keys` of rows without the arrival."""
    columns = [combine_column(rows[f.name]) for f in order.fields]
    types = [f.type for f in order.fields]
    match order.strategy:
        case "zorder":
            columns = [compute_zorder_positions(columns, types, order.text_bytes)]
        case "hilbert":
            columns = [compute_hilbert_positions(columns, types)]
    return pa.table(dict(zip([f.name for f in order.keys[:-1]], columns, strict=True)))


def drop_sort_keys(rows: pa.Table, order: SortOrder) -> pa.Table:
    """Remove what `add_sort_keys` added."""
    return rows.drop_columns([f.name for f in order.keys])


def sort_by_keys(rows: pa.Table, order: SortOrder) -> pa.Table:
    """Sort rows by `order.keys`: null first, floats in the total order of Java, text by its bytes."""
    places = pa.array(argsort_rows(rows.select([f.name for f in order.keys])))
    return pa.Table.from_arrays([combine_column(column).take(places) for column in rows.columns], schema=rows.schema)


def argsort_rows(keys: pa.Table) -> npt.NDArray[np.int64]:
    """Return the stable order of rows by all columns, the first one most significant."""
    parts = (part for column in keys.columns for part in to_key_parts(combine_column(column)))
    return argsort_keys(pack_keys(parts), keys.num_rows)


# A sort that runs in several tasks first divides the keys into ranges, so that each task sorts one of them alone:
#
#     samples (key: weight)   1:10  2:10  4:10  5:30  9:10  9:10          80 in all, for 2 ranges: 40 each
#     bound                   5, the first key at which 40 are reached
#     ranges                  below 5                 5 and more
#
# The weight of a sample is what it represents: the rows up to the next sample, or their bytes
# (`sort-compaction.range-strategy`). Rows with equal keys are in one range, so there may be fewer ranges.

WEIGHT = "weight"


def sample_keys(rows: pa.Table, order: SortOrder, skipped: int, step: int, row_weight: float) -> pa.Table:
    """Return each `step`-th row's sort key, with weights; `skipped` rows came before."""
    places = pa.array(np.arange(-skipped % step, rows.num_rows, step))
    keys = compute_sort_keys(rows.select([f.name for f in order.fields]).take(places), order)
    return keys.append_column(WEIGHT, pa.array(np.full(len(places), step * row_weight)))


def choose_bounds(samples: pa.Table, ranges: int) -> pa.Table:
    """Return the first key of each range but the first, ascending; there are at most `ranges` - 1."""
    keys = samples.drop_columns([WEIGHT])
    order = argsort_rows(keys)
    reached = np.cumsum(samples[WEIGHT].to_numpy()[order])
    if not len(reached):
        return keys
    wanted = reached[-1] * np.arange(1, ranges) / ranges
    places = np.unique(np.searchsorted(reached, wanted))
    return keys.take(pa.array(order[places]))


def find_ranges(rows: pa.Table, order: SortOrder, bounds: pa.Table) -> npt.NDArray[np.int64]:
    """Return the number of the range of each row."""
    keys = compute_sort_keys(rows.select([f.name for f in order.fields]), order)
    # A bound comes before the rows that equal it, because the sort is stable.
    both = pa.concat_tables([bounds.cast(keys.schema), keys])
    merged = argsort_rows(both)
    is_bound = merged < bounds.num_rows
    ranges = np.empty(rows.num_rows, np.int64)
    ranges[merged[~is_bound] - bounds.num_rows] = np.cumsum(is_bound)[~is_bound]
    return ranges
