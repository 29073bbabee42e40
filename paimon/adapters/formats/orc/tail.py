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

_NONE, _ZLIB, _SNAPPY, _LZO, _LZ4, _ZSTD = range(6)
_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE, _METADATA_LENGTH = 1, 2, 3, 5
_STRIPES, _TYPES, _STATISTICS = 3, 4, 7
_STRIPE_ROWS = 5
_TYPE_KIND, _TYPE_SUBTYPES, _TYPE_NAMES, _TYPE_LENGTH = 1, 2, 3, 4
_EXPAND: Mapping[int, Callable[[bytes, int], bytes]] = {_ZLIB: inflate, _SNAPPY: unsnappy, _LZ4: unlz4, _ZSTD: unzstd}
_MAX_CHUNK_BYTES = 1 << 23
_FIRST_READ_BYTES = 16 * 1024
_MAX_TAIL_BYTES = 256 * 1024 * 1024
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
        stripes = [p.as_bytes for p in self.footer if p.number == _STRIPES]
        return tuple(number(decode(stripe), _STRIPE_ROWS) for stripe in stripes)

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
        return tuple(number(decode(p.as_bytes), _TYPE_KIND) for p in self.footer if p.number == _TYPES)

    @property
    def spans(self) -> dict[str, range]:
        """The column numbers of each top-level column and all within it."""
        root = decode(next(p.as_bytes for p in self.footer if p.number == _TYPES))
        names = [p.as_bytes.decode() for p in root if p.number == _TYPE_NAMES]
        starts = [n for p in root if p.number == _TYPE_SUBTYPES for n in _packed(p)]
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
    postscript, script_bytes = _postscript(end)
    lengths = [number(postscript, _METADATA_LENGTH), number(postscript, _FOOTER_LENGTH)]
    wanted = sum(lengths) + script_bytes
    if wanted > min(size, _MAX_TAIL_BYTES):
        raise Malformed("the tail is longer than the file")
    if wanted > len(end):
        end = _last(source, size, wanted)
    metadata, footer = (end[-wanted:][:-script_bytes][: lengths[0]], end[-script_bytes - lengths[1] : -script_bytes])
    return OrcTail(postscript, tuple(decode(unframe(footer, number(postscript, _COMPRESSION)))), metadata)


def with_lengths(tail: bytes, lengths: Mapping[int, tuple[int, int]]) -> bytes:
    """The bytes that end a file, with columns made CHAR or VARCHAR.

    Parameters
    ----------
    tail : bytes
        At least footer and postscript.
    lengths : mapping
        Column number to (kind, length in characters).
    """
    postscript, script_bytes = _postscript(tail)
    footer_bytes = number(postscript, _FOOTER_LENGTH)
    compression = number(postscript, _COMPRESSION)
    footer = decode(unframe(tail[-script_bytes - footer_bytes : -script_bytes], compression))
    rewritten = encode(_retyped(footer, lengths))
    if compression != _NONE:
        rewritten = _frame(rewritten, number(postscript, _BLOCK_SIZE))
    script = encode(evolve(p, value=len(rewritten)) if p.number == _FOOTER_LENGTH else p for p in postscript)
    return tail[: -script_bytes - footer_bytes] + rewritten + script + bytes([len(script)])


def unframe(data: bytes, compression: int) -> bytes:
    """The bytes behind ORC's compression chunks: three bytes of length and "is original" in front of each."""
    if compression == _NONE:
        return data
    out: list[bytes] = []
    at = total = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        if len(chunk) != head >> 1:
            raise Malformed("a chunk ends after its section")
        out.append(chunk if head & 1 else _expand(chunk, compression))
        total += len(out[-1])
        if total > _MAX_TAIL_BYTES:
            raise Malformed("the tail decompresses to too much")
        at += 3 + len(chunk)
    return b"".join(out)


def _expand(chunk: bytes, compression: int) -> bytes:
    if compression not in _EXPAND:
        raise Malformed(f"compression {compression}")
    return _EXPAND[compression](chunk, _MAX_CHUNK_BYTES)


def _frame(data: bytes, block_bytes: int) -> bytes:
    """The data as uncompressed chunks: a footer is too small to be worth compressing again."""
    most = min(block_bytes or 1 << 18, (1 << 23) - 1)
    chunks = [data[at : at + most] for at in range(0, len(data), most)]
    return b"".join((len(c) << 1 | 1).to_bytes(3, "little") + c for c in chunks)


def _retyped(footer: list[Part], lengths: Mapping[int, tuple[int, int]]) -> list[Part]:
    column = -1
    parts = []
    for part in footer:
        if part.number == _TYPES:
            column += 1
            if column in lengths:
                kind, length = lengths[column]
                kept = [p for p in decode(part.as_bytes) if p.number not in (_TYPE_KIND, _TYPE_LENGTH)]
                head = [Part(_TYPE_KIND, VARINT, kind), Part(_TYPE_LENGTH, VARINT, length)]
                part = Part(_TYPES, BYTES, encode(sorted(head + kept, key=_by_number)))
        parts.append(part)
    return parts


def _by_number(part: Part) -> int:
    return part.number


def _packed(part: Part) -> list[int]:
    """The numbers of a repeated field, which may be packed into one run of bytes."""
    if isinstance(part.value, int):
        return [part.value]
    numbers, start = [], 0
    for at, byte in enumerate(part.value):
        if byte < 0x80:
            numbers.append(sum((b & 0x7F) << 7 * i for i, b in enumerate(part.value[start : at + 1])))
            start = at + 1
    return numbers


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


