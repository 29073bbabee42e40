"""JSON as the format's metadata files hold it: printed as Java's Jackson prints it, read with every member checked.

Law: `load_object(dump_json(v))` is `v`; whatever bytes are given, reading answers a value or raises CorruptTable naming
the file, in time and memory proportional to their number: bytes, values, nesting and digits have limits. Of a member
that stands twice the last one counts, as in Java.
Source: `JsonSerdeUtil` (Jackson's default pretty printer).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NoReturn, TypeVar

from attrs import frozen

from paimon.domain.errors import CorruptTable, InvalidRequest

V = TypeVar("V")
INT_MAX = 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
MAX_NESTING = 200
"""A type may nest 64 levels deep, and takes two or three brackets for each."""
_MAX_DIGITS = 400
_BYTES_PER_VALUE = 24
_KIBIBYTE, _MEBIBYTE = 1 << 10, 1 << 20
_LOWER_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-f]{4})")
_LONE_SURROGATE = re.compile(r"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F])")


@frozen
class DocumentKind:
    """A kind of metadata file that holds JSON or text, and what one file of it may cost.

    Parameters
    ----------
    name : str
        What errors call it.
    max_bytes : int
        Most bytes of a file; checked before the file is read.
    max_nesting : int
        Most objects and lists within each other.
    """

    name: str
    max_bytes: int
    max_nesting: int = MAX_NESTING

    @property
    def max_values(self) -> int:
        """Most values of a file: a value of one byte takes a hundred and more in memory."""
        return self.max_bytes // _BYTES_PER_VALUE


SCHEMA_FILE = DocumentKind("schema", 32 * _MEBIBYTE)
"""A table of 200,000 columns takes half of it."""
SNAPSHOT_FILE = DocumentKind("snapshot", 4 * _MEBIBYTE)
"""Snapshots, tags and changelogs: some kilobytes, and what engines add as properties."""
STATISTICS_FILE = DocumentKind("statistics", 32 * _MEBIBYTE, max_nesting=16)
"""A few hundred bytes for each column."""
DETAIL_FILE = DocumentKind("detail", 64 * _KIBIBYTE)
"""Consumers and the success files of tags: two numbers."""
HINT_FILE = DocumentKind("hint", _KIBIBYTE)
"""A number of 19 digits."""


def dump_json(value: object, *, compact: bool = False) -> bytes:
    """The value as Jackson pretty-prints it: two blanks a level, arrays on one line, no final newline.

    Numbers with a fraction are Decimals, which keep their digits. `compact` leaves out line breaks and indentation.
    InvalidRequest for text that is not valid Unicode.
    """
    text = _dump(value, "", "") if compact else _dump(value, "\n", "  ")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        near = text[max(0, error.start - 40) : error.end + 40]
        hint = "remove the unpaired surrogates"
        raise InvalidRequest(f"the text {near!r} is not valid Unicode", hint=hint) from error


def _dump(value: object, newline: str, indent: str) -> str:
    if isinstance(value, Mapping):
        inner = newline + indent
        members = [f"{_string(str(k))} : {_dump(v, inner, indent)}" for k, v in value.items()]
        return "{" + inner + ("," + inner).join(members) + newline + "}" if members else "{ }"
    if isinstance(value, list | tuple):
        return "[ " + ", ".join(_dump(v, newline, indent) for v in value) + " ]" if value else "[ ]"
    if isinstance(value, Decimal):
        return str(value)
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    # Jackson writes control characters with capital hexadecimal digits.
    return _LOWER_ESCAPE.sub(lambda m: m[1] + "\\u" + m[2].upper(), quoted) if "\\u" in quoted else quoted


def load_object(data: bytes, path: str, kind: DocumentKind = DETAIL_FILE) -> Members:
    """Parse the JSON object that a file holds.

    Parameters
    ----------
    data : bytes
        The whole file.
    path : str
        What errors name.
    kind : DocumentKind
        Which limits hold; the smallest ones by default.

    Raises
    ------
    CorruptTable
        The bytes are not JSON, not an object, or beyond the limits.
    """
    _check_size(data, path, kind)
    try:
        text = data.decode("utf-8")
        value = load_json(text, kind.max_nesting)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise CorruptTable(path, f"is not JSON: {_first_line(error)}") from error
    if not isinstance(value, dict):
        raise CorruptTable(path, "does not hold a JSON object")
    if "\\u" in text and _LONE_SURROGATE.search(text.replace("\\\\", " ")):
        raise CorruptTable(path, "holds text that is not valid Unicode")
    return Members(value, path)


def _check_size(data: bytes, path: str, kind: DocumentKind) -> None:
    """Check bytes and number of values before anything is parsed; commas within texts count as well."""
    if len(data) > kind.max_bytes:
        raise CorruptTable(path, f"has {len(data)} bytes, and the limit of a {kind.name} file is {kind.max_bytes}")
    values = data.count(b",") + data.count(b"{") + data.count(b"[")
    if values > kind.max_values:
        raise CorruptTable(path, f"has {values} values, and the limit of a {kind.name} file is {kind.max_values}")


def load_json(text: str, max_nesting: int = MAX_NESTING) -> Any:
    """Any JSON value; numbers with a fraction are Decimals (ValueError for what is no JSON, or beyond the limits)."""
    value = json.loads(text, parse_int=_integer, parse_float=_fraction, parse_constant=_refuse_constant)
    if text.count("{") + text.count("[") > max_nesting:
        _check_nesting(value, max_nesting)
    return value


def _integer(text: str) -> int:
    return int(_short_enough(text))


def _fraction(text: str) -> Decimal:
    return Decimal(_short_enough(text))


def _short_enough(digits: str) -> str:
    if len(digits) > _MAX_DIGITS:  # the time to read an integer grows with the square of its digits
        raise ValueError(f"a number of {len(digits)} digits")
    return digits


def _check_nesting(value: object, max_nesting: int) -> None:
    """ValueError where values nest deeper than what else walks them could follow."""
    level: list[object] = [value]
    for _ in range(max_nesting):
        level = [inner for held in level for inner in _inside(held)]
        if not level:
            return
    raise ValueError(f"it nests deeper than {max_nesting} levels")


def _inside(value: object) -> Iterable[object]:
    """The lists and objects right inside of a value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


