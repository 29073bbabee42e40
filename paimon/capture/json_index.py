"""Where the values of many JSON objects lie in their text, found with numpy and not object by object.

A value is a span of the text, so its digits and its kind are exactly those of the source.

Invariant: all texts are valid JSON objects, see `index_objects`. If a name occurs twice in an object, the last value
counts.
"""

# The texts of a batch, one JSON object each, are joined to the lines of one text. A few passes of numpy over its bytes
# find the structure of all objects; no object becomes a value of Python.
#
# 1. Syntax: the reader of Arrow reads the lines with a schema that names no member, so it checks them and builds
#    nothing. If it refuses them, the texts are halved until the invalid ones are found (`_find_objects`).
# 2. Strings: a byte lies in a string if the number of quotes before it is odd. A quote after an odd number of
#    backslashes is escaped, and does not count.
# 3. Marks are the bytes { } [ ] : , outside strings. The level of a mark is the number of containers around it. An
#    opening or closing mark counts its own container, so all marks of one container have the same level:
#
#        {"op":"u","after":{"id":7,"tags":["a","b"]}}
#        {    :   ,       :{    : ,      :[   ,   ]}}
#        1    1   1       12    2 2      23   3   321
#
# 4. Members: of the marks of an object's level between its braces, each colon ends a name, whose quotes are the last
#    two before it. The value lies between the colon and the next mark of this level. Elements of arrays lie between
#    their brackets and commas in the same way.
#
# `members` and `elements` do this for all containers of a level at once. Their result has one span for each value:
# where it begins and ends in the text. `texts` alone makes Arrow values, for the spans that a caller needs.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from attrs import field, frozen

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ABSENT, NULL, STRING, NUMBER, BOOLEAN, OBJECT, ARRAY = range(7)
"""The kinds of a JSON value."""
_KIND_BY_BYTE = np.full(256, NUMBER, np.uint8)
_KIND_BY_BYTE[[ord(c) for c in 'ntf"{[']] = (NULL, BOOLEAN, BOOLEAN, STRING, OBJECT, ARRAY)
_QUOTE, _BACKSLASH, _COLON, _COMMA = (ord(c) for c in '"\\:,')
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("{"), ord("[")]] = 1
_STEPS[[ord("}"), ord("]")]] = -1
_IS_MARK = _STEPS != 0
_IS_MARK[[_COLON, _COMMA]] = True
_SPECIAL_TABLE = bytes(byte == _QUOTE or bool(_IS_MARK[byte]) for byte in range(256))
_IS_BLANK = np.zeros(256, bool)
_IS_BLANK[[ord(c) for c in " \t\r\n"]] = True
_UNUSED_NAME = "\x00"
_FEW_BLANKS = 4


@frozen(eq=False)
class Spans:
    """Start and end positions of values in a text; -1 for a value that is absent. `ends` is after the last byte."""

    starts: Integers
    ends: Integers

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, positions: Integers | Flags) -> Spans:
        """Return the spans at some positions."""
        return Spans(self.starts[positions], self.ends[positions])

    def replace_absent(self, others: Spans) -> Spans:
        """Return the spans, and for those that are absent the others."""
        absent = self.starts < 0
        return Spans(np.where(absent, others.starts, self.starts), np.where(absent, others.ends, self.ends))

    @classmethod
    def absent(cls, count: int) -> Spans:
        """Return so many absent values."""
        return cls(np.full(count, -1, np.int64), np.full(count, -1, np.int64))


_FEW_NAMES = 64
"""So many comparisons of all members are faster than an order of them."""


@frozen(eq=False)
class Members:
    """The members of many objects."""

    objects: int
    names: Sequence[str]
    # the position in `names` of the name of each member
    codes: Integers
    owners: Integers
    values: Spans

    def find(self, name: str) -> Spans:
        """Return for each object its member of this name."""
        found = Spans.absent(self.objects)
        code = self._codes_by_name.get(name)
        if code is not None:
            chosen = self._find_code(code)
            owners = self.owners[chosen]
            found.starts[owners], found.ends[owners] = self.values.starts[chosen], self.values.ends[chosen]
        return found

    def _find_code(self, code: int) -> Integers | Flags:
        if len(self.names) <= _FEW_NAMES:
            return np.asarray(self.codes == code)
        order, starts = self._order
        return order[starts[code] : starts[code + 1]]

    @cached_property
    def _codes_by_name(self) -> Mapping[str, int]:
        return {name: code for code, name in enumerate(self.names)}

    @cached_property
    def _order(self) -> tuple[Integers, Integers]:
        """The members ordered by name, and where each name begins: many names cost no scan each."""
        order = np.argsort(self.codes, kind="stable")
        return order, np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))


