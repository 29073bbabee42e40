"""Choose where data files outside the directory of a table are written.

Invariant: the path depends only on the table and on the name of the file, so it can be computed again.
Source: `ExternalPathProvider` and its classes, `AbstractFileStore.createExternalPaths`, Guava's `murmur3_32`.
"""

# A table with `data-file.external-paths` has roots on other storages. A data file keeps its partition and bucket below
# one of them, and its entry in the manifest has the whole path:
#
#     table                  s3://lake/shop.db/orders
#     roots                  s3://a/orders, s3://b/orders
#     round-robin            s3://a/orders/day=1/bucket-0/data-7f…-0.parquet
#                            s3://b/orders/day=1/bucket-0/data-7f…-1.parquet
#     entropy-inject         s3://a/orders/day=1/bucket-0/1001/0110/1100/10011010/data-7f…-0.parquet
#
# Java begins with a random root in each writer, and takes the next one for each file. Here the name gives both: the
# hash of the part that all files of a writer share is where it begins, and the number of the file is added.
# `specific-fs` is the same with the roots of one scheme alone. `weight-robin` takes the hash of the whole name as the
# random number. `entropy-inject` adds the low 20 bits of this hash as directories, so that an object store spreads the
# requests.
#
# Roots come from a schema file, which others may have written. Files are written only below roots that the caller
# allowed, as with the paths in manifests.

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.parse import bad_value_error
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import is_within, join_path

PATHS = "data-file.external-paths"
SPECIFIC_FS = f"{PATHS}.specific-fs"
WEIGHTS = f"{PATHS}.weights"
_ENTROPY_PARTS = (4, 4, 4, 8)
"""The bits in each directory that `entropy-inject` adds."""
ENTROPY_LEVELS = len(_ENTROPY_PARTS)
_WORD = 0xFFFFFFFF
_LARGEST_WEIGHT = (1 << 31) - 1
"""The largest INT of Java."""


@frozen
class ExternalPaths:
    """The roots of a table's data files, and how one of them is chosen."""

    roots: tuple[str, ...]
    # the sums of the weights up to each root; empty if the roots take turns
    weight_sums: tuple[int, ...] = ()
    has_entropy: bool = False
    # the directory of the table, whose buckets have the same paths below the roots
    location: str = ""

    def path_of(self, directory: str, name: str) -> str:
        """Return the path of a new file that belongs to a bucket, whose directory in the table is given."""
        place = name
        if self.has_entropy:
            place = f"{_spell_entropy(hash_name(name))}/{name}"
        if self.weight_sums:
            root = self.roots[bisect_right(self.weight_sums, hash_name(name) % self.weight_sums[-1])]
        else:
            root = self.roots[_compute_turn(name) % len(self.roots)]
        return join_path(root, directory.removeprefix(self.location), place)


def read_external_paths(options: TableOptions) -> ExternalPaths | None:
    """Return the external paths that options declare; None if data files are in the table."""
    strategy, roots = options.data_file_external_paths_strategy, options.data_file_external_paths
    if strategy == "none" or not roots:
        return None
    for root in roots:
        _check_root(root)
    if strategy == "specific-fs":
        roots = _select_roots(roots, options.data_file_external_paths_specific_fs)
    weights = _parse_weights(options.data_file_external_paths_weights, roots) if strategy == "weight-robin" else ()
    return ExternalPaths(
        tuple(root.rstrip("/") for root in roots), tuple(accumulate(weights)), strategy == "entropy-inject"
    )


def find_external_paths(options: TableOptions, location: str, allowed_roots: tuple[str, ...]) -> ExternalPaths | None:
    """Return where new data files go, None for `location`; refuse roots inside, or not allowed."""
    found = check_external_places(options, location)
    if found is None:
        return None
    for root in found.roots:
        if not is_within(root, allowed_roots):
            hint = f"pass allowed_roots=[{root!r}] to paimon.connect or paimon.open_table if you trust this location"
            raise InvalidRequest(f"Option {PATHS!r} names {root!r}, which is not allowed", subject=PATHS, hint=hint)
    return evolve(found, location=location)


def check_external_places(options: TableOptions, location: str) -> ExternalPaths | None:
    """Refuse a root that is, contains or lies in the directory of the table; return the external paths."""
    found = read_external_paths(options)
    for root in found.roots if found else ():
        if is_within(root, [location]) or is_within(location, [root]):
            raise InvalidRequest(
                f"Option {PATHS!r} names {root!r}, which overlaps the table {location!r}",
                subject=PATHS,
                hint="name a directory of its own for each table",
            )
    return found


