"""Select the snapshots and decoupled changelogs that expire, and compute the data files that they remove.

The newest `num_min` stay, and so do those that a consumer still has to read. Of the others, all except the newest
`num_max` expire, and so does a snapshot whose successor is older than the retention time. At most `limit` expire at
once. Whether another reference still needs a removed file is a separate check (`paimon.operations.expire`).

Invariant: Snapshots expire in ascending order without gaps. A file is removed if a DELETE names it and the file is not
live at the end of the range. A file that only moved to another level, or got another index, is not removed.
Source: `ExpireSnapshotsImpl`, `ExpireChangelogImpl`, `ExpireConfig`, `FileDeletionBase.getDataFileToDelete`.
"""

# Snapshots 1 to 10, with num_min 2, num_max 6, and a consumer that reads 8 next:
#
#     id         1  2  3  4  5  6  7  8  9  10
#     by count   expire     |may expire |stay         num_max: 5 to 10 are six;  num_min: 9 and 10
#     consumer                       |stay            8 and later
#     range      first=1     aged=5      last=8
#
# Ids below `aged` expire without a look at their age, and ids from `last` on stay. Of those between, the ages are read
# in ascending order until one is young enough: with ages such that 5 is old and 6 is young, 1 to 5 expire. The age of a
# snapshot counts from its successor: as long as it was the newest, it was in use. `limit` bounds how many expire at
# once, so that one call does not take hours after a long pause.

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.manifest.entries import FileKind, FileSource, ManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.partition.partition_text import format_utc

NOT_REFERENCED = 2**63 - 1
"""The next snapshot of the slowest consumer, if there is no consumer."""
_UNLIMITED = 2**31 - 1


@frozen
class Retention:
    """Limits for the retention of snapshots or changelogs."""

    # this number of the newest always stays
    num_min: int
    # above this number, the oldest expire whatever their age
    num_max: int
    # above this age, they expire
    time_millis: int
    # the largest number that expires at once
    limit: int
    # the beginning of the options with these limits: 'snapshot' or 'changelog'
    options: str = "snapshot"

    @classmethod
    def of_snapshots(cls, options: TableOptions) -> Retention:
        """Return the limits of the options `snapshot.*`."""
        limit = options.snapshot_expire_limit
        return cls(
            options.snapshot_num_retained_min,
            options.snapshot_num_retained_max,
            options.snapshot_time_retained_millis,
            limit,
        )

    @classmethod
    def of_changelogs(cls, options: TableOptions) -> Retention:
        """Return the limits of the options `changelog.*`; the default of each is the option of `snapshot.*`."""
        limit = options.snapshot_expire_limit
        return cls(
            options.changelog_num_retained_min,
            options.changelog_num_retained_max,
            options.changelog_time_retained_millis,
            limit,
            "changelog",
        )

    def without_limit(self) -> Retention:
        """Return the same limits for a call that deletes all at once."""
        return evolve(self, limit=_UNLIMITED)

    def is_shorter_than(self, other: Retention) -> bool:
        """Return whether something may expire that other limits would keep."""
        own = (self.num_min, self.num_max, self.time_millis)
        return any(a < b for a, b in zip(own, (other.num_min, other.num_max, other.time_millis), strict=True))

    def check(self) -> None:
        """Refuse limits that contradict each other: `num_min` below 1 or above `num_max`."""
        if self.num_min < 1:
            raise InvalidRequest(
                f"Limit num-retained.min must be at least 1, not {self.num_min}", hint="keep 1 or more"
            )
        if self.num_max < self.num_min:
            raise InvalidRequest(
                f"Limit num-retained.max ({self.num_max}) is below num-retained.min ({self.num_min})",
                hint="raise num-retained.max or lower num-retained.min",
            )


def has_decoupled_changelogs(options: TableOptions) -> bool:
    """Return whether changelogs are retained longer than their snapshots, because a `changelog.*` limit is larger."""
    snapshots, changelogs = Retention.of_snapshots(options), Retention.of_changelogs(options)
    return (
        changelogs.num_max > snapshots.num_max
        or changelogs.num_min > snapshots.num_min
        or changelogs.time_millis > snapshots.time_millis
    )


@frozen
class ExpiryRange:
    """The ids from `first` to before `last` that can expire; those below `aged` whatever their age."""

    first: int
    aged: int
    last: int


def find_expirable(retention: Retention, earliest: int, latest: int, next_to_read: int = NOT_REFERENCED) -> ExpiryRange:
    """Return the ids that can expire by number and by consumers, without regard to their age.

    `earliest` is a snapshot or a changelog. `next_to_read` is the smallest id that a consumer still has to read.
    """
    retention.check()
    last = min(latest - retention.num_min + 1, next_to_read, earliest + retention.limit)
    return ExpiryRange(earliest, max(latest - retention.num_max + 1, earliest), last)


