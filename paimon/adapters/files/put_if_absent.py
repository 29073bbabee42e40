"""Prove that a storage creates a file only if it is absent, before the library relies on it.

Invariant: one name is put twice. The second put must fail, and the bytes of the first must stay. A lost reply proves
nothing, so the trial is repeated with another name. Source: `ObjectStore` commit rules.
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
) -> None:
    """Try an exclusive create in the directory of a path.

    Parameters
    ----------
    path : str
        A file of the table. The trial file has another, hidden name.
    put : callable
        Creates a file with bytes if it is absent, and returns a PutOutcome.
    read : callable
        Returns the bytes of a file, or raises NotFound.
    delete : callable
        Deletes files.

    Raises
    ------
    StorageError
        The storage overwrites the file, or all trials were without a result.
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
            raise StorageError(
                path,
                "the storage overwrites existing files, as a trial showed, so concurrent commits are not safe",
                hint=_HINT,
            )
    raise StorageError(path, "the storage did not confirm whether it overwrites existing files")


def judge_trial(first: PutOutcome, second: PutOutcome, stored: bytes | None) -> bool | None:
    """Evaluate the result of one trial.

    Parameters
    ----------
    first, second : PutOutcome
        The outcomes of the two puts.
    stored : bytes or None
        The content afterwards. None if there is no file.

    Returns
    -------
    bool or None
        True if an existing file stays, False if it is replaced, None if the trial proves nothing.
    """
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
