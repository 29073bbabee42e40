"""Commands that change rows of a table: `delete` and `update`.

Invariant: a condition is required; TRUE selects all rows. There is one commit, or none if no row matches.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from paimon.builders.direct_writes import WriteResult
from paimon.cli.arguments import Commands, add_command, add_option, add_output, add_table, open_data_table
from paimon.cli.output import describe_lost_compaction, print_lost_compaction, print_records
from paimon.domain.errors import InvalidRequest
from paimon.domain.markup import format_count


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
