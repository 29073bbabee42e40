"""The container of the file indexes of one data file: a head that names columns and kinds, then the indexes.

Columns are in the order in which Java iterates over a `HashMap`, and so are the bitmaps in an index: an index with the
same bytes needs it. No reader depends on it.

Invariant: the bytes equal those that Java writes for the same indexes, unless more than eight keys share one bucket of
a map with 64 buckets or more. Damage is a `CorruptTable`, an unknown version `Unsupported`. Bytes between head and
indexes belong to later versions and are ignored.
Source: `FileIndexFormat`; `HashMap`, `String.hashCode`, `FileIndexOptions.Column.hashCode`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.index.index_bytes import IndexBytes, pack_int, pack_long

# A map has a power of two of buckets, at least 16 and more than 4/3 of its keys. It is iterated bucket by bucket. `put`
# appends a key to its bucket, `computeIfAbsent` puts it in front. The hashes of "cat" and "num" have the same bucket 7:
#
#     put cat, put num                              cat, num
#     computeIfAbsent cat, computeIfAbsent num      num, cat
#
# `put` grows the map when a key is added, `computeIfAbsent` in the next call after that.


Hashes = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
_LEAST_BUCKETS = 16


def order_put_names(names: Sequence[str]) -> list[str]:
    """Return different texts in the order of a map into which they were put."""
    return [names[i] for i in _order_buckets(_hash_names(names), len(names)).tolist()]


def order_computed_names(calls: Sequence[str]) -> list[str]:
    """Return the different texts of the calls of `computeIfAbsent` in the order of the map."""
    names = list(dict.fromkeys(calls))
    return [names[i] for i in order_computed(_hash_names(names), len(calls) > 0 and names[-1] != calls[-1]).tolist()]


def order_computed_columns(columns: Sequence[tuple[str, str | None]]) -> list[int]:
    """Return the positions of columns, and keys of MAP columns, in the order of Java's map of declared indexes."""
    hashes = np.array([_hash_column(*column) for column in columns], np.int64).astype(np.int32)
    return [int(i) for i in order_computed(hashes, False)]


def order_computed(hashes: Hashes, has_later_call: bool) -> Positions:
    """Return keys in the order of a map filled by `computeIfAbsent`, perhaps with a call after it."""
    count = len(hashes)
    return count - 1 - _order_buckets(hashes[::-1], count if has_later_call else count - 1)


def _order_buckets(hashes: Hashes, size: int) -> Positions:
    buckets = _LEAST_BUCKETS
    while size > buckets * 3 // 4:
        buckets *= 2
    unsigned = np.ascontiguousarray(hashes).view(np.uint32)
    places = (unsigned ^ unsigned >> np.uint32(16)) & np.uint32(buckets - 1)
    return np.argsort(places, kind="stable")


def _hash_names(names: Sequence[str]) -> Hashes:
    return np.array([_hash_name(name) for name in names], np.int64).astype(np.int32)


def _hash_column(name: str, map_key: str | None) -> int:
    state = 1
    for part in (_hash_name(name), 0 if map_key is None else _hash_name(map_key), 1237 if map_key is None else 1231):
        state = state * 31 + part
    return state & 0xFFFF_FFFF


def _hash_name(name: str) -> int:
    state = 0
    for unit in np.frombuffer(name.encode("utf-16-le"), "<u2").tolist():
        state = state * 31 + unit & 0xFFFF_FFFF
    return state


_MAGIC = 1493475289347502
_VERSION = 1
_EMPTY = -1
PREFIX_BYTES = 16
"""The bytes that `read_head_length` needs."""

REBUILD_HINT = "rebuild it with rewrite_file_index, or set file-index.read.enabled to false"
"""The hint for a damaged container: the rows of the table are not damaged."""

ColumnIndex = tuple[str, str, bytes | None]
"""The column, the kind and the bytes of an index; None is the empty index of a map key that no row has."""


