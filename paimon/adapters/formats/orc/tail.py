"""The tail of an ORC file: postscript, footer and stripe statistics, read and rewritten.

Law: a rewritten tail differs in the types of columns only; stripes, statistics and everything unknown stay as they are.
Source: ORC specification v1, "File Tail".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from attrs import evolve, frozen

from paimon.adapters.formats.bounded import inflate, unlz4, unsnappy, unzstd
from paimon.adapters.formats.orc.protobuf import BYTES, VARINT, Malformed, Part, decode, encode, number
from paimon.domain.errors import Unsupported

_NONE, _ZLIB, _SNAPPY, _LZO, _LZ4, _ZSTD = range(6)
_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE, _METADATA_LENGTH = 1, 2, 3, 5
_CONTENT_LENGTH, _STRIPES, _TYPES, _ROWS, _STATISTICS = 2, 3, 4, 6, 7
_STRIPE_OFFSET, _STRIPE_ROWS = 1, 5
_STATISTICS_VALUES, _STATISTICS_NULL = 1, 10
ORC_HEADER = b"ORC"
_TYPE_KIND, _TYPE_SUBTYPES, _TYPE_NAMES, _TYPE_LENGTH = 1, 2, 3, 4
_EXPAND: Mapping[int, Callable[[bytes, int], bytes]] = {_ZLIB: inflate, _SNAPPY: unsnappy, _LZ4: unlz4, _ZSTD: unzstd}
_MAX_CHUNK_BYTES = 1 << 23
_FIRST_READ_BYTES = 16 * 1024
_MAX_TAIL_BYTES = 128 * 1024 * 1024
_TAIL_SLACK_BYTES = 4 * 1024 * 1024
_MAX_TAIL_RATIO = 100
_MAX_VARINT_BYTES = 10
VARCHAR_KIND, CHAR_KIND = 16, 17
TIMESTAMP_KINDS = (9, 18)


@frozen
class OrcTail:
    """What the end of a file says; statistics are encoded ColumnStatistics, by column number."""

    postscript: tuple[Part, ...]
    footer: tuple[Part, ...]
    metadata: bytes = b""

    @property
    def stripe_rows(self) -> tuple[int, ...]:
        """Rows of each stripe."""
        return tuple(number(stripe, _STRIPE_ROWS) for stripe in self.stripes)

    @property
    def stripes(self) -> tuple[list[Part], ...]:
        """What the footer says of each stripe."""
        return tuple(decode(p.as_bytes) for p in self.footer if p.number == _STRIPES)

    @property
    def types(self) -> list[list[Part]]:
        """What the footer says of each column."""
        return [decode(p.as_bytes) for p in self.footer if p.number == _TYPES]

    @property
    def rows(self) -> int:
        """Rows of the whole file."""
        return number(self.footer, _ROWS)

    @property
    def statistics(self) -> tuple[bytes, ...]:
        """Statistics of the whole file."""
        return tuple(p.as_bytes for p in self.footer if p.number == _STATISTICS)

    @property
    def stripe_statistics(self) -> tuple[tuple[bytes, ...], ...]:
        """Statistics of each stripe; empty where the file has none."""
        plain = unframe(self.metadata, self.compression) if self.metadata else b""
        stripes = [p.as_bytes for p in decode(plain) if p.number == 1]
        return tuple(tuple(p.as_bytes for p in decode(stripe) if p.number == 1) for stripe in stripes)

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kind of each column."""
        return tuple(number(parts, _TYPE_KIND) for parts in self.types)

    @property
    def spans(self) -> dict[str, range]:
        """The column numbers of each top-level column and all within it."""
        root = self.types[0]
        names = [p.as_bytes.decode() for p in root if p.number == _TYPE_NAMES]
        starts = [n for p in root if p.number == _TYPE_SUBTYPES for n in packed(p)]
        ends = [*starts[1:], len(self.kinds)]
        return {name: range(a, b) for name, a, b in zip(names, starts, ends, strict=True)}

    @property
    def compression(self) -> int:
        """The number of the codec."""
        return number(self.postscript, _COMPRESSION)


def read_tail(source: pa.NativeFile) -> OrcTail:
    """The tail of a file; Malformed, ValueError or OSError where it has none."""
    size = source.size()
    end = _last(source, size, min(size, _FIRST_READ_BYTES))
    wanted = _tail_bytes(end)
    if wanted > min(size, _MAX_TAIL_BYTES):
        raise Malformed("the tail is longer than the file")
    return split_tail(end if wanted <= len(end) else _last(source, size, wanted))[1]


def split_tail(data: bytes) -> tuple[bytes, OrcTail]:
    """What comes before the tail, and the tail, of the last bytes of a file."""
    postscript, script_bytes = _postscript(data)
    metadata_bytes, footer_bytes = number(postscript, _METADATA_LENGTH), number(postscript, _FOOTER_LENGTH)
    footer_start = len(data) - script_bytes - footer_bytes
    metadata_start = footer_start - metadata_bytes
    if metadata_start < 0:
        raise Malformed("the tail is longer than the file")
    footer = unframe(data[footer_start : len(data) - script_bytes], number(postscript, _COMPRESSION))
    return data[:metadata_start], OrcTail(postscript, tuple(decode(footer)), data[metadata_start:footer_start])


