"""The interactive shell of `paimon sql`, with history, completion, highlighting and times.

Invariant: an error of a statement is printed, and the shell goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from paimon.cli.output import print_result
from paimon.cli.sql_completion import WORD, complete
from paimon.cli.terminal import call_on_interrupt
from paimon.display.row_formats import find_format, write_rows
from paimon.domain.errors import InvalidRequest, PaimonError, StorageError
from paimon.domain.markup import format_count
from paimon.domain.secrets import mask_statement
from paimon.domain.types.sql_tokens import tokenize
from paimon.sql.parse.parse_script import list_statement_words
from paimon.sql.run.run_statements import SqlSession
from paimon.sql.session import Session

_STYLE = Style.from_dict(
    {"keyword": "bold ansiblue", "literal": "ansigreen", "number": "ansicyan", "comment": "ansibrightblack"}
)
_EXITS = ("exit", "quit", "\\q")
_HELPS = ("help", "?", "\\h", "\\?")
_OUTPUT = "\\o"
_OTHER_COMMANDS = {
    **dict.fromkeys(("\\l", "\\list", ".databases"), "SHOW DATABASES"),
    **dict.fromkeys(("\\dt", ".tables", ".ls"), "SHOW TABLES"),
    **dict.fromkeys(("\\d", "\\d+", ".schema"), "SHOW TABLES, or DESCRIBE table"),
    **dict.fromkeys(("\\dv", ".views"), "SHOW VIEWS"),
    **dict.fromkeys(("\\c", "\\u", ".use"), "USE database"),
    **dict.fromkeys((".exit", ".quit"), "exit"),
    **dict.fromkeys((".help",), "help"),
    **dict.fromkeys((".output", ".once", "\\g"), "\\o FILE"),
}
"""Commands of the shells of PostgreSQL, SQLite and DuckDB, and what does the same."""
_INTRODUCTION = "SQL over {warehouse}. A statement ends with ';'. Type help for the statements, and exit to leave."
_KEYWORDS = frozenset(word for text in list_statement_words() for word in text.split()) | frozenset(
    [
        "AND",
        "AS",
        "BY",
        "CASE",
        "COMMENT",
        "DISTINCT",
        "ELSE",
        "END",
        "EXISTS",
        "FROM",
        "GROUP",
        "HAVING",
        "IF",
        "IN",
        "INTO",
        "IS",
        "JOIN",
        "KEY",
        "LIKE",
        "LIMIT",
        "NOT",
        "NULL",
        "ON",
        "OR",
        "ORDER",
        "OVERWRITE",
        "PARTITION",
        "PARTITIONED",
        "PRIMARY",
        "THEN",
        "UNION",
        "VALUES",
        "WHEN",
        "WHERE",
        "WITH",
    ]
)


def run_shell(session: SqlSession, warehouse: str, prompt: Callable[[str], str] | None = None) -> None:
    """Read statements and run them, until the user leaves. `warehouse` is shown in the first line.

    `prompt` reads one text after showing its argument, and raises EOFError at the end. By default it is an editor on
    the terminal.
    """
    read = prompt or _make_prompt(session.state)
    print(_INTRODUCTION.format(warehouse=warehouse))
    target: str | None = None
    while True:
        try:
            text = read(f"{session.state.catalog_name}.{session.state.database}> ")
        except EOFError:
            return
        except KeyboardInterrupt:  # the text that was typed is dropped
            continue
        word = text.strip().rstrip(";").lower()
        if word in _EXITS:
            return
        if word in _HELPS:
            print_help()
        elif _is_output_command(text):
            target = _read_target(text)
        elif _is_command(text):
            _refuse_command(text)
        elif word:
            target = run_text(session, text, target)


def _is_output_command(text: str) -> bool:
    return text.split()[:1] == [_OUTPUT]


def _is_command(text: str) -> bool:
    return text.strip().startswith(("\\", "."))


def _refuse_command(text: str) -> None:
    word = text.split()[0].rstrip(";")
    near = _OTHER_COMMANDS.get(word)
    hint = "type help for the statements and commands" if near is None else f"write {near};"
    _print_error(InvalidRequest(f"Command '{word}' is unknown.", subject=word, hint=hint))


def _read_target(text: str) -> str | None:
    """Return the file that an output command names; None without one, or if its extension names no format."""
    name = text.strip().removeprefix(_OUTPUT).strip().rstrip(";")
    try:
        if name:
            find_format(name)
            return name
    except InvalidRequest as error:
        _print_error(error)
    return None


def write_row_file(reader: pa.RecordBatchReader, name: str) -> int:
    """Write rows to a file in the format of its extension, replace an existing one, and return the number of rows."""
    path, format_name = Path(name).expanduser(), find_format(name)
    partial = path.with_name(f".{path.name}.part")
    try:
        try:
            with partial.open("wb") as sink:
                rows = write_rows(reader, format_name, sink)
            partial.replace(path)
        finally:
            with suppress(OSError):
                partial.unlink()
    except OSError as error:
        raise StorageError(name, str(error), hint="check the path; it is relative to the current directory") from error
    return rows


def run_text(session: SqlSession, text: str, target: str | None = None) -> str | None:
    """Run statements and print rows, times or errors; the first query fills `target`, else it is returned."""
    try:
        started = time.perf_counter()
        with call_on_interrupt(session.interrupt):
            for _, result in session.run_script(text):
                if target is not None and result.is_query:
                    rows = write_row_file(result.to_batches(), target)
                    print(f"{format_count(rows, 'row')} written to {target}")
                    target = None
                else:
                    print_result(result, "table")
                print(f"{time.perf_counter() - started:.3f} s")
                started = time.perf_counter()
    except PaimonError as error:
        _print_error(error)
    except KeyboardInterrupt:
        print("interrupted")
    return target


def _print_error(error: PaimonError) -> None:
    print(error.message.strip())
    if error.hint:
        print(f"hint: {error.hint}")
    for note in getattr(error, "__notes__", ()):
        print(note)


def print_help() -> None:
    """Print the statements that there are."""
    print("Statements, each ends with ';':")
    for words in list_statement_words():
        print(f"  {words}")
    print("CALL sys.help(); lists the procedures. exit leaves the shell.")
    print("\\o FILE writes the rows of the next query to a .parquet, .arrow, .csv, .json or .md file.")


def is_complete(text: str) -> bool:
    """Return whether Enter runs a text: it is a command of the shell, or its last statement ends with a semicolon."""
    stripped = text.strip()
    if not stripped or stripped.lower() in (*_EXITS, *_HELPS) or _is_command(text):
        return True
    try:
        tokens = tokenize(text)
    except InvalidRequest:  # a text or a comment that goes on in the next line
        return False
    if len(tokens) == 1:  # only comments before the end
        return True
    return tokens[-2].kind == "symbol" and tokens[-2].text == ";"


def highlight(line: str) -> list[tuple[str, str]]:
    """Return the parts of a line with the names of their styles."""
    parts: list[tuple[str, str]] = []
    position = 0
    try:
        tokens = tokenize(line)[:-1]
    except InvalidRequest:
        return [("", line)]
    for token in tokens:
        gap = line[position : token.start]
        parts.append(("class:comment" if gap.strip() else "", gap))
        is_keyword = token.kind == "word" and token.text.upper() in _KEYWORDS
        style = "keyword" if is_keyword else token.kind
        known = style in ("keyword", "literal", "number")
        parts.append((f"class:{style}" if known else "", line[token.start : token.end]))
        position = token.end
    return [*parts, ("class:comment", line[position:])]


class _Completer(Completer):
    """Completes the word before the cursor."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the words."""
        before = document.text_before_cursor
        match = WORD.search(before)
        start = -len(match.group()) if match else 0
        for word in complete(self.session, before, document.text_after_cursor):
            yield Completion(word, start_position=start)