@frozen(eq=False)
class JsonIndex:
    """The structure of many JSON objects in one text."""

    # the text as UTF-8, followed by a line break
    data: npt.NDArray[np.uint8]
    # positions of the quotes that begin and end strings
    quotes: Integers
    # positions of braces, brackets, colons and commas outside strings
    marks: Integers
    # for each mark, the number of containers around it, its own included
    levels: npt.NDArray[np.int32]
    # for each mark, the number of quotes before it
    quotes_before: npt.NDArray[np.int32]
    # the objects
    roots: Spans
    # whether the text has a backslash
    has_escapes: bool
    _chosen_by_level: dict[int, Integers] = field(factory=dict, init=False)

    def kinds(self, spans: Spans) -> npt.NDArray[np.uint8]:
        """Return the kinds of values."""
        return np.where(spans.starts < 0, ABSENT, _KIND_BY_BYTE[self.data[spans.starts]]).astype(np.uint8)

    def keep(self, spans: Spans, *kinds: int) -> Spans:
        """Return the values of some kinds; the others become absent."""
        others = ~np.isin(self.kinds(spans), kinds)
        return Spans(np.where(others, -1, spans.starts), np.where(others, -1, spans.ends))

    def members(self, objects: Spans) -> Members:
        """Return the members of objects; absent values, and values that are not objects, have none."""
        owners, starts, ends, closing = [], [], [], []
        for level, numbers in self._group_by_level(self.keep(objects, OBJECT)):
            chosen = self._find_level(level)
            marks = self.marks[chosen]
            inside, owner = _find_owners(marks, objects.take(numbers))
            colons = np.flatnonzero(inside & (self.data[marks] == _COLON))
            owners.append(numbers[owner[colons]])
            starts.append(marks[colons] + 1)
            ends.append(marks[colons + 1])
            closing.append(self.quotes_before[chosen[colons]].astype(np.int64) - 1)
        closed = _join(closing)
        names = self._read_strings(self.quotes[closed - 1] + 1, self.quotes[closed]).dictionary_encode()
        values = self._trim(Spans(_join(starts), _join(ends)))
        codes = np.asarray(names.indices).astype(np.int64)
        return Members(len(objects), names.dictionary.to_pylist(), codes, _join(owners), values)

    def elements(self, arrays: Spans) -> tuple[Integers, Spans]:
        """Return the elements of arrays, each with the position of its array, in their order."""
        owners, starts, ends = [], [], []
        for level, numbers in self._group_by_level(self.keep(arrays, ARRAY)):
            marks = self.marks[self._find_level(level)]
            inside, owner = _find_owners(marks, arrays.take(numbers))
            first = np.flatnonzero(inside & (marks != arrays.ends[numbers][owner] - 1))
            owners.append(numbers[owner[first]])
            starts.append(marks[first] + 1)
            ends.append(marks[first + 1])
        spans = self._trim(Spans(_join(starts), _join(ends)))
        filled = spans.starts < spans.ends
        order = np.argsort(spans.starts[filled], kind="stable")
        return _join(owners)[filled][order], spans.take(filled).take(order)

    def texts(self, spans: Spans) -> pa.StringArray:
        """Return strings without quotes and escapes, and other values as they are written; null for null and absent."""
        kinds = self.kinds(spans)
        present = np.flatnonzero(kinds > NULL)
        is_string = kinds[present] == STRING
        starts, ends = spans.starts[present] + is_string, spans.ends[present] - is_string
        made = self._read_strings(starts, ends, is_string)
        if len(present) == len(spans):
            return made
        places = np.zeros(len(spans), np.int64)
        places[present] = np.arange(len(present))
        return made.take(pa.array(places, mask=kinds <= NULL))

    def _read_strings(self, starts: Integers, ends: Integers, is_string: Flags | None = None) -> pa.StringArray:
        """Return texts, without escapes where they are strings, as all are by default."""
        raw = _gather(self.data, starts, ends)
        if not self.has_escapes:
            return raw
        escaped = np.asarray(pc.match_substring(raw, "\\"))
        escaped = escaped if is_string is None else escaped & is_string
        if not escaped.any():
            return raw
        return pc.replace_with_mask(raw, pa.array(escaped), _unescape(raw.filter(pa.array(escaped))))

    def _find_level(self, level: int) -> Integers:
        """Return the positions of the marks of a level; several objects of an event have the same."""
        if level not in self._chosen_by_level:
            self._chosen_by_level[level] = np.flatnonzero(self.levels == level)
        return self._chosen_by_level[level]

    def _group_by_level(self, spans: Spans) -> list[tuple[int, Integers]]:
        """Return the positions of containers by their level."""
        present = np.flatnonzero(spans.starts >= 0)
        levels = self.levels[np.searchsorted(self.marks, spans.starts[present])]
        return [(int(level), present[levels == level]) for level in np.unique(levels)]

    def _trim(self, spans: Spans) -> Spans:
        """Return values without the white space around them; of white space alone, nothing is left."""
        starts, ends = spans.starts, spans.ends
        for _ in range(_FEW_BLANKS):
            first = _IS_BLANK[self.data[starts]] & (starts < ends)
            last = _IS_BLANK[self.data[ends - 1]] & (starts < ends)
            if not first.any() and not last.any():
                return Spans(starts, ends)
            starts, ends = starts + first, ends - (last & (starts + first < ends))
        solid = np.flatnonzero(~_IS_BLANK[self.data])
        starts = solid[np.minimum(np.searchsorted(solid, starts), len(solid) - 1)]
        return Spans(starts, np.maximum(starts, solid[np.searchsorted(solid, ends) - 1] + 1))


