"""Stripes whose rows would not fit into memory together, read in batches of few rows.

Arrow decodes a stripe as a whole, and one entry of a dictionary may stand in each of its rows. Where the lengths of
its strings leave room for that, its rows are read in batches instead, which Arrow offers for whole files only.

Invariant: rows come in the order of the file, each once; a batch has no more rows than were asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from attrs import frozen

MOST_BYTES = 512 * 1024 * 1024
_WHOLE_SHARE, _BATCH_SHARE = 2, 8
"""A stripe is decoded as a whole up to this part of the budget; Arrow holds some batches at once."""


@frozen
class StripeWeight:
    """What a stripe takes in memory once it is decoded, and one of its rows, at most."""

    decoded_bytes: int = 0
    row_bytes: float = 0.0

    def is_light(self, most_bytes: int) -> bool:
        """Whether the stripe may be decoded as a whole."""
        return self.decoded_bytes * _WHOLE_SHARE <= most_bytes

    def fitting_rows(self, most_bytes: int) -> int:
        """Return how many rows fit into a batch; one where even that is too much."""
        return max(1, int(most_bytes // _BATCH_SHARE / max(self.row_bytes, 1.0)))


class FileRows:
    """The rows of a whole file, forwards.

    Parameters
    ----------
    source : pyarrow.NativeFile
        The file.
    names : sequence of str
        Its top-level columns that are read.
    batch_rows : int
        Most rows of a batch.
    """

    def __init__(self, source: pa.NativeFile, names: Sequence[str], batch_rows: int) -> None:
        from pyarrow import dataset  # loading it takes a tenth of a second, and few files need it

        fragment = dataset.OrcFileFormat().make_fragment(source)
        scanner = fragment.scanner(
            columns=list(names), batch_size=batch_rows, batch_readahead=1, fragment_readahead=1, use_threads=False
        )
        self._batches: Iterator[pa.RecordBatch] = iter(scanner.to_reader())
        self._held: pa.RecordBatch | None = None
        self._at = 0

    def take(self, first: int, count: int) -> Iterator[pa.RecordBatch]:
        """Read the rows from `first` on, which lies behind all that were taken before; ValueError where some lack."""
        end = first + count
        while self._at < end:
            if self._held is None:
                self._held = next(self._batches, None)
                if self._held is None:
                    raise ValueError(f"the file has {self._at} rows, not {end}")
            held, start = self._held, max(first - self._at, 0)
            stop = min(end - self._at, held.num_rows)
            self._held = held.slice(stop) if stop < held.num_rows else None
            self._at += stop
            if start < stop:
                yield held.slice(start, stop - start)
