"""The command `paimon sql`: run SQL statements of an argument, of a file or of the standard input, or open a shell.

Invariant: a statement that fails stops the script. Its message names the line, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from paimon.cli.arguments import Commands, add_command, add_output, add_warehouse, open_catalog
from paimon.cli.output import has_rows, print_result
from paimon.cli.terminal import call_on_interrupt
from paimon.display.row_formats import BINARY_FORMATS, ROW_FORMATS
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.extras import missing_extra

if TYPE_CHECKING:
    from paimon.sql.run.run_statements import SqlSession

_STATEMENTS = (
    "SELECT",
    "WITH",
    "SHOW",
    "USE",
    "CREATE",
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "DROP",
    "ALTER",
    "CALL",
)


def add_commands(commands: Commands) -> None:
    """Add the commands of this module to the parser."""
    sql = add_command(
        commands,
        "sql",
        "run SQL statements, or open an interactive shell",
        'paimon sql lake -e "CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (1); SELECT * FROM t"',
    )
    sql.add_argument(
        "path", nargs="?", metavar="WAREHOUSE", help="path or URL of the warehouse (default: $PAIMON_WAREHOUSE)"
    )
    add_warehouse(sql)
    source = sql.add_mutually_exclusive_group()
    source.add_argument("-e", "--execute", metavar="TEXT", help="statements, separated by semicolons")
    source.add_argument("-f", "--file", metavar="FILE", help="file of statements; - is the standard input")
    sql.add_argument("-d", "--database", metavar="NAME", help="current database (default: default)")
    sql.add_argument(
        "--allow-files",
        action="append",
        default=[],
        metavar="DIR",
        help="directory whose files read_parquet, read_csv, read_json and COPY … TO may open; can be repeated",
    )
    add_output(sql, *ROW_FORMATS)
    sql.set_defaults(run=_sql)


def _sql(arguments: argparse.Namespace) -> None:
    warehouse = arguments.path or arguments.warehouse
    if not warehouse:
        raise InvalidRequest("The command needs a warehouse.", hint="run paimon sql PATH, or set PAIMON_WAREHOUSE")
    if is_statement(warehouse):
        hint = 'write statements after -e: paimon sql WAREHOUSE -e "SELECT …"'
        raise InvalidRequest(f"{warehouse!r} is not a warehouse.", subject=warehouse, hint=hint)
    session = open_catalog(arguments, warehouse).sql_session(arguments.allow_files)
    if arguments.database is not None:
        name = arguments.database.replace("`", "``")
        session.sql(f"USE DATABASE `{name}`")
    script = _read_script(arguments)
    if script is None:
        _open_shell(session, warehouse)
        return
    has_printed = False
    with call_on_interrupt(session.interrupt):
        for _, result in session.run_script(script):
            if arguments.output in BINARY_FORMATS:
                if not has_rows(result):
                    continue
                _check_single(arguments.output, has_printed)
            print_result(result, arguments.output)
            has_printed = True


def is_statement(text: str) -> bool:
    """Return whether a text of the command line looks like a statement of SQL."""
    first, _, rest = text.strip().partition(" ")
    return bool(rest) and first.upper() in _STATEMENTS


def _check_single(output: str, has_printed: bool) -> None:
    if has_printed:
        raise InvalidRequest(
            f"Output {output!r} has the rows of one statement only.",
            subject="output",
            hint="run the statements one by one, or use --output json",
        )


def _read_script(arguments: argparse.Namespace) -> str | None:
    """Return the statements to run; None for the interactive shell."""
    if arguments.execute is not None:
        return str(arguments.execute)
    if arguments.file is None and sys.stdin.isatty():
        return None
    if arguments.file in (None, "-"):
        return sys.stdin.read()
    try:
        return Path(arguments.file).read_text("utf-8-sig")  # editors of Windows write a mark before the text
    except FileNotFoundError as error:
        hint = "check the path; it is relative to the current directory"
        raise InvalidRequest(f"File {arguments.file!r} does not exist", subject=arguments.file, hint=hint) from error
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(arguments.file, str(error), hint="check the path, and that the file is UTF-8") from error


def _open_shell(session: SqlSession, warehouse: str) -> None:
    try:
        from paimon.cli.sql_shell import run_shell
    except ModuleNotFoundError as missing:
        raise missing_extra("The interactive shell", "prompt_toolkit") from missing
    run_shell(session, warehouse)
