"""What commands of the form `paimon NOUN VERB TABLE` share.

Law: each verb takes the table first, then --option and --output, as every other command does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import timedelta

from paimon.cli.arguments import Commands, add_option, add_output, add_table, command
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.parse import parse_duration_millis

Run = Callable[[argparse.Namespace], None]
AGE_HELP = "an age such as '7 d', or a time such as '2026-01-31 23:59:59'"


def noun(commands: Commands, name: str, help_text: str, example: str) -> Commands:
    """A command that needs a verb; answers where its verbs go."""
    parser = command(commands, name, help_text, example)
    return parser.add_subparsers(title="verbs", metavar="VERB", required=True)


def verb(commands: Commands, name: str, help_text: str, example: str, run: Run) -> argparse.ArgumentParser:
    """A verb over one table; more arguments may be added to what is answered."""
    parser = command(commands, name, help_text, example)
    add_table(parser)
    add_option(parser, "a table option for this call alone")
    add_output(parser)
    parser.set_defaults(run=run)
    return parser


def confirm(question: str, is_agreed: bool) -> None:
    """Ask a person at a terminal before something that cannot be undone; scripts are not asked.

    Parameters
    ----------
    question : str
        What is about to happen, as a question.
    is_agreed : bool
        Whether ``--yes`` was given: nothing is asked.

    Raises
    ------
    InvalidRequest
        The person did not agree.
    """
    if is_agreed or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidRequest("Nothing was changed.", hint="answer y, or pass --yes")


def moment(text: str | None) -> timedelta | str | None:
    """An age or a time, as the library takes them."""
    if text is None or text.strip().isdigit():
        return text
    try:
        return timedelta(milliseconds=parse_duration_millis(text, "age"))
    except InvalidRequest:
        return text
