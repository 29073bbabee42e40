"""Decompression returns the complete block up to its limit, and fails above it."""

from __future__ import annotations

import bz2
import lzma
import random
import tracemalloc
import zlib
from collections.abc import Callable
from itertools import product

import cramjam
import pyarrow as pa
import pytest
from support.case_lists import mark_products

from paimon.adapters.formats.guards.decompression import TooLarge, inflate, unbzip2, unlz4, unsnappy, unxz, unzstd

MIB = 1 << 20
DAMAGED = (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError)


def deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(1, zlib.DEFLATED, -15)
    return squeeze.compress(data) + squeeze.flush()


def streamed_zstd(data: bytes) -> bytes:
    """Without the decoded size in the frame's header."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return bytes(sink.getvalue().to_pybytes())


CODECS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes, int], bytes]]] = {
    "deflate": (deflate, inflate),
    "bzip2": (bz2.compress, unbzip2),
    "xz": (lzma.compress, unxz),
    "snappy": (lambda data: bytes(pa.compress(data, codec="snappy", asbytes=True)), unsnappy),
    "zstandard": (lambda data: bytes(cramjam.zstd.compress(data, 1)), unzstd),
    "zstandard, streamed": (streamed_zstd, unzstd),
    "lz4": (lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)), unlz4),
}


CASES = [*product(CODECS, [0, 1, 64_000, MIB, MIB + 1, 3 * MIB])]
ENTROPIES = [0, 1, 2]
"""All zeros, half of them, and chance alone."""


@pytest.mark.parametrize(
    ("case", "entropy"),
    mark_products(CASES, ENTROPIES, always=[case for case in CASES if case[1] in (1, 1 << 20, (1 << 20) + 1)]),
)
def test_a_block_is_complete_up_to_its_limit_and_refused_beyond(case: tuple[str, int], entropy: int) -> None:
    codec, size = case
    compress, decompress = CODECS[codec]
    drawn = random.Random(size).randbytes(size * entropy // 2)
    data = drawn + bytes(size - len(drawn))
    packed = compress(data)
    assert decompress(packed, size) == data
    assert decompress(packed, size + 1) == data
    if size:
        with pytest.raises(DAMAGED):
            decompress(packed, size - 1)


@pytest.mark.parametrize("codec", [c for c in CODECS if not c.startswith("zstandard, ")])
def test_a_block_that_is_cut_is_refused(codec: str) -> None:
    compress, decompress = CODECS[codec]
    data = random.Random(1).randbytes(100_000) + bytes(2 * MIB)
    packed = compress(data)
    for end in (1, len(packed) // 2, len(packed) - 1):
        with pytest.raises(DAMAGED):
            assert decompress(packed[:end], len(data)) == data


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz"])
def test_output_exceeds_the_limit_by_one_piece_at_most(codec: str) -> None:
    compress, decompress = CODECS[codec]
    packed = compress(bytes(60 * MIB))
    tracemalloc.start()
    with pytest.raises(TooLarge):
        decompress(packed, 10 * MIB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (24 if codec == "xz" else 14) * MIB  # the dictionary of xz is counted as well


def test_xz_does_not_take_the_memory_that_a_header_asks_for() -> None:
    filters = [
        {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30, "mode": lzma.MODE_FAST, "mf": lzma.MF_HC3, "nice_len": 4}
    ]
    squeeze = lzma.LZMACompressor(format=lzma.FORMAT_XZ, filters=filters)
    packed = squeeze.compress(b"x") + squeeze.flush()
    with pytest.raises(DAMAGED):
        unxz(packed, 100)
