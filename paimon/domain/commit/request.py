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
from paimon.domain.report import CardDisplay
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.domain.text_checks import check_mapping, check_text


def _messages(values: Iterable[CommitMessage]) -> tuple[CommitMessage, ...]:
    return tuple(values)


@frozen(hash=False)
class CommitRequest:
    """What to commit."""

    messages: tuple[CommitMessage, ...] = field(converter=_messages)
    # The job that commits; identifiers are unique per user
    commit_user: str
    # Ascends with each commit of the user; `BATCH_COMMIT_IDENTIFIER` for jobs that commit once
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER
    # Static partition spec to replace; {} is the whole table. Without messages, the partitions are dropped
    overwrite: Mapping[str, object] | None = None
    # Replace the partitions that the messages have files in
    dynamic_overwrite: bool = False
    # Replace exactly these partitions (serialized rows). Without messages, they are dropped
    partitions: frozenset[bytes] | None = None
    # Event time in epoch milliseconds
    watermark: int | None = None
    # Stored in the snapshot
    properties: Mapping[str, str] = field(factory=dict)
    # Messages without files create no snapshot
    ignore_empty: bool = True
    # Check plain appends, too; they conflict only after an error of a writer
    check_conflicts: bool = False
    # Stored in the snapshot ("DELETE", "UPDATE", …); None for WRITE, OVERWRITE or TRUNCATE
    operation: str | None = None
    # The option `bucket` that the newest schema must have; for a rescale, which sets it before
    bucket_option: int | None = None
    # The snapshot from which rows were computed; later row changes by others, or a rollback, conflict
    read_state: ReadState | None = None
    # `commit_rows` may write level-0 files again, because no caller keeps the messages
    renumbers: bool = False
    # The snapshot may contain concurrent commits, too, because no caller looks for this user
    shares_snapshot: bool = False
    # The commit flushes the files that it adds, because their writer left that to it
    flushes_files: bool = False

    @property
    def replaces(self) -> bool:
        """Whether partitions are replaced, rather than files added."""
        return self.overwrite is not None or self.dynamic_overwrite or self.partitions is not None


def check_request(request: CommitRequest) -> None:
    """Refuse requests whose snapshot some clients cannot read: texts must be valid Unicode, numbers have 64 bits."""
    check_text(request.commit_user, "commit user")
    for key, value in check_mapping(request.properties, "properties").items():
        check_text(key, "property")
        check_text(value, f"the value of property {key!r}:")
    check_long(request.commit_identifier, "commit identifier")
    if request.watermark is not None:
        check_long(request.watermark, "watermark")


def check_long(value: object, what: str) -> int:
    """Return the value if it is an integer of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or not LONG_MIN <= value <= LONG_MAX:
        raise InvalidRequest(
            f"{what[:1].upper()}{what[1:]} must be an integer of 64 bits, but is {value!r}", subject=what
        )
    return value


@frozen(eq=False)
class CommitResult(CardDisplay):
    """What a commit did."""

    # In order of publication; empty if there was nothing to do or the commit was made before
    snapshot_ids: tuple[int, ...] = ()
    # Rows in the added data files
    added_rows: int = 0
    added_files: int = 0
    # Attempts before which another commit was published
    retries: int = 0
    # The commit was found in the history, so nothing was written
    already_committed: bool = False
    # Why compacted files are not, or may not be (CommitUncertain), published; the table is complete
    lost_compaction: PaimonError | None = None
    # One sentence for each callback that raised; the commit is published
    failed_callbacks: tuple[str, ...] = ()
