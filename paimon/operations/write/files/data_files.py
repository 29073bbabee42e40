"""Data files of one bucket: rows in, rolled files and their metadata out.

Law: a file is finished once it has reached the target size, never before it holds a row; what the manifest says of it
(keys, sequence numbers, statistics) is true of the rows written.
Source: `RollingFileWriter`, `KeyValueDataFileWriter`, `RowDataFileWriter`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.paths import join, segment
from paimon.domain.row.columnar import serialize_rows
from paimon.domain.row.kinds import RETRACTS
from paimon.domain.stats.file_stats import key_stats, value_stats
from paimon.domain.stats.simple_stats import EMPTY_ROW, EMPTY_STATS
from paimon.domain.types.system import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.undo import undone_on_failure
from paimon.operations.write.files.layout import FileLayout
from paimon.ports.engine import Engine
from paimon.ports.files import OutputFile
from paimon.ports.formats import FormatWriter, WrittenFile

_STEPS_PER_FILE = 8
"""A file's size is looked at so often while it grows to its target (were it not compressed)."""
_LEAST_ROWS = 1_000
"""But never more often than after so many rows."""


class RollingFiles:
    """The files of one bucket while they are written: a state machine, closed once.

    In files without keys, rows are numbered from `sequence` on.
    """

    def __init__(self, engine: Engine, layout: FileLayout, directory: str, sequence: int = 0) -> None:
        self._engine = engine
        self._layout = layout
        self._directory = directory
        self._stem = f"{layout.prefix}{engine.ids.uuid()}-"
        self._number = 0
        self._sequence = sequence
        self._open: _OpenFile | None = None
        self.finished: list[DataFileMeta] = []

    def write(self, table: pa.Table) -> None:
        """Writes rows: the table's columns; for keyed files sorted, with `_SEQUENCE_NUMBER` and `_VALUE_KIND`."""
        for piece in self._pieces(self._layout.physical(table)):
            if self._open is None:
                self._open = self._begin()
            self._open.write(piece)
            if self._open.is_full:
                self._finish()

    def close(self) -> list[DataFileMeta]:
        """Finishes the last file; the metadata of all files, in the order of their rows."""
        if self._open is not None:
            self._finish()
        finished, self.finished = self.finished, []
        return finished

    @property
    def held_bytes(self) -> int:
        """What rows take in memory that the open file does not hold yet."""
        return self._open.held_bytes if self._open is not None else 0

    def relieve(self) -> None:
        """Holds nothing any more: ends the row group, or the file where its format cannot."""
        if self._open is None:
            return
        self._open.flush()
        if self._open.held_bytes:
            self._finish()

    def abort(self) -> None:
        """Removes everything that was written and not yet answered by `close`."""
        if self._open is not None:
            self._open.abort()
            self._open = None
        names = [f.file_name for f in self.finished]
        self.finished = []
        if names:
            self._engine.files.delete([join(self._directory, name) for name in names])

    def _begin(self) -> _OpenFile:
        # Prefix and suffix come from options, which a schema file may hold unchecked.
        name = segment(f"{self._stem}{self._number}{self._layout.suffix}", "data file name")
        self._number += 1
        return _OpenFile(self._engine, self._layout, self._directory, name, self._sequence)

    def _finish(self) -> None:
        assert self._open is not None
        meta = self._open.close()
        self._open = None
        self.finished.append(meta)
        self._sequence = meta.max_sequence_number + 1

    def _pieces(self, table: pa.Table) -> Iterator[pa.Table]:
        rows = max(1, table.num_rows)
        step = max(_LEAST_ROWS, rows * self._layout.target_bytes // (_STEPS_PER_FILE * max(1, table.nbytes)))
        step = min(step, self._layout.target_rows or step)
        for start in range(0, table.num_rows, step):
            yield table.slice(start, step)


class _OpenFile:
    """One file being written, and what its metadata will say."""

    def __init__(self, engine: Engine, layout: FileLayout, directory: str, name: str, sequence: int) -> None:
        self._engine = engine
        self._layout = layout
        self._name = name
        path = join(directory, name)
        self._sink: OutputFile = engine.files.create(path)
        with undone_on_failure(self._sink.abort):
            self._writer: FormatWriter = engine.format(layout.format_name).writer(self._sink, layout.request(path))
        self._rows = 0
        self._deletes = 0
        self._keys: tuple[bytes, bytes] = (EMPTY_ROW, EMPTY_ROW)
        self._sequences: tuple[int, int] = (sequence, sequence - 1)

    @property
    def is_full(self) -> bool:
        """Whether the next row belongs in the next file."""
        layout = self._layout
        if layout.target_rows is not None and self._rows >= layout.target_rows:
            return True
        return self._writer.estimated_bytes() >= layout.target_bytes

    @property
    def held_bytes(self) -> int:
        """What the writer holds in memory."""
        return self._writer.held_bytes()

    def flush(self) -> None:
        """Hands on what the writer holds, where it can."""
        with undone_on_failure(self.abort):
            self._writer.flush()

    def write(self, piece: pa.Table) -> None:
        """Writes some rows."""
        with undone_on_failure(self.abort):
            self._writer.write(piece)
        if self._layout.key_fields:
            self._note_keyed(piece)
        else:
            self._sequences = (self._sequences[0], self._sequences[1] + piece.num_rows)
        self._rows += piece.num_rows

    def _note_keyed(self, piece: pa.Table) -> None:
        numbers = np.asarray(piece[SEQUENCE_NUMBER.name])
        low, high = int(numbers.min()), int(numbers.max())
        ends = piece.select([f.name for f in self._layout.key_fields]).take(pa.array([0, piece.num_rows - 1]))
        columns = [column.combine_chunks() for column in ends.columns]
        first, last = serialize_rows(columns, [f.type for f in self._layout.key_fields])
        if self._rows:
            first = self._keys[0]
            low, high = min(low, self._sequences[0]), max(high, self._sequences[1])
        self._keys, self._sequences = (first, last), (low, high)
        self._deletes += pc.sum(pc.is_in(piece[VALUE_KIND.name], RETRACTS)).as_py()

    def close(self) -> DataFileMeta:
        """Finishes the file."""
        written = self._writer.close()
        if not self._sink.closed:
            self._sink.close()
        return self._meta(written)

    def abort(self) -> None:
        """Leaves nothing."""
        self._writer.abort()
        if not self._sink.closed:
            self._sink.abort()

    def _meta(self, written: WrittenFile) -> DataFileMeta:
        layout, clock = self._layout, self._engine.clock
        by_name = {f.name: s for f, s in zip(layout.fields, written.column_stats, strict=True)}
        prefix = "" if layout.thin else KEY_PREFIX
        keys = [by_name[prefix + f.name] for f in layout.key_fields]
        thin_keys = frozenset(f.name for f in layout.key_fields) if layout.thin else frozenset[str]()
        values = [by_name[f.name] for f in layout.value_fields]
        stats, names = value_stats(layout.value_fields, values, layout.stats, thin_keys)
        now = clock.now_millis()
        return DataFileMeta(
            file_name=self._name,
            file_size=written.size_bytes,
            row_count=self._rows,
            min_key=self._keys[0],
            max_key=self._keys[1],
            key_stats=key_stats(layout.key_fields, keys, layout.stats) if keys else EMPTY_STATS,
            value_stats=stats,
            value_stats_cols=names,
            min_sequence_number=self._sequences[0],
            max_sequence_number=self._sequences[1],
            schema_id=layout.schema_id,
            level=layout.level,
            creation_time_millis=now + clock.local_offset_millis(now),
            delete_row_count=self._deletes,
            file_source=layout.source,
        )
