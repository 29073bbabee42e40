"""Whether a storage creates a file only if absent: proved on this very storage before it is believed.

Law: one name is put twice; the second put must lose, and the bytes of the first must stay. Lost answers prove nothing,
so then another name is tried. Source: `ObjectStore` commit rules.
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
    "several writers need a catalog with a lock (metastore='jdbc'); the storage option 'single-writer' says that "
    "nobody else writes"
)


def prove_exclusive(
    path: str,
    put: Callable[[str, bytes], PutOutcome],
    read: Callable[[str], bytes],
    delete: Callable[[Sequence[str]], None],
) -> None:
    """Try the storage beside `path`; returns where the proof holds.

    Raises
    ------
    StorageError
        It overwrites, or does not tell.
    """
    for _ in range(_TRIES):
        trial = f"{path.rpartition('/')[0]}/.{uuid.uuid4()}.trial"
        try:
            first, second = put(trial, _FIRST), put(trial, _SECOND)
            holds = judged(first, second, _kept(read, trial))
        finally:
            with contextlib.suppress(StorageError):  # it is hidden, and nobody needs it
                delete([trial])
        if holds:
            return
        if holds is False:
            reason = "a trial showed that creating a file twice does not fail the second time"
            raise StorageError(path, reason, hint=_HINT)
    raise StorageError(path, "whether creating a file twice fails cannot be told: the storage does not answer")


def judged(first: PutOutcome, second: PutOutcome, kept: bytes | None) -> bool | None:
    """Whether a trial proves that an existing file stays, or (False) is replaced; None: it proves nothing."""
    if kept == _SECOND:
        return None if first is PutOutcome.UNKNOWN else False  # perhaps the first never arrived
    if kept != _FIRST:
        return None
    return {PutOutcome.EXISTS: True, PutOutcome.CREATED: False}.get(second)


def refusal(path: str, scheme: str) -> StorageError:
    """What is said of a storage that has no such primitive at all."""
    return StorageError(path, f"{scheme}:// has no exclusive create that this library trusts", hint=_HINT)


def _kept(read: Callable[[str], bytes], path: str) -> bytes | None:
    try:
        return read(path)
    except NotFound:
        return None