def _check_root(root: str) -> None:
    scheme, colon, rest = root.partition(":")
    if not colon or "/" in scheme or len(scheme) < 2:
        hint = "write the whole URL, such as s3://bucket/orders or file:///data/orders"
        raise InvalidRequest(f"Option {PATHS!r} names {root!r}, which has no scheme", subject=PATHS, hint=hint)
    is_rooted = rest.startswith("/") if scheme == "file" else rest.startswith("//") and rest[2:3] not in ("", "/")
    if not is_rooted or not is_within(root, [root]):
        hint = "write the whole URL without . and .. in it, such as s3://bucket/orders or file:///data/orders"
        raise InvalidRequest(f"Option {PATHS!r} names {root!r}, which is not absolute", subject=PATHS, hint=hint)


def _select_roots(roots: tuple[str, ...], scheme: str | None) -> tuple[str, ...]:
    """Return the roots of the scheme that `specific-fs` names."""
    if not scheme:
        hint = f"set it to the scheme of one of {', '.join(roots)}"
        raise InvalidRequest(f"Option {SPECIFIC_FS!r} is missing", subject=SPECIFIC_FS, hint=hint)
    found = tuple(root for root in roots if root.partition(":")[0].lower() == scheme.lower())
    if not found:
        hint = f"name the scheme of one of {', '.join(roots)}"
        raise InvalidRequest(
            f"Option {SPECIFIC_FS!r} is {scheme!r}, and no external path has this scheme",
            subject=SPECIFIC_FS,
            hint=hint,
        )
    return found


def _parse_weights(text: str | None, roots: tuple[str, ...]) -> tuple[int, ...]:
    """Return the weight of each root; none, as in Java, if no weights are given or there is only one root."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if any(not (part.isascii() and part.isdecimal() and 0 < int(part) <= _LARGEST_WEIGHT) for part in parts):
        raise bad_value_error(WEIGHTS, text, "a list of whole numbers of at least 1, such as 10,5")
    if len(parts) != len(roots):
        hint = "give one weight for each of them"
        raise InvalidRequest(
            f"Option {WEIGHTS!r} has {len(parts)} numbers, and {PATHS!r} has {len(roots)} paths",
            subject=WEIGHTS,
            hint=hint,
        )
    return tuple(map(int, parts)) if len(roots) > 1 else ()


def _compute_turn(name: str) -> int:
    """Return the number of a file in its writer, plus where the writer begins: the hash of what its names share."""
    stem, _, rest = name.rpartition("-")
    number = rest.partition(".")[0]
    return hash_name(stem) + int(number) if number.isascii() and number.isdecimal() else hash_name(name)


def _spell_entropy(number: int) -> str:
    bits = f"{number:032b}"[-sum(_ENTROPY_PARTS) :]
    ends = [*accumulate(_ENTROPY_PARTS)]
    return "/".join(bits[end - length : end] for length, end in zip(_ENTROPY_PARTS, ends, strict=True))


def is_entropy(directory_name: str) -> bool:
    """Return whether a directory has a name as `entropy-inject` gives them."""
    return len(directory_name) in _ENTROPY_PARTS and set(directory_name) <= {"0", "1"}


def find_bucket_directory(directory: str) -> str:
    """Return the directory of the bucket of an external data file; the file lies in `directory`."""
    parts = directory.split("/")
    while len(parts) > 1 and is_entropy(parts[-1]):
        parts.pop()
    return "/".join(parts)


def hash_name(name: str) -> int:
    """Return Guava's `murmur3_32` of the UTF-8 bytes of a name, with seed 0, without a sign.

    >>> hash_name("hello")
    613153351
    """
    data = name.encode()
    value, whole = 0, len(data) & ~3
    for start in range(0, whole, 4):
        value ^= _mix(int.from_bytes(data[start : start + 4], "little"))
        value = (_rotate(value, 13) * 5 + 0xE6546B64) & _WORD
    value ^= _mix(int.from_bytes(data[whole:], "little")) ^ len(data)
    value = ((value ^ value >> 16) * 0x85EBCA6B) & _WORD
    value = ((value ^ value >> 13) * 0xC2B2AE35) & _WORD
    return value ^ value >> 16


def _mix(word: int) -> int:
    return (_rotate((word * 0xCC9E2D51) & _WORD, 15) * 0x1B873593) & _WORD


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _WORD


def list_copied_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that CREATE TABLE LIKE copies: no roots, where orphan removal deletes others' files."""
    return {key: value for key, value in options.items() if key != "path" and not key.startswith(PATHS)}
