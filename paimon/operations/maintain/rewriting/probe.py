"""Looking keys up in the levels above a compaction's output.

Law: of each key the record of the smallest level that holds it is found, with its file and its row's position there,
unless a deletion vector names that row. Both sides ascend: each file is asked once, from the first key that it may hold
to the last. Source: `LookupLevels`, `LookupUtils`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.lsm.keys import Comparable, comparable
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.columnar.ordering.order import Rows
from paimon.domain.merge.windows import count_below, count_through, key_at
from paimon.domain.types.arrow import arrow_schema
from paimon.operations.maintain.rewriting.probed_file import Above, Hit, ProbedFile


class Probed(NamedTuple):
    """What was found.

    Parameters
    ----------
    rows : pa.Table
        The records, with the columns asked for.
    asked : ndarray
        For each, the place of its key among those asked.
    files, file_of : tuple of DataFileMeta, ndarray
        Files, and for each record the place of its own among them.
    positions : ndarray
        Its row in that file, from 0; nothing where the probe was not to tell positions.
    """

    rows: pa.Table
    asked: Rows
    files: tuple[DataFileMeta, ...]
    file_of: Rows
    positions: Rows


class Probe:
    """Finds keys that are asked for in ascending order: a state machine."""

    def __init__(self, above: Above) -> None:
        self._above = above
        by_level: dict[int, list[DataFileMeta]] = {}
        for file in above.files:
            by_level.setdefault(file.level, []).append(file)
        self._levels = [_Level(above, by_level[level]) for level in sorted(by_level)]

    def find(self, keys: pa.Table) -> Probed:
        """The records of keys, which ascend, and lie above all that were asked for before."""
        left = np.arange(keys.num_rows)
        found: list[Hit] = []
        for level in self._levels:
            if len(left) == 0:
                break
            (batch,) = keys.take(pa.array(left)).combine_chunks().to_batches()
            hits = list(level.find(batch))
            found += [hit._replace(asked=left[hit.asked]) for hit in hits]
            left = np.delete(left, np.concatenate([hit.asked for hit in hits])) if hits else left
        return self._answer(found)

    def _answer(self, found: Sequence[Hit]) -> Probed:
        rows = pa.Table.from_batches([h.rows for h in found], schema=arrow_schema(self._above.columns))
        nothing = np.empty(0, dtype=np.int64)
        return Probed(
            rows,
            np.concatenate([nothing, *(h.asked for h in found)]),
            tuple(h.file for h in found),
            np.repeat(np.arange(len(found)), [len(h.asked) for h in found]),
            np.concatenate([nothing, *(h.positions for h in found)]) if self._above.tells_positions else nothing,
        )


class _Level:
    """The files of one level, one after another."""

    def __init__(self, above: Above, files: Sequence[DataFileMeta]) -> None:
        self._above = above
        types = [f.type for f in above.keys]
        spans = [(comparable(f.min_key, types), comparable(f.max_key, types), f) for f in files]
        self._waiting = sorted(spans, key=lambda span: span[0])
        self._open: ProbedFile | None = None
        self._last: Comparable = ()

    def find(self, asked: pa.RecordBatch) -> Iterator[Hit]:
        """The records of these keys."""
        keys, start = self._above.keys, 0
        while start < asked.num_rows:
            if self._open is None or self._last < key_at(asked, start, keys):
                self._open = None
                start = self._next_file(asked, start)
            if self._open is not None:
                count = count_through(asked.slice(start), self._last, keys)
                for hit in self._open.find(asked.slice(start, count)):
                    yield hit._replace(asked=hit.asked + start)
                start += count

    def _next_file(self, asked: pa.RecordBatch, start: int) -> int:
        """Opens the next file that may hold one of the keys from `start` on; answers the place of the first of them."""
        keys = self._above.keys
        while self._waiting:
            low, high, file = self._waiting[0]
            start += count_below(asked.slice(start), low, keys)
            if start == asked.num_rows:
                return start
            self._waiting.pop(0)
            if key_at(asked, start, keys) <= high:
                self._last, self._open = high, self._above.opened(file, asked.slice(start, 1))
                return start
        return int(asked.num_rows)
