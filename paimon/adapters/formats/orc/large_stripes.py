"""Read stripes in batches of few rows if their rows do not fit into memory together.

Arrow decodes a stripe as a whole, and each of its rows may hold the longest entry of a dictionary. Arrow can also read
batches, but only of whole files.

Invariant: rows are in the order of the file, each once, and no batch has more rows than requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa


class FileRows:
    """The rows of a whole file, read forwards. `names` are top-level columns."""

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
        """Yield `count` rows from the row `first` on, which is not before the rows that were taken earlier."""
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
