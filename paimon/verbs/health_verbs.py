"""The verb that examines and repairs a table, and the commands of the terminal that repair each finding."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon.domain.maintenance.health import Finding, Repair, TableHealth
from paimon.verbs.expiry_verbs import EXPIRY_VERBS
from paimon.verbs.file_verbs import FILE_VERBS
from paimon.verbs.index_verbs import INDEX_VERBS
from paimon.verbs.reference_verbs import REFERENCE_VERBS
from paimon.verbs.verb import Column, Command, Confirmation, Flag, Parameter, Rows, Type, Verb, VerbTable

_REPAIRING: Mapping[str, Verb[Any]] = {
    verb.name: verb for verb in (*FILE_VERBS, *INDEX_VERBS, *REFERENCE_VERBS, *EXPIRY_VERBS)
}


def health(
    table: VerbTable, where: str | None, fix: bool, max_seconds: int | None, max_bytes: str | None
) -> TableHealth:
    """Examine a table, and repair it if asked to."""
    return table.maintain.health(where, fix=fix, max_seconds=max_seconds, max_bytes=max_bytes)


def to_command(repair: Repair, table: Sequence[str]) -> str:
    """Return a repair as a command of the terminal; `table` are the words that name the table."""
    verb = _REPAIRING[repair.procedure]
    assert verb.command is not None
    words = [*verb.command.words.split(), *table]
    for parameter in verb.parameters:
        words += _list_words(parameter, repair.arguments.get(parameter.call_name, parameter.default))
    for key, value in repair.call_options.items():
        words += ["--option", f"{key}={value}"]
    command = shlex.join(["paimon", *words])
    if not repair.table_options:
        return command
    settings = [word for key, value in repair.table_options.items() for word in ("--set", f"{key}={value}")]
    return f"{shlex.join(['paimon', 'alter', *table, *settings])} && {command}"


def _list_words(parameter: Parameter, value: object) -> Iterator[str]:
    """Yield the words of a command that give a parameter its value; none if it has the value without them."""
    flag = parameter.flag
    if flag is None or value is None or value == (parameter.default if flag.otherwise is None else flag.otherwise):
        return
    if not flag.is_positional:
        yield (flag.names or f"--{parameter.name.replace('_', '-')}").split()[-1]
    if flag.metavar is not None or flag.is_positional:
        yield str(value)


def to_health_rows(found: TableHealth, table: Sequence[str] | None = None) -> Rows:
    """Return a row for each finding; `table` are the words that name the table in commands, by default its path."""
    words = [found.location] if table is None else table
    return [_to_row(finding, found.table_name, words) for finding in found.findings]


def _to_row(finding: Finding, table_name: str, words: Sequence[str]) -> dict[str, object]:
    repair = finding.repair
    return {
        "kind": finding.kind.value,
        "object": finding.object_name,
        "cost": finding.cost,
        "unit": finding.unit,
        "detail": finding.detail,
        "repair": None if repair is None else repair.to_statement(table_name),
        "command": None if repair is None else to_command(repair, words),
        "cost_after": finding.cost_after,
        "outcome": finding.outcome,
    }


def _ask_repairs(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    if not given["fix"]:
        return None
    return (
        f"Repair {table.name}? Files are rewritten; snapshots past the retention of the table, and orphan files older "
        "than a day, are deleted."
    )


HEALTH = Verb(
    "health", "find what makes a table slow or large, with the repair of each finding", health, to_health_rows,
    (
        Parameter(
            "where", Type.TEXT, "a condition of queries: also find columns on which a file index would help",
            flag=Flag(metavar="CONDITION"),
        ),
        Parameter("fix", Type.BOOLEAN, "run the automatic repairs; no row changes", flag=Flag()),
        Parameter(
            "max_seconds", Type.INTEGER, "with fix: begin no repair after so many seconds", flag=Flag(metavar="N"),
        ),
        Parameter(
            "max_bytes", Type.TEXT, "with fix: read at most so much of data files, such as '10 gb'",
            flag=Flag(metavar="SIZE"),
        ),
    ),
    (
        Column("kind", pa.string()),
        Column("object", pa.string()),
        Column("cost", pa.int64()),
        Column("unit", pa.string()),
        Column("detail", pa.string()),
        Column("repair", pa.string(), in_terminal=False),
        Column("command", pa.string(), in_call=False),
        Column("cost_after", pa.int64()),
        Column("outcome", pa.string()),
    ),
    Command(
        "doctor", "lake/default.db/orders --fix --max-bytes '10 gb'",
        "find what makes a table slow or large, and repair it with --fix",
        """
Each finding names its object, its cost, and the command that repairs it. With --fix, the repairs run in a safe order:
no row changes, and snapshots expire only as the options of the table allow. Repairs that a person must decide, such
as a rescale, are only shown. --output svg prints a picture of the levels of the worst buckets.
""",
        confirmation=Confirmation.ON_TERMINAL, question=_ask_repairs, has_progress=True,
        outputs=("svg",),
    ),
    method="Maintain.health",
)  # fmt: skip
HEALTH_VERBS = (HEALTH,)
