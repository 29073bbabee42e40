"""Decide where a stream scan starts: at a complete state, whose rows come first, or at the changes of a snapshot.

Invariant: an argument of the call takes precedence over options. A state leaves out the levels whose rows a later
changelog reports.

Source: `CoreOptions.StartupMode`, `AbstractDataTableScan.createStartingScanner`, `DataTableStreamScan.tryFirstPlan`.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.files import check_scan


class StartKind(Enum):
    """What a stream scan reads first; the value is the scan mode that selects it, except for `EARLIEST`."""

    STATE = "latest-full"
    COMPACTED_STATE = "compacted-full"
    STATE_OF = "from-snapshot-full"
    CHANGES_OF = "from-snapshot"
    SINCE = "from-timestamp"
    LATEST = "latest"
    EARLIEST = "earliest"


@frozen
class Start:
    """Where a stream scan starts; `value` is a snapshot id, or for `SINCE` a time as the user writes it."""

    kind: StartKind
    value: str = ""


_BATCH_ONLY = ("scan.tag-name", "scan.watermark", "scan.version", "incremental-between",
               "incremental-between-timestamp", "incremental-to-auto-tag")  # fmt: skip
_FILE_TIMES = {
    "scan.file-creation-time-millis": "from-file-creation-time",
    "scan.creation-time-millis": "from-creation-timestamp",
}
"""Options by which batch reads choose files, and the scan modes that they select. Stream scans know no such mode."""
_VALUES = {
    StartKind.STATE_OF: ("scan.snapshot-id",),
    StartKind.CHANGES_OF: ("scan.snapshot-id",),
    StartKind.SINCE: ("scan.timestamp-millis", "scan.timestamp"),
}


def parse_start(options: TableOptions, from_snapshot: int | str | None) -> Start:
    """Return where a stream scan starts: `from_snapshot`, else the options, by default the latest state.

    `from_snapshot` is a snapshot id, "earliest" or "latest". Raises `Unsupported` for an unknown scan mode.
    """
    if from_snapshot is not None:
        return _parse_given_start(from_snapshot)
    for key in _BATCH_ONLY:
        if options.get(key) is not None:
            raise InvalidRequest(
                f"Option {key!r} cannot start a stream scan", subject=key, hint="start at a snapshot or a time"
            )
    check_scan(options)
    mode = _mode(options)
    known = {kind.value: kind for kind in StartKind if kind is not StartKind.EARLIEST}
    if mode not in known:
        raise Unsupported(f"stream scans with scan.mode {mode!r}", hint=f"use one of {', '.join(known)}")
    kind = known[mode]
    keys = _VALUES.get(kind, ())
    given = [text for key in keys if (text := options.get(key)) is not None]
    if keys and not given:
        raise InvalidRequest(f"Option 'scan.mode' is {mode!r}, which needs {' or '.join(keys)}", subject="scan.mode")
    return Start(kind, given[0] if given else "")


def _parse_given_start(from_snapshot: int | str) -> Start:
    if isinstance(from_snapshot, int) and not isinstance(from_snapshot, bool) and from_snapshot >= 1:
        return Start(StartKind.CHANGES_OF, str(from_snapshot))
    if from_snapshot in (StartKind.EARLIEST.value, StartKind.LATEST.value):
        return Start(StartKind(from_snapshot))
    raise InvalidRequest(
        f"A stream scan cannot start at snapshot {from_snapshot!r}",
        subject="from_snapshot",
        hint="give an id from 1, 'earliest' or 'latest', or leave it out to start with the latest state",
    )


def _mode(options: TableOptions) -> str:
    if options.scan_mode == "full":
        return StartKind.STATE.value
    if options.scan_mode != "default":
        return options.scan_mode
    for option, mode in _FILE_TIMES.items():
        if options.get(option) is not None:
            return mode
    if options.get("scan.snapshot-id") is not None:
        return StartKind.CHANGES_OF.value
    if any(options.get(key) is not None for key in _VALUES[StartKind.SINCE]):
        return StartKind.SINCE.value
    return StartKind.STATE.value


def get_state_min_level(options: TableOptions) -> int:
    """Return the lowest level of the state that a stream scan starts with; a later changelog reports the rows below."""
    return {"lookup": 1, "full-compaction": options.num_levels - 1}.get(options.changelog_producer, 0)
