"""Decode the records of manifests as Arrow columns, without a step in Python for each record.

Records follow each other without an index. Every offset that begins like a manifest entry is decoded as if it were one,
all together. The chain from record to record then selects the true ones.

Invariant: the result equals the row-wise decoder (`records.decode_block`), or is None: then that decoder is used.
A chain that does not end with its block, after as many records as the block states, gives None.
Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import field, frozen

from paimon.adapters.formats.avro.column_decoder.cursor import PADDING, Cursors, Integers, Mask, Rows, span_array
from paimon.adapters.formats.avro.container import BlockData
from paimon.domain.manifest.record_columns import ArrayColumns, RecordColumns
from paimon.domain.types.arrow_arrays import from_numpy

Values = npt.NDArray[np.signedinteger[Any]]

_VERSION = 4
"""The version of manifests, 2, as an Avro number."""
_SHORTEST_ROW = 24
"""The length of a row without fields, 12, as an Avro number."""
_MAX_ITEMS = 10_000
_MOST_GUESSES = 8
"""The most candidates for each record that the blocks state."""
_PIECE_BYTES = 1 << 16
_FEW = 64
"""If there are at most so many records, all are converted at once and kept: the steps cost more than the rows."""


class _RowWiseOnly(Exception):
    """The schema has a type that is only decoded row by row."""


@frozen(eq=False)
class _Numbers:
    """Numbers; `valid` is None if none is null."""

    values: Values
    valid: Mask | None = None

    def take(self, rows: Integers) -> _Numbers:
        """Return the values of these rows."""
        return _Numbers(self.values[rows], _at(self.valid, rows))

    def fits(self, kind: pa.DataType) -> bool:
        """Return whether the column can become this Arrow type."""
        return bool(pa.types.is_int64(kind))

    def to_arrow(self, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
        """Return the column as an int64 array."""
        return from_numpy(self.values.astype(np.int64, copy=False), self.valid)


@frozen(eq=False)
class _Spans:
    """Byte strings or texts: offsets and lengths in the data; `valid` is None if none is null."""

    starts: Values
    lengths: Values
    valid: Mask | None = None

    def take(self, rows: Integers) -> _Spans:
        """Return the values of these rows."""
        return _Spans(self.starts[rows], self.lengths[rows], _at(self.valid, rows))

    def fits(self, kind: pa.DataType) -> bool:
        """Return whether the column can become this Arrow type."""
        return bool(pa.types.is_binary(kind) or pa.types.is_string(kind))

    def to_arrow(self, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
        """Return the column as an Arrow array."""
        return span_array(data, self.starts, self.lengths, self.valid, kind)


@frozen(eq=False)
class _Lists:
    """`size` lists; `owners` has the list of each item, and items of one list are in order."""

    size: int
    owners: Values
    items: _Numbers | _Spans
    valid: Mask | None = None

    def take(self, rows: Integers) -> _Lists:
        """Return the lists of these rows."""
        places = np.full(self.size, -1, dtype=np.int64)
        places[rows] = np.arange(len(rows))
        owners = places[self.owners]
        kept = np.flatnonzero(owners >= 0)
        return _Lists(len(rows), owners[kept], self.items.take(kept), _at(self.valid, rows))

    def fits(self, kind: pa.DataType) -> bool:
        """Return whether the column can become this Arrow type."""
        return bool(pa.types.is_list(kind)) and self.items.fits(kind.value_type)

    def to_arrow(self, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
        """Return the column as an Arrow array."""
        counts = np.bincount(self.owners, minlength=self.size)
        offsets = np.zeros(self.size + 1, dtype=np.int32)
        np.cumsum(counts, out=offsets[1:])
        mask = None if self.valid is None else from_numpy(~self.valid)
        items = self.items.take(np.argsort(self.owners, kind="stable"))
        return pa.ListArray.from_arrays(from_numpy(offsets), items.to_arrow(data, kind.value_type), mask=mask)


@frozen(eq=False)
class _Records:
    """Records by field name."""

    fields: Mapping[str, _Column]
    size: int

    def take(self, rows: Integers) -> _Records:
        """Return these rows."""
        return _Records({name: column.take(rows) for name, column in self.fields.items()}, len(rows))

    def fits(self, kind: pa.DataType) -> bool:
        """Return whether the fields can become this struct type."""
        if not pa.types.is_struct(kind):
            return False
        return all(self.fields[f.name].fits(f.type) for f in kind if f.name in self.fields)

    def to_arrow(self, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
        """Return the records as a struct array; fields that the file lacks are null."""
        parts = [
            self.fields[f.name].to_arrow(data, f.type) if f.name in self.fields else pa.nulls(self.size, f.type)
            for f in kind
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind))


_Column = _Numbers | _Spans | _Lists | _Records


def _at(valid: Mask | None, rows: Integers) -> Mask | None:
    return None if valid is None else valid[rows]


@frozen(eq=False)
class DecodedColumns:
    """`paimon.domain.manifest.record_columns.RecordColumns`, whose Arrow columns are made when they are first used."""

    # where each value is stored in the data
    found: _Records
    data: npt.NDArray[np.uint8]
    kind: pa.StructType
    # where each record begins, and the end of the last
    edges: Integers
    # the layout of the records in the data
    schema: Any
    # decodes the same records row by row, if a column turns out to have text that is not UTF-8
    row_wise: Callable[[], pa.StructArray]
    _made: dict[tuple[str, ...], pa.Array] = field(factory=dict, init=False)

    @property
    def weight(self) -> int:
        """Bytes in memory: the data, and about as much for offsets and columns."""
        return 2 * len(self.data)

    def __len__(self) -> int:
        return self.found.size

    def column(self, *path: str) -> pa.Array:
        """Return one column of all records."""
        made = self._made.get(path)
        if made is None:
            made = self._made[path] = self._convert(path, None)
        return made

    def select(self, rows: Integers, *path: str) -> pa.Array:
        """Return one column of the records at ascending positions."""
        made = self._made.get(path)
        return self._convert(path, rows) if made is None else made.take(from_numpy(rows))

    def _convert(self, path: Sequence[str], rows: Rows) -> pa.Array:
        column: _Column | None = self.found
        kind: pa.DataType = self.kind
        for name in path:
            column = column.fields.get(name) if isinstance(column, _Records) else None
            kind = kind.field(name).type
        if column is None:
            return pa.nulls(len(self) if rows is None else len(rows), kind)
        try:
            return (column if rows is None else column.take(rows)).to_arrow(self.data, kind)
        except pa.ArrowException:
            found = ArrayColumns(self.row_wise()).column(*path)
            return found if rows is None else found.take(from_numpy(rows))

    def take(self, rows: Integers) -> pa.StructArray:
        """Return whole records."""
        try:
            if len(self) <= _FEW:
                return self._whole().take(from_numpy(rows))
            return self.found.take(rows).to_arrow(self.data, self.kind)
        except pa.ArrowException:
            return ArrayColumns(self.row_wise()).take(rows)

    def encoded(self, schema: Any) -> pa.LargeBinaryArray | None:
        """Return the stored bytes of each record, without a copy; None if they are not those of this schema."""
        if _layout(self.schema) != _layout(schema):
            return None
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(self), [None, pa.py_buffer(self.edges), pa.py_buffer(self.data)]
        )

    def _whole(self) -> pa.StructArray:
        made = self._made.get(())
        if made is None:
            made = self._made[()] = self.found.to_arrow(self.data, self.kind)
        return made


def _layout(node: Any) -> Any:
    """Return what determines the bytes of a value: types and their order, and the names of fields."""
    if isinstance(node, list):
        return [_layout(branch) for branch in node]
    if isinstance(node, str):
        return node
    if node["type"] == "record":
        return [(f["name"], _layout(f["type"])) for f in node["fields"]]
    return ("array", _layout(node["items"])) if node["type"] == "array" else _layout(node["type"])


def decode_manifest_columns(
    blocks: BlockData, schema: Any, kind: pa.StructType, row_wise: Callable[[], pa.StructArray]
) -> RecordColumns | None:
    """Decode the records of blocks, in order, as columns; None if they must be decoded row by row.

    The blocks may be of several files with the same writer's `schema`; `PADDING` is appended to their data. `kind` has
    the wanted columns, with numbers as int64. Columns that the schema lacks are null.
    """
    if not blocks.data and not any(blocks.counts):
        return ArrayColumns(pa.array([], kind))
    blocks.data += PADDING
    data = np.frombuffer(blocks.data, dtype=np.uint8)
    starts = _candidates(data)
    if len(starts) > _MOST_GUESSES * sum(blocks.counts):  # hostile bytes that look like records
        return None
    cursors = Cursors.at(data, starts)
    try:
        found = _decode_node(schema, cursors, None, {})
    except _RowWiseOnly:
        return None
    ends = np.where(cursors.dead, -1, cursors.places)
    rows = _chain_records(blocks, starts, ends)
    if rows is None or not isinstance(found, _Records) or not found.fits(kind):
        return None
    edges = np.append(starts[rows], ends[rows[-1:]])
    return DecodedColumns(found if len(rows) == len(starts) else found.take(rows), data, kind, edges, schema, row_wise)


def _candidates(data: npt.NDArray[np.uint8]) -> Integers:
    """Guess the offsets that begin like a manifest entry; a missed record breaks the chain, and is found so."""
    size = len(data) - len(PADDING)
    # Piece by piece, so that the mask of a piece reuses the memory of the one before.
    pieces = [(at, data[at : min(at + _PIECE_BYTES, size)]) for at in range(0, size, _PIECE_BYTES)]
    places: Integers = np.concatenate([at + np.flatnonzero(piece == _VERSION) for at, piece in pieces])
    places = places[data[places + 1] & ~np.uint8(2) == 0]
    places = places[data[places + 2] >= _SHORTEST_ROW]
    long_row = data[places + 2] >> 7
    for offset in range(3, 6):
        keep = data[places + offset + long_row] == 0
        places, long_row = places[keep], long_row[keep]
    return places


def _chain_records(blocks: BlockData, starts: Integers, ends: Integers) -> Integers | None:
    """Return the positions of the records among the candidates; None if blocks and records do not match."""
    unbroken = bool((ends[:-1] == starts[1:]).all())
    rows = np.arange(len(starts)) if unbroken else _follow_chain(starts, ends)
    if not len(rows):
        return None
    edges = np.append(starts[rows], ends[rows[-1:]])
    counts = np.cumsum(blocks.counts)
    fits = len(rows) == counts[-1] and edges[0] == 0
    return rows if fits and bool((edges[counts] == np.array(blocks.ends)).all()) else None


def _follow_chain(starts: Integers, ends: Integers) -> Integers:
    """Return the candidates, from the first on, that begin where the one before ends."""
    following = np.searchsorted(starts, ends).tolist()
    begins, stops = starts.tolist(), ends.tolist()
    chain: list[int] = []
    place = row = 0
    while row < len(begins) and begins[row] == place:
        chain.append(row)
        place, row = stops[row], following[row]
    return np.array(chain, dtype=np.int64)


def _decode_node(node: Any, cursors: Cursors, rows: Rows, named: dict[str, Any]) -> _Column:
    if isinstance(node, list):
        return _union(node, cursors, rows, named)
    if isinstance(node, str):
        return _primitive(named.get(node, node), cursors, rows, named)
    match node["type"]:
        case "record":
            named[node["name"]] = node
            parts = {f["name"]: _decode_node(f["type"], cursors, rows, named) for f in node["fields"]}
            return _Records(parts, cursors.count(rows))
        case "array":
            return _array(node["items"], cursors, rows, named)
        case inner:
            return _decode_node(inner, cursors, rows, named)


def _primitive(node: Any, cursors: Cursors, rows: Rows, named: dict[str, Any]) -> _Column:
    match node:
        case "int" | "long":
            return _Numbers(cursors.longs(rows))
        case "string" | "bytes":
            return _Spans(*cursors.spans(rows))
        case {}:
            return _decode_node(node, cursors, rows, named)
    raise _RowWiseOnly


def _union(node: list[Any], cursors: Cursors, rows: Rows, named: dict[str, Any]) -> _Column:
    if len(node) != 2 or "null" not in node:
        raise _RowWiseOnly
    kind = node[1 - node.index("null")]
    valid = cursors.branches(rows) == 1 - node.index("null")
    if bool(valid.all()):
        return _decode_node(kind, cursors, rows, named)
    size = len(valid)
    present = np.flatnonzero(valid)
    inner = _decode_node(kind, cursors, present if rows is None else rows[present], named)
    match inner:
        case _Numbers(values=values):
            return _Numbers(_spread(values, present, size), valid)
        case _Spans(starts=starts, lengths=lengths):
            return _Spans(_spread(starts, present, size), _spread(lengths, present, size), valid)
        case _Lists(owners=owners, items=items):
            return _Lists(size, present[owners], items, valid)
    raise _RowWiseOnly


def _spread(values: Values, places: Integers, size: int) -> Values:
    spread = np.zeros(size, dtype=values.dtype)
    spread[places] = values
    return spread


def _array(items: Any, cursors: Cursors, rows: Rows, named: dict[str, Any]) -> _Column:
    """Read lists, item by item: the first items of all lists, then the second ones, and so on."""
    size = cursors.count(rows)
    every = np.arange(size)
    owners: list[Integers] = [every[:0]]
    parts: list[_Column] = [_decode_node(items, cursors, every[:0], named)]
    lists: Rows = None  # those that may have more items
    steps = items_read = 0
    while steps <= _MAX_ITEMS:
        if cursors.lost:
            lists = _alive(cursors, rows, every if lists is None else lists)
        counts = _counts(cursors, rows, lists)
        most = int(counts.max(initial=0))
        if not most:
            return _Lists(size, np.concatenate(owners).astype(np.int32), _concatenate_columns(parts))
        if most > _MAX_ITEMS or int(counts.min()) < most:
            lists = every if lists is None else lists
            cursors.kill(_of(rows, lists[counts > _MAX_ITEMS]))
            lists, counts = lists[counts > 0], counts[counts > 0]
        for item in range(min(most, _MAX_ITEMS)):
            now = lists if lists is None or int(counts.min(initial=0)) > item else lists[counts > item]
            if cursors.lost:
                now = _alive(cursors, rows, every if now is None else now)
            owners.append(every if now is None else now)
            if not len(owners[-1]):
                break
            parts.append(_decode_node(items, cursors, _of(rows, now), named))
            steps, items_read = steps + 1, items_read + len(owners[-1])
            if items_read > cursors.limit:  # items of records take a byte or more each: most are of other places
                raise _RowWiseOnly
    raise _RowWiseOnly


def _alive(cursors: Cursors, rows: Rows, lists: Integers) -> Integers:
    return lists[~cursors.dead[lists if rows is None else rows[lists]]]


def _counts(cursors: Cursors, rows: Rows, lists: Rows) -> Values:
    """Read the item count of the next block of each list; a negative count is followed by the block's bytes."""
    at = _of(rows, lists)
    counts = cursors.longs(at)
    if int(counts.min(initial=0)) < 0:
        sized = np.flatnonzero(counts < 0)
        cursors.longs(_of(at, sized))
        counts = np.abs(counts.astype(np.int64))
        endless = np.flatnonzero(counts < 0)  # the absolute value of -2**63 is -2**63
        cursors.kill(_of(at, endless))
        counts[endless] = 0
    return counts


