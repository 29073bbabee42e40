"""Limit the batches in which data files are read, so that they fit the memory budget.

A batch is decoded before its size is known, so the rows of a batch follow from an estimate: the widths of fixed-width
columns, and a multiple of the size in the file for others. A format that knows more, such as the sizes of its pages,
reads fewer rows where they might need several times the limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.lsm.sorted_run import SortedRun
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField

BATCH_ROWS = 65_536
_LEAST_ROWS = 256
_TEXT_EXPANSION = 4
"""Text takes about this many times as many bytes in memory as in files."""
_TOLERANCE = 4
"""How many times the limit a batch may need if each value were the longest one of its column."""


@frozen
class BatchLimit:
    """The most rows of a batch, and the most bytes that they may need if each value were the longest one."""

    rows: int
    bytes: int

    @classmethod
    def of(
        cls,
        limit_bytes: int,
        columns: Sequence[DataField],
        stored: Sequence[DataField],
        files: Sequence[DataFileMeta | SortedRun],
    ) -> BatchLimit:
        """Return the limit for batches of about `limit_bytes` of these columns; the files have the columns `stored`."""
        types = {f.name: arrow_type(f.type) for f in (*stored, *columns)}
        texts = sum(not pa.types.is_primitive(kind) for kind in types.values()) or 1
        row_bytes = 0
        for kind in (types[f.name] for f in columns):
            is_fixed = pa.types.is_primitive(kind)
            row_bytes += kind.bit_width // 8 + 1 if is_fixed else _TEXT_EXPANSION * measure_rows(files) // texts
        rows = max(_LEAST_ROWS, min(BATCH_ROWS, limit_bytes // max(1, row_bytes)))
        return cls(rows, max(1, _TOLERANCE * limit_bytes))


def measure_rows(files: Sequence[DataFileMeta | SortedRun]) -> int:
    """Return the bytes of a row in the file with the largest rows, at least 1."""
    return max(1, *(file.file_size // max(1, file.row_count) for file in files))
