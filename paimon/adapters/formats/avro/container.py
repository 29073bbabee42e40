"""Read and write Avro object container files: header, blocks with their codecs, sync markers.

Invariant: a block is returned only if its size, record count, decompressed size and sync marker are plausible. Anything
else raises CorruptTable with the path. Source: Avro specification, "Object Container Files".
"""

from __future__ import annotations

import bz2
import hashlib
import lzma
import zlib
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from attrs import field, frozen

from paimon.adapters.formats.guards.avro import MAX_HEADER_BYTES, has_too_many_records, max_block_bytes
from paimon.adapters.formats.guards.decompression import check_size, inflate, unbzip2, unsnappy, unxz, unzstd
from paimon.adapters.formats.varints import decode_zigzag, encode_zigzag
from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported

# Block codecs of Avro files, by Avro's names, decompressing within a limit.
#
# Invariant: `decompress(codec, compress(codec, data, level), len(data)) == data`, and `decompress` never returns more
# bytes than its limit. Source: Avro specification, "Required Codecs" and "Optional Codecs".


AVRO_CODECS = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "snappy": "snappy",
    "deflate": "deflate",
    "gzip": "deflate",
    "none": "null",
    "null": "null",
    "bzip2": "bzip2",
    "xz": "xz",
}
"""Avro's codec names, by the names of table options."""


def avro_codec(compression: str) -> str:
    """Return Avro's name of a codec of table options."""
    name = AVRO_CODECS.get(compression.lower())
    if name is None:
        raise InvalidRequest(
            f"Codec {compression!r} does not exist for Avro files",
            subject=compression,
            hint="use zstd, snappy, deflate, bzip2, xz or null",
        )
    return name


def decompress(codec: str, block: bytes, limit: int) -> bytes:
    """Decompress one block; TooLarge if it has more than `limit` bytes. `codec` is Avro's name."""
    if codec == "null":
        return check_size(block, limit)
    if codec == "zstandard":
        return unzstd(block, limit)
    if codec == "snappy":
        return _unsnappy(block, limit)
    if codec == "deflate":
        return inflate(block, limit)
    if codec == "bzip2":
        return unbzip2(block, limit)
    if codec == "xz":
        return unxz(block, limit)
    raise Unsupported(f"Avro codec {codec!r}", hint="write the file with zstandard, snappy, deflate, bzip2, xz or null")


def compress(codec: str, block: bytes, level: int) -> bytes:
    """Compress one block. `codec` is Avro's name; `level` is for zstandard only."""
    if codec == "zstandard":
        return bytes(pa.Codec("zstd", compression_level=level).compress(block, asbytes=True))
    if codec == "snappy":
        return bytes(pa.compress(block, codec="snappy", asbytes=True)) + zlib.crc32(block).to_bytes(4, "big")
    if codec == "deflate":
        squeeze = zlib.compressobj(wbits=-15)
        return squeeze.compress(block) + squeeze.flush()
    if codec == "bzip2":
        return bz2.compress(block)
    if codec == "xz":
        return lzma.compress(block)
    return block


def _unsnappy(block: bytes, limit: int) -> bytes:
    """Decompress Avro's snappy block: raw snappy, followed by a CRC of the decompressed bytes."""
    if len(block) < 5:
        raise ValueError("a snappy block is too short")
    data = unsnappy(block[:-4], limit)
    if zlib.crc32(data) != int.from_bytes(block[-4:], "big"):
        raise ValueError("the checksum of a snappy block does not match")
    return data


MAGIC = b"Obj\x01"
SYNC_BYTES = 16


@frozen
class Block:
    """Records of one block, decompressed but not decoded."""

    record_count: int
    data: bytes


class BlockData:
    """The data of the blocks of several files in one buffer, with the end offset and record count of each block."""

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
    """The metadata and sync marker before the first block."""

    metadata: Mapping[str, bytes] = field(factory=dict)
    sync: bytes = bytes(SYNC_BYTES)

    @property
    def schema(self) -> str:
        """The writer's schema as JSON text."""
        return self.metadata["avro.schema"].decode()

    @property
    def codec(self) -> str:
        """Avro's name of the codec."""
        return self.metadata.get("avro.codec", b"null").decode("utf-8", "replace")