def index_objects(texts: pa.Array) -> tuple[JsonIndex, Flags]:
    """Index JSON objects, a text each; return one root for each text that is an object, and which are."""
    good, lines = _find_objects(texts)
    index = _build_index(lines)
    bare = index.roots.starts[:0] if not len(index.roots) else _find_bare_words(index)
    if len(bare):  # NaN and Infinity, which the reader of Arrow accepts
        bad = np.unique(np.searchsorted(index.roots.starts, bare, "right") - 1)
        good[np.flatnonzero(good)[bad]] = False
        index = _build_index(_join_lines(texts.filter(pa.array(good))))
    return index, good


def _find_bare_words(index: JsonIndex) -> Integers:
    found = np.flatnonzero((index.data == ord("N")) | (index.data == ord("I")))
    return np.asarray(found[np.searchsorted(index.quotes, found) % 2 == 0])


def _find_objects(texts: pa.Array) -> tuple[Flags, pa.Buffer]:
    """Return which texts are one JSON object each, and these as lines.

    Each line begins with ``{`` and ends with ``}``, so no object can reach over the end of a line: after a closed value
    the reader takes no ``{``. With as many objects as lines, each line is one object.
    """
    raw = texts.cast(pa.binary())
    good = np.asarray(pc.and_(pc.starts_with(raw, b"{"), pc.ends_with(raw, b"}")))
    lines = _check_objects(raw if good.all() else raw.filter(pa.array(good)))
    if lines is not None:
        return good, lines
    pending = [np.flatnonzero(good)]
    while pending:
        numbers = pending.pop()
        if _check_objects(raw.take(pa.array(numbers))) is not None:
            continue
        if len(numbers) == 1:
            good[numbers] = False
            continue
        half = len(numbers) // 2
        pending += [numbers[:half], numbers[half:]]
    return good, _join_lines(raw.filter(pa.array(good)))


def _check_objects(raw: pa.BinaryArray) -> pa.Buffer | None:
    """Return texts as lines; None if one is not a JSON object."""
    try:
        lines = _join_lines(raw.cast(pa.string()))
        found = _read_lines(lines, pa.schema([(_UNUSED_NAME, pa.null())])).num_rows if len(raw) else 0
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    return lines if found == len(raw) else None