def find_first_retained(
    expirable: ExpiryRange, retention: Retention, ages: Iterable[tuple[int, int]], now_millis: int
) -> int:
    """Return the first id that stays; all smaller snapshots or changelogs expire.

    `ages` has (id, time in milliseconds) from `expirable.aged` in ascending order, and is read as far as needed. The
    age of a snapshot counts from the time of the next one, the age of a changelog from its own.
    """
    before = now_millis - retention.time_millis
    for expiring, since in ages:
        if expiring >= expirable.last:
            break
        if since >= before:
            return max(expiring, expirable.first)
    return max(expirable.last, expirable.first)


@frozen
class RetentionReason:
    """A consumer, tag, branch, option or rule that retains snapshots, changelogs or their files."""

    # 'consumer', 'tag', 'branch', 'option' or 'rule'
    kind: str
    # the name of the consumer, tag or branch, the option, such as 'snapshot.num-retained.min', or the rule
    name: str
    # the smallest snapshot or changelog that it retains
    snapshot_id: int
    # last progress of a consumer, time of a tag's file, else the commit time of the snapshot; None if unknown
    since_millis: int | None = None

    def __str__(self) -> str:
        since = "" if self.since_millis is None else f" since {format_utc(self.since_millis)}"
        return f"{self.kind} {self.name!r} at snapshot {self.snapshot_id}{since}"


def find_retention_reasons(
    retention: Retention,
    earliest: int,
    latest: int,
    first_retained: int,
    since_millis: int | None,
    references: Iterable[RetentionReason],
) -> list[RetentionReason]:
    """Return what retains snapshots or changelogs, and files of expired ones: references by id, then the option.

    `first_retained` is the first id that would stay without consumers, and `since_millis` its commit time.
    """
    found = sorted((r for r in references if r.snapshot_id < first_retained), key=lambda r: (r.snapshot_id, r.name))
    if latest - first_retained < retention.num_min:
        option = f"{retention.options}.num-retained.min"
    elif first_retained == earliest + retention.limit:
        option = "snapshot.expire.limit"
    else:
        option = f"{retention.options}.time-retained"
    return [*found, RetentionReason("option", option, first_retained, since_millis)]


# The delta of a snapshot names what changed against the one before it. If snapshots 1 to 3 expire, and 4 is the first
# that stays, the files that the deltas of 2 to 4 delete belong to no snapshot from 4 on:
#
#     delta of 2   + a  + b
#     delta of 3   - a          + a (level 5)      an upgrade: the file a stays, on another level
#     delta of 4   - b  - c     + d                b and c are removed; c is from before the range
#
# - A physical file is known by partition, bucket, directory and name; an entry also has a level and extra files. So a
#   file can be deleted and added in one delta, in any order: it is removed only if no entry adds it, then or later.
# - Extra files (indexes) go with their file. An entry that replaces only the index deletes the old extra file.
# - Without a changelog producer, the files that writers appended are the changelog of a snapshot. If changelogs live
#   longer than snapshots, these files stay, although compactions have removed them (`keep_appended`).

FileKey = tuple[bytes, int, str | None, str]
"""Partition, bucket, external directory and name of one physical file."""


def find_removed_files(deltas: Iterable[Iterable[ManifestEntry]], keep_appended: bool = False) -> dict[FileKey, None]:
    """Return the files, with extra files, that consecutive snapshots remove; the deltas ascend by snapshot.

    `keep_appended` skips files from writers or of unknown source: they are the changelog if there is no producer.
    """
    removed: dict[FileKey, None] = {}
    for delta in deltas:
        entries = list(delta)
        live = {e.identity: e for e in entries if e.kind is FileKind.ADD}
        deleted = {e.identity for e in entries if e.kind is FileKind.DELETE}
        for entry in entries:
            if entry.kind is FileKind.DELETE and not (keep_appended and _is_appended(entry)):
                removed.update(dict.fromkeys(list_file_keys(entry)))
        for identity, entry in live.items():
            if identity not in deleted:
                for key in list_file_keys(entry):
                    removed.pop(key, None)
    return removed


def list_added_files(delta: Iterable[ManifestEntry]) -> dict[FileKey, None]:
    """Return the files that a delta or a changelog adds, with extra files, in order."""
    return dict.fromkeys(key for e in delta if e.kind is FileKind.ADD for key in list_file_keys(e))


def list_file_keys(entry: ManifestEntry) -> list[FileKey]:
    """Return the keys of a file and of its extra files."""
    file = entry.file
    directory = None if file.external_path is None else file.external_path.rpartition("/")[0]
    return [(entry.partition, entry.bucket, directory, name) for name in file.stored_names]


def _is_appended(entry: ManifestEntry) -> bool:
    return entry.file.file_source is not FileSource.COMPACT
