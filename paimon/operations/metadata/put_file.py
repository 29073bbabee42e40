"""Put a metadata file unless its name is taken, and find out what the storage did not confirm.

Invariant: what a caller deletes after a put, it deletes after the new file is durable.
"""

from __future__ import annotations

from paimon.domain.errors import NotFound, StorageError
from paimon.domain.json_text import SCHEMA_FILE
from paimon.ports.files import DeferredFlush, FileIO, PutOutcome


def put_file(files: FileIO, path: str, data: bytes) -> bool:
    """Put a file if it is absent; return False if another file has its name.

    If the storage reports that the file exists, or nothing, the content decides: an earlier request may have put it.
    Raises StorageError if the file is visible but not durable.
    """
    outcome = files.put_if_absent(path, data)
    check_flushed(path, outcome)
    if outcome is PutOutcome.CREATED:
        return True
    try:
        if files.read(path, SCHEMA_FILE.max_bytes) != data:
            return False
        flush_found(files, path)
    except NotFound as error:
        raise StorageError(path, "the storage does not show whether the file was written", hint="try again") from error
    return True


def check_flushed(path: str, outcome: PutOutcome) -> None:
    """Raise StorageError if a put made a file visible that a power loss may take."""
    if outcome is PutOutcome.NOT_DURABLE:
        reason = "the file is visible, but the storage failed to flush it to disk"
        raise StorageError(path, reason, hint="look whether the file is there, once the storage is repaired")


def flush_found(files: FileIO, path: str) -> None:
    """Flush a file that was found instead of put: the flush of the call that put it may have failed."""
    if isinstance(files, DeferredFlush):
        files.flush_and_create([path], {})