@overload
def _of(rows: Rows, places: Integers) -> Integers: ...
@overload
def _of(rows: Rows, places: Rows) -> Rows: ...
def _of(rows: Rows, places: Rows) -> Rows:
    """Return the rows at these positions among `rows`."""
    if rows is None:
        return places
    return rows if places is None else rows[places]


def _concatenate_columns(parts: Sequence[_Column]) -> _Numbers | _Spans:
    numbers = [p for p in parts if isinstance(p, _Numbers)]
    spans = [p for p in parts if isinstance(p, _Spans)]
    if len(numbers) == len(parts):
        return _Numbers(np.concatenate([p.values for p in numbers]), _all_valid(numbers))
    if len(spans) == len(parts):
        starts, lengths = (np.concatenate([getattr(p, name) for p in spans]) for name in ("starts", "lengths"))
        return _Spans(starts, lengths, _all_valid(spans))
    raise _RowWiseOnly


def _all_valid(parts: Sequence[_Numbers | _Spans]) -> Mask | None:
    if all(p.valid is None for p in parts):
        return None
    sizes = [len(p.values if isinstance(p, _Numbers) else p.starts) for p in parts]
    valid = [np.ones(size, dtype=bool) if p.valid is None else p.valid for p, size in zip(parts, sizes, strict=True)]
    return np.concatenate(valid)
