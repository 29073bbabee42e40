"""The commands that maintain tables, built from the table of verbs (`paimon.verbs`).

Invariant: a command asks as its verb says, and prints what was done. The exit code is 1 if `fsck` reports a fault, and
if an action of `maintain`, a repair of `doctor` or a copy of `clone` fails.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from attrs import evolve

from paimon.catalog import Catalog
from paimon.cli.arguments import (
    Commands,
    add_command,
    add_command_group,
    add_confirmation,
    add_option,
    add_output,
    add_table,
    add_warehouse,
    confirm,
    confirm_loss,
    is_table_path,
    open_catalog,
    open_data_table,
    parse_names,
    parse_options,
)
from paimon.cli.output import print_records, print_report
from paimon.cli.terminal import TerminalObserver, draw_records, print_styled
from paimon.display.health_picture import draw_svg, to_picture_columns
from paimon.domain.errors import CorruptTable, InvalidRequest, StorageError
from paimon.domain.maintenance.fault import HealthReport
from paimon.domain.maintenance.health import TableHealth
from paimon.domain.markup import format_count
from paimon.table import Table
from paimon.verbs.arguments import complete_arguments
from paimon.verbs.expiry_verbs import EXPIRE_CHANGELOGS, EXPIRE_PARTITIONS, EXPIRE_SNAPSHOTS
from paimon.verbs.file_verbs import FSCK, MAINTAIN, REMOVE_ORPHAN_FILES
from paimon.verbs.health_verbs import HEALTH, to_health_rows
from paimon.verbs.verb import Command, Confirmation, Parameter, Type, Verb
from paimon.verbs.verb_table import COMMAND_GROUPS, VERBS


def add_commands(commands: Commands) -> None:
    """Add the commands of all verbs to the parser, but for those in groups of other modules."""
    declared = {group.name: group for group in COMMAND_GROUPS}
    groups: dict[str, Commands] = {}
    for verb in VERBS:
        group, _, last = verb.command.words.rpartition(" ") if verb.command else ("", "", "")
        if group in declared and group not in groups:
            groups[group] = add_command_group(commands, group, declared[group].help, declared[group].example)
        if last and (not group or group in groups):
            add_verb(groups.get(group, commands), verb)


def add_verb(commands: Commands, verb: Verb[Any]) -> None:
    """Add the command of a verb to the parser, or to a group of commands."""
    command = verb.command
    assert command is not None
    help_text, words = command.help or verb.help, command.words
    parser = add_command(commands, words.rpartition(" ")[2], help_text, f"paimon {words} {command.example}")
    if command.more_help:
        parser.description = f"{parser.description}\n{command.more_help}"
    if verb.of_catalog:
        help_text = "path or URL of the warehouse (default: $PAIMON_WAREHOUSE)"
        parser.add_argument("path", nargs="?", metavar="WAREHOUSE", help=help_text)
        add_warehouse(parser)
    else:
        add_table(parser)
    if command.takes_options:
        add_option(parser, "table option for this command only; can be repeated")
    add_output(parser, *command.outputs)
    exclusive = parser.add_mutually_exclusive_group(required=True) if command.exactly_one else parser
    for parameter in verb.parameters:
        if parameter.flag is not None:
            _add_argument(exclusive if parameter.name in command.exactly_one else parser, parameter)
    if command.confirmation is not Confirmation.NEVER:
        add_confirmation(parser)
    parser.set_defaults(run=lambda arguments: _run_verb(verb, command, arguments))


def _add_argument(parser: argparse._ActionsContainer, parameter: Parameter) -> None:
    flag = parameter.flag
    assert flag is not None
    texts: dict[str, Any] = {"help": flag.help or parameter.help}
    default = parameter.default if flag.otherwise is None else flag.otherwise
    if flag.metavar is None:
        texts |= {"action": "store_const", "const": flag.value}
    else:
        texts |= {"metavar": flag.metavar, "type": int if parameter.type is Type.INTEGER else str}
    if flag.is_positional:
        parser.add_argument(parameter.name, **texts)
        return
    if parameter.type is Type.PARTITIONS:
        texts["action"] = "append"
    names = (flag.names or f"--{parameter.name.replace('_', '-')}").split()
    parser.add_argument(*names, dest=parameter.name, default=default, required=parameter.required, **texts)


def _run_verb(verb: Verb[Any], command: Command, arguments: argparse.Namespace) -> None:
    """Ask, run the verb, and print its result."""
    given = {p.name: _convert(p, getattr(arguments, p.name)) for p in verb.parameters if p.flag is not None}
    target = _open_warehouse(arguments) if verb.of_catalog else open_data_table(arguments)
    if command.question is not None:
        ask = confirm if command.confirmation is Confirmation.ON_TERMINAL else confirm_loss
        question = command.question(target, given)
        if question is not None:
            ask(question, has_agreed=arguments.yes)
    with TerminalObserver() as observer:
        watched = evolve(target.engine, observer=observer) if command.has_progress else target.engine
        running = target.with_engine(watched) if isinstance(target, Table) else evolve(target, engine=watched)
        result = verb.run(running, *complete_arguments(verb, given))
    if verb is MAINTAIN:
        print_report(result, arguments.output)
        _check_failures(
            arguments.path or arguments.warehouse, result.num_rows - result["error"].null_count, "action", "error"
        )
    elif isinstance(target, Table):
        _print_result(verb, command, target, given, result, arguments)
    else:
        records = verb.to_records(result)
        print_records(records, arguments.output)
        failed = sum(record.get("error") is not None for record in records)
        _check_failures(arguments.path or arguments.warehouse, failed, "table", "error")


def _convert(parameter: Parameter, value: Any) -> object:
    """Return the value of an argument as the function of the verb takes it."""
    match parameter.type:
        case Type.TIME if value is not None and value.strip().isdecimal() and len(value) <= 20:
            return int(value)  # epoch milliseconds, where CALL reads an age
        case Type.NAMES:
            is_one_name = parameter.flag is not None and parameter.flag.is_positional
            return (value,) if is_one_name else parse_names(value)
        case Type.PARTITIONS:
            return [parse_options(text.split(",")) for text in value]
        case _:
            return value


def _open_warehouse(arguments: argparse.Namespace) -> Catalog:
    if not (arguments.path or arguments.warehouse):
        raise InvalidRequest("The command needs a warehouse.", hint="name its path, or set PAIMON_WAREHOUSE")
    return open_catalog(arguments, arguments.path or arguments.warehouse)


def _print_result(
    verb: Verb[Any],
    command: Command,
    table: Table,
    given: Mapping[str, object],
    result: Any,
    arguments: argparse.Namespace,
) -> None:
    output = arguments.output
    if verb is HEALTH:
        _print_findings(result, arguments)
        _check_failures(result.location, sum(f.has_failed for f in result.findings), "repair", "outcome")
    elif verb is FSCK:
        _print_health(table, result, output)
    elif verb is REMOVE_ORPHAN_FILES:
        _print_orphans(result, bool(given["dry_run"]), output)
    else:
        heading = command.heading and command.heading.format_map({**given, "table": table.name})
        # the columns of a partition are those of the table
        records = result if verb is EXPIRE_PARTITIONS else verb.to_records(result)
        has_reasons = verb in (EXPIRE_SNAPSHOTS, EXPIRE_CHANGELOGS) and output == "table"
        if has_reasons:
            records = [{name: value for name, value in r.items() if name != "retained by"} for r in records]
        print_records(records, output, heading)
        if has_reasons:
            for reason in result.retained_by:
                print(f"retained by {reason}")


def _print_health(table: Table, report: HealthReport, output: str) -> None:
    """Print the faults, and raise an error if there is one."""
    records = report.to_arrow().to_pylist()
    if output == "json":
        counts = {"states": report.states, "manifests": report.manifests, "files": report.files, "records": report.rows}
        print(json.dumps({"whole": report.is_whole, **counts, "faults": records}, ensure_ascii=False))
    else:
        if records:
            listed = [{**record, "states": ", ".join(record["states"])} for record in records]
            print_records(listed, output, f"faults of {table.name}")
        print(f"{table.name} is {'whole' if report.is_whole else 'not whole'}: {report.summary}")
    if not report.is_whole:
        hint = "nothing was changed; the report names a repair for each fault"
        was = "was" if len(report.faults) == 1 else "were"
        raise CorruptTable(table.location, f"{format_count(len(report.faults), 'fault')} {was} found", hint=hint)


def _print_findings(found: TableHealth, arguments: argparse.Namespace) -> None:
    """Print the findings, and a picture of the worst buckets."""
    named = ["--warehouse", arguments.warehouse] if arguments.warehouse and not is_table_path(arguments.table) else []
    catalog = [word for option in arguments.catalog for word in ("--catalog", option)]
    rows = to_health_rows(found, [arguments.table, *named, *catalog])
    if arguments.output == "svg":
        print(draw_svg(found), end="")
        return
    shown = [c for c in HEALTH.columns if c.in_terminal]
    if arguments.output == "table" and found.shapes_after is None:
        shown = [c for c in shown if c.name not in ("cost_after", "outcome")]
    records = [{c.heading: row[c.name] for c in shown} for row in rows]
    print_records(records, arguments.output, f"findings of {found.table_name}")
    if arguments.output == "json":
        return
    for note in found.notes:
        print(note)
    if found.shapes and found.findings:
        print()
        title = f"the worst {len(found.shapes)} of {format_count(found.buckets, 'bucket')}"
        draw_records(to_picture_columns(found), title)


def _check_failures(location: str, failed: int, what: str, column: str) -> None:
    """Raise an error if a part of the printed work failed; a column of the report says why."""
    if failed:
        problem = f"{format_count(failed, what)} failed"
        raise StorageError(location, problem, hint=f"the column {column!r} of the report says why")


def _print_orphans(files: pa.Table, is_listed: bool, output: str) -> None:
    print_report(files, output)
    if output == "table":
        size = sum(files["size"].to_pylist())
        done = "can be deleted (--delete)" if is_listed else "deleted"
        print_styled(f"{format_count(files.num_rows, 'file')}, {format_count(size, 'byte')} {done}", "dim")
