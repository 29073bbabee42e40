"""Commands that change rows of a table, in one commit or none: `delete`, `update` and `merge`.

Invariant: a condition is required; TRUE selects all rows. Clauses of a merge apply in the order of the command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paimon.builders.direct_writes import WriteResult
from paimon.cli.arguments import Commands, add_command, add_option, add_output, add_table, open_data_table, parse_names
from paimon.cli.inputs import FILE_HELP, FORMATS, open_inputs
from paimon.cli.output import describe_lost_compaction, print_lost_compaction, print_records
from paimon.domain.errors import InvalidRequest
from paimon.domain.markup import format_count

if TYPE_CHECKING:
    from paimon.builders.merge_builder import MergeBuilder, MergeResult

_MERGE_DESCRIPTION = """
The rows of the files are the source. --on says which rows match: SQL over the columns target.x and source.x, or
names of columns that both sides have, separated by commas.
If several clauses are for the same kind of rows, the first one whose condition is true applies. --if gives a
condition to the clause before it.
"""
_MERGE_CLAUSES: dict[str, tuple[str, bool, str]] = {
    "--update-all": ("when_matched_update_all", False, "set all columns of rows that match"),
    "--update": ("when_matched_update", True, "set columns of rows that match"),
    "--delete": ("when_matched_delete", False, "delete rows that match"),
    "--insert-all": ("when_not_matched_insert_all", False, "insert source rows without a match"),
    "--insert": ("when_not_matched_insert", True, "insert source rows without a match, with these columns"),
    "--update-unmatched": (
        "when_not_matched_by_source_update",
        True,
        "set columns of rows of the table that no source row matches",
    ),
    "--delete-unmatched": (
        "when_not_matched_by_source_delete",
        False,
        "delete rows of the table that no source row matches",
    ),
}
"""By option: the method of `MergeBuilder`, whether the option takes assignments, and its help."""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    delete = add_command(
        commands,
        "delete",
        "delete rows of a table, in one commit",
        'paimon delete lake/default.db/orders --where "id = 3"',
    )
    _add_condition_arguments(delete, "deleted")
    delete.set_defaults(run=_delete)
    update = add_command(
        commands,
        "update",
        "set columns in rows of a table, in one commit",
        'paimon update lake/default.db/orders --set "amount=amount * 2" --set "day=\'tue\'" --where "id = 3"',
    )
    update.add_argument(
        "--set",
        action="append",
        required=True,
        metavar="COLUMN=SQL",
        help="new value of a column as a SQL expression, such as 'text', NULL or upper(name); can be repeated",
    )
    _add_condition_arguments(update, "updated")
    update.set_defaults(run=_update)
    _add_merge(commands)


def _add_condition_arguments(parser: argparse.ArgumentParser, participle: str) -> None:
    add_table(parser)
    parser.add_argument(
        "--where",
        required=True,
        metavar="CONDITION",
        help=f"SQL condition on the rows to be {participle} (TRUE: all rows)",
    )
    add_option(parser, "table option for this command only; can be repeated")
    add_output(parser)


def _delete(arguments: argparse.Namespace) -> None:
    _print(arguments, open_data_table(arguments).delete(arguments.where), "deleted")


def _update(arguments: argparse.Namespace) -> None:
    _print(arguments, open_data_table(arguments).update(parse_assignments(arguments.set), arguments.where), "updated")


def parse_assignments(texts: Sequence[str]) -> dict[str, str]:
    """Parse texts of the form `COLUMN=SQL`."""
    found: dict[str, str] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals or not column.strip() or not value.strip():
            raise InvalidRequest(
                f"Argument {text!r} must have the form COLUMN=SQL.",
                subject=text,
                hint='an example is "amount=amount * 2"',
            )
        found[column.strip()] = value.strip()
    return found


def _print(arguments: argparse.Namespace, result: WriteResult, participle: str) -> None:
    lost = describe_lost_compaction(result)
    if arguments.output == "json":
        record = {"snapshots": list(result.snapshot_ids), participle: result.rows, "files": result.files, **lost}
        print_records([record], "json")
    elif result.snapshot_ids:
        ids = ", ".join(map(str, result.snapshot_ids))
        print(f"snapshot {ids}: {format_count(result.rows, 'row')} {participle}")
        print_lost_compaction(lost)
    else:
        print(f"no row was {participle}: no snapshot was created")


def _add_merge(commands: Commands) -> None:
    merge = add_command(
        commands,
        "merge",
        "update, delete and insert rows from files, in one commit",
        "paimon merge lake/default.db/orders orders.csv --on id --update-all --insert-all",
    )
    merge.description = f"{merge.description}\n{_MERGE_DESCRIPTION}"
    add_table(merge)
    merge.add_argument("files", nargs="+", metavar="FILE", help=FILE_HELP)
    merge.add_argument("--format", choices=FORMATS, help="format of the files (default: by their extension)")
    merge.add_argument("--on", required=True, metavar="CONDITION", help="when rows match: SQL, or names of columns")
    for option, (_, takes_values, help_text) in _MERGE_CLAUSES.items():
        nargs, metavar = ("+", "COLUMN=SQL") if takes_values else (0, None)
        merge.add_argument(option, action=_AddClause, nargs=nargs, metavar=metavar, dest="clauses", help=help_text)
    merge.add_argument("--if", action=_AddCondition, metavar="CONDITION", dest="clauses", help="SQL condition")
    add_option(merge, "table option for this command only; can be repeated")
    add_output(merge, has_format=True)
    merge.set_defaults(run=_merge, clauses=())


class _AddClause(argparse.Action):
    """Append a clause to those of the command line: its option, its assignments, and no condition yet."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Append the clause."""
        namespace.clauses = (*namespace.clauses, (option_string, list(values or ()), None))


