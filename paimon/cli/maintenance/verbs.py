"""Arguments and questions that the maintenance commands share.

Invariant: each command takes the table first, and --option and --output like every other command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import timedelta

from paimon.cli.arguments import Commands, add_command, add_option, add_output, add_table
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.parse import parse_duration_millis

Run = Callable[[argparse.Namespace], None]
AGE_HELP = "an age such as '7 d', or a time such as '2026-01-31 23:59:59'"


def add_command_group(commands: Commands, name: str, help_text: str, example: str) -> Commands:
    """Add a command that has subcommands, such as `paimon tag`.

    `help_text` is one sentence without a full stop. `example` is a command line that runs as written.
    """
    parser = add_command(commands, name, help_text, example)
    return parser.add_subparsers(title="verbs", metavar="VERB", required=True)


def add_table_command(commands: Commands, name: str, help_text: str, example: str, run: Run) -> argparse.ArgumentParser:
    """Add a command on one table, with --option and --output, which `run` runs with its parsed arguments.

    `help_text` is one sentence without a full stop. `example` is a command line that runs as written.
    """
    parser = add_command(commands, name, help_text, example)
    add_table(parser)
    add_option(parser, "table option for this command only; can be repeated")
    add_output(parser)
    parser.set_defaults(run=run)
    return parser


def add_confirmation(parser: argparse.ArgumentParser) -> None:
    """Add `--yes`, with which neither `confirm` nor `confirm_loss` asks."""
    parser.add_argument("--yes", action="store_true", help="do not ask for a confirmation")


def confirm(question: str, has_agreed: bool) -> None:
    """Ask the user on a terminal before a change that cannot be undone; InvalidRequest if the user does not agree.

    Scripts are not asked, and nothing is asked if `has_agreed` (``--yes``). `question` describes the change and its
    consequences.
    """
    if has_agreed or not _is_terminal():
        return
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidRequest("Nothing was changed.", hint="type y, or pass --yes")


def confirm_loss(question: str, has_agreed: bool) -> None:
    """Ask the user on a terminal before data is lost, as `confirm` does; without a terminal, require ``--yes``."""
    if not has_agreed and not _is_terminal():
        raise InvalidRequest(
            "The command deletes data, and there is no terminal to ask on.", subject="yes", hint="pass --yes"
        )
    confirm(question, has_agreed)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def parse_moment(text: str | None) -> timedelta | str | None:
    """Parse an age to a timedelta; a text that is not an age, such as a time, stays as it is."""
    if text is None or text.strip().isdigit():
        return text
    try:
        return timedelta(milliseconds=parse_duration_millis(text, "age"))
    except InvalidRequest:
        return text
