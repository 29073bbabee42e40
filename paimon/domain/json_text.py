"""JSON as the format's metadata files hold it: printed as Java's Jackson prints it, read with every member checked.

Law: `load_object(dump_json(v))` is `v`; whatever bytes are given, reading answers a value or raises CorruptTable naming
the file, in time proportional to their number: size, nesting and digits have limits. Of a member that stands twice the
last one counts, as in Java.
Source: `JsonSerdeUtil` (Jackson's default pretty printer).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NoReturn, TypeVar

from attrs import frozen

from paimon.domain.errors import CorruptTable

V = TypeVar("V")
INT_MAX = 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
MAX_BYTES = 64 * 1024 * 1024
"""A table of a hundred thousand columns takes a quarter of it."""
MAX_NESTING = 200
"""A type may nest 64 levels deep, and takes two or three brackets for each."""
_MAX_DIGITS = 400
_LOWER_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-f]{4})")


def dump_json(value: object) -> bytes:
    """The value as Jackson pretty-prints it: two blanks a level, arrays on one line, no final newline.

    Numbers with a fraction are Decimals, which keep their digits.
    """
    return _dump(value, "\n").encode()


def _dump(value: object, newline: str) -> str:
    if isinstance(value, Mapping):
        inner = newline + "  "
        members = [f"{_string(str(k))} : {_dump(v, inner)}" for k, v in value.items()]
        return "{" + inner + ("," + inner).join(members) + newline + "}" if members else "{ }"
    if isinstance(value, list | tuple):
        return "[ " + ", ".join(_dump(v, newline) for v in value) + " ]" if value else "[ ]"
    if isinstance(value, Decimal):
        return str(value)
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    # Jackson writes control characters with capital hexadecimal digits.
    return _LOWER_ESCAPE.sub(lambda m: m[1] + "\\u" + m[2].upper(), quoted) if "\\u" in quoted else quoted


def load_object(data: bytes, path: str) -> Members:
    """The JSON object that the file `path` holds."""
    if len(data) > MAX_BYTES:
        raise CorruptTable(path, f"has {len(data)} bytes, more than the {MAX_BYTES} that JSON is read up to")
    try:
        text = data.decode("utf-8")
        value = load_json(text)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise CorruptTable(path, f"is not JSON: {_first_line(error)}") from error
    if not isinstance(value, dict):
        raise CorruptTable(path, "does not hold a JSON object")
    if "\\u" in text or "\\U" in text:
        _check_unicode(value, path)
    return Members(value, path)


def load_json(text: str) -> Any:
    """Any JSON value; numbers with a fraction are Decimals (ValueError for what is no JSON, or beyond the limits)."""
    value = json.loads(text, parse_int=_integer, parse_float=_fraction, parse_constant=_refuse_constant)
    if text.count("{") + text.count("[") > MAX_NESTING:
        _check_nesting(value)
    return value


def _integer(text: str) -> int:
    return int(_short_enough(text))


def _fraction(text: str) -> Decimal:
    return Decimal(_short_enough(text))


def _short_enough(digits: str) -> str:
    if len(digits) > _MAX_DIGITS:  # the time to read an integer grows with the square of its digits
        raise ValueError(f"a number of {len(digits)} digits")
    return digits


def _check_nesting(value: object) -> None:
    """ValueError where values nest deeper than what else walks them could follow."""
    level: list[object] = [value]
    for _ in range(MAX_NESTING):
        level = [inner for held in level for inner in _inside(held)]
        if not level:
            return
    raise ValueError(f"it nests deeper than {MAX_NESTING} levels")


def _inside(value: object) -> Iterable[object]:
    """The lists and objects right inside of a value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


def _check_unicode(value: object, path: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise CorruptTable(path, "holds text that is not valid Unicode") from error


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
