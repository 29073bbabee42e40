"""JSON of the format's metadata files: written as Java's Jackson prints it, read with every member checked.

Invariant: `load_object(dump_json(v))` is `v`. Reading any bytes returns a value or raises CorruptTable that names the
file. Time and memory are proportional to the number of bytes, because values, nesting and digits have limits. If a
member occurs twice, the last one counts, as in Java.
Source: `JsonSerdeUtil` (Jackson's default pretty printer).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NoReturn, TypeVar

from attrs import frozen

from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported

V = TypeVar("V")
INT_MAX = 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
MAX_NESTING = 200
"""A type nests at most 64 levels deep, with two or three brackets for each."""
_MAX_DIGITS = 400
_BYTES_PER_VALUE = 24
_KIBIBYTE, _MEBIBYTE = 1 << 10, 1 << 20
_LOWER_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-f]{4})")
_UNPAIRED_SURROGATE = re.compile(r"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F])")


@frozen
class DocumentKind:
    """A kind of metadata file that holds JSON or text, and the limits of one such file."""

    name: str
    # checked before the file is read
    max_bytes: int
    # how many objects and lists may be inside each other
    max_nesting: int = MAX_NESTING

    @property
    def max_values(self) -> int:
        """Largest number of values in a file: a value of one byte takes a hundred bytes and more in memory."""
        return self.max_bytes // _BYTES_PER_VALUE


SCHEMA_FILE = DocumentKind("schema", 32 * _MEBIBYTE)
"""The schema of a table with 200,000 columns takes half of the limit."""
SNAPSHOT_FILE = DocumentKind("snapshot", 4 * _MEBIBYTE)
"""Snapshots, tags and changelogs: some kilobytes, and properties that engines add."""
STATISTICS_FILE = DocumentKind("statistics", 32 * _MEBIBYTE, max_nesting=16)
"""A few hundred bytes for each column."""
DETAIL_FILE = DocumentKind("detail", 64 * _KIBIBYTE)
"""Consumers and the success files of tags: two numbers."""
HINT_FILE = DocumentKind("hint", _KIBIBYTE)
"""A number of 19 digits."""


def dump_json(value: object, *, compact: bool = False) -> bytes:
    """Encode a value as Jackson pretty-prints it: two blanks a level, arrays on one line, no final newline.

    Pass numbers with a fraction as Decimal, so that they keep their digits. `compact` omits line breaks and
    indentation.

    >>> print(dump_json({"id": 1, "keys": ["a", "b"]}).decode())
    {
      "id" : 1,
      "keys" : [ "a", "b" ]
    }
    """
    text = _dump(value, "", "") if compact else _dump(value, "\n", "  ")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        near = text[max(0, error.start - 40) : error.end + 40]
        hint = "remove the unpaired surrogates"
        raise InvalidRequest(f"Text {near!r} is not valid Unicode", hint=hint) from error


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
    """Parse the JSON object of a file within the limits of `kind`; anything else raises `CorruptTable`."""
    _check_size(data, path, kind)
    try:
        text = data.decode("utf-8")
        value = load_json(text, kind.max_nesting)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise CorruptTable(path, f"is not JSON: {_first_line(error)}") from error
    if not isinstance(value, dict):
        raise CorruptTable(path, "does not hold a JSON object")
    if "\\u" in text and _UNPAIRED_SURROGATE.search(text.replace("\\\\", " ")):
        raise CorruptTable(path, "holds text that is not valid Unicode")
    return Members(value, path)


def _check_size(data: bytes, path: str, kind: DocumentKind) -> None:
    """Check bytes and number of values before anything is parsed; commas within texts count as well."""
    if len(data) > kind.max_bytes:
        raise CorruptTable(path, f"has {len(data)} bytes; the limit of a {kind.name} file is {kind.max_bytes}")
    values = data.count(b",") + data.count(b"{") + data.count(b"[")
    if values > kind.max_values:
        raise CorruptTable(path, f"has {values} values; the limit of a {kind.name} file is {kind.max_values}")


def load_json(text: str, max_nesting: int = MAX_NESTING) -> Any:
    """Parse JSON, with Decimals for fractions; ValueError if invalid, too deep, or of too many digits."""
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
        raise ValueError(f"a number has {len(digits)} digits")
    return digits


def _check_nesting(value: object, max_nesting: int) -> None:
    """Raise ValueError where values nest deeper than recursive functions can follow."""
    level: list[object] = [value]
    for _ in range(max_nesting):
        level = [inner for held in level for inner in _inside(held)]
        if not level:
            return
    raise ValueError(f"values nest deeper than {max_nesting} levels")


def _inside(value: object) -> Iterable[object]:
    """Return the lists and objects directly inside a value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


