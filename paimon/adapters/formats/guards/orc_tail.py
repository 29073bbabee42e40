"""Read the tail of an ORC file (postscript, footer, stripe statistics) within limits of size.

Invariant: a tail takes at most 128 MiB, and at most 4 MiB and 100 times its stored bytes, when it is decompressed.
Source: ORC specification v1, "File Tail".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.guards.decompression import inflate, unlz4, unsnappy, unzstd
from paimon.adapters.formats.protobuf import Malformed, Part, decode, int_field
from paimon.domain.errors import Unsupported

NO_COMPRESSION, _ZLIB, _SNAPPY, _LZO, _LZ4, _ZSTD = range(6)
FOOTER_LENGTH, _COMPRESSION, METADATA_LENGTH = 1, 2, 5
STRIPES, TYPES, ROWS, STATISTICS = 3, 4, 6, 7
_STRIPE_ROWS = 5
TYPE_KIND, _TYPE_SUBTYPES, _TYPE_NAMES = 1, 2, 3
_DECOMPRESS: Mapping[int, Callable[[bytes, int], bytes]] = {
    _ZLIB: inflate,
    _SNAPPY: unsnappy,
    _LZ4: unlz4,
    _ZSTD: unzstd,
}
_MAX_CHUNK_BYTES = 1 << 23
_FIRST_READ_BYTES = 16 * 1024
_MAX_TAIL_BYTES = 128 * 1024 * 1024
_TAIL_SLACK_BYTES = 4 * 1024 * 1024
_MAX_TAIL_RATIO = 100
_MAX_VARINT_BYTES = 10
TIMESTAMP_KINDS = (9, 18)


@frozen
class OrcTail:
    """The tail of an ORC file; statistics are encoded ColumnStatistics messages, by column number."""

    postscript: tuple[Part, ...]
    footer: tuple[Part, ...]
    # the Metadata section as stored, which is the compressed statistics of the stripes
    metadata: bytes = b""

    @property
    def stripe_rows(self) -> tuple[int, ...]:
        """The number of rows of each stripe."""
        return tuple(int_field(stripe, _STRIPE_ROWS) for stripe in self.stripes)

    @property
    def stripes(self) -> tuple[list[Part], ...]:
        """The StripeInformation message of each stripe, decoded."""
        return tuple(decode(p.as_bytes) for p in self.footer if p.number == STRIPES)

    @property
    def types(self) -> list[list[Part]]:
        """The Type message of each column, decoded."""
        return [decode(p.as_bytes) for p in self.footer if p.number == TYPES]

    @property
    def rows(self) -> int:
        """The number of rows of the whole file."""
        return int_field(self.footer, ROWS)

    @property
    def statistics(self) -> tuple[bytes, ...]:
        """The statistics of the whole file, one message per column."""
        return tuple(p.as_bytes for p in self.footer if p.number == STATISTICS)

    @property
    def stripe_statistics(self) -> tuple[tuple[bytes, ...], ...]:
        """The statistics of each stripe, one message per column; empty if the file has none."""
        plain = decompress_section(self.metadata, self.compression) if self.metadata else b""
        stripes = [p.as_bytes for p in decode(plain) if p.number == 1]
        return tuple(tuple(p.as_bytes for p in decode(stripe) if p.number == 1) for stripe in stripes)

    @property
    def kinds(self) -> tuple[int, ...]:
        """The type kind of each column."""
        return tuple(int_field(parts, TYPE_KIND) for parts in self.types)

    @property
    def spans(self) -> dict[str, range]:
        """The column numbers of each top-level column and its nested columns, by name."""
        root = self.types[0]
        names = [p.as_bytes.decode() for p in root if p.number == _TYPE_NAMES]
        starts = [n for p in root if p.number == _TYPE_SUBTYPES for n in unpack_numbers(p)]
        ends = [*starts[1:], len(self.kinds)]
        return {name: range(a, b) for name, a, b in zip(names, starts, ends, strict=True)}

    @property
    def compression(self) -> int:
        """The number of the compression codec."""
        return int_field(self.postscript, _COMPRESSION)


def read_tail(source: pa.NativeFile) -> OrcTail:
    """Read a file's tail, whose types `check_types` checks; Unsupported for LZO, else damage as ValueError."""
    size = source.size()
    end = _read_end(source, size, min(size, _FIRST_READ_BYTES))
    wanted = _stored_tail_bytes(end)
    if wanted > min(size, _MAX_TAIL_BYTES):
        raise Malformed("the tail is longer than the file")
    return split_tail(end if wanted <= len(end) else _read_end(source, size, wanted))[1]


