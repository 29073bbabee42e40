"""Measure writes into the bucket modes: new keys in one commit, and then an update of each key in another one.

The functions are workloads as `worker` describes them; their third parameter is a pair of `worker.measure` and what
`WORKLOADS` names. The limit is this library with fixed buckets.

All tables have the same columns and the same rows. Only the cross-partition table is partitioned, by the column
`region`. Each table has as many buckets in all as the fixed one. A tenth of the updates move their key to another
region.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import data
import libraries
import numpy as np
import numpy.typing as npt
import pyarrow as pa

KEYS = int(10_000_000 * data.SCALE)
PARTS = 10
"""Number of parts in which the rows are drawn."""
REGIONS = data.BUCKETS
SCHEMA = data.make_schema().append(pa.field("region", pa.int32(), nullable=False))
PHASES = ("new", "update")
_BUCKET_ROWS = str(-(-KEYS // data.BUCKETS))
MODES: dict[str, tuple[dict[str, str], list[str]]] = {
    "fixed": ({"bucket": str(data.BUCKETS)}, []),
    "dynamic": ({"bucket": "-1", "dynamic-bucket.target-row-num": _BUCKET_ROWS}, []),
    "postponed": ({"bucket": "-2", "postpone.default-bucket-num": str(data.BUCKETS)}, []),
    "cross-partition": ({"bucket": "-1", "dynamic-bucket.target-row-num": _BUCKET_ROWS}, ["region"]),
}
"""Table options and partition columns of each bucket mode."""

Measure = Callable[[Callable[[], Any]], dict[str, Any]]


def draw_rows(phase: str, part: int) -> pa.Table:
    """Draw one part of the rows of a phase; all parts together have each key once, in random order."""
    seed = PHASES.index(phase)
    ids = np.random.default_rng(seed).permutation(KEYS)[part::PARTS]
    rows = data.draw_rows(PARTS * seed + part, len(ids), len(ids))
    regions = (ids + _is_moved(ids) * seed) % REGIONS
    columns = [pa.array(ids), *rows.columns[1:], pa.array(regions, pa.int32())]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _is_moved(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return ids // REGIONS % 10 == 0


def load_rows(phase: str) -> pa.Table:
    """Return the rows of a phase."""
    return pa.concat_tables(data.load_parts(f"buckets-{phase}", PARTS, partial(draw_rows, phase)))


def make_rows(library: Any, folder: Path, argument: tuple[Measure, None]) -> dict[str, Any]:
    """Draw the rows of all phases in a process of their own; see `write_phase` for the parameters."""
    return argument[0](lambda: sum(load_rows(phase).num_rows for phase in PHASES))


def write_phase(library: Any, folder: Path, argument: tuple[Measure, tuple[str, str]]) -> dict[str, Any]:
    """Measure one commit of a phase; the phase of the updates needs the table of the new keys.

    Parameters
    ----------
    library : Ours, Peer or None
        The library, or None for the limit.
    folder : Path
        Directory of the table.
    argument : tuple
        `worker.measure`, and the bucket mode and the phase.

    Returns
    -------
    dict
        The figures of `worker.measure`.
    """
    measure, (mode, phase) = argument
    rows = load_rows(phase)
    library = library or libraries.Ours()
    if phase == PHASES[0]:
        options, partitions = MODES[mode]
        library.create_table(folder, SCHEMA, ["id"], partitions, options | {"write-only": "true"})
    table = library.open_table(folder)
    return measure(lambda: library.write(table, rows))


def compact_postponed(library: Any, folder: Path, argument: tuple[Measure, None]) -> dict[str, Any]:
    """Measure the compaction that moves postponed rows to their buckets; see `write_phase` for the parameters."""
    return argument[0](lambda: library.compact_postponed(folder))


def count_rows(library: Any, folder: Path, argument: tuple[Measure, None]) -> dict[str, Any]:
    """Count the rows of a table, as a check of the writes; see `write_phase` for the parameters."""
    table = library.open_table(folder)
    return argument[0](lambda: library.scan(table, ["id"])) | {"keys": KEYS}


def assign_keys(library: Any, folder: Path, argument: tuple[Measure, bool]) -> dict[str, Any]:
    """Measure the assignment of keys to dynamic buckets, without a table.

    Parameters
    ----------
    library : Ours
        This library.
    folder : Path
        Not used.
    argument : tuple
        `worker.measure`, and whether the keys are known already.

    Returns
    -------
    dict
        The figures of `worker.measure`, and the number of keys.
    """
    from paimon.domain.bucket.hash_assigner_columnar import AssignmentRules, DynamicBuckets
    from paimon.domain.row.row_hash_columnar import hash_rows
    from paimon.domain.types.data_types import BigIntType

    measure, is_known = argument
    ids = [np.random.default_rng(seed).permutation(KEYS) for seed in range(2)]
    buckets = DynamicBuckets(AssignmentRules(int(_BUCKET_ROWS)))

    def assign(keys: npt.NDArray[np.int64]) -> None:
        for part in np.array_split(keys, PARTS):
            buckets.assign(hash_rows([pa.array(part)], [BigIntType()]))

    if is_known:
        assign(ids[0])
    return measure(lambda: assign(ids[1])) | {"keys": KEYS}


def build_key_index(library: Any, folder: Path, argument: tuple[Measure, None]) -> dict[str, Any]:
    """Measure the build of the key index of a cross-partition table; the limit scans the key columns.

    Parameters
    ----------
    library : Ours or None
        This library, or None for the limit.
    folder : Path
        Directory of the table.
    argument : tuple
        `worker.measure` and None.

    Returns
    -------
    dict
        The figures of `worker.measure`.
    """
    from paimon.domain.row.binary_row import serialize
    from paimon.operations.buckets.key_index import KeyIndex

    table = libraries.Ours().open_table(folder)
    if library is None:
        return argument[0](lambda: sum(batch.num_rows for batch in table.scan(columns=["id"]).to_batches()))
    key = pa.record_batch({"id": pa.array([0], pa.int64())})
    region = serialize((0,), [table.context.schema.field_of("region").type])
    index = KeyIndex(table.context, "benchmark", ignore_previous=False, is_bounded=True)
    figures = argument[0](lambda: len(index.route(key, [region], np.zeros(1, np.int64)).rows))
    index.close()
    return figures


WORKLOADS: dict[str, tuple[Callable[..., dict[str, Any]], Any]] = {
    **{f"buckets-{mode}-{phase}": (write_phase, (mode, phase)) for mode in MODES for phase in PHASES},
    "buckets-rows": (make_rows, None),
    "buckets-compact": (compact_postponed, None),
    "buckets-count": (count_rows, None),
    "assign-new-keys": (assign_keys, False),
    "assign-known-keys": (assign_keys, True),
    "build-key-index": (build_key_index, None),
}
