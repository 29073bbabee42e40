"""Check a table.

Invariant: the check changes nothing and does not stop at an error: what cannot be read is reported as a fault.
Concurrent commits and expiry cause no faults.
"""

from __future__ import annotations

from paimon.domain.maintenance.fault import HealthReport
from paimon.operations.fsck.consumer_checks import check_stream_readers
from paimon.operations.fsck.contents import ContentCheck
from paimon.operations.fsck.metadata_checks import MetadataCheck
from paimon.operations.fsck.reference_checks import ReferenceCheck
from paimon.operations.fsck.states import Findings, find_states
from paimon.operations.metadata.table_identity import on_same_table
from paimon.operations.table_context import TableContext

_ATTEMPTS = 3


@on_same_table
def check_table(context: TableContext, deep: bool = False) -> HealthReport:
    """Check that a table is complete and consistent, and report each fault.

    With `deep`, also read the data files of the newest snapshots and of the tags.
    """
    for remaining in reversed(range(_ATTEMPTS)):
        findings = find_states(context)
        report = _check_states(context, findings, deep)
        if report.is_whole or not (remaining and _has_state_expired(findings)):
            break
    return report


def _check_states(context: TableContext, findings: Findings, deep: bool) -> HealthReport:
    for branch, where in findings.branches:
        check_stream_readers(branch, where, findings)
    metadata = MetadataCheck(findings).run()
    references = ReferenceCheck(context, findings, metadata)
    findings.attempt(context.table.location, [], references.run)
    contents = ContentCheck(findings, metadata, deep)
    findings.attempt(context.table.location, [], contents.run)
    return HealthReport(findings.faults, len(findings.states), len(metadata.manifests), references.files, contents.rows)


def _has_state_expired(findings: Findings) -> bool:
    """Return whether a state with a fault has disappeared during the check."""
    affected = {name for fault in findings.faults for name in fault.states}
    return any(state.context.files.status(state.path) is None for state in findings.states if state.name in affected)