def _read_lines(lines: pa.Buffer, schema: pa.Schema) -> pa.Table:
    """Read JSON objects with the columns of a schema."""
    return pj.read_json(
        pa.BufferReader(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _join_lines(texts: pa.Array) -> pa.Buffer:
    """Return texts as lines; a line break inside a JSON text is white space."""
    raw = pc.replace_substring(texts.cast(pa.binary()), b"\n", b" ")
    return pc.binary_join(pa.ListArray.from_arrays([0, len(raw)], raw), b"\n")[0].as_buffer()


def _unescape(raw: pa.StringArray) -> pa.StringArray:
    """Return the values of JSON strings, given without their quotes."""
    lines = pc.binary_join_element_wise('{"v":"', raw, '"}', "")
    return _read_lines(_join_lines(lines), pa.schema([("v", pa.string())]))["v"].combine_chunks()


def _build_index(lines: pa.Buffer) -> JsonIndex:
    data = np.append(np.frombuffer(lines, np.uint8), np.uint8(ord("\n")))
    special = np.flatnonzero(np.frombuffer(data.tobytes().translate(_SPECIAL_TABLE), bool))
    is_quote = data[special] == _QUOTE
    backslashes = np.flatnonzero(data == _BACKSLASH)
    if len(backslashes):
        places = np.flatnonzero(is_quote)
        special = np.delete(special, places[_is_escaped(backslashes, special[places])])
        is_quote = data[special] == _QUOTE
    before = np.cumsum(is_quote, dtype=np.int32)
    outside = ~is_quote & (before & 1 == 0)
    marks = special[outside]
    steps = _STEPS[data[marks]]
    levels = np.cumsum(steps, dtype=np.int32) + (steps < 0)
    edges = marks[(levels == 1) & (steps != 0)]
    roots = Spans(edges[0::2], edges[1::2] + 1)
    return JsonIndex(data, special[is_quote], marks, levels, before[outside], roots, len(backslashes) > 0)


def _is_escaped(backslashes: Integers, quotes: Integers) -> Flags:
    """Return which quotes follow an odd number of backslashes."""
    numbers = np.arange(len(backslashes))
    is_first = np.append(True, np.diff(backslashes) != 1)
    first = np.maximum.accumulate(np.where(is_first, numbers, 0))
    last = np.searchsorted(backslashes, quotes) - 1
    follows = (last >= 0) & (backslashes[last] == quotes - 1)
    return np.asarray(follows & ((last - first[last]) % 2 == 0))


def _find_owners(marks: Integers, containers: Spans) -> tuple[Flags, Integers]:
    """Return which marks of the level of containers lie in one of them, and in which."""
    order = np.argsort(containers.starts, kind="stable")
    begins = np.zeros(len(marks), np.int64)
    begins[np.searchsorted(marks, containers.starts[order])] = 1
    at = np.cumsum(begins) - 1
    owner = order[np.maximum(at, 0)]
    return (at >= 0) & (marks < containers.ends[owner]), owner


def _gather(data: npt.NDArray[np.uint8], starts: Integers, ends: Integers) -> pa.StringArray:
    """Return parts of a text, of which two are the same or do not overlap."""
    if not len(starts):
        return pa.array([], pa.string())
    places: Integers | None = None
    if np.any(starts[1:] < ends[:-1]):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        is_new = np.append(True, (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]))
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(is_new) - 1
        starts, ends = starts[is_new], ends[is_new]
    # Every second value of an array over the whole text is a part; the others lie between the parts.
    offsets = np.stack([starts, ends], axis=1).astype(np.int32).ravel()
    whole = pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
    return whole.take(pa.array((np.arange(len(starts)) if places is None else places) * 2))


def _join(parts: list[Integers]) -> Integers:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


_WRAPPERS = (
    "$oid",
    "$numberLong",
    "$numberInt",
    "$numberDouble",
    "$numberDecimal",
    "$date",
    "$symbol",
    "$uuid",
)
"""Names of the one member of objects that hold a value, in MongoDB's extended JSON."""
_BINARY, _UNDEFINED = "$binary", "$undefined"


def unwrap_values(index: JsonIndex, spans: Spans) -> Spans:
    """Return values without their wrappers; other values stay, and undefined ones become absent."""
    for _ in range(2):  # a date may contain a wrapped number
        members = index.members(spans)
        if not members.names:
            break
        for name in _WRAPPERS:
            spans = members.find(name).replace_absent(spans)
        binary = members.find(_BINARY)  # an object with base64 text, or in the older form the text
        spans = index.members(binary).find("base64").replace_absent(binary).replace_absent(spans)
        has_value = members.find(_UNDEFINED).starts < 0
        spans = Spans(np.where(has_value, spans.starts, -1), np.where(has_value, spans.ends, -1))
    return spans
