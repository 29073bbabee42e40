"""Prove that a storage creates a file only if it is absent, before the library relies on it.

Invariant: one name is put twice. The second put must fail, and the bytes of the first must stay. A lost reply proves
nothing, so the trial is repeated with another name.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence

from paimon.domain.errors import NotFound, StorageError
from paimon.ports.files import PutOutcome

_FIRST, _SECOND = b"1", b"2"
_TRIES = 3
_HINT = (
    "use a catalog with a lock (metastore='jdbc'), or set the storage option 'single-writer' if no other process writes"
)


def prove_exclusive(
    path: str,
    put: Callable[[str, bytes], PutOutcome],
    read: Callable[[str], bytes],
    delete: Callable[[Sequence[str]], None],
    overwrites: StorageError | None = None,
) -> None:
    """Try whether the storage of a path puts a file only if it is absent; StorageError, or `overwrites`, if not.

    The trial file is hidden, next to `path`, and deleted at the end. Trials without a result are a StorageError, too.
    """
    for _ in range(_TRIES):
        trial = f"{path.rpartition('/')[0]}/.{uuid.uuid4()}.trial"
        try:
            first, second = put(trial, _FIRST), put(trial, _SECOND)
            holds = judge_trial(first, second, _read_if_exists(read, trial))
        finally:
            with contextlib.suppress(StorageError):  # a hidden file without use may stay
                delete([trial])
        if holds:
            return
        if holds is False:
            raise overwrites or StorageError(
                path,
                "the storage overwrites existing files, as a trial showed, so concurrent commits are not safe",
                hint=_HINT,
            )
    raise StorageError(path, "the storage did not confirm whether it overwrites existing files")


def judge_trial(first: PutOutcome, second: PutOutcome, stored: bytes | None) -> bool | None:
    """Return whether an existing file stays (True), is replaced (False), or the trial proves nothing (None)."""
    if stored == _SECOND:
        return None if first is PutOutcome.UNKNOWN else False  # the first put may never have arrived
    if stored != _FIRST:
        return None
    return {PutOutcome.EXISTS: True, PutOutcome.CREATED: False}.get(second)


def no_exclusive_create_error(path: str, scheme: str) -> StorageError:
    """Return the error for a storage without an exclusive create."""
    return StorageError(path, f"{scheme}:// has no exclusive create, so concurrent commits are not safe", hint=_HINT)


def _read_if_exists(read: Callable[[str], bytes], path: str) -> bytes | None:
    try:
        return read(path)
    except NotFound:
        return None