def tail_bytes(tail: OrcTail) -> bytes:
    """The tail as it stands at the end of a file."""
    footer = encode(tail.footer)
    if tail.compression != _NONE:
        footer = _frame(footer, number(tail.postscript, _BLOCK_SIZE))
    lengths = {_FOOTER_LENGTH: len(footer), _METADATA_LENGTH: len(tail.metadata)}
    script = encode(evolve(p, value=lengths.get(p.number, p.value)) for p in tail.postscript)
    return tail.metadata + footer + script + bytes([len(script)])


def retyped(tail: OrcTail, lengths: Mapping[int, tuple[int, int]]) -> OrcTail:
    """The tail with columns made CHAR or VARCHAR: `lengths` has (kind, length in characters) by column number."""
    column = -1
    footer = []
    for part in tail.footer:
        column += part.number == _TYPES
        if part.number == _TYPES and column in lengths:
            kind, length = lengths[column]
            kept = [p for p in decode(part.as_bytes) if p.number not in (_TYPE_KIND, _TYPE_LENGTH)]
            head = [Part(_TYPE_KIND, VARINT, kind), Part(_TYPE_LENGTH, VARINT, length)]
            part = Part(_TYPES, BYTES, encode(sorted(head + kept, key=_by_number)))
        footer.append(part)
    return evolve(tail, footer=tuple(footer))


def joined(first: OrcTail, second: OrcTail, shift: int) -> OrcTail:
    """The tail of a file to whose stripes those of another, of the same column kinds and codec, were appended.

    `shift` is by how much the second file's stripes have moved. Bounds of the whole file are left out, those of its
    stripes are kept.
    """
    stripes = [evolve(p, value=_moved(p.as_bytes, shift)) for p in second.footer if p.number == _STRIPES]
    pairs = zip(first.statistics, second.statistics, strict=True)
    statistics = [Part(_STATISTICS, BYTES, _counted(a, b)) for a, b in pairs]
    totals = {n: number(first.footer, n) + number(second.footer, n) for n in (_CONTENT_LENGTH, _ROWS)}
    kept = [evolve(p, value=totals.get(p.number, p.value)) for p in first.footer if p.number != _STATISTICS]
    footer = sorted([*kept, *stripes, *statistics], key=_by_number)
    return evolve(first, footer=tuple(footer), metadata=first.metadata + second.metadata)


def unframe(data: bytes, compression: int) -> bytes:
    """The bytes behind ORC's compression chunks: three bytes of length and "is original" in front of each."""
    if compression == _NONE:
        return data
    most = min(_MAX_TAIL_BYTES, _TAIL_SLACK_BYTES + _MAX_TAIL_RATIO * len(data))
    out: list[bytes] = []
    at = total = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        if len(chunk) != head >> 1:
            raise Malformed("a chunk ends after its section")
        out.append(chunk if head & 1 else _expand(chunk, compression))
        total += len(out[-1])
        if total > most:
            raise Malformed("the tail decompresses to too much")
        at += 3 + len(chunk)
    return b"".join(out)


def _expand(chunk: bytes, compression: int) -> bytes:
    if compression not in _EXPAND:
        if compression == _LZO:
            raise Unsupported("ORC files compressed with LZO", hint="have them rewritten with another codec")
        raise Malformed(f"compression {compression}")
    return _EXPAND[compression](chunk, _MAX_CHUNK_BYTES)


def _frame(data: bytes, block_bytes: int) -> bytes:
    """The data as uncompressed chunks: a footer is too small to be worth compressing again."""
    most = min(block_bytes or 1 << 18, (1 << 23) - 1)
    chunks = [data[at : at + most] for at in range(0, len(data), most)]
    return b"".join((len(c) << 1 | 1).to_bytes(3, "little") + c for c in chunks)


def _moved(stripe: bytes, shift: int) -> bytes:
    return encode(evolve(p, value=p.as_int + shift) if p.number == _STRIPE_OFFSET else p for p in decode(stripe))


def _counted(first: bytes, second: bytes) -> bytes:
    """The number of values and "has null" of two parts of a column together."""
    parts = decode(first), decode(second)
    values = sum(number(p, _STATISTICS_VALUES) for p in parts)
    null = max(number(p, _STATISTICS_NULL, 1) for p in parts)
    return encode([Part(_STATISTICS_VALUES, VARINT, values), Part(_STATISTICS_NULL, VARINT, null)])


def _by_number(part: Part) -> int:
    return part.number


def packed(part: Part) -> list[int]:
    """The numbers of a repeated field, which may be packed into one run of bytes."""
    if isinstance(part.value, int):
        return [part.value]
    numbers, start = [], 0
    for at, byte in enumerate(part.value):
        if at - start >= _MAX_VARINT_BYTES:
            raise Malformed("a number does not end")
        if byte < 0x80:
            numbers.append(sum((b & 0x7F) << 7 * i for i, b in enumerate(part.value[start : at + 1])))
            start = at + 1
    return numbers


def _tail_bytes(end: bytes) -> int:
    postscript, script_bytes = _postscript(end)
    return script_bytes + number(postscript, _METADATA_LENGTH) + number(postscript, _FOOTER_LENGTH)


def _postscript(end: bytes) -> tuple[tuple[Part, ...], int]:
    if not end or len(end) <= end[-1]:
        raise Malformed("there is no postscript")
    script_bytes = end[-1] + 1
    parts = tuple(decode(end[-script_bytes:-1]))
    if not any(p.number == 8000 and p.value == b"ORC" for p in parts):
        raise Malformed("the postscript lacks ORC's magic")
    return parts, script_bytes


def _last(source: pa.NativeFile, size: int, count: int) -> bytes:
    source.seek(size - count)
    return bytes(source.read(count))