def split_tail(data: bytes) -> tuple[bytes, OrcTail]:
    """Split the last bytes of a file before the tail; Malformed if the tail is not whole."""
    postscript, script_bytes = _read_postscript(data)
    metadata_bytes, footer_bytes = int_field(postscript, METADATA_LENGTH), int_field(postscript, FOOTER_LENGTH)
    footer_start = len(data) - script_bytes - footer_bytes
    metadata_start = footer_start - metadata_bytes
    if metadata_start < 0:
        raise Malformed("the tail is longer than the file")
    footer = decompress_section(data[footer_start : len(data) - script_bytes], int_field(postscript, _COMPRESSION))
    return data[:metadata_start], OrcTail(postscript, tuple(decode(footer)), data[metadata_start:footer_start])


def decompress_section(data: bytes, compression: int) -> bytes:
    """Return the decompressed chunks of a section; Malformed above the limit, Unsupported for LZO."""
    if compression == NO_COMPRESSION:
        return data
    most = min(_MAX_TAIL_BYTES, _TAIL_SLACK_BYTES + _MAX_TAIL_RATIO * len(data))
    out: list[bytes] = []
    at = total = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        if len(chunk) != head >> 1:
            raise Malformed("a compressed chunk is longer than its section")
        out.append(chunk if head & 1 else _decompress_chunk(chunk, compression))
        total += len(out[-1])
        if total > most:
            raise Malformed(f"a section decompresses to more than {most} bytes")
        at += 3 + len(chunk)
    return b"".join(out)


def _decompress_chunk(chunk: bytes, compression: int) -> bytes:
    if compression not in _DECOMPRESS:
        if compression == _LZO:
            raise Unsupported("ORC files compressed with LZO", hint="rewrite the file with another codec")
        raise Malformed(f"the compression codec {compression} does not exist")
    return _DECOMPRESS[compression](chunk, _MAX_CHUNK_BYTES)


def unpack_numbers(part: Part) -> list[int]:
    """Return the numbers of a repeated varint field, packed or not; Malformed if one has more than ten bytes."""
    if isinstance(part.value, int):
        return [part.value]
    numbers, start = [], 0
    for at, byte in enumerate(part.value):
        if at - start >= _MAX_VARINT_BYTES:
            raise Malformed("a packed number has more than ten bytes")
        if byte < 0x80:
            numbers.append(sum((b & 0x7F) << 7 * i for i, b in enumerate(part.value[start : at + 1])))
            start = at + 1
    return numbers


def _stored_tail_bytes(end: bytes) -> int:
    postscript, script_bytes = _read_postscript(end)
    return script_bytes + int_field(postscript, METADATA_LENGTH) + int_field(postscript, FOOTER_LENGTH)


def _read_postscript(end: bytes) -> tuple[tuple[Part, ...], int]:
    if not end or len(end) <= end[-1]:
        raise Malformed("the file has no postscript")
    script_bytes = end[-1] + 1
    parts = tuple(decode(end[-script_bytes:-1]))
    if not any(p.number == 8000 and p.value == b"ORC" for p in parts):
        raise Malformed("the postscript has no ORC magic")
    return parts, script_bytes


def _read_end(source: pa.NativeFile, size: int, count: int) -> bytes:
    source.seek(size - count)
    return bytes(source.read(count))
