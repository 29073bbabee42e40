"""Checking a table.

Law: nothing is changed, and nothing stops the look: what cannot be read is a fault like others. What is committed or
expires meanwhile is no fault.
"""

from __future__ import annotations

from paimon.domain.maintenance.health.fault import HealthReport
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.maintain.check.contents import ContentCheck
from paimon.operations.maintain.check.followers import check_followers
from paimon.operations.maintain.check.metadata import MetadataCheck
from paimon.operations.maintain.check.references import ReferenceCheck
from paimon.operations.maintain.check.states import Found, find_states
from paimon.ports.engine import Engine

_TRIES = 3


def check(engine: Engine, table: TableDefinition, deep: bool = False) -> HealthReport:
    """Prove that a table is whole, or name each fault.

    Parameters
    ----------
    deep : bool
        Read the data files of the newest states and tags too.
    """
    for left in reversed(range(_TRIES)):
        found = find_states(engine, table)
        report = _judged(engine, table, found, deep)
        if report.is_whole or not (left and _moved(engine, found)):
            break
    return report


def _judged(engine: Engine, table: TableDefinition, found: Found, deep: bool) -> HealthReport:
    for branch, where in found.branches:
        check_followers(engine, branch, where, found)
    metadata = MetadataCheck(engine, found).run()
    references = ReferenceCheck(engine, table, found, metadata)
    found.attempt(table.location, [], references.run)
    contents = ContentCheck(engine, found, metadata, deep)
    found.attempt(table.location, [], contents.run)
    return HealthReport(found.faults, len(found.states), len(metadata.manifests), references.files, contents.rows)


def _moved(engine: Engine, found: Found) -> bool:
    """Whether a state with a fault is gone by now: it expired, or was deleted, while we looked."""
    blamed = {name for fault in found.faults for name in fault.states}
    return any(engine.files.status(state.path) is None for state in found.states if state.name in blamed)
