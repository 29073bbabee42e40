"""The command that looks whether a table is whole: `fsck`.

Law: the exit code is 0 for a whole table and 1 where a state of it cannot be read rightly.
"""

from __future__ import annotations

import argparse
import json

from attrs import evolve

from paimon.cli.arguments import Commands, add_output, add_table, command, opened_table
from paimon.cli.output import print_records
from paimon.cli.progress import TerminalObserver
from paimon.domain.errors import CorruptTable
from paimon.domain.maintenance.health.fault import HealthReport


def add_commands(commands: Commands) -> None:
    """Add this noun's commands."""
    fsck = command(
        commands,
        "fsck",
        "prove that a table is whole, or name each fault and what can be done",
        "paimon fsck lake/default.db/orders --deep",
    )
    add_table(fsck)
    fsck.add_argument("--deep", action="store_true", help="also read the data files of the newest states and tags")
    add_output(fsck)
    fsck.set_defaults(run=_fsck)


def _fsck(given: argparse.Namespace) -> None:
    table = opened_table(given)
    with TerminalObserver() as observer:
        watched = evolve(table, engine=evolve(table.engine, observer=observer))
        report = watched.maintain.check(deep=given.deep)
    _print(report, given.output, table.name)
    if not report.is_whole:
        hint = "each fault says what can be done; nothing was changed"
        raise CorruptTable(table.location, f"{len(report.faults)} faults were found", hint=hint)


def _print(report: HealthReport, output: str, name: str) -> None:
    records = report.to_arrow().to_pylist()
    if output == "json":
        looked = {"states": report.states, "manifests": report.manifests, "files": report.files, "records": report.rows}
        print(json.dumps({"whole": report.is_whole, **looked, "faults": records}, ensure_ascii=False))
        return
    if records:
        print_records([{**r, "states": ", ".join(r["states"])} for r in records], output, f"faults of {name}")
    records_read = f", {report.rows:,} records" if report.rows else ""
    judgement = "whole" if report.is_whole else "not whole"
    seen = f"{report.states:,} states, {report.manifests:,} manifests, {report.files:,} files{records_read}"
    print(f"{name} is {judgement}: {seen}")