def read_header(source: pa.NativeFile, path: str) -> Header:
    """Read the header, and leave `source` at the first block."""
    if source.read(len(MAGIC)) != MAGIC:
        raise CorruptTable(path, "is not an Avro file: its magic bytes are wrong")
    metadata: dict[str, bytes] = {}
    while count := _read_long(source, path):
        if count < 0:
            _read_long(source, path)
        for _ in range(abs(count)):
            key = _read_text(source, path)
            metadata[key.decode("utf-8", "replace")] = _read_text(source, path)
    try:
        metadata["avro.schema"].decode()
    except (KeyError, UnicodeDecodeError) as error:
        raise CorruptTable(path, "has an Avro header without a readable schema") from error
    return Header(metadata, _read_bytes(source, SYNC_BYTES, path))


def read_blocks(source: pa.NativeFile, header: Header, path: str, limit: int) -> Iterator[Block]:
    """Read and decompress the blocks after the header, of at most `limit` bytes each; else CorruptTable."""
    try:
        codec = header.codec
        while (first := source.read(1)) != b"":
            count = _read_long(source, path, first)
            size = _read_long(source, path)
            if count < 0 or size < 0:
                raise CorruptTable(path, "has an Avro block of negative size")
            packed = _read_bytes(source, size, path)
            if _read_bytes(source, SYNC_BYTES, path) != header.sync:
                raise CorruptTable(path, "has an Avro block without the file's sync marker")
            data = decompress(codec, packed, min(limit, max_block_bytes(size)))
            if has_too_many_records(count, len(data)):
                raise CorruptTable(path, f"has an Avro block of {count} records in {len(data)} bytes")
            yield Block(count, data)
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise CorruptTable(path, f"has a damaged or too large Avro block: {error}") from error
    except Unsupported as error:
        raise error.within(path) from None


def count_records(source: pa.NativeFile, header: Header, path: str) -> int:
    """Return the number of records after the header by the heads of the blocks; no block is decompressed."""
    rows = 0
    while (first := source.read(1)) != b"":
        count = _read_long(source, path, first)
        size = _read_long(source, path)
        end = source.tell() + size
        if count < 0 or size < 0 or end + SYNC_BYTES > source.size():
            raise CorruptTable(path, "is truncated, or has an Avro block of negative size")
        source.seek(end)
        if _read_bytes(source, SYNC_BYTES, path) != header.sync:
            raise CorruptTable(path, "has an Avro block without the file's sync marker")
        rows += count
    return rows


def encode_header(schema: str, codec: str) -> bytes:
    """Return the head of a new file; its last 16 bytes are the marker, which is derived from the schema."""
    pairs = (("avro.schema", schema.encode()), ("avro.codec", codec.encode()))
    body = b"".join(encode_zigzag(len(k)) + k.encode() + encode_zigzag(len(v)) + v for k, v in pairs)
    sync = hashlib.blake2b(body, digest_size=SYNC_BYTES).digest()
    return MAGIC + encode_zigzag(len(pairs)) + body + encode_zigzag(0) + sync


def pack_block(block: Block, codec: str, sync: bytes, zstd_level: int = 1) -> bytes:
    """Encode a block: record count, size, compressed records, marker; `codec` is Avro's name."""
    packed = compress(codec, block.data, zstd_level)
    return b"".join((encode_zigzag(block.record_count), encode_zigzag(len(packed)), packed, sync))


def _read_long(source: pa.NativeFile, path: str, first: bytes = b"") -> int:
    value = shift = 0
    while True:
        byte = first or _read_bytes(source, 1, path)
        first = b""
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return decode_zigzag(value)
        if shift > 63:
            raise CorruptTable(path, "has an Avro number of more than 64 bits")


def _read_text(source: pa.NativeFile, path: str) -> bytes:
    size = _read_long(source, path)
    if not 0 <= size <= MAX_HEADER_BYTES:
        raise CorruptTable(path, f"has an Avro header entry of {size} bytes")
    return _read_bytes(source, size, path)


def _read_bytes(source: pa.NativeFile, size: int, path: str) -> bytes:
    # A read of more bytes than exist allocates all of them first, and a damaged size may be huge.
    if size > MAX_HEADER_BYTES and size > source.size() - source.tell():
        raise CorruptTable(path, "is truncated in the middle of an Avro block")
    data = bytes(source.read(size))
    if len(data) != size:
        raise CorruptTable(path, "is truncated in the middle of an Avro block")
    return data
