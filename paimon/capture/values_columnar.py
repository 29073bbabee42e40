"""JSON values as columns of a table, in bulk.

Invariant: a value is converted exactly or not at all. It becomes null, and its flag says that it was not good.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.capture.encoded_values import count_units, decode_base64, decode_latin1, isolate, parse_times, to_decimals
from paimon.capture.json_index import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, JsonIndex, Spans, unwrap_values
from paimon.capture.source_types import Encoding, SourceType
from paimon.domain.columns import nested
from paimon.domain.columns.cast import cast_column
from paimon.domain.columns.time_text import has_printable_years
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataType

Flags = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]
_TIMES = (dt.DateType, dt.TimeType, *dt.TIMESTAMP_TYPES)
_BYTES = (*dt.BYTES_TYPES, dt.BlobType)
_WHOLE = r"^[+-]?[0-9]{1,40}(?:\.0*)?$"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?$"
_WIDE_DIGITS = 76
_UNITS: Mapping[Encoding, str] = {
    Encoding.DAYS: "D",
    Encoding.MILLIS: "ms",
    Encoding.MICROS: "us",
    Encoding.NANOS: "ns",
}


@frozen(eq=False)
class Converted:
    """Converted values."""

    # null where a value is missing or could not be converted
    values: pa.Array
    # which values were converted or are missing
    good: Flags


@frozen(eq=False)
class _Scalars:
    """Values as texts, with their kinds."""

    kinds: Kinds
    texts: pa.StringArray

    def only(self, *kinds: int) -> pa.StringArray:
        """Return the texts of values of some kinds, and null for the others."""
        return pc.if_else(pa.array(np.isin(self.kinds, kinds)), self.texts, pa.scalar(None, pa.string()))


def convert_values(index: JsonIndex, spans: Spans, source: SourceType, target: DataType) -> Converted:
    """Convert JSON values to the type of a column."""
    if source.is_extended_json:
        spans = unwrap_values(index, spans)
    missing = index.kinds(spans) <= NULL
    if isinstance(target, (dt.ArrayType, dt.MapType, dt.RowType)):
        return _convert_nested(index, spans, source, target)
    made = _convert_scalars(_read_scalars(index, spans, source), source, target)
    return Converted(made, missing | np.asarray(made.is_valid()))


def _read_scalars(index: JsonIndex, spans: Spans, source: SourceType) -> _Scalars:
    """Return the values as texts; encoded decimals become texts of numbers."""
    kinds, texts = index.kinds(spans), index.texts(spans)
    if source.encoding is Encoding.DECIMAL:
        encoded = pa.array(kinds == STRING)
        scale = source.scale
        decoded = pa.nulls(len(texts), pa.string()) if not 0 <= scale <= 38 else _decode_decimals(texts, scale)
        return _Scalars(kinds, pc.if_else(encoded, decoded, texts))
    if source.encoding is Encoding.VARIABLE_DECIMAL:
        decoded = _decode_variable_decimals(index, spans)
        is_object = kinds == OBJECT
        return _Scalars(np.where(is_object, STRING, kinds), pc.if_else(pa.array(is_object), decoded, texts))
    return _Scalars(kinds, texts)


def _decode_decimals(texts: pa.StringArray, scale: int) -> pa.StringArray:
    return to_decimals(decode_base64(texts), scale).cast(pa.string())


def _decode_variable_decimals(index: JsonIndex, spans: Spans) -> pa.StringArray:
    members = index.members(spans)
    scales, digits = index.texts(members.find("scale")), index.texts(members.find("value"))
    made = pa.nulls(len(spans), pa.string())
    for text in pc.unique(scales).to_pylist():
        if text is not None and text.isascii() and text.isdigit() and len(text) <= 2 and int(text) <= 38:
            chosen = pc.fill_null(pc.equal(scales, text), False)
            made = pc.if_else(chosen, _decode_decimals(digits, int(text)), made)
    return made


def _convert_scalars(values: _Scalars, source: SourceType, target: DataType) -> pa.Array:
    """Return the values in the type of the column; null for those that do not fit."""
    kind = arrow_type(target)
    if isinstance(target, dt.CHARACTER_TYPES):
        return _convert_texts(values, source)
    if isinstance(target, _BYTES):
        decode = decode_latin1 if source.encoding is Encoding.LATIN1 else decode_base64
        made = decode(values.only(STRING))
        return pc.binary_reverse(made) if source.encoding is Encoding.BITS else made
    if isinstance(target, _TIMES):
        return _convert_times(values, source, target)
    texts = values.only(STRING, NUMBER, BOOLEAN)
    match target:
        case dt.BooleanType():
            words = pc.utf8_lower(texts)
            true, false = (pc.is_in(words, pa.array(known)) for known in (["true", "1"], ["false", "0"]))
            return pc.if_else(pc.or_(true, false), true, pa.scalar(None, pa.bool_()))
        case dt.DecimalType():
            # Arrow changes the scale of wide decimals wrongly, so the text is read with the scale of the column.
            wide = pa.decimal256(_WIDE_DIGITS, target.scale)
            return isolate(_match(texts, _NUMBER), lambda part: part.cast(wide).cast(kind), kind)
        case dt.FloatType() | dt.DoubleType():
            return _convert_floats(texts, kind)
        case _ if isinstance(target, dt.INTEGER_TYPES):
            return _convert_integers(texts, kind)
    return pa.nulls(len(texts), kind)


def _convert_floats(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Return floating-point numbers; null for a text of digits whose number is beyond the largest one."""
    words = pc.replace_substring_regex(texts, r"^\+", "")
    made = isolate(words, lambda part: part.cast(kind), kind)
    overflows = pc.and_(pc.is_inf(made), pc.match_substring_regex(words, "[0-9]"))
    return pc.if_else(pc.fill_null(overflows, False), pa.scalar(None, kind), made)


