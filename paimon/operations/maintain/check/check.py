"""Checking a table.

Law: nothing is changed, and nothing stops the look: what cannot be read is a fault like others. What is committed or
expires meanwhile is no fault.
"""

from __future__ import annotations

from paimon.domain.maintenance.health.fault import Fault, FaultKind, HealthReport
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.maintain.check.contents import ContentCheck
from paimon.operations.maintain.check.metadata import MetadataCheck
from paimon.operations.maintain.check.references import ReferenceCheck
from paimon.operations.maintain.check.states import find_states
from paimon.ports.engine import Engine

_TRIES = 3


def check(engine: Engine, table: TableDefinition, deep: bool = False) -> HealthReport:
    """Prove that a table is whole, or name each fault.

    Parameters
    ----------
    deep : bool
        Read the data files of the newest states and tags too.
    """
    report = _look(engine, table, deep)
    for _ in range(_TRIES - 1):
        if report.is_whole or not _moved(engine, table, report):
            break
        report = _look(engine, table, deep)
    return report


def _look(engine: Engine, table: TableDefinition, deep: bool) -> HealthReport:
    found = find_states(engine, table)
    metadata = MetadataCheck(engine, found).run()
    references = ReferenceCheck(engine, table, found, metadata)
    references.run()
    contents = ContentCheck(engine, found, metadata, deep)
    contents.run()
    return HealthReport(found.faults, len(found.states), len(metadata.manifests), references.files, contents.rows)


def _moved(engine: Engine, table: TableDefinition, report: HealthReport) -> bool:
    """Whether a state with a fault is gone by now: it expired while we looked."""
    return any(_is_gone(engine, table, state) for fault in report.faults for state in _states(fault))


def _states(fault: Fault) -> tuple[str, ...]:
    return () if fault.kind is FaultKind.GAP else fault.states


def _is_gone(engine: Engine, table: TableDefinition, state: str) -> bool:
    kind, _, rest = state.partition(" ")
    return kind == "snapshot" and rest.isdecimal() and _missing(engine, table, int(rest))


def _missing(engine: Engine, table: TableDefinition, snapshot_id: int) -> bool:
    return engine.files.status(table.paths.snapshot(snapshot_id)) is None