@frozen
class IndexEntry:
    """One index of a column: where its bytes are in the container."""

    # the name of the column in the schema of the data file, or `column[key]`
    column: str
    kind: str
    start: int
    length: int

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value for the key of the map."""
        return self.start == _EMPTY

    def cut(self, data: bytes, path: str) -> bytes:
        """Return the bytes of the index from those of the container."""
        if self.start < 0 or self.length < 0 or self.start + self.length > len(data):
            raise CorruptTable(
                path, f"ends inside the index {self.kind!r} of column {self.column!r}", hint=REBUILD_HINT
            )
        return data[self.start : self.start + self.length]


def encode_container(indexes: Sequence[ColumnIndex], mark: bytes = b"") -> bytes:
    """Encode a file's indexes in the order of Java's maps; `mark` makes the container unique."""
    ordered: list[tuple[str, list[ColumnIndex]]] = []
    for column in order_computed_names([name for name, _, _ in indexes]):
        by_kind = {kind: (name, kind, data) for name, kind, data in indexes if name == column}
        ordered.append((column, [by_kind[kind] for kind in order_put_names(list(by_kind))]))
    names = [name for column, own in ordered for name in (column, *(kind for _, kind, _ in own))]
    head_length = PREFIX_BYTES + 4 + sum(len(_encode_name(name)) for name in names)
    head_length += 4 * len(ordered) + 8 * (len(names) - len(ordered)) + 4 + len(mark)
    head = pack_long(_MAGIC) + pack_int(_VERSION) + pack_int(head_length) + pack_int(len(ordered))
    body = b""
    for column, own in ordered:
        head += _encode_name(column) + pack_int(len(own))
        for _, kind, data in own:
            start = _EMPTY if data is None else head_length + len(body)
            head += _encode_name(kind) + pack_int(start) + pack_int(len(data or b""))
            body += data or b""
    return head + pack_int(len(mark)) + mark + body


def _encode_name(name: str) -> bytes:
    """Encode a name as Java's modified UTF-8, behind its length: pairs of surrogates, and two bytes for NUL."""
    units = name.encode("utf-16-le")
    text = "".join(chr(int.from_bytes(units[i : i + 2], "little")) for i in range(0, len(units), 2))
    data = text.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return len(data).to_bytes(2, "big") + data


def _read_name(source: IndexBytes) -> str:
    data = source.read_bytes(int.from_bytes(source.read_bytes(2), "big")).replace(b"\xc0\x80", b"\0")
    return data.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def read_head_length(data: bytes, path: str) -> int:
    """Return the length of the head, by the first `PREFIX_BYTES` of a container."""
    if len(data) < PREFIX_BYTES or data[:8] != pack_long(_MAGIC):
        raise CorruptTable(path, "is no file index", hint=REBUILD_HINT)
    source = IndexBytes(data, 8)
    version = source.read_int()
    if version != _VERSION:
        raise Unsupported(
            f"file indexes of version {version} in {path}",
            hint="set file-index.read.enabled to false to read the table without its indexes",
        )
    return source.read_int()


def decode_head(data: bytes, path: str) -> tuple[IndexEntry, ...]:
    """Return the indexes that the head of a container lists; later bytes are ignored."""
    length = read_head_length(data, path)
    if not PREFIX_BYTES <= length <= len(data):
        raise CorruptTable(path, f"is truncated inside the head of {length} bytes", hint=REBUILD_HINT)
    source = IndexBytes(data[:length], PREFIX_BYTES)
    entries: list[IndexEntry] = []
    try:
        for _ in range(source.read_count()):
            column = _read_name(source)
            for _ in range(source.read_count()):
                entries.append(IndexEntry(column, _read_name(source), source.read_int(), source.read_int()))
    except ValueError as error:
        raise CorruptTable(path, f"has a damaged head: {error}", hint=REBUILD_HINT) from error
    return tuple(entries)


def decode_container(data: bytes, path: str) -> list[ColumnIndex]:
    """Return all indexes of a container, without its mark."""
    entries = decode_head(data, path)
    return [(entry.column, entry.kind, None if entry.is_empty else entry.cut(data, path)) for entry in entries]
