"""Avro object container files: header, blocks, sync markers.

Law: a block is handed on only when its size, its record count, its decompressed size and its sync marker are plausible;
what is not raises CorruptTable naming the file. Source: Avro specification, "Object Container Files".
"""

from __future__ import annotations

import hashlib
import lzma
import zlib
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from attrs import field, frozen

from paimon.adapters.formats.avro.codecs import compress, decompress
from paimon.domain.errors import CorruptTable, Unsupported

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
_MAX_HEADER_BYTES = 16 * 1024 * 1024
_SLACK_BYTES = 4 * 1024 * 1024
_MAX_RATIO = 200
"""A block of more than the slack, 60 times of what writers make, may not be packed tighter than this."""
_LARGE_BYTES = 64 * 1024 * 1024
_LARGE_RATIO = 16
"""A block beyond so many bytes may not be packed tighter than this: writers make blocks of 64 KB, or of one record."""
_MAX_BLOCK_RECORDS = 1 << 20


@frozen
class Block:
    """Records of one block, decompressed but not decoded."""

    record_count: int
    data: bytes


class BlockData:
    """The data of the blocks of some files behind each other, with the ends and counts of blocks."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ends: list[int] = []
        self.counts: list[int] = []
        self.records_of_files: list[int] = []

    def extend(self, blocks: Iterable[Block]) -> None:
        """Add the blocks of one file."""
        before = len(self.counts)
        for block in blocks:
            self.data += block.data
            self.ends.append(len(self.data))
            self.counts.append(block.record_count)
        self.records_of_files.append(sum(self.counts[before:]))


@frozen
class Header:
    """What stands before the first block."""

    metadata: Mapping[str, bytes] = field(factory=dict)
    sync: bytes = bytes(SYNC_BYTES)

    @property
    def schema(self) -> str:
        """The writer's schema, as JSON text."""
        return self.metadata["avro.schema"].decode()

    @property
    def codec(self) -> str:
        """Avro's name of the codec."""
        return self.metadata.get("avro.codec", b"null").decode("utf-8", "replace")


def read_header(source: pa.NativeFile, path: str) -> Header:
    """The header; leaves `source` at the first block."""
    if source.read(len(MAGIC)) != MAGIC:
        raise CorruptTable(path, "is not an Avro file: its magic bytes are wrong")
    metadata: dict[str, bytes] = {}
    while count := _long(source, path):
        if count < 0:
            _long(source, path)
        for _ in range(abs(count)):
            key = _text(source, path)
            metadata[key.decode("utf-8", "replace")] = _text(source, path)
    try:
        metadata["avro.schema"].decode()
    except (KeyError, UnicodeDecodeError) as error:
        raise CorruptTable(path, "has an Avro header without a readable schema") from error
    return Header(metadata, _exactly(source, SYNC_BYTES, path))


def read_blocks(source: pa.NativeFile, header: Header, path: str, limit: int) -> Iterator[Block]:
    """The blocks after the header, each decompressed to at most `limit` bytes, and to less where it is small."""
    try:
        codec = header.codec
        while (first := source.read(1)) != b"":
            count = _long(source, path, first)
            size = _long(source, path)
            if count < 0 or size < 0:
                raise CorruptTable(path, "has an Avro block of negative size")
            packed = _exactly(source, size, path)
            if _exactly(source, SYNC_BYTES, path) != header.sync:
                raise CorruptTable(path, "has an Avro block without the file's sync marker")
            data = decompress(codec, packed, min(limit, _most_bytes(size)))
            if count > min(len(data), _MAX_BLOCK_RECORDS):
                raise CorruptTable(path, f"has an Avro block of {count} records in {len(data)} bytes")
            yield Block(count, data)
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise CorruptTable(path, f"has a damaged or oversized Avro block: {error}") from error
    except Unsupported as error:
        raise error.within(path) from None


def _most_bytes(packed: int) -> int:
    """What a block of so many bytes may decompress to."""
    return min(_SLACK_BYTES + _MAX_RATIO * packed, max(_LARGE_BYTES, _LARGE_RATIO * packed))


def header_bytes(schema: str, codec: str) -> bytes:
    """Magic, metadata and sync marker of a new file (the last 16 bytes are the marker, derived from the schema)."""
    pairs = (("avro.schema", schema.encode()), ("avro.codec", codec.encode()))
    body = b"".join(long_bytes(len(k)) + k.encode() + long_bytes(len(v)) + v for k, v in pairs)
    sync = hashlib.blake2b(body, digest_size=SYNC_BYTES).digest()
    return MAGIC + long_bytes(len(pairs)) + body + long_bytes(0) + sync


def block_bytes(block: Block, codec: str, sync: bytes, zstd_level: int = 1) -> bytes:
    """One block as it stands in a file."""
    packed = compress(codec, block.data, zstd_level)
    return b"".join((long_bytes(block.record_count), long_bytes(len(packed)), packed, sync))


def long_bytes(value: int) -> bytes:
    """Avro's long: zigzag, then 7 bits a byte, low bits first."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _long(source: pa.NativeFile, path: str, first: bytes = b"") -> int:
    value = shift = 0
    while True:
        byte = first or _exactly(source, 1, path)
        first = b""
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
        if shift > 63:
            raise CorruptTable(path, "has an Avro number of more than 64 bits")


def _text(source: pa.NativeFile, path: str) -> bytes:
    size = _long(source, path)
    if not 0 <= size <= _MAX_HEADER_BYTES:
        raise CorruptTable(path, f"has an Avro header entry of {size} bytes")
    return _exactly(source, size, path)


def _exactly(source: pa.NativeFile, size: int, path: str) -> bytes:
    # Asking for more than there is would allocate it first: a mutated size may be huge.
    if size > _MAX_HEADER_BYTES and size > source.size() - source.tell():
        raise CorruptTable(path, "ends in the middle of an Avro block")
    data = bytes(source.read(size))
    if len(data) != size:
        raise CorruptTable(path, "ends in the middle of an Avro block")
    return data
