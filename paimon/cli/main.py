"""The program `paimon`: parse the arguments, run one command, and print an error as one sentence and a hint.

Invariant: the exit code is 0 for success, 1 for an error of the library, 2 for a wrong command line, and 130 after an
interrupt.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TextIO

from paimon import __version__, load_module
from paimon.cli.commands import COMMANDS
from paimon.domain.errors import PaimonError, PaimonWarning, suggest_or

_EPILOG = """
a first tour:
  # create a warehouse with a database 'default', and a primary-key table
  paimon init lake
  paimon create lake/default.db/orders \\
      --columns "id BIGINT NOT NULL, day STRING, amount DECIMAL(10, 2)" \\
      --primary-key id --option bucket=2
  # upsert the rows of a file, in one commit, and print rows
  paimon write lake/default.db/orders orders.csv
  paimon cat lake/default.db/orders --where "amount > 5"
  # print the schema, the options and the files, and a system table
  paimon show lake/default.db/orders
  paimon cat 'lake/default.db/orders$snapshots'
  # run SQL; without -e an interactive shell
  paimon sql lake -e "SELECT count(*) FROM orders"
  # keep this state; paimon rollback restores it
  paimon tag create lake/default.db/orders first

A table is named by its path, or as database.table with --warehouse (or
PAIMON_WAREHOUSE, or --config FILE before the command).
"""


_OPTIONS_WITH_VALUE = ("-c", "--config", "--profile")
_INVALID_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)$", re.DOTALL)
_UNRECOGNIZED = "unrecognized arguments: "
_OTHER_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("list", "tables", "databases", "dir"), "ls"),
    **dict.fromkeys(("read", "scan", "print", "dump", "export"), "cat"),
    **dict.fromkeys(("select", "query", "shell", "count"), "sql"),
    **dict.fromkeys(("describe", "desc", "schema", "info", "files", "stats"), "show"),
    **dict.fromkeys(("insert", "append", "upsert", "load", "import", "copy"), "write"),
    **dict.fromkeys(("history", "log", "versions"), "snapshots"),
    **dict.fromkeys(("restore", "reset"), "rollback"),
    **dict.fromkeys(("check", "verify", "repair"), "fsck"),
    **dict.fromkeys(("health", "diagnose"), "doctor"),
    **dict.fromkeys(("optimize", "compaction"), "compact"),
    **dict.fromkeys(("vacuum", "cleanup", "clean"), "maintain"),
    **dict.fromkeys(("tags", "branches", "consumers"), "show"),
    "help": "--help",
}
"""Commands of other programs, and the command that does the same."""


class _Parser(argparse.ArgumentParser):
    """A parser whose error about an unknown command, value or argument says what to write."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and end the process with code 2."""
        found = _INVALID_CHOICE.search(message)
        if found is not None:
            choices = [choice.strip("'") for choice in found[2].split(", ")]
            other = _OTHER_COMMANDS.get(found[1]) if "snapshots" in choices and "sql" in choices else None
            near = suggest_or(found[1], choices, None) if other is None else f"did you mean {other!r}?"
            message = message if near is None else f"{message[: found.start()]}{found[1]!r} is unknown; {near}"
        elif message.startswith(_UNRECOGNIZED):
            message = f"{message}; {_explain_argument(message.removeprefix(_UNRECOGNIZED))}"
        super().error(message)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a message, and raise the error of help that cannot be printed, which argparse ignores."""
        if file is not None and file is sys.stdout:
            print(message, end="", file=file, flush=True)
        else:
            super()._print_message(message, file)


def _explain_argument(words: str) -> str:
    """Return the hint for arguments that no command takes."""
    if words.startswith("-"):
        return "'paimon COMMAND --help' lists the options of a command"
    from paimon.cli.sql import is_statement

    if is_statement(words):
        return 'write statements after -e: paimon sql WAREHOUSE -e "SELECT …"'
    return "a table is one argument: its path, or database.table with --warehouse WAREHOUSE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default this process's, from the words after the program; return the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: a file that is opened later must not get its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    command = find_command(words)
    parser = list_commands() if command is None else build_parser(*([command] if command in COMMANDS else COMMANDS))
    try:
        parsed = parser.parse_args(words)
        if command is None:
            parser.print_help()
            return 2
        from paimon.cli.arguments import complete_arguments

        complete_arguments(parsed)
        _run_command(parsed)
        sys.stdout.flush()
    except PaimonError as error:
        print(f"paimon: {error.message.strip()}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(note, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("paimon: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the output, such as head, ended
        _discard_output()
    except OSError as error:  # the files of tables raise errors of the library
        print(f"paimon: the output cannot be written: {error.strerror or error}", file=sys.stderr)
        _discard_output()
        return 1
    return 0


def _discard_output() -> None:
    """Redirect the standard output, so that the end of the process does not fail to flush it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_command(parsed: argparse.Namespace) -> None:
    """Run the command that was parsed, and print its warnings as lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", RuntimeWarning)
        warnings.simplefilter("default", PaimonWarning)
        warnings.showwarning = _print_warning
        parsed.run(parsed)


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"paimon: warning: {message}", file=sys.stderr)


def find_command(words: Sequence[str]) -> str | None:
    """Return the first word that is neither an option, which may be abbreviated, nor the value of one."""
    before = ""
    for word in words:
        takes_value = before == "-c" or (len(before) > 2 and any(o.startswith(before) for o in _OPTIONS_WITH_VALUE))
        if not word.startswith("-") and not takes_value:
            return word
        before = word
    return None


def list_commands() -> argparse.ArgumentParser:
    """Return a parser that knows the commands by name only, for the help of the program."""
    parser, commands = _start_parser()
    for name, (_, help_text) in COMMANDS.items():
        commands.add_parser(name, help=help_text)
    return parser


def build_parser(*names: str) -> argparse.ArgumentParser:
    """Return the parser of these commands, and of others in their modules; by default of all."""
    parser, commands = _start_parser()
    for module in dict.fromkeys(COMMANDS[name][0] for name in names or COMMANDS):
        load_module(f"paimon.cli.{module}").add_commands(commands)
    return parser


def _start_parser() -> tuple[argparse.ArgumentParser, Any]:
    """Return the parser of what stands before the command, and the place of the commands."""
    parser: argparse.ArgumentParser = _Parser(
        prog="paimon",
        description="Create, write, read, change and maintain tables of the Apache Paimon format.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"paimon {__version__}")
    parser.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="file with the warehouse and the options of the catalog: YAML, such as pypaimon's paimon.yaml, or the "
        "profiles of a paimon.toml (default: $PAIMON_CONFIG)",
    )
    parser.add_argument("--profile", metavar="NAME", help="profile of a paimon.toml (default: $PAIMON_PROFILE)")
    return parser, parser.add_subparsers(title="commands", metavar="COMMAND")
