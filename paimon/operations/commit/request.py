"""What is to be committed, and what a commit did.

Law: a request says everything that a commit needs: made again, it asks for the same. Source: `ManifestCommittable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.json_text import LONG_MAX, LONG_MIN
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.texts import check_mapping, check_text


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
        Who commits; identifiers count for this user.
    identifier : int
        Rises with each commit of the user; `BATCH_COMMIT_IDENTIFIER` for jobs that commit once.
    overwrite : mapping, optional
        Static partition spec to replace; ``{}`` is the whole table; with no messages this drops them.
    dynamic_overwrite : bool
        Replace the partitions that the messages hold files of.
    partitions : frozenset of bytes, optional
        Replace exactly these partitions (serialised rows); with no messages this drops them.
    watermark : int, optional
        Event time in epoch milliseconds.
    properties : mapping
        Kept in the snapshot.
    ignore_empty : bool
        Make no snapshot where the messages hold nothing.
    check_conflicts : bool
        Check also what cannot conflict unless somebody errs (plain appends).
    operation : str, optional
        What the snapshot says it was (``"DELETE"``, ``"UPDATE"`` …); by default WRITE, OVERWRITE or TRUNCATE.
    """

    messages: tuple[CommitMessage, ...] = field(converter=_messages)
    commit_user: str
    identifier: int = BATCH_COMMIT_IDENTIFIER
    overwrite: Mapping[str, object] | None = None
    dynamic_overwrite: bool = False
    partitions: frozenset[bytes] | None = None
    watermark: int | None = None
    properties: Mapping[str, str] = field(factory=dict)
    ignore_empty: bool = True
    check_conflicts: bool = False
    operation: str | None = None

    @property
    def replaces(self) -> bool:
        """Whether partitions are replaced, rather than files added."""
        return self.overwrite is not None or self.dynamic_overwrite or self.partitions is not None


def check_request(request: CommitRequest) -> None:
    """Refuse what would make a snapshot that no client can read.

    Parameters
    ----------
    request : CommitRequest
        What is to be committed.

    Raises
    ------
    InvalidRequest
        A commit user or a property that is no text, or is not valid Unicode; an identifier or a watermark that is no
        whole number of 64 bits.
    """
    check_text(request.commit_user, "commit user")
    for key, value in check_mapping(request.properties, "properties").items():
        check_text(key, "property")
        check_text(value, f"the value of property {key!r}:")
    check_long(request.identifier, "commit identifier")
    if request.watermark is not None:
        check_long(request.watermark, "watermark")


def check_long(value: object, what: str) -> int:
    """Refuse what is no whole number of 64 bits (InvalidRequest)."""
    if isinstance(value, bool) or not isinstance(value, int) or not LONG_MIN <= value <= LONG_MAX:
        raise InvalidRequest(f"{what} {value!r} is no whole number of 64 bits", subject=what, hint="give an int")
    return value


@frozen(eq=False)
class CommitResult:
    """What a commit did.

    `snapshot_ids` are those it made, in order (none: nothing to do, or done before); `lost_compaction` says why what
    was compacted could not be published although what was written was: its files are not in the table, and the data
    are whole without them (after CommitUncertain they may be in the table). `failed_callbacks` says what callbacks
    raised; the commit stands.
    """

    snapshot_ids: tuple[int, ...] = ()
    added_rows: int = 0
    added_files: int = 0
    retries: int = 0
    already_committed: bool = False
    lost_compaction: PaimonError | None = None
    failed_callbacks: tuple[str, ...] = ()