def _convert_texts(values: _Scalars, source: SourceType) -> pa.StringArray:
    """Return values as texts; numeric dates and times as a cast writes them, if in the years 1 to 9999."""
    if source.encoding not in _UNITS or source.data_type is None:
        return values.texts
    numbers = _Scalars(values.kinds, values.only(NUMBER))
    times = _convert_times(numbers, source, source.data_type)
    written = cast_column(times, source.data_type, dt.VarCharType())
    if not isinstance(source.data_type, dt.TimeType):
        written = pc.if_else(pa.array(has_printable_years(times)), written, pa.scalar(None, pa.string()))
    return pc.if_else(pa.array(values.kinds == NUMBER), written, values.texts)


def _convert_integers(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    flags = pc.index_in(texts, pa.array(["false", "true"])).cast(pa.string())
    whole = _match(pc.coalesce(flags, texts), _WHOLE)
    bare = pc.replace_substring_regex(whole, r"^\+|\.0*$", "")
    return isolate(bare, lambda part: part.cast(pa.int64()).cast(kind), kind)


def _match(texts: pa.StringArray, pattern: str) -> pa.StringArray:
    good = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    return pc.if_else(good, texts, pa.scalar(None, pa.string()))


def _convert_times(values: _Scalars, source: SourceType, target: DataType) -> pa.Array:
    """Convert numbers of a unit, and texts; in a column with a known unit, a text of digits is a number too."""
    unit = _UNITS.get(source.encoding)
    numbers = values.only(NUMBER) if unit is None else values.only(NUMBER, STRING)
    counted = _convert_integers(_match(numbers, r"^-?[0-9]+$"), pa.int64())
    parsed = parse_times(values.only(STRING), target)
    return pc.coalesce(count_units(counted, unit or _find_unit(target), target), parsed)


def _find_unit(target: DataType) -> str:
    """Return the unit of numbers without a source type, as Debezium chooses it by the precision of a column."""
    if isinstance(target, dt.DateType):
        return "D"
    assert isinstance(target, dt.TimeType | dt.TimestampType | dt.LocalZonedTimestampType)
    return "ms" if target.precision <= 3 else "us" if target.precision <= 6 else "ns"


def _convert_nested(index: JsonIndex, spans: Spans, source: SourceType, target: DataType) -> Converted:
    kinds = index.kinds(spans)
    wanted = ARRAY if isinstance(target, dt.ArrayType) else OBJECT
    mask, good = kinds != wanted, (kinds <= NULL) | (kinds == wanted)
    plain = source.of_parts
    if isinstance(target, dt.RowType):
        members = index.members(spans)
        parts = [convert_values(index, members.find(f.name), plain, f.type) for f in target.fields]
        for part in parts:
            good &= part.good
        kind = arrow_type(target)
        children = [part.values.cast(f.type) for part, f in zip(parts, kind, strict=True)]
        return Converted(pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.array(mask)), good)
    if isinstance(target, dt.ArrayType):
        owners, values = index.elements(spans)
        found = convert_values(index, values, plain, target.element)
        good[owners[~found.good]] = False
        offsets = _make_offsets(owners, mask)
        return Converted(pa.ListArray.from_arrays(offsets, found.values, type=arrow_type(target)), good)
    return _convert_map(index, spans, plain, target, (mask, good))


def _convert_map(
    index: JsonIndex, spans: Spans, source: SourceType, target: DataType, flags: tuple[Flags, Flags]
) -> Converted:
    assert isinstance(target, dt.MapType)
    mask, good = flags
    members = index.members(spans)
    order = np.lexsort((members.values.starts, members.owners))
    owners, codes = members.owners[order], members.codes[order]
    found = convert_values(index, members.values.take(order), source, target.value)
    names = pa.array(members.names, pa.string()).take(pa.array(codes))
    keys = _convert_scalars(_Scalars(np.full(len(codes), STRING, np.uint8), names), SourceType(), target.key)
    good[owners[~found.good | np.asarray(keys.is_null())]] = False
    kind = arrow_type(target)
    keys = pc.fill_null(keys, "") if pa.types.is_string(kind.key_type) else keys
    entries = pa.map_(kind.key_type, kind.item_type)
    made = pa.MapArray.from_arrays(_make_offsets(owners, mask), keys, found.values, type=entries)
    return Converted(nested.rebuild_map(made, *nested.map_entries(made), kind), good)


def _make_offsets(owners: npt.NDArray[np.int64], mask: Flags) -> pa.Int32Array:
    """Return the offsets of lists, null where the list is."""
    ends = np.cumsum(np.bincount(owners, minlength=len(mask)))
    offsets = np.append(0, ends).astype(np.int32)
    return pa.array(offsets, mask=np.append(mask, False))
