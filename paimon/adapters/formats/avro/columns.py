"""Records of Avro blocks as Arrow columns, without a step in Python for each record.

Law: equals the row-wise way (`records.decode`), or answers None and leaves the work to it. Records follow each other
without an index, so every place that begins as records of manifests do is decoded as if it were one, all in step;
then the chain from record to record tells which were. A chain that does not end with its block, after as many records
as the block says, proves nothing. Source: Avro specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.avro.container import Block
from paimon.adapters.formats.avro.cursor import PADDING, Cursors, Integers, Mask

_VERSION = 4
"""The version of manifests, 2, as an Avro number."""
_SHORTEST_ROW = 24
"""The length of a row without fields, 12, as an Avro number."""
_MAX_ITEMS = 10_000
_PIECE_BYTES = 1 << 16


class _RowWiseOnly(Exception):
    """The schema has something that is only decoded row by row."""


@frozen(eq=False)
class _Numbers:
    values: Integers
    valid: Mask

    def taken(self, rows: Integers) -> _Numbers:
        return _Numbers(self.values[rows], self.valid[rows])

    def arrow(self, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
        if not pa.types.is_int64(kind):
            raise _RowWiseOnly
        return pa.array(self.values, mask=None if bool(self.valid.all()) else ~self.valid)


@frozen(eq=False)
class _Spans:
    starts: Integers
    lengths: Integers
    valid: Mask

    def taken(self, rows: Integers) -> _Spans:
        return _Spans(self.starts[rows], self.lengths[rows], self.valid[rows])

    def arrow(self, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
        if not (pa.types.is_binary(kind) or pa.types.is_string(kind)):
            raise _RowWiseOnly
        # Places ascend from value to value, so the values and the gaps between them are one array over the data itself.
        starts = np.maximum.accumulate(self.starts)
        offsets = np.stack((starts, starts + self.lengths), axis=1).ravel().astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        pieces = pa.Array.from_buffers(kind, max(len(offsets) - 1, 0), buffers)
        even = pa.array(np.arange(0, len(offsets), 2), mask=None if bool(self.valid.all()) else ~self.valid)
        array = pieces.take(even)
        if pa.types.is_string(kind):
            array.validate(full=True)
        return array


@frozen(eq=False)
class _Lists:
    """`owners` says which list each item is of; items of one list are in order."""

    valid: Mask
    owners: Integers
    items: _Numbers | _Spans

    def taken(self, rows: Integers) -> _Lists:
        places = np.full(len(self.valid), -1, dtype=np.int64)
        places[rows] = np.arange(len(rows))
        owners = places[self.owners]
        kept = np.flatnonzero(owners >= 0)
        return _Lists(self.valid[rows], owners[kept], self.items.taken(kept))

    def arrow(self, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
        if not pa.types.is_list(kind):
            raise _RowWiseOnly
        counts = np.bincount(self.owners, minlength=len(self.valid))
        offsets = np.zeros(len(counts) + 1, dtype=np.int32)
        np.cumsum(counts, out=offsets[1:])
        mask = None if bool(self.valid.all()) else pa.array(~self.valid)
        items = self.items.taken(np.argsort(self.owners, kind="stable"))
        return pa.ListArray.from_arrays(pa.array(offsets), items.arrow(data, kind.value_type), mask=mask)


@frozen(eq=False)
class _Records:
    fields: Mapping[str, _Column]
    size: int

    def taken(self, rows: Integers) -> _Records:
        return _Records({name: column.taken(rows) for name, column in self.fields.items()}, len(rows))

    def arrow(self, data: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
        if not pa.types.is_struct(kind):
            raise _RowWiseOnly
        parts = [
            self.fields[f.name].arrow(data, f.type) if f.name in self.fields else pa.nulls(self.size, f.type)
            for f in kind
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind))


_Column = _Numbers | _Spans | _Lists | _Records


def decode_columns(blocks: Sequence[Block], schema: Any, kind: pa.StructType) -> pa.StructArray | None:
    """The records of blocks, in order, as `kind`; None where that must be done row by row.

    Parameters
    ----------
    schema : dict
        The writer's schema, as JSON, of the records of all blocks.
    kind : pa.StructType
        The columns wanted, numbers as int64; those that the schema lacks are null.
    """
    if not any(block.record_count or block.data for block in blocks):
        return pa.array([], kind)
    data = np.frombuffer(b"".join([*(block.data for block in blocks), PADDING]), dtype=np.uint8)
    cursors = Cursors.at(data, _candidates(data))
    starts = cursors.places.copy()
    try:
        found = _decoded(schema, cursors, np.arange(len(starts)), {})
        rows = _chained(blocks, starts, np.where(cursors.dead, -1, cursors.places))
        if rows is None:
            return None
        return (found if len(rows) == len(starts) else found.taken(rows)).arrow(cursors.data, kind)
    except (_RowWiseOnly, pa.ArrowException):
        return None


def _candidates(data: npt.NDArray[np.uint8]) -> Integers:
    """Places that begin like a manifest entry: version, kind, the length of a row, the high bytes of its arity.

    A guess: where it misses a record, the chain breaks and the row-wise way is taken.
    """
    size = len(data) - len(PADDING)
    # Piece by piece, so that the mask of each takes the memory of the one before.
    pieces = [(at, data[at : min(at + _PIECE_BYTES, size)]) for at in range(0, size, _PIECE_BYTES)]
    places: Integers = np.concatenate([at + np.flatnonzero(piece == _VERSION) for at, piece in pieces])
    places = places[data[places + 1] & ~np.uint8(2) == 0]
    places = places[data[places + 2] >= _SHORTEST_ROW]
    long_row = data[places + 2] >> 7
    for offset in range(3, 6):
        keep = data[places + offset + long_row] == 0
        places, long_row = places[keep], long_row[keep]
    return places


def _chained(blocks: Sequence[Block], starts: Integers, ends: Integers) -> Integers | None:
    """Positions of the records among the candidates; None where blocks and records do not fit each other."""
    unbroken = bool((ends[:-1] == starts[1:]).all())
    rows = np.arange(len(starts)) if unbroken else _walked(starts, ends)
    edges = np.append(starts[rows], ends[rows[-1:]])
    counts = np.cumsum([block.record_count for block in blocks])
    fits = len(rows) == counts[-1] and edges[0] == 0
    return rows if fits and bool((edges[counts] == np.cumsum([len(b.data) for b in blocks])).all()) else None


def _walked(starts: Integers, ends: Integers) -> Integers:
    """The candidates from the first on that begin where the one before ends."""
    following = np.searchsorted(starts, ends).tolist()
    begins, stops = starts.tolist(), ends.tolist()
    chain: list[int] = []
    place = row = 0
    while row < len(begins) and begins[row] == place:
        chain.append(row)
        place, row = stops[row], following[row]
    return np.array(chain, dtype=np.int64)


def _decoded(node: Any, cursors: Cursors, rows: Integers, named: dict[str, Any]) -> _Column:
    if isinstance(node, list):
        return _union(node, cursors, rows, named)
    if isinstance(node, str):
        return _primitive(named.get(node, node), cursors, rows, named)
    match node["type"]:
        case "record":
            named[node["name"]] = node
            parts = {f["name"]: _decoded(f["type"], cursors, rows, named) for f in node["fields"]}
            return _Records(parts, len(rows))
        case "array":
            return _array(node["items"], cursors, rows, named)
        case inner:
            return _decoded(inner, cursors, rows, named)


def _primitive(node: Any, cursors: Cursors, rows: Integers, named: dict[str, Any]) -> _Column:
    valid = np.ones(len(rows), dtype=bool)
    match node:
        case "int" | "long":
            return _Numbers(cursors.longs(rows), valid)
        case "string" | "bytes":
            return _Spans(*cursors.spans(rows), valid)
        case {}:
            return _decoded(node, cursors, rows, named)
    raise _RowWiseOnly


def _union(node: list[Any], cursors: Cursors, rows: Integers, named: dict[str, Any]) -> _Column:
    if len(node) != 2 or "null" not in node:
        raise _RowWiseOnly
    present = np.flatnonzero(cursors.branches(rows) == 1 - node.index("null"))
    inner = _decoded(node[1 - node.index("null")], cursors, rows[present], named)
    valid = np.zeros(len(rows), dtype=bool)
    valid[present] = True
    match inner:
        case _Numbers(values=values):
            return _Numbers(_spread(values, present, len(rows)), valid)
        case _Spans(starts=starts, lengths=lengths):
            return _Spans(_spread(starts, present, len(rows)), _spread(lengths, present, len(rows)), valid)
        case _Lists(owners=owners, items=items):
            return _Lists(valid, present[owners], items)
    raise _RowWiseOnly


def _spread(values: Integers, places: Integers, size: int) -> Integers:
    spread = np.zeros(size, dtype=np.int64)
    spread[places] = values
    return spread


def _array(items: Any, cursors: Cursors, rows: Integers, named: dict[str, Any]) -> _Column:
    """Lists, item by item: the first items of all lists, then the second ones, and so on."""
    owners: list[Integers] = []
    parts: list[_Column] = []
    open_lists = np.arange(len(rows))
    seen = 0
    while True:
        open_lists = open_lists[~cursors.dead[rows[open_lists]]]
        counts = cursors.longs(rows[open_lists])
        sized = open_lists[counts < 0]
        cursors.longs(rows[sized])  # a block of negative count gives its size in bytes first
        counts = np.abs(counts)
        cursors.kill(rows[open_lists[counts > _MAX_ITEMS]])
        open_lists, counts = open_lists[counts > 0], counts[counts > 0]
        if not len(open_lists):
            break
        for item in range(int(counts[counts <= _MAX_ITEMS].max(initial=0))):
            now = open_lists[(counts > item) & ~cursors.dead[rows[open_lists]]]
            if not len(now):
                break
            owners.append(now)
            parts.append(_decoded(items, cursors, rows[now], named))
        seen += 1
        if seen > _MAX_ITEMS:
            raise _RowWiseOnly
    if not parts:
        parts, owners = [_decoded(items, cursors, rows[:0], named)], [open_lists]
    return _Lists(np.ones(len(rows), dtype=bool), np.concatenate(owners), _joined(parts))


def _joined(parts: Sequence[_Column]) -> _Numbers | _Spans:
    numbers = [p for p in parts if isinstance(p, _Numbers)]
    spans = [p for p in parts if isinstance(p, _Spans)]
    if len(numbers) == len(parts):
        return _Numbers(np.concatenate([p.values for p in numbers]), np.concatenate([p.valid for p in numbers]))
    if len(spans) == len(parts):
        joined = (np.concatenate([getattr(p, name) for p in spans]) for name in ("starts", "lengths", "valid"))
        return _Spans(*joined)
    raise _RowWiseOnly