@frozen
class Members:
    """A JSON object with checked access: a member of a wrong type or range is a CorruptTable naming file and member."""

    values: Mapping[str, Any]
    path: str
    where: str = ""

    def corrupt(self, name: str, reason: str) -> CorruptTable:
        """The error for one member."""
        return CorruptTable(self.path, f"member {self.where + name!r} {reason}")

    def get(self, name: str) -> Any:
        """The raw value, None where it is missing or null."""
        return self.values.get(name)

    def optional_text(self, name: str) -> str | None:
        """A string, or None where it is missing or null."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise self.corrupt(name, f"is not a text but {_shown(value)}")
        return value

    def text(self, name: str) -> str:
        """A string that must be there."""
        return self._required(name, self.optional_text(name))

    def optional_integer(self, name: str, low: int = LONG_MIN, high: int = LONG_MAX) -> int | None:
        """A whole number within bounds, or None."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.corrupt(name, f"is not a whole number but {_shown(value)}")
        if not low <= value <= high:
            raise self.corrupt(name, f"is {_shown(value)}, which is not within {low} … {high}")
        return value

    def integer(self, name: str, low: int = LONG_MIN, high: int = LONG_MAX) -> int:
        """A whole number that must be there."""
        return self._required(name, self.optional_integer(name, low, high))

    def array(self, name: str) -> list[Any]:
        """A list; empty where it is missing or null."""
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise self.corrupt(name, f"is not a list but {_shown(value)}")
        return value or []

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self.array(name)
        if not all(isinstance(v, str) for v in values):
            raise self.corrupt(name, "is not a list of texts")
        return tuple(values)

    def text_map(self, name: str) -> dict[str, str]:
        """An object of strings; empty where it is missing or null."""
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self.corrupt(name, "is not an object of texts")
        return value

    def child(self, value: object, where: str) -> Members:
        """Checked access to an object inside this one."""
        if not isinstance(value, dict):
            raise self.corrupt(where, f"is not an object but {_shown(value)}")
        return Members(value, self.path, f"{self.where}{where}.")

    def without(self, names: frozenset[str]) -> dict[str, Any]:
        """The members of other names: those that this library does not know."""
        return {k: v for k, v in self.values.items() if k not in names}

    def _required(self, name: str, value: V | None) -> V:
        if value is None:
            raise self.corrupt(name, "is missing")
        return value


def _shown(value: object) -> str:
    text = f"an integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) > 2**70 else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
