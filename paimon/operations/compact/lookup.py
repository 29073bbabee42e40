"""Look keys up in the levels above the output of a compaction.

Invariant: for each key, the record of the smallest level that has the key is found, unless a deletion vector marks it.
The result has its file and its row position there. Keys ascend, so each file is read once from its first requested key
to the last.

Source: `LookupLevels`, `LookupUtils`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.lsm.keys import Comparable, to_comparable_key
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.ordering.merge_order import Rows
from paimon.domain.merge.windows import count_below, count_through, read_key_at
from paimon.domain.types.arrow import arrow_schema
from paimon.operations.compact.lookup_file import Hit, LookupFile, UpperLevels


class LookupResult(NamedTuple):
    """The records that a lookup found; the arrays are parallel to `rows`."""

    # with the requested columns
    rows: pa.Table
    # the position of each record's key among the requested keys
    requested: Rows
    files: tuple[DataFileMeta, ...]
    # the index of each record's file in `files`
    file_of: Rows
    # the row position of each record in its file, from 0; empty if positions are not requested
    positions: Rows


class Lookup:
    """Find the newest records of keys that are requested in ascending order."""

    def __init__(self, above: UpperLevels) -> None:
        self._above = above
        by_level: dict[int, list[DataFileMeta]] = {}
        for file in above.files:
            by_level.setdefault(file.level, []).append(file)
        self._levels = [_Level(above, by_level[level]) for level in sorted(by_level)]

    def find(self, keys: pa.Table) -> LookupResult:
        """Return the records of ascending keys, all of which are greater than the keys of earlier calls."""
        remaining = np.arange(keys.num_rows)
        found: list[Hit] = []
        for level in self._levels:
            if len(remaining) == 0:
                break
            (batch,) = keys.take(pa.array(remaining)).combine_chunks().to_batches()
            hits = list(level.find(batch))
            found += [hit._replace(requested=remaining[hit.requested]) for hit in hits]
            remaining = np.delete(remaining, np.concatenate([hit.requested for hit in hits])) if hits else remaining
        return self._to_result(found)

    def _to_result(self, found: Sequence[Hit]) -> LookupResult:
        rows = pa.Table.from_batches([h.rows for h in found], schema=arrow_schema(self._above.columns))
        no_rows = np.empty(0, dtype=np.int64)
        return LookupResult(
            rows,
            np.concatenate([no_rows, *(h.requested for h in found)]),
            tuple(h.file for h in found),
            np.repeat(np.arange(len(found)), [len(h.requested) for h in found]),
            np.concatenate([no_rows, *(h.positions for h in found)]) if self._above.returns_positions else no_rows,
        )


class _Level:
    """The files of one level, which are searched one after another."""

    def __init__(self, above: UpperLevels, files: Sequence[DataFileMeta]) -> None:
        self._above = above
        types = [f.type for f in above.keys]
        spans = [(to_comparable_key(f.min_key, types), to_comparable_key(f.max_key, types), f) for f in files]
        self._waiting = sorted(spans, key=lambda span: span[0])
        self._open: LookupFile | None = None
        self._last: Comparable = ()

    def find(self, requested: pa.RecordBatch) -> Iterator[Hit]:
        """Yield the records of these keys."""
        keys, start = self._above.keys, 0
        while start < requested.num_rows:
            if self._open is None or self._last < read_key_at(requested, start, keys):
                self._open = None
                start = self._next_file(requested, start)
            if self._open is not None:
                count = count_through(requested.slice(start), self._last, keys)
                for hit in self._open.find(requested.slice(start, count)):
                    yield hit._replace(requested=hit.requested + start)
                start += count

    def _next_file(self, requested: pa.RecordBatch, start: int) -> int:
        """Open the next file that can contain a key from `start` on; return the position of the first such key."""
        keys = self._above.keys
        while self._waiting:
            low, high, file = self._waiting[0]
            start += count_below(requested.slice(start), low, keys)
            if start == requested.num_rows:
                return start
            self._waiting.pop(0)
            if read_key_at(requested, start, keys) <= high:
                self._last, self._open = high, self._above.open_file(file, requested.slice(start, 1))
                return start
        return int(requested.num_rows)
