"""Describe what to commit, and what a commit did.

Invariant: a request contains everything that a commit needs, so an equal request asks for the same commit.

Source: `ManifestCommittable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from paimon.domain.commit.message import CommitMessage, ReadState
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.json_text import LONG_MAX, LONG_MIN
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.text_checks import check_mapping, check_text


def _messages(values: Iterable[CommitMessage]) -> tuple[CommitMessage, ...]:
    return tuple(values)


@frozen(hash=False)
class CommitRequest:
    """What to commit.

    Parameters
    ----------
    messages : tuple of CommitMessage
        What the writers of this job prepared.
    commit_user : str
        The job that commits; identifiers are unique per user.
    commit_identifier : int
        The commit identifier. It ascends with each commit of the user; `BATCH_COMMIT_IDENTIFIER` for jobs that commit
        once.
    overwrite : mapping, optional
        Static partition spec to replace; ``{}`` is the whole table. Without messages the partitions are dropped.
    dynamic_overwrite : bool
        Replace the partitions that the messages have files in.
    partitions : frozenset of bytes, optional
        Replace exactly these partitions (serialized rows). Without messages they are dropped.
    watermark : int, optional
        Event time in epoch milliseconds.
    properties : mapping of str to str
        Properties stored in the snapshot.
    ignore_empty : bool
        Whether messages without files create no snapshot.
    check_conflicts : bool
        Whether plain appends are checked, too. They conflict only after an error of a writer.
    operation : str, optional
        The operation stored in the snapshot (``"DELETE"``, ``"UPDATE"``, …); by default WRITE, OVERWRITE or TRUNCATE.
    bucket_option : int, optional
        The option `bucket` that the newest schema must have; for a rescale, which sets it before.
    read_state : ReadState, optional
        The snapshot from which the rows were computed. A later commit of another user that changed rows refuses this
        one, and so does a rollback.
    renumbers : bool
        Whether `commit_written` may write level-0 files again, because no caller keeps the messages.
    """

    messages: tuple[CommitMessage, ...] = field(converter=_messages)
    commit_user: str
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER
    overwrite: Mapping[str, object] | None = None
    dynamic_overwrite: bool = False
    partitions: frozenset[bytes] | None = None
    watermark: int | None = None
    properties: Mapping[str, str] = field(factory=dict)
    ignore_empty: bool = True
    check_conflicts: bool = False
    operation: str | None = None
    bucket_option: int | None = None
    read_state: ReadState | None = None
    renumbers: bool = False

    @property
    def replaces(self) -> bool:
        """Whether partitions are replaced, rather than files added."""
        return self.overwrite is not None or self.dynamic_overwrite or self.partitions is not None


def check_request(request: CommitRequest) -> None:
    """Check that the request makes a snapshot that every client can read.

    Parameters
    ----------
    request : CommitRequest
        The request to check.

    Raises
    ------
    InvalidRequest
        The commit user or a property is not a text or not valid Unicode, or the identifier or the watermark is not an
        integer of 64 bits.
    """
    check_text(request.commit_user, "commit user")
    for key, value in check_mapping(request.properties, "properties").items():
        check_text(key, "property")
        check_text(value, f"the value of property {key!r}:")
    check_long(request.commit_identifier, "commit identifier")
    if request.watermark is not None:
        check_long(request.watermark, "watermark")


def check_long(value: object, what: str) -> int:
    """Return the value if it is an integer of 64 bits.

    Parameters
    ----------
    value : object
        The value to check.
    what : str
        What the value is, for the message.

    Returns
    -------
    int
        The value.

    Raises
    ------
    InvalidRequest
        The value is not an integer of 64 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not LONG_MIN <= value <= LONG_MAX:
        raise InvalidRequest(
            f"{what[:1].upper()}{what[1:]} must be an integer of 64 bits, but is {value!r}", subject=what
        )
    return value


@frozen(eq=False)
class CommitResult:
    """What a commit did.

    Attributes
    ----------
    snapshot_ids : tuple of int
        The snapshots that it made, in order; empty if there was nothing to do or the commit was made before.
    added_rows : int
        Rows in the added data files.
    added_files : int
        Added data files.
    retries : int
        Attempts that lost against other commits.
    already_committed : bool
        Whether the commit was found in the history, so that nothing was written.
    lost_compaction : PaimonError, optional
        Why the compacted files were not published although the written files were. The table is complete without them.
        After CommitUncertain they may be in the table.
    failed_callbacks : tuple of str
        One sentence for each callback that raised; the commit is published.
    """

    snapshot_ids: tuple[int, ...] = ()
    added_rows: int = 0
    added_files: int = 0
    retries: int = 0
    already_committed: bool = False
    lost_compaction: PaimonError | None = None
    failed_callbacks: tuple[str, ...] = ()
