"""Short texts of public objects for terminals and notebooks, and their names for tab completion.

The cards of notebooks are in `paimon.display.cards`, which is loaded when the first one is shown. Invariant: showing an
object never fails, never changes it, and reads little. The text of an error replaces what cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, TypeVar

from paimon.domain.report import CardDisplay, Report
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.secrets import redact_option, redact_secrets, remove_password

T = TypeVar("T")

_OPTIONS_IN_TEXT = 4
_VALUE_LENGTH = 60
_LOCATION_LENGTH = 160


class NotebookDisplay(CardDisplay):
    """Mixin: a short text, a card, and no internal names in tab completion."""

    __slots__ = ()
    _internals: ClassVar[frozenset[str]] = frozenset({"engine", "definition", "recipe", "store", "read_plan"})

    def _describe(self) -> tuple[str, Mapping[str, object]]:
        """Return a title (mostly a table's name) and the arguments worth showing, by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        title, arguments = self._describe()
        shown = [
            repr(title),
            *(f"{name}={_shorten_text(repr(value), _VALUE_LENGTH)}" for name, value in arguments.items()),
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _report(self) -> Report:
        from paimon.display.cards import report_arguments

        return report_arguments(type(self).__name__, *self._describe())

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if name not in self._internals]


class BuilderDisplay(NotebookDisplay):
    """The text and the card of a builder in notebooks."""

    __slots__ = ()
    _internals = NotebookDisplay._internals | {"table", "inner", "read_plan", "overwrite_spec", "overwrites"}


def given_arguments(**arguments: object) -> dict[str, object]:
    """Return the arguments that are not None, in order."""
    return {name: value for name, value in arguments.items() if value is not None}


def read_or_explain(read: Callable[[], T]) -> T | str:
    """Return what `read` returns, or why it failed: all errors are caught, so that broken tables are shown."""
    try:
        return read()
    except Exception as error:
        lines = redact_secrets(str(error), {}).splitlines()
        return f"cannot be read: {lines[0] if lines else type(error).__name__}"


def table_text(definition: TableDefinition) -> str:
    """Return a table as one line of text: columns, keys, partitions, some options, location. No file is read."""
    schema, options = definition.schema, definition.options.values
    given = [f"{key}={_shorten_text(redact_option(key, value), _VALUE_LENGTH)}" for key, value in options.items()]
    parts = [f"{definition.table_name!r}: {len(schema.fields)} {'column' if len(schema.fields) == 1 else 'columns'}"]
    if schema.primary_keys:
        parts.append(f"primary key ({', '.join(schema.primary_keys)})")
    if schema.partition_keys:
        parts.append(f"partitioned by ({', '.join(schema.partition_keys)})")
    if definition.branch != "main":
        parts.append(f"branch {definition.branch}")
    if given:
        more = [f"{len(given) - _OPTIONS_IN_TEXT} more"] if len(given) > _OPTIONS_IN_TEXT else []
        parts.append(f"options ({', '.join([*given[:_OPTIONS_IN_TEXT], *more])})")
    parts.append(f"at {_shorten_text(remove_password(definition.location), _LOCATION_LENGTH)!r}")
    return f"Table({', '.join(parts)})"


def _shorten_text(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
