"""The command `paimon alter`: change the options, the columns or the comment of a table.

Invariant: all changes of one command are one new version of the schema, in the order of the arguments, or nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from paimon.cli.arguments import Commands, add_command, add_output, add_table, open_data_table, parse_options
from paimon.cli.output import print_records
from paimon.domain.errors import InvalidRequest
from paimon.domain.schema.changes import RemoveOption, SchemaChange, SetComment, SetOption

Change = SchemaChange | str
"""A change that `Table.alter` takes: an object, or a clause of ALTER TABLE."""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    alter = add_command(
        commands,
        "alter",
        "change options, columns or the comment of a table, in one new version of its schema",
        'paimon alter lake/default.db/orders --set num-levels=4 --add-column "note STRING"',
    )
    add_table(alter)
    add_output(alter)
    for name, (metavar, help_text, _) in _CHANGES.items():
        alter.add_argument(
            f"--{name}",
            dest="changes",
            action="append",
            default=[],
            type=partial(_pair, name),
            metavar=metavar,
            help=help_text,
        )
    alter.add_argument(
        "--allow-lossy", action="store_true", help="change types even if stored values are lost; see also ALLOW LOSSY"
    )
    alter.set_defaults(run=_alter)


def _pair(name: str, text: str) -> tuple[str, str]:
    # The texts are parsed later, where an error of the library is printed with its hint.
    return name, text


def _alter(arguments: argparse.Namespace) -> None:
    if not arguments.changes:
        hint = "pass --set, --unset, --add-column, --drop-column, --rename-column, --comment or --clause"
        raise InvalidRequest("The command needs at least one change.", hint=hint)
    changes = [_parse_change(name, text) for name, text in arguments.changes]
    table = open_data_table(arguments).alter(*changes, allow_lossy=arguments.allow_lossy)
    record = {"table": table.name, "schema": table.table_schema.id, "changes": len(changes)}
    print_records([record], arguments.output)


def _parse_change(name: str, text: str) -> Change:
    _, _, parse = _CHANGES[name]
    return parse(text)


def _parse_option(text: str) -> Change:
    ((key, value),) = parse_options([text]).items()
    return SetOption(key, value)


def _parse_renaming(text: str) -> Change:
    old, equals, new = text.partition("=")
    if not equals or not old.strip() or not new.strip():
        raise InvalidRequest(
            f"Argument {text!r} must have the form OLD=NEW.", subject=text, hint="write --rename-column note=remark"
        )
    return f"RENAME COLUMN {old} TO {new}"


_CHANGES: dict[str, tuple[str, str, Callable[[str], Change]]] = {
    "set": (
        "KEY=VALUE",
        "set a table option; this and the other changes can be repeated, and apply in their order",
        _parse_option,
    ),
    "unset": ("KEY", "set a table option back to its default", RemoveOption),
    "add-column": (
        "COLUMN",
        "add a column, such as \"note STRING COMMENT 'text' AFTER id\"; stored rows have NULL",
        "ADD COLUMN {}".format,
    ),
    "drop-column": ("NAME", "drop a column; a.b is a nested field", "DROP COLUMN {}".format),
    "rename-column": ("OLD=NEW", "rename a column; a.b=c renames a nested field", _parse_renaming),
    "comment": (
        "TEXT",
        "set the comment of the table; an empty text removes it",
        lambda text: SetComment(text or None),
    ),
    "clause": ("SQL", 'any other clause of ALTER TABLE, such as "ALTER COLUMN amount TYPE DOUBLE"', str),
}
"""Each kind of change: the name of its value, its help text, and its parser."""
