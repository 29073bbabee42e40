"""Check what stream readers need: consumers, and decoupled changelogs without a gap.

Invariant: a consumer that cannot be read stops all expiry, so it is a fault. A consumer that is behind is reported; it
does not affect reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.paths import join_path
from paimon.operations.fsck.states import Findings, find_hint_faults
from paimon.operations.metadata.consumers import list_consumer_files, read_consumer
from paimon.operations.metadata.snapshots import snapshot_ids
from paimon.operations.read.changes.history import find_first_id, list_changelog_ids
from paimon.operations.table_context import TableContext


def check_stream_readers(context: TableContext, where: str, findings: Findings) -> None:
    """Check the consumers and the changelogs of one branch, and add faults to `findings`.

    `where` is appended to the names of states; it is empty for the branch main.
    """
    changelogs, snapshots = (
        list_changelog_ids(context),
        snapshot_ids(context),
    )
    _check_gaps(context, where, findings, changelogs, snapshots)
    if changelogs:
        hints = [join_path(context.paths.changelogs, name) for name in ("LATEST", "EARLIEST")]
        truths = (changelogs[-1], changelogs[0])
        findings.faults.extend(find_hint_faults(context.engine, zip(hints, truths, strict=True)))
    last = snapshots[-1] if snapshots else 0
    for name, path in list_consumer_files(context).items():
        findings.attempt(
            path, [f"consumer {name}{where}"], partial(_check_consumer, context, findings, name, path, last)
        )


def _check_gaps(
    context: TableContext, where: str, findings: Findings, ids: Sequence[int], snapshots: Sequence[int]
) -> None:
    if not ids:
        return
    end = max(ids[-1] + 1, snapshots[0] if snapshots else 0)
    for missing in sorted(set(range(ids[0], end)) - set(ids)):
        path = context.paths.changelog(missing)
        possible_paths = (path, context.paths.snapshot(missing))
        if all(context.files.status(place) is None for place in possible_paths):  # else it was written during the check
            reason = f"is missing between changelog {ids[0]} and snapshot {end}: stream readers cannot continue past it"
            findings.faults.append(Fault(FaultKind.GAP, path, reason, [f"changelog {missing}{where}"]))


def _check_consumer(context: TableContext, findings: Findings, name: str, path: str, last: int) -> None:
    next_id = read_consumer(context, name)
    if next_id is None:
        return
    first = find_first_id(context) if last else 1
    if not first <= next_id <= last + 1:
        reason = f"reads snapshot {next_id} next, but only {first} to {last} exist"
        findings.faults.append(Fault(FaultKind.BEHIND, path, reason, [f"consumer {name}"]))
