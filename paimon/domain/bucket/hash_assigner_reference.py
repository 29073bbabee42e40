"""Assign keys to dynamic buckets by their hashes, one by one: the reference of `hash_assigner_columnar`.

Source: `HashBucketAssigner`, `PartitionIndex`, `BucketAssigner`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, MutableMapping

MAX_BUCKETS = 32767


def compute_assigner(partition_hash: int, key_hash: int, channels: int, assigners: int) -> int:
    """Return the channel whose assigner decides about a key; `assigners` of the `channels` share a partition."""
    return (abs(partition_hash) % channels + abs(key_hash) % assigners) % channels


def assign_one(
    known: MutableMapping[int, int], key_hash: int, target: int, limit: int, owned: Iterable[int], overflow: int
) -> int:
    """Return the bucket of a hash, and record it in `known`.

    A bucket with `target` hashes is full. `limit` is the largest number of buckets, -1 for none. `owned` are the
    assigner's bucket numbers, ascending. If all are full, `overflow` selects one; a ValueError without a limit or an
    owned bucket.
    """
    if key_hash in known:
        return known[key_hash]
    counts = Counter(known.values())
    own = [b for b in owned if b < (MAX_BUCKETS if limit < 0 else limit)]
    rooms = [b for b in own if 0 < counts[b] < target]
    unused = [b for b in own if not counts[b]]
    if rooms or unused:
        known[key_hash] = (rooms or unused)[0]
        return known[key_hash]
    if limit < 0 or not own:
        raise ValueError("no bucket is left")
    known[key_hash] = own[overflow % len(own)]
    return known[key_hash]
