"""The hash index file of a dynamic bucket: the hashes of all keys that were ever assigned to the bucket.

The file contains 32-bit big-endian integers and nothing else. Their order has no meaning.

Invariant: `decode_hash_index(encode_hash_index(hashes)) == hashes`.
Source: `HashIndexFile`, `IntFileUtils`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from paimon.domain.errors import CorruptTable

HASH_BYTES = 4
"""The size of one hash in an index file."""
MAX_DYNAMIC_BUCKETS = 32767
"""A partition has fewer dynamic buckets than this, because Java stores their numbers as 16-bit integers."""


def encode_hash_index(hashes: npt.NDArray[np.int32]) -> bytes:
    """Return the content of an index file."""
    return hashes.astype(">i4").tobytes()


def decode_hash_index(data: bytes, path: str) -> npt.NDArray[np.int32]:
    """Return the hashes of an index file; a size that is not a multiple of 4 bytes is corrupt."""
    if len(data) % HASH_BYTES:
        raise CorruptTable(path, f"has {len(data)} bytes, which is no multiple of {HASH_BYTES}: not a hash index")
    return np.frombuffer(data, ">i4").astype(np.int32)
