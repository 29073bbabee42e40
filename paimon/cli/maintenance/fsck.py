"""The command `paimon fsck`: check the integrity of a table.

Invariant: the exit code is 0 if every snapshot and tag can be read, and 1 otherwise. Nothing is changed.
"""

from __future__ import annotations

import argparse
import json

from attrs import evolve

from paimon.cli.arguments import Commands, add_command, add_output, add_table, open_data_table
from paimon.cli.output import print_records
from paimon.cli.terminal import TerminalObserver
from paimon.domain.errors import CorruptTable
from paimon.domain.maintenance.fault import HealthReport
from paimon.domain.markup import format_count


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    fsck = add_command(
        commands,
        "fsck",
        "check that all files of a table exist and match its metadata; report each fault and its repair",
        "paimon fsck lake/default.db/orders --deep",
    )
    add_table(fsck)
    fsck.add_argument("--deep", action="store_true", help="also read the data files of the newest snapshots and tags")
    add_output(fsck)
    fsck.set_defaults(run=_fsck)


def _fsck(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    with TerminalObserver() as observer:
        watched = table.with_engine(evolve(table.engine, observer=observer))
        report = watched.maintain.check(deep=arguments.deep)
    _print(report, arguments.output, table.name)
    if not report.is_whole:
        hint = "nothing was changed; the report names a repair for each fault"
        verb = "was" if len(report.faults) == 1 else "were"
        raise CorruptTable(table.location, f"{format_count(len(report.faults), 'fault')} {verb} found", hint=hint)


def _print(report: HealthReport, output: str, name: str) -> None:
    records = report.to_arrow().to_pylist()
    if output == "json":
        counts = {"states": report.states, "manifests": report.manifests, "files": report.files, "records": report.rows}
        print(json.dumps({"whole": report.is_whole, **counts, "faults": records}, ensure_ascii=False))
        return
    if records:
        print_records([{**r, "states": ", ".join(r["states"])} for r in records], output, f"faults of {name}")
    print(f"{name} is {'whole' if report.is_whole else 'not whole'}: {report.summary}")