@frozen
class Members:
    """A JSON object with checked access: a member of a wrong type or range raises CorruptTable with file and member."""

    values: Mapping[str, Any]
    path: str
    # the prefix of member names in errors: empty, or such as "fields[2]."
    where: str = ""

    def corrupt(self, name: str, reason: str) -> CorruptTable:
        """Build the error for one member."""
        return CorruptTable(self.path, f"member {self.where + name!r} {reason}")

    def get(self, name: str) -> Any:
        """Return the raw value; None where it is missing or null."""
        return self.values.get(name)

    def optional_text(self, name: str) -> str | None:
        """Return a text; None where it is missing or null."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise self.corrupt(name, f"is not a text but {_shorten_value(value)}")
        return value

    def text(self, name: str) -> str:
        """Return a text that must be present."""
        return self._require(name, self.optional_text(name))

    def optional_integer(self, name: str, low: int = LONG_MIN, high: int = LONG_MAX) -> int | None:
        """Return a whole number between `low` and `high`, both inclusive; None if it is missing or null."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.corrupt(name, f"is not a whole number but {_shorten_value(value)}")
        if not low <= value <= high:
            raise self.corrupt(name, f"is {_shorten_value(value)}, which is not within {low} … {high}")
        return value

    def version(self, kind: str, newest: int) -> int:
        """Return a file's version, by default 1; Unsupported for 0 and above `newest`, naming `kind` and file."""
        version = self.optional_integer("version", 0, INT_MAX)
        if version is not None and not 1 <= version <= newest:
            raise Unsupported(
                f"{kind} version {version} in {self.path}",
                hint=f"use a newer release; versions 1 to {newest} are supported",
            )
        return 1 if version is None else version

    def integer(self, name: str, low: int = LONG_MIN, high: int = LONG_MAX) -> int:
        """Return a whole number between `low` and `high`, both inclusive; it must be present."""
        return self._require(name, self.optional_integer(name, low, high))

    def array(self, name: str) -> list[Any]:
        """Return a list; an empty one where it is missing or null."""
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise self.corrupt(name, f"is not a list but {_shorten_value(value)}")
        return value or []

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; an empty one where it is missing or null."""
        values = self.array(name)
        if not all(isinstance(v, str) for v in values):
            raise self.corrupt(name, "is not a list of texts")
        return tuple(values)

    def text_map(self, name: str) -> dict[str, str]:
        """Return an object whose values are texts; an empty one where it is missing or null."""
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self.corrupt(name, "is not an object of texts")
        return value

    def child(self, value: object, where: str) -> Members:
        """Return checked access to an object inside this one."""
        if not isinstance(value, dict):
            raise self.corrupt(where, f"is not an object but {_shorten_value(value)}")
        return Members(value, self.path, f"{self.where}{where}.")

    def without(self, names: frozenset[str]) -> dict[str, Any]:
        """Return the members with other names than these: the ones that this library does not know."""
        return {k: v for k, v in self.values.items() if k not in names}

    def _require(self, name: str, value: V | None) -> V:
        if value is None:
            raise self.corrupt(name, "is missing")
        return value


def _shorten_value(value: object) -> str:
    text = f"an integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) > 2**70 else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
