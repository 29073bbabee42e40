"""Assign keys to dynamic buckets by their hashes, one by one: the reference of `hash_assigner_columnar`.

Source: `HashBucketAssigner`, `PartitionIndex`, `BucketAssigner`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, MutableMapping

MAX_BUCKETS = 32767


def compute_assigner(partition_hash: int, key_hash: int, channels: int, assigners: int) -> int:
    """Return the channel whose assigner decides about a key.

    Parameters
    ----------
    partition_hash, key_hash : int
        The hashes of the partition's row and of the key.
    channels : int
        The number of parallel assigners.
    assigners : int
        How many of them share a partition.

    Returns
    -------
    int
        From 0 to `channels` - 1.
    """
    return (abs(partition_hash) % channels + abs(key_hash) % assigners) % channels


def assign_one(
    known: MutableMapping[int, int], key_hash: int, target: int, limit: int, owned: Iterable[int], overflow: int
) -> int:
    """Return the bucket of a hash, and record it.

    Parameters
    ----------
    known : mutable mapping of int to int
        The bucket of each hash of the partition.
    key_hash : int
        The hash of the key.
    target : int
        A bucket with so many hashes is full.
    limit : int
        The largest number of buckets; -1 for none.
    owned : iterable of int
        The bucket numbers of the assigner, in ascending order.
    overflow : int
        Selects a bucket if all are full and there can be no more.

    Returns
    -------
    int
        The bucket.

    Raises
    ------
    ValueError
        All buckets are full, and there can be no more.
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