class _AddCondition(argparse.Action):
    """Give a condition to the last clause of the command line."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Replace the last clause."""
        if not namespace.clauses or namespace.clauses[-1][2] is not None:
            parser.error("--if must follow a clause, such as --update-all")
        *earlier, (option, texts, _) = namespace.clauses
        namespace.clauses = (*earlier, (option, texts, values))


def _merge(arguments: argparse.Namespace) -> None:
    table = open_data_table(arguments)
    merge = table.merge(
        open_inputs(arguments.files, arguments.format), _parse_on(arguments.on, table.arrow_schema.names)
    )
    if not arguments.clauses:
        raise InvalidRequest(
            "A merge needs at least one clause.", subject="merge", hint="pass --update-all, --insert-all or another one"
        )
    for option, texts, condition in arguments.clauses:
        method, takes_values, _ = _MERGE_CLAUSES[option]
        add_clause: Callable[..., MergeBuilder] = getattr(merge, method)
        values = [parse_assignments(texts)] if takes_values else []
        merge = add_clause(*values, condition=condition)
    _print_merge(arguments, merge.execute())


def _parse_on(text: str, columns: Sequence[str]) -> str | list[str]:
    """Return names of columns as a list, and a condition as it is; a list with commas is no condition."""
    names = parse_names(text) or []
    is_list = len(names) > 1 and all(name.isidentifier() for name in names)
    return names if is_list or (names and all(name in columns for name in names)) else text


def _print_merge(arguments: argparse.Namespace, result: MergeResult) -> None:
    lost = {} if result.lost_compaction is None else {"lost_compaction": result.lost_compaction.message}
    counts = {"inserted": result.inserted, "updated": result.updated, "deleted": result.deleted}
    if arguments.output == "json":
        print_records([{"snapshots": list(result.snapshot_ids), **counts, "files": result.files, **lost}], "json")
    elif result.snapshot_ids:
        ids = ", ".join(map(str, result.snapshot_ids))
        rows = ", ".join(f"{format_count(count, 'row')} {what}" for what, count in counts.items())
        print(f"snapshot {ids}: {rows}")
        print_lost_compaction(lost)
    else:
        print("no row changed: no snapshot was created")
