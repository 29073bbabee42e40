"""The page of the command line, from its argument parsers."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from unittest.mock import patch

from reference_generator.markdown import block, code, page, paragraph, prose, sentence, table

_INTRODUCTION = """The package installs the command `paimon`. `paimon-lake` is the same command under a second name, for
environments where another package installs a command `paimon`.
`python -m paimon` runs it too."""

_EXIT_CODES = """## Exit codes

| Code | Meaning |
|---|---|
| 0 | The command succeeded. |
| 1 | The library reported an error. The message and a hint are on the standard error output. |
| 2 | The command line is wrong. |
| 130 | You interrupted the command. |"""


def generate_page() -> str:
    """Return the page."""
    parser = build_parser()
    commands = list(iterate_commands(parser))
    rows = Counter(row for command, _ in commands for row in _list_rows(command, _list_arguments(command)))
    shared = [row for row, uses in rows.items() if uses >= _MANY]
    return page(
        "Command line",
        _INTRODUCTION,
        block(parser.epilog or ""),
        _EXIT_CODES,
        "## Shared arguments and options",
        "Many commands have these. The section of a command names them, and describes its other ones.",
        table(("Argument or option", "Meaning"), shared),
        "## Commands",
        table(("Command", "What it does"), ([_link(command), sentence(text)] for command, text in _top_level(parser))),
        "Each command takes `--help`. `paimon --version` prints the version.",
        *(_describe_command(command, depth, shared) for command, depth in commands),
    )


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of `paimon`, as it is where no environment variable sets a default."""
    unset = {key: value for key, value in os.environ.items() if not key.startswith("PAIMON_")}
    with patch.dict(os.environ, unset, clear=True):
        parser: argparse.ArgumentParser = import_module("paimon.cli.main").build_parser()
        return parser


def iterate_commands(parser: argparse.ArgumentParser, depth: int = 0) -> Iterator[tuple[argparse.ArgumentParser, int]]:
    """Yield the parser of each command, and of each verb of a command after it, with its depth."""
    for action in _subcommands(parser):
        for child in action.choices.values():
            yield child, depth
            yield from iterate_commands(child, depth + 1)


def _subcommands(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[argparse.ArgumentParser]]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _top_level(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    for action in _subcommands(parser):
        for child in action.choices.values():
            yield child, _paragraphs(child)[0]


def _paragraphs(command: argparse.ArgumentParser) -> list[str]:
    """Return the paragraphs of a description; the first one says what the command does."""
    return (command.description or "").strip().split("\n\n")


def _link(command: argparse.ArgumentParser) -> str:
    return f"[{code(command.prog)}](#{command.prog.replace(' ', '-')})"


def _list_arguments(command: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments, then the options, without those that no help shows."""
    shown = [a for a in command._actions if not isinstance(a, _HIDDEN) and a.help != argparse.SUPPRESS]
    return sorted(shown, key=lambda action: bool(action.option_strings))


def _list_rows(command: argparse.ArgumentParser, actions: Iterable[argparse.Action]) -> list[tuple[str, str]]:
    return [(_spelling(a) if a.option_strings else code(_usage(a)), _meaning(command, a)) for a in actions]


def _describe_command(command: argparse.ArgumentParser, depth: int, shared: Sequence[tuple[str, str]]) -> str:
    arguments = _list_arguments(command)
    positional = [action for action in arguments if not action.option_strings]
    options = [action for action in arguments if action.option_strings]
    verbs = [child for action in _subcommands(command) for child in action.choices.values()]
    example = (command.epilog or "").removeprefix("example:").strip()
    usage = [command.prog, *(["VERB"] if verbs else []), *map(_usage, positional), *(["[OPTIONS]"] if options else [])]
    usage += [_usage(action) for action in options if action.required]
    rows = _list_rows(command, options)
    also = [code(a.option_strings[-1]) for a, row in zip(options, rows, strict=True) if row in shared]
    parts = [
        f"{'#' * (3 + depth)} {command.prog}",
        *(paragraph(sentence(text)) for text in _paragraphs(command)),
        block(" ".join(usage)),
        table(("Argument", "Meaning"), [row for row in _list_rows(command, positional) if row not in shared]),
        table(("Option", "Meaning"), [row for row in rows if row not in shared]),
        f"[Shared options](#shared-arguments-and-options): {', '.join(also)}." if also else "",
        *(_describe_exclusion(group) for group in command._mutually_exclusive_groups),
        f"Example:\n\n{block(example, 'console')}" if example and not verbs else "",
    ]
    return "\n\n".join(part for part in parts if part)


_MANY = 15
"""An argument or option of so many commands is described once."""
_HIDDEN = (argparse._HelpAction, argparse._SubParsersAction, argparse._VersionAction)


def _usage(action: argparse.Action) -> str:
    name = _value_name(action)
    if action.option_strings:
        return f"{action.option_strings[-1]} {name}".strip()
    return {"+": f"{name}...", "*": f"[{name}...]", "?": f"[{name}]"}.get(str(action.nargs), name)


def _value_name(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices and action.metavar is None:
        return "|".join(map(str, action.choices))
    return str(action.metavar or (action.dest.upper() if action.option_strings else action.dest))


def _spelling(action: argparse.Action) -> str:
    name = _value_name(action)
    return ", ".join(code(f"{spelling} {name}".strip()) for spelling in action.option_strings)


def _meaning(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = command._get_formatter()._expand_help(action) if action.help else ""
    required = " Required." if action.option_strings and action.required else ""
    return sentence(text) + required if text else prose(required)


def _describe_exclusion(group: argparse._MutuallyExclusiveGroup) -> str:
    names = [
        code(action.option_strings[-1] if action.option_strings else _usage(action)) for action in group._group_actions
    ]
    amount = "Give exactly one" if group.required else "Give at most one"
    return f"{amount} of {', '.join(names)}." if len(names) > 1 else ""