class _Lexer(Lexer):
    """Highlights line by line."""

    def lex_document(self, document: Document) -> Callable[[int], Any]:
        """Return the function that highlights one line."""
        return lambda number: highlight(document.lines[number])


def _make_prompt(session: Session) -> Callable[[str], str]:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _accept(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    editor: PromptSession[str] = PromptSession(
        history=_open_history(),
        completer=_Completer(session),
        lexer=_Lexer(),
        style=_STYLE,
        multiline=True,
        key_bindings=bindings,
        complete_while_typing=False,
    )
    return lambda shown: editor.prompt(shown)


class _MaskedHistory(FileHistory):
    """A history whose file only its user can read, without secrets; what this shell ran stays in memory as it was."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        path.touch(mode=0o600)
        path.chmod(0o600)
        earlier = list(self.load_history_strings())
        if any(mask_statement(text) != text for text in earlier):  # written by an earlier version
            path.write_bytes(b"")
            for text in reversed(earlier):
                self.store_string(text)

    def store_string(self, string: str) -> None:
        """Append a text to the file, without its secrets."""
        super().store_string(mask_statement(string))


def _open_history() -> History:
    """Return the history of earlier shells, or a new one where the home directory cannot be written."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "paimon"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _MaskedHistory(folder / "sql_history")
    except OSError:
        return InMemoryHistory()
