"""Decompress blocks of untrusted files into at most a given number of bytes.

Invariant: no function makes more than `limit` bytes and one piece of 1 MiB, however small its input is. A few kilobytes
of zstandard, deflate or snappy can expand to gigabytes. Damaged input raises ValueError, OSError, EOFError, zlib.error
or lzma.LZMAError.
"""

from __future__ import annotations

import bz2
import contextlib
import lzma
import zlib
from collections.abc import Callable, Iterator

import cramjam
import pyarrow as pa

_PIECE_BYTES = 1 << 20
_PACKED_BYTES = 1 << 16
_XZ_MEMORY = 128 * 1024 * 1024
"""The strongest preset needs 65 MiB; a header may ask for gigabytes of memory."""
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_LZ4_MOST_RATIO = 255


class TooLarge(ValueError):
    """The data would decompress to more than the limit."""


def check_size(data: bytes, limit: int) -> bytes:
    """Return data that is not compressed; TooLarge if it has more than `limit` bytes."""
    if len(data) > limit:
        raise TooLarge(f"a block decompresses to more than {limit} bytes")
    return data


def unzstd(data: bytes, limit: int) -> bytes:
    """Decompress zstandard frames to at most `limit` bytes."""
    size = _size_in_frame(data)
    if 0 < size <= limit:
        with contextlib.suppress(OSError):  # more frames follow, or the size is wrong
            return bytes(pa.decompress(data, size, codec="zstd", asbytes=True))
    return _unzstd_pieces(data, limit)


def _size_in_frame(data: bytes) -> int:
    """Return the decoded size that the first frame's header states; 0 if it states none."""
    descriptor = data[4] if len(data) > 4 else 0
    if data[:4] != _ZSTD_MAGIC:
        return 0
    single = descriptor >> 5 & 1
    width = (single, 2, 4, 8)[descriptor >> 6]
    start = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    return int.from_bytes(data[start : start + width], "little") + (256 if width == 2 else 0)


def _unzstd_pieces(data: bytes, limit: int) -> bytes:
    stream = pa.CompressedInputStream(pa.BufferReader(data), "zstd")
    return _join_pieces(iter(lambda: stream.read(_PIECE_BYTES), b""), limit, lambda: True)


def unsnappy(data: bytes, limit: int) -> bytes:
    """Decompress raw snappy data, which begins with the decoded size; TooLarge if that is more than `limit`."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > limit:
        raise TooLarge(f"a block decompresses to {size} bytes, more than {limit}")
    return bytes(pa.decompress(data, size, codec="snappy", asbytes=True)) if size else b""


def inflate(data: bytes, limit: int) -> bytes:
    """Decompress raw deflate data (without a zlib header) to at most `limit` bytes."""
    stream = zlib.decompressobj(-15)

    def pieces() -> Iterator[bytes]:
        """Yield the decompressed data in pieces of at most 1 MiB."""
        view = memoryview(data)
        # zlib copies the part of its input that a call does not consume. Short inputs keep that copy small.
        for start in range(0, len(data), _PACKED_BYTES):
            rest: bytes | memoryview = view[start : start + _PACKED_BYTES]
            while rest and not stream.eof:
                yield stream.decompress(rest, _PIECE_BYTES)
                rest = stream.unconsumed_tail
        while not stream.eof and (piece := stream.decompress(b"", _PIECE_BYTES)):
            yield piece

    return _join_pieces(pieces(), limit, lambda: stream.eof)


def unbzip2(data: bytes, limit: int) -> bytes:
    """Decompress one bzip2 stream to at most `limit` bytes."""
    return _decompress_stream(bz2.BZ2Decompressor(), data, limit)


def unxz(data: bytes, limit: int) -> bytes:
    """Decompress one xz stream to at most `limit` bytes, with at most 128 MiB of memory for the dictionary."""
    return _decompress_stream(lzma.LZMADecompressor(memlimit=_XZ_MEMORY), data, limit)


def _decompress_stream(stream: bz2.BZ2Decompressor | lzma.LZMADecompressor, data: bytes, limit: int) -> bytes:
    def pieces() -> Iterator[bytes]:
        """Yield the decompressed data in pieces of at most 1 MiB."""
        yield stream.decompress(data, _PIECE_BYTES)
        while not stream.eof and not stream.needs_input:
            yield stream.decompress(b"", _PIECE_BYTES)

    return _join_pieces(pieces(), limit, lambda: stream.eof)


def _join_pieces(pieces: Iterator[bytes], limit: int, is_at_end: Callable[[], bool]) -> bytes:
    """Join pieces and stop as soon as they are larger than `limit`."""
    found: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit:
            raise TooLarge(f"a block decompresses to more than {limit} bytes")
        found.append(piece)
    if not is_at_end():
        raise ValueError("a compressed block is truncated")
    return found[0] if len(found) == 1 else b"".join(found)


def unlz4(data: bytes, limit: int) -> bytes:
    """Decompress a raw LZ4 block without a size; ValueError if damaged, or of more than `limit` decoded bytes."""
    room = bytearray(min(len(data) * _LZ4_MOST_RATIO + 64, limit))
    try:
        return bytes(room[: cramjam.lz4.decompress_block_into(data, room)])
    except cramjam.DecompressionError as error:
        raise ValueError(f"an LZ4 block is damaged or too large: {error}") from error
